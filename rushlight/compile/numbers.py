"""Numbers that change from run to run: the settings of optimizers, which schedulers change at will.

A traced run holds numbers fast. Where two runs do the same but for some numbers, and each of these was computed in both runs
from settings of an optimizer in the same way (as it is, negated, times another one, one minus that), the program reads
the settings anew at each run. Where several settings would explain a number, all of them must go on agreeing.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Graph, Value, with_each
from rushlight.compile.guards import Snapshot, optimizer_of

Item = tuple[int, Any]                            # a container by its id, and a key

FORMS: tuple[Callable[[float, float], float], ...] = (
    lambda v, w: v, lambda v, w: -v, lambda v, w: v * w, lambda v, w: -v * w, lambda v, w: 1 - v * w, lambda v, w: 1 - v)


def setting(group: dict, name: Any) -> Any:
    """A setting of an optimizer: `lr`, or one of several in a tuple, ("betas", 0)."""
    return group[name[0]][name[1]] if type(name) is tuple else group[name]


class Number:
    """A number made of settings; `array` is what it is now, as a program's input."""

    def __init__(self, ways: list[tuple[dict, Any, Any, Callable]], dtype: np.dtype):
        self.ways, self.dtype = ways, dtype

    @property
    def array(self) -> np.ndarray:
        group, name, other, form = self.ways[0]
        return np.asarray(form(setting(group, name), setting(group, other)), self.dtype)

    def agrees(self) -> bool:
        """Whether all explanations still give one number."""
        if len(self.ways) == 1:
            return True
        return len({form(setting(group, name), setting(group, other)) for group, name, other, form in self.ways}) == 1


def occurrences(graph: Graph) -> list[Value]:
    """The 0-d constants that calls are given, one after the other."""
    return [a for s in graph.steps if isinstance(s, Call) for a in flat(s.args) if is_number(a)]


def is_number(a: Any) -> bool:
    return isinstance(a, Value) and a.kind == "constant" and a.array.ndim == 0 and a.dtype.kind == "f"


def flat(args: Any) -> Iterator[Any]:
    for a in args:
        if type(a) in (tuple, list):
            yield from flat(a)
        else:
            yield a


def explained(old: list[bytes], new: list[Value], before: Snapshot, now: Snapshot) -> dict[int, Number] | None:
    """For each number that differs, by its place, how it is made of settings; None if one cannot be explained."""
    changed = [i for i, (a, v) in enumerate(zip(old, new)) if a != v.array.tobytes()]
    if len(old) != len(new) or not changed:
        return None
    settings = changed_settings(before, now)
    found: dict[int, Number] = {}
    known: dict[tuple, Number] = {}               # each parameter's step has the same ones
    for i in changed:
        dtype = new[i].dtype
        target = old[i], new[i].array.tobytes()
        if (target, dtype) not in known:
            ways = [(group, name, other, form) for group, name, other, then, here in settings for form in FORMS
                    if (as_bytes(form(*then), dtype), as_bytes(form(*here), dtype)) == target]
            if not ways:
                return None
            known[target, dtype] = Number(ways, dtype)
        found[i] = known[target, dtype]
    return found


def as_bytes(value: float, dtype: np.dtype) -> bytes:
    return np.asarray(value, dtype).tobytes()


def changed_settings(before: Snapshot, now: Snapshot) -> list[tuple[dict, Any, Any, tuple, tuple]]:
    """(group, a setting that has changed, another one of the group, both values then, both now)."""
    then = {(id(c), name): v for c, k, v in before.items for name, v in settings(k, v)}
    found = []
    for group in optimizer_groups(now):
        names = [name for k, v in group.items() for name, _ in settings(k, v) if (id(group), name) in then]
        for name, other in product(names, names):
            pair, here = then[id(group), name], setting(group, name)
            if pair != here and pair * here > 0:  # still of the same sign: rules ask for that
                found.append((group, name, other, (pair, then[id(group), other]), (here, setting(group, other))))
    return found


def settings(key: Any, value: Any) -> Iterator[tuple[Any, float]]:
    """The numbers of an item of an optimizer's group, by name."""
    if type(key) is str and type(value) is float:
        yield key, value
    elif type(key) is str and type(value) is tuple:
        yield from (((key, i), v) for i, v in enumerate(value) if type(v) is float)


def optimizer_groups(snapshot: Snapshot) -> Iterator[dict]:
    """The dicts with the settings of all optimizers that a function can reach; none if its own text names them."""
    if "param_groups" in snapshot.names:
        return
    for thing in snapshot.kept:
        if optimizer_of(type(thing)):
            yield from thing.param_groups


def made_inputs(graph: Graph, found: dict[int, Number]) -> None:
    """Let calls read these numbers instead of the constants."""
    places = iter(range(1 << 60))
    made: dict[Number, Value] = {}

    def of(v: Value) -> Value:
        number = found.get(next(places)) if is_number(v) else None
        if number is None:
            return v
        if number not in made:
            made[number] = Value(v.array, "input", ("number", number))
            graph.inputs.append(made[number])
        return made[number]
    for step in graph.steps:
        if isinstance(step, Call):
            step.args = with_each(step.args, of)
