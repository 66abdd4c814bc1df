"""The guards of a program: one generated function that tests all items and facts of a snapshot, as fast as Python
can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from rushlight.base.text import define
from rushlight.compile.guards.guard_predicates import (
    EMPTY,
    ITEMS,
    LAST_KEY,
    PLAIN,
    SIZE,
    Kind,
    Slots,
    alike,
    equal,
    plain,
    stands_for,
)
from rushlight.compile.guards.guard_set import Snapshot
from rushlight.compile.guards.memory_words import (
    DICTS,
    LEAST,
    class_address,
    guarded,
    slot_offset,
    supported,
    used_address,
    version_address,
)
from rushlight.core.tensor import Tensor

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

    addresses: list[int] = []  # of words that change if a test's result changes
    rest: list[str] = []  # the tests without such a word
    tests: list[str] = []

    def add(test: str, words: list[int] | None = None) -> None:
        tests.append(test)
        addresses.extend(words or ())
        if words is None:
            rest.append(test)

    # Facts (sizes) come first: reading a missing key of a defaultdict would insert the key.
    for i, (kind, thing, was) in enumerate(snapshot.facts):
        names[f"f{i}"] = was
        add(kind.test.format(thing=named(thing), was=f"f{i}"), words_of(kind, thing))
    for i, (container, key, value) in enumerate(snapshot.items):
        c = named(container)
        names[f"v{i}"] = value
        if not isinstance(key, (str, int)):
            names[f"k{i}"] = key
        now = present(container, c, key, i)
        version = [version_address(container)] if type(container) in DICTS else None
        add(item_test(now, f"v{i}", value, (id(container), key), snapshot.placed, free, names), version)
    for test, words in flag_tests(snapshot, named, names):
        add(test, words)
    check = compiled(tests, names)
    if len(tests) - len(rest) < LEAST or not supported():
        return check
    return guarded(check, compiled(rest, names), [*dict.fromkeys(addresses)], names)


def flag_tests(
    snapshot: Snapshot, named: Callable[[Any], str], names: dict[str, Any]
) -> Iterator[tuple[str, list[int] | None]]:
    """The tests of tensors: (test, addresses of words that change if the result changes, or None)."""
    first: dict[int, str] = {}
    offsets = {name: slot_offset(Tensor, name) if supported() else 0 for name in ("_node", "_grad")}
    for i, (tensor, no_node, no_grad, no_hooks) in enumerate(snapshot.flags):
        t = named(tensor)
        of = {name: id(tensor) + offset for name, offset in offsets.items()}
        yield f"{t}._node is{'' if no_node else ' not'} None", [of["_node"]]
        # a gradient is another tensor after each step of a training
        yield f"{t}._grad is{'' if no_grad else ' not'} None", [of["_grad"]] if no_grad else None
        if not no_node:
            names[f"n{i}"] = tensor._node  # its address stays valid
            words = [of["_node"], class_address(tensor._node)]  # a node with hooks has another class
            yield f"{t}._node.hooks is{'' if no_hooks else ' not'} None", words
        u = first.setdefault(id(tensor._array), t)  # the first tensor with the same array
        if u != t:
            yield f"{t}._array is {u}._array", None


def words_of(kind: Kind, thing: Any) -> list[int] | None:
    """The addresses of the words that change if a fact changes; None if there are none."""
    # `OrderedDict.move_to_end` changes the last key without a new version number
    if type(thing) in DICTS and kind in (SIZE, EMPTY) or type(thing) is dict and kind is LAST_KEY:
        return [version_address(thing)]
    return [used_address(thing)] if type(thing) is set and kind is ITEMS and not thing else None


def present(container: Any, name: str, key: Any, i: int) -> str:
    """The expression for the present value of an item. `name`: of the container; i: the number of the item."""
    if key is None:
        return f"{name}.cell_contents"
    if isinstance(container, Slots):
        return f"{name}.{key}"
    return f"{name}[{key!r}]" if isinstance(key, (str, int)) else f"{name}[k{i}]"


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
    if known is not None:
        used = [name for name in known.__code__.co_names if name in names]
        if all([same(known.__globals__[name], names[name]) for name in used]):
            return known
    CHECKS[text] = check = define(text, "check", names, "guards of a program")
    return check


def same(a: Any, b: Any) -> bool:
    """Whether two values are interchangeable in the tests."""
    return a is b or type(a) is type(b) in (int, bytes, frozenset, MappingProxyType) and a == b
