"""Where the arrays come from that a program reads: arguments, what the function reaches by itself, gradients."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.base.text import define, folded, indented
from rushlight.tensor import Tensor

Source = tuple[str, Any]                          # ("argument", number), ("state", tensor), ("grad", number or tensor)...


def keyed(source: Source) -> tuple:
    """A source as a key of a dict."""
    kind, what = source
    return kind, what if isinstance(what, int) else id(what)


def find(source: Source, arguments: list[Any]) -> Tensor:
    """The tensor that an input comes from."""
    kind, what = source
    return arguments[what] if kind == "argument" else of_grad(what, arguments) if kind == "grad" else what


def picker(sources: list[Source], suffix: str = "") -> Callable[[list[Any]], list[Any]]:
    """`find` for each of some inputs, as one function: a tenth of the time."""
    names, parts = {}, []
    for k, (place, what) in enumerate(sources):
        names[f"t{k}"] = what
        start = f"a[{what}]" if place == "argument" or place == "grad" and isinstance(what, int) else f"t{k}"
        parts.append(start + "._grad" * (place == "grad") + suffix)
    text = "\n".join(["def pick(a):", *indented(folded("return [", parts, "]"))]) + "\n"
    return define(text, "pick", names, "inputs of a program")


def of_grad(what: Any, arguments: list[Any]) -> Tensor:
    return (arguments[what] if isinstance(what, int) else what)._grad
