"""Sources of a program's input arrays: arguments, tensors that the function reaches, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.base.text import define, folded, indented
from rushlight.core.tensor import Tensor

Source = tuple[str, Any]  # ("argument", number), ("state", tensor), ("grad", number or tensor)...


def keyed(source: Source) -> tuple:
    """A source as a dict key: a tensor is replaced by its id."""
    kind, what = source
    return kind, what if isinstance(what, int) else id(what)


def find(source: Source, arguments: list[Any]) -> Tensor:
    """The tensor of a source."""
    kind, what = source
    return arguments[what] if kind == "argument" else of_grad(what, arguments) if kind == "grad" else what


def picker(sources: list[Source], suffix: str = "") -> Callable[[list[Any]], list[Any]]:
    """A function that maps the arguments to the tensor of each source. It is one generated expression, for speed."""
    names, parts = {}, []
    for k, (place, what) in enumerate(sources):
        names[f"t{k}"] = what
        start = f"a[{what}]" if place == "argument" or place == "grad" and isinstance(what, int) else f"t{k}"
        parts.append(start + "._grad" * (place == "grad") + suffix)
    text = "\n".join(["def pick(a):", *indented(folded("return [", parts, "]"))]) + "\n"
    return define(text, "pick", names, "inputs of a program")


def of_grad(what: Any, arguments: list[Any]) -> Tensor:
    return (arguments[what] if isinstance(what, int) else what)._grad
