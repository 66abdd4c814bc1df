"""Guards as words of memory: whether 8 bytes at some addresses are as they were.

CPython gives a dict a new version number whenever the dict changes (`ma_version_tag` of CPython 3.11), and keeps an
object's slots at fixed offsets. So most guards of a model are comparisons of one word, and machine code compares
thousands in a few microseconds, where Python takes 20 ns for each. If a word has changed, the guards themselves are
tested; a change that concerns no guard gives new words.

`supported()` tests these properties of the interpreter; without them, or without llvmlite, the guards are tested in
Python."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cache
from struct import calcsize
from typing import Any

import numpy as np

from rushlight.base.dependencies import has_llvmlite

LEAST = 64  # guards in Python are as fast for fewer words
MAX_CHANGES = 16  # after this number of changed words in a row without a changed guard, the guards are tested in Python
POINTER_BYTES = calcsize("P")
VERSION_OFFSET = object.__basicsize__ + POINTER_BYTES  # behind ma_used
DICTS = (dict, OrderedDict)


def word(address: int) -> int:
    """The 8 bytes at an address."""
    import ctypes  # some builds of Python lack it

    return ctypes.c_int64.from_address(address).value


def version_address(d: dict) -> int:
    """The address of a dict's version number."""
    return id(d) + VERSION_OFFSET


def used_address(s: set) -> int:
    """The address of the number of a set's items: behind `fill`."""
    return id(s) + object.__basicsize__ + POINTER_BYTES


def class_address(thing: Any) -> int:
    """The address of the pointer to an object's class."""
    return id(thing) + object.__basicsize__ - POINTER_BYTES


@cache
def slot_offset(kind: type, name: str) -> int:
    """The offset of a slot in the objects of a class: PyMemberDescrObject.d_member.offset."""
    descriptor = kind.__dict__[name]
    definition = word(id(descriptor) + object.__basicsize__ + 3 * POINTER_BYTES)
    return word(definition + 2 * POINTER_BYTES)


class Sample:
    """A class with slots and a dict, for the test of the interpreter."""

    __slots__ = ("__dict__", "a", "b")


@cache
def supported() -> bool:
    """Whether dicts have version numbers, and slots lie where they are expected."""
    return has_llvmlite() and POINTER_BYTES == 8 and dicts_have_versions() and objects_have_offsets()


def dicts_have_versions() -> bool:
    """Whether each kind of change of a dict, and of an object's attributes, gives a new number."""
    s = Sample()
    s.x = 1  # type: ignore[attr-defined]
    changes: list[Callable[[dict], Any]] = [
        lambda d: d.__setitem__("x", 2),
        lambda d: d.__setitem__("y", 2),
        lambda d: d.pop("y"),
        lambda d: d.update(z=1),
        lambda d: d.clear(),
    ]
    for d in ({"x": 1}, OrderedDict(x=1), vars(s)):
        seen = [word(version_address(d))]
        for change in changes:
            change(d)
            seen.append(word(version_address(d)))
        if d is vars(s):
            s.x = 3  # type: ignore[attr-defined]
            seen.append(word(version_address(d)))
        if len({*seen}) < len(seen):
            return False
    return True


def objects_have_offsets() -> bool:
    """Whether slots, the class, and the number of a set's items lie where they are expected."""
    items: set[int] = set()
    if [word(used_address(items)), items.add(1), word(used_address(items))] != [0, None, 1]:  # type: ignore[func-returns-value]
        return False
    s, found = Sample(), []
    for value in (object(), None):
        s.a, s.b = value, s  # type: ignore[attr-defined]
        found.append(word(id(s) + slot_offset(Sample, "a")) == id(value))
        found.append(word(id(s) + slot_offset(Sample, "b")) == id(s))
    s.b = None  # type: ignore[attr-defined]
    return all(found) and word(class_address(s)) == id(Sample)


class Words:
    """The words at some addresses. `compare()`: sets `place` to the bits in which they differ from the words of the
    last `copy()`. `kept`: the objects whose memory contains the addresses."""

    def __init__(self, addresses: Iterable[int], kept: Any):
        import ctypes

        self.kept = kept
        self.addresses = np.array([*addresses], np.int64)
        self.words = np.zeros(len(self.addresses), np.int64)
        self.result = np.zeros(1, np.int64)
        self.place = ctypes.c_int64.from_address(self.result.ctypes.data)
        compare, given = machine_code(), [a.ctypes.data for a in (self.addresses, self.words, self.result)]
        self.compare = lambda: compare(*given, len(self.addresses), 0)
        self.copy = lambda: compare(*given, len(self.addresses), 1)


@cache
def machine_code() -> Callable[..., None]:
    """compare(addresses, words, result, n, renew): result[0] = the bits in which the words at the addresses differ;
    `renew`: words[i] = the word at address i."""
    from rushlight.loops.llvm import INT64, POINTER, Function, Module, callable_of, host

    module = Module(host())
    f = Function(module, "compare", "addresses words result n renew", "n renew")
    addresses, words, n = f.args["addresses"], f.args["words"], f.args["n"]

    def now(i: Any) -> Any:
        return f.load(f.load(addresses, i, POINTER), 0, INT64)

    f.when(f.args["renew"] != 0, lambda: f.loop(0, n, 1, lambda i: f.store(now(i), words, i)))
    (bits,) = f.loop(0, n, 1, lambda i, bits: [bits | (now(i) ^ f.load(words, i, INT64))], [f.whole(0)])
    f.store(bits, f.args["result"], 0)
    f.end()
    return callable_of(module.compiled(), "compare", 3, 2)


def guarded(
    check: Callable[[], bool], rest: Callable[[], bool], addresses: list[int], kept: Any = None
) -> Callable[[], bool]:
    """A function like `check`, the test of all guards: while no word at the addresses has changed, only `rest` is
    tested."""
    words = Words(addresses, kept)
    renew, place, compare = words.copy, words.place, words.compare
    changes = 0
    renew()

    def holds() -> bool:
        nonlocal changes
        if changes > MAX_CHANGES:
            return check()
        compare()
        if place.value == 0:
            changes = 0
            return rest()
        renew()  # before the test, so that a change during the test is noticed by the next one
        if check():
            changes += 1
            return True
        words.words[:] = -1  # the guards do not hold: test them next time, too
        return False

    return holds
