"""The guards of a program: one generated function that tests all items and facts of a snapshot, as fast as Python
can."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from rushlight.base.text import define
from rushlight.compile.guards.guard_predicates import PLAIN, Slots, alike, equal, plain, stands_for
from rushlight.compile.guards.guard_set import Snapshot

# text -> guard function, while in use
CHECKS: WeakValueDictionary[str, Callable[[], bool]] = WeakValueDictionary()


def still_holds(snapshot: Snapshot, free: frozenset = frozenset()) -> Callable[[], bool]:
    """A function that returns True if everything in the snapshot is unchanged.

    `free`: (id of container, key) of numbers that may change, except in sign.
    """
    names: dict[str, Any] = {"equal": equal}
    known: dict[int, str] = {}

    def named(thing: Any) -> str:
        name = known.setdefault(id(thing), f"c{len(known)}")
        names[name] = thing.thing if isinstance(thing, Slots) else thing
        return name

    tests = []
    # Facts (sizes) come first: reading a missing key of a defaultdict would insert the key.
    for i, (kind, thing, was) in enumerate(snapshot.facts):
        names[f"f{i}"] = was
        tests.append(kind.test.format(thing=named(thing), was=f"f{i}"))
    for i, (container, key, value) in enumerate(snapshot.items):
        c = named(container)
        names[f"v{i}"] = value
        if not isinstance(key, (str, int)):
            names[f"k{i}"] = key
        now = (
            f"{c}.cell_contents"
            if key is None
            else f"{c}.{key}"
            if isinstance(container, Slots)
            else f"{c}[{key!r}]"
            if isinstance(key, (str, int))
            else f"{c}[k{i}]"
        )
        tests.append(item_test(now, f"v{i}", value, (id(container), key), snapshot.placed, free, names))
    first: dict[int, str] = {}
    for tensor, no_node, no_grad, no_hooks in snapshot.flags:
        t = named(tensor)
        tests.append(f"{t}._node is{'' if no_node else ' not'} None and {t}._grad is{'' if no_grad else ' not'} None")
        tests += [] if no_node else [f"{t}._node.hooks is{'' if no_hooks else ' not'} None"]
        u = first.setdefault(id(tensor._array), t)  # the first tensor with the same array
        tests += [f"{t}._array is {u}._array"] if u != t else []
    return compiled(tests, names)


def item_test(now: str, was: str, value: Any, item: tuple, placed: set, free: frozenset, names: dict[str, Any]) -> str:
    """The expression that tests an item. `now`: the expression for the present value; `was`: the name of the old
    value."""
    if item in free:
        return f"{now} * {was} > 0"
    if item in placed:
        names["stands_for"] = stands_for
        return f"stands_for({now}, {was})"
    # an optimizer's `betas`, which some schedulers replace
    if type(value) is tuple and plain(value):
        names["alike"], names["free"] = alike, free
        return f"({now} is {was} or alike({now}, {was}, {item!r}, free))"
    if isinstance(value, PLAIN[:2]):  # None, True, False
        return f"{now} is {value}"
    return f"({now} is {was} or equal({now}, {was}))" if isinstance(value, PLAIN) else f"{now} is {was}"


def compiled(tests: list[str], names: dict[str, Any]) -> Callable[[], bool]:
    """All tests in one function, which returns False if a test raises: an object or key is gone.

    Programs for other shapes of arguments share the function: compiling the thousands of tests of a large model takes
    time and memory."""
    body = "".join(
        f"        if not ({' and '.join(tests[i : i + 50])}): return False\n" for i in range(0, len(tests), 50)
    )
    text = f"def check():\n    try:\n{body}        return True\n    except Exception:\n        return False\n"
    known = CHECKS.get(text)
    if known is not None and all([same(known.__globals__[name], value) for name, value in names.items()]):
        return known
    CHECKS[text] = check = define(text, "check", names, "guards of a program")
    return check


def same(a: Any, b: Any) -> bool:
    """Whether two values are interchangeable in the tests."""
    return a is b or type(a) is type(b) in (int, bytes, frozenset, MappingProxyType) and a == b
