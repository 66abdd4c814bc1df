"""Find users' classes with `__torch_function__` that do not inherit from Tensor, as in linear_operator.

Functions check their arguments for `__torch_function__` only after a class with that method exists
(ops/tensor/torch_function.py), since a check in each op would cost all programs. `Tensor.__init_subclass__` reports
subclasses of Tensor. To find other classes, the function that the statement `class` calls is replaced
(`builtins.__build_class__`), under compat only.

The replacement adds no Python frame: metaclasses of libraries look for the module that contains a class by
`sys._getframe(2)`. Python reads `__call__` of the replacement: `Watched.__get__`, which has returned before the class
is made, gives Python's own function, and Python calls that."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from functools import partial
from types import CodeType
from typing import Any

import rushlight
from rushlight.ops.tensor import torch_function

NAME = "__torch_function__"
build: Any = builtins.__build_class__


def asks(made: type) -> bool:
    """Whether a class is a user's, has `__torch_function__`, and is neither a subclass of Tensor (reported already) nor
    a mode (takes part while it is entered)."""
    return (
        NAME in vars(made)
        and not issubclass(made, rushlight.Tensor)
        and made.__module__.partition(".")[0] != "rushlight"
        and not issubclass(made, rushlight.overrides.TorchFunctionMode)
    )


def all_classes() -> Iterator[type]:
    """Every class of the process."""
    found: set[type] = {object}
    left: list[type] = [object]
    while left:
        cls = left.pop()
        yield cls
        new: set[type] = set(type.__subclasses__(cls)) - found
        found |= new
        left += new


class Finished(partial):
    """Python's function that makes a class. Python drops the object after the call; then, if a class takes part,
    functions and methods of plain tensors check their arguments from now on (x.matmul(op), x == op), which makes every
    op slower."""

    def __del__(self) -> None:
        if any(map(asks, all_classes())):
            torch_function.gate_methods()


class Watched:
    """`__call__` of the replacement: Python's own function, or `Finished` if the calling code contains the body of a
    class that names `__torch_function__`."""

    def __get__(self, instance: Any, owner: type) -> Any:
        frame = sys._getframe(1)
        inside = [c for c in frame.f_code.co_consts if isinstance(c, CodeType)]
        if not any(NAME in c.co_names for c in inside):
            return build
        if frame.f_globals.get("__name__", "").startswith("rushlight."):
            return build
        # before: torch.Tensor.mul, which the body may name, is not torch.mul then
        torch_function.first()
        return Finished(build)


class BuildClass:
    """Replaces `__build_class__`."""

    __call__ = Watched()


heard = BuildClass()


def listen() -> None:
    """Replace the function of the statement `class` by `heard`."""
    global build
    if builtins.__build_class__ is not heard:
        build, builtins.__build_class__ = builtins.__build_class__, heard


def stop() -> None:
    """Undo `listen`, unless other code has wrapped `heard`."""
    if builtins.__build_class__ is heard:
        builtins.__build_class__ = build
