"""Docstrings and signatures of derived functions, computed on demand.

Writing all docstrings takes 16 ms, and 25 more to run their examples; `import rushlight` may take 25 in total. So a
derived function has a `Docstring`, which is written on first access, and its `__wrapped__` is a proxy for its entry:
`inspect.signature` finds torch's parameters there, `inspect.getsource` finds the entry in the table. This costs 0.5 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.base.higher import Higher

op_docstrings = Higher()  # writes docstrings and signatures


class Entry:
    """A proxy for the entry behind a function, for `inspect`."""

    __slots__ = ("op", "writes")

    def __init__(self, op: Any, writes: bool):
        self.op, self.writes = op, writes  # writes: whether the function is the in-place form

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op.call(*args, **kwargs)

    @property
    def __signature__(self) -> Any:
        return op_docstrings().signature(self.op, self.writes)

    @property
    def __wrapped__(self) -> Callable:
        return self.op.forward


def on_the_text(name: str) -> Callable:
    def method(self: Docstring, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.written(), name)(*args, **kwargs)

    return method


# str with methods that work on the written text. The type is created with all its methods: adding methods individually
# takes 0.7 ms.
Reading: Any = type(
    "Reading",
    (str,),
    {"__slots__": ()}
    | {
        name: on_the_text(name)
        for name, method in vars(str).items()
        if callable(method) and name not in ("__new__", "__getattribute__")
    },
)


class Docstring(Reading):
    """A docstring that is written on first access.

    C code that reads a string's characters without a method (`re`, `join`) sees a short text with the name and the
    place of the docstring.
    """

    __slots__ = ("entry",)
    entry: Entry

    def written(self) -> str:
        """The text, from the entry's current state."""
        return op_docstrings().text(self.entry.op, self.entry.writes)

    def __radd__(self, other: str) -> str:
        return other + self.written()

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return str, (self.written(),)


def introduce(function: Callable, op: Any, writes: bool = False) -> None:
    """Give a function made from an entry its name, docstring and signature; `writes`: the function is an in-place
    form.
    """
    function.__name__ = function.__qualname__ = name = op.name + "_" if writes else op.name
    function.__module__ = op.forward.__module__
    entry = Entry(op, writes)
    function.__doc__ = doc = Docstring(f"{name}: written when it is read, as by help(rushlight.{op.name})")
    function.op, function.__wrapped__, doc.entry = op, entry, entry  # type: ignore[attr-defined]
