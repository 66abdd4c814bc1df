"""Classes that are no tensors and take part in torch's functions all the same: linear_operator's, and those of torch's notes
on extending it.

Functions look at their arguments once there is somebody to ask (`rushlight/overrides.py`). A class that inherits from Tensor
says so when it is made. Of others nobody hears, so the statement `class` is told to say when one of them has a
`__torch_function__`; in programs written for torch only. To look for it in each op would cost all programs.
"""
from __future__ import annotations

import builtins
from typing import Any

import rushlight

build: Any = builtins.__build_class__


def asks(made: Any) -> bool:
    """Whether it is a class of the user's that has a say, is no tensor (those take part by themselves), and no mode (which
    does when it is entered)."""
    return (isinstance(made, type) and "__torch_function__" in vars(made) and not issubclass(made, rushlight.Tensor)
            and made.__module__.partition(".")[0] != "rushlight"
            and not issubclass(made, rushlight.overrides.TorchFunctionMode))


def heard(*args: Any, **keywords: Any) -> Any:
    """What runs the statement `class`; then functions ask, if the class is one to be asked, and so do the methods of plain
    tensors: x.matmul(op), x == op. A small op takes 0.5 us more from then on."""
    body = args[0]
    if "__torch_function__" in body.__code__.co_names and not body.__globals__.get("__name__", "").startswith("rushlight."):
        rushlight.overrides.first()                # before: torch.Tensor.mul, which the body may name, is not torch.mul then
    made = build(*args, **keywords)
    if asks(made):
        rushlight.overrides.methods_ask()
    return made


def listen() -> None:
    """From now on the statement `class` tells."""
    global build
    if builtins.__build_class__ is not heard:
        build, builtins.__build_class__ = builtins.__build_class__, heard


def stop() -> None:
    """Undo `listen`, unless somebody else has put a function around ours."""
    if builtins.__build_class__ is heard:
        builtins.__build_class__ = build
