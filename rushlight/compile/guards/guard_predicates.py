"""Guard predicates: the kinds of facts about reachable Python values that a program relies on, and when values are
equal.

Each kind is a line: how to compute the fact, the expression that tests it before each run, and the message if it
changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType, MemberDescriptorType
from typing import Any, NamedTuple
from weakref import ref

from rushlight.core.tensor import Tensor

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis))


class Kind(NamedTuple):
    """A kind of fact."""

    now: Callable[[Any], Any]  # thing -> the fact
    test: str  # a Python expression: the fact about {thing} still is {was}
    changed: Callable[[Any, Any, Any], str]  # (thing, old fact, new fact) -> the change in words


class Fact(NamedTuple):
    """A fact about `thing`: `kind.now(thing)` was `was`."""

    kind: Kind
    thing: Any
    was: Any


def sizes(c: Any, was: int, now: int) -> str:
    return f"a {type(c).__name__} of {was} items now has {now}"


SIZE = Kind(len, "len({thing}) == {was}", sizes)
EMPTY = Kind(len, "not {thing}", sizes)  # a faster test than SIZE, for dicts and lists
# the last key changes if an item is removed and inserted again
LAST_KEY = Kind(
    lambda d: next(reversed(d)),
    "next(reversed({thing})) is {was}",
    lambda d, *_: f"a {type(d).__name__} has another last key",
)
ARRAY = Kind(
    lambda a: a.tobytes(), "{thing}.tobytes() == {was}", lambda a, *_: f"an array of {a.size} numbers has other numbers"
)
MASK = Kind(
    lambda t: t._array.tobytes(),
    "{thing}._array.tobytes() == {was}",
    lambda t, *_: f"a mask of {t._array.size} elements has other numbers",
)
UNFILLED = Kind(
    lambda slots: slots.empty,
    "not any([hasattr({thing}, name) for name in {was}])",
    lambda slots, *_: f"a {type(slots.thing).__name__} has an attribute more, or less",
)
ITEMS = Kind(frozenset, "{thing} == {was}", lambda e, was, _: f"a set of {len(was)} items has other items")


def fact_of(kind: Kind, thing: Any) -> Fact:
    return Fact(kind, thing, kind.now(thing))


def changed(old: Fact, new: Fact) -> str:
    """The change between two facts about one thing, in words; "" if there is none, or the things differ."""
    if not one(old.thing, new.thing) or equal(old.was, new.was) or old.kind is ITEMS and old.was == new.was:
        return ""
    return old.kind.changed(old.thing, old.was, new.was)


def one(c: Any, d: Any) -> bool:
    """Whether two containers are the same object, or wrap the same object."""
    return (
        c is d
        or type(c) is type(d)
        and (type(c) is MappingProxyType and c == d or isinstance(c, (Slots, Asked)) and c.thing is d.thing)
    )


def equal(a: Any, b: Any) -> bool:
    """Whether two items are the same: objects by identity, plain values by type and value; 0.0 differs from -0.0."""
    return a is b or (
        type(a) is type(b)
        and (
            isinstance(a, PLAIN)
            and (a == b and (bool(a) or repr(a) == repr(b)) or a != a and b != b)
            or (type(a) is tuple and plain(a) and alike(a, b))
        )
    )


def alike(a: Any, b: tuple, item: tuple = (), free: frozenset = frozenset()) -> bool:
    """Whether two tuples have the same plain values. Numbers at (*item, index) in `free` need only the same sign."""
    return (
        type(a) is tuple
        and len(a) == len(b)
        and all(
            [equal(v, w) or (*item[:1], (*item[1:], i)) in free and v * w > 0 for i, (v, w) in enumerate(zip(a, b))]
        )
    )


def plain(items: tuple) -> bool:
    return all([isinstance(v, PLAIN) for v in items])


def stands_for(new: Any, old: Any) -> bool:
    """Whether one tensor may replace another in code that reads no elements: same shape, dtype and attributes."""
    return (
        type(new) is type(old) is Tensor
        and new._array.shape == old._array.shape
        and new._array.dtype == old._array.dtype
        and all([is_bare(t) for t in (new, old)])
        and (new._node is None) is (old._node is None)
    )


def is_bare(t: Tensor) -> bool:
    """Whether a tensor is not a leaf and has no gradient, attributes or hooks."""
    return t._grad is None and not t.__dict__ and (t._node is None or not t._node.leaf and t._node.hooks is None)


class Asked:
    """A weak reference or a ContextVar as a container: item 0 is its current value."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __getitem__(self, key: Any) -> Any:
        return self.thing() if isinstance(self.thing, ref) else self.thing.get(None)


class Slots:
    """The attributes of an object in slots, as a container by name. `empty`: the names of the empty slots."""

    def __init__(self, thing: Any, names: Iterable[str] = ()):
        self.thing = thing
        slots = [
            name
            for c in type(thing).__mro__
            for name, member in vars(c).items()
            if isinstance(member, MemberDescriptorType) and "__slots__" in vars(c)
        ]
        self.names = [*names, *(name for name in slots if hasattr(thing, name))]
        self.empty = tuple(name for name in slots if not hasattr(thing, name))

    def __getitem__(self, name: str) -> Any:
        return getattr(self.thing, name)
