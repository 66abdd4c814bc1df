"""Facts that a program relies on, about the Python values that a function can reach: what is so of a thing, how it is
tested before each run, and what counts as the same. A line per kind.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType, MemberDescriptorType
from typing import Any, NamedTuple
from weakref import ref

from rushlight.tensor import Tensor

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis))


class Kind(NamedTuple):
    """What is so of a thing, that it still is, in Python, and that it is no longer, in words."""

    now: Callable[[Any], Any]
    test: str
    changed: Callable[[Any, Any, Any], str]       # of the thing, what was and what is


class Fact(NamedTuple):
    kind: Kind
    thing: Any
    was: Any


def sizes(c: Any, was: int, now: int) -> str:
    return f"a {type(c).__name__} of {was} items now has {now}"


SIZE = Kind(len, "len({thing}) == {was}", sizes)
EMPTY = Kind(len, "not {thing}", sizes)           # of a dict or a list: 0.6 of the time
LAST_KEY = Kind(lambda d: next(reversed(d)), "next(reversed({thing})) is {was}",        # where one is put in anew
                lambda d, *_: f"a {type(d).__name__} has another last key")
ARRAY = Kind(lambda a: a.tobytes(), "{thing}.tobytes() == {was}",
             lambda a, *_: f"an array of {a.size} numbers has other numbers")
MASK = Kind(lambda t: t.array.tobytes(), "{thing}.array.tobytes() == {was}",
            lambda t, *_: f"a mask of {t.array.size} elements has other numbers")
UNFILLED = Kind(lambda slots: slots.empty, "not any([hasattr({thing}, name) for name in {was}])",
                lambda slots, *_: f"a {type(slots.thing).__name__} has an attribute more, or less")
ITEMS = Kind(frozenset, "{thing} == {was}", lambda e, was, _: f"a set of {len(was)} items has other items")


def noted(kind: Kind, thing: Any) -> Fact:
    return Fact(kind, thing, kind.now(thing))


def changed(old: Fact, new: Fact) -> str:
    """In words, where both are of one thing, that it has changed since; else empty."""
    if not one(old.thing, new.thing) or equal(old.was, new.was) or old.kind is ITEMS and old.was == new.was:
        return ""
    return old.kind.changed(old.thing, old.was, new.was)


def one(c: Any, d: Any) -> bool:
    """Whether two containers are the same one."""
    return c is d or type(c) is type(d) and (
        type(c) is MappingProxyType and c == d or isinstance(c, (Slots, Asked)) and c.thing is d.thing)


def equal(a: Any, b: Any) -> bool:
    """Whether two items count as the same: objects by identity, plain values by type and value, zeros by their sign."""
    return a is b or (type(a) is type(b) and (
        isinstance(a, PLAIN) and (a == b and (bool(a) or repr(a) == repr(b)) or a != a and b != b) or (
            type(a) is tuple and plain(a) and alike(a, b))))


def alike(a: Any, b: tuple, item: tuple = (), free: frozenset = frozenset()) -> bool:
    """Whether a tuple has the plain values of another, but for the sizes of those in `free`: (*item, their places)."""
    return type(a) is tuple and len(a) == len(b) and all([
        equal(v, w) or (*item[:1], (*item[1:], i)) in free and v * w > 0 for i, (v, w) in enumerate(zip(a, b))])


def plain(items: tuple) -> bool:
    return all([isinstance(v, PLAIN) for v in items])


def stands_for(new: Any, old: Any) -> bool:
    """Whether a tensor looks like another to who does not read its numbers."""
    return type(new) is type(old) is Tensor and new.array.shape == old.array.shape and new.array.dtype == old.array.dtype \
        and all([t._grad is None and not t.__dict__ and (t.node is None or not t.node.leaf and t.node.hooks is None)
                 for t in (new, old)]) and (new.node is None) is (old.node is None)


class Asked:
    """What a weak reference or a variable of the context holds now."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __getitem__(self, key: Any) -> Any:
        return self.thing() if isinstance(self.thing, ref) else self.thing.get(None)


class Slots:
    """An object's attributes that are in no dict, by name: those in slots. `empty`: slots that hold nothing."""

    def __init__(self, thing: Any, names: Iterable[str] = ()):
        self.thing = thing
        slots = [name for c in type(thing).__mro__ for name, member in vars(c).items()
                 if isinstance(member, MemberDescriptorType) and "__slots__" in vars(c)]
        self.names = [*names, *(name for name in slots if hasattr(thing, name))]
        self.empty = tuple(name for name in slots if not hasattr(thing, name))

    def __getitem__(self, name: str) -> Any:
        return getattr(self.thing, name)
