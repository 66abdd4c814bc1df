"""Find users' classes with `__torch_function__` that do not inherit from Tensor, as in
linear_operator.

Functions check their arguments for `__torch_function__` only after a class with that method exists
(ops/tensor/torch_function.py), since a check in each op would cost all programs.
`Tensor.__init_subclass__` reports subclasses of Tensor. To find other classes, the statement
`class` is replaced (`builtins.__build_class__`), under compat only."""

from __future__ import annotations

import builtins
from typing import Any

import rushlight
from rushlight.ops.tensor import torch_function

build: Any = builtins.__build_class__


def asks(made: Any) -> bool:
    """Whether a new class is a user's, has `__torch_function__`, and is neither a subclass of
    Tensor (reported already) nor a mode (takes part while it is entered)."""
    return (
        isinstance(made, type)
        and "__torch_function__" in vars(made)
        and not issubclass(made, rushlight.Tensor)
        and made.__module__.partition(".")[0] != "rushlight"
        and not issubclass(made, rushlight.overrides.TorchFunctionMode)
    )


def heard(*args: Any, **keywords: Any) -> Any:
    """Replaces `__build_class__`: builds the class; if it takes part, functions and methods of
    plain tensors check their arguments from now on (x.matmul(op), x == op), which makes every op
    slower."""
    body = args[0]
    if "__torch_function__" in body.__code__.co_names and not body.__globals__.get(
        "__name__", ""
    ).startswith("rushlight."):
        # before: torch.Tensor.mul, which the body may name, is not torch.mul then
        torch_function.first()
    made = build(*args, **keywords)
    if asks(made):
        torch_function.gate_methods()
    return made


def listen() -> None:
    """Replace the statement `class` by `heard`."""
    global build
    if builtins.__build_class__ is not heard:
        build, builtins.__build_class__ = builtins.__build_class__, heard


def stop() -> None:
    """Undo `listen`, unless other code has wrapped `heard`."""
    if builtins.__build_class__ is heard:
        builtins.__build_class__ = build
