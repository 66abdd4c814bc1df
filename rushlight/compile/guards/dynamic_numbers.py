"""Dynamic numbers: settings of optimizers, which schedulers change from run to run, as inputs of a program.

A trace holds numbers as constants. If two runs differ only in some constants, and in both runs the same formula of
optimizer settings gives each of these constants (a setting, a product of two settings, the negative of either, one
minus either), then the program reads the settings in each run. If several formulas explain a number, the program checks
that they still agree.

A number may depend on a setting and yet be the same in both runs, after rounding: 1 - lr * weight_decay in the first
steps of a schedule. Then "it is a constant" is one more formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Graph, Value, with_each
from rushlight.compile.guards.guard_set import Snapshot, optimizer_of

Item = tuple[int, Any]  # (id of a container, key)

FORMS: tuple[Callable[[float, float], float], ...] = (
    lambda v, w: v,
    lambda v, w: -v,
    lambda v, w: v * w,
    lambda v, w: -v * w,
    lambda v, w: 1 - v * w,
    lambda v, w: 1 - v,
)


def setting(group: dict, name: Any) -> Any:
    """A setting of an optimizer's group by name: "lr", or ("betas", 0) for an element of a tuple."""
    return group[name[0]][name[1]] if type(name) is tuple else group[name]


class Number:
    """A number computed from settings. `ways`: (group, name, other name, form) of each formula. `array`: its value
    now."""

    def __init__(self, ways: list[tuple[dict, Any, Any, Callable]], dtype: np.dtype):
        self.ways, self.dtype = ways, dtype

    @property
    def _array(self) -> np.ndarray:
        group, name, other, form = self.ways[0]
        return np.asarray(form(setting(group, name), setting(group, other)), self.dtype)

    def agrees(self) -> bool:
        """Whether all formulas still give the same number, after rounding."""
        if len(self.ways) == 1:
            return True
        found = {
            as_bytes(form(setting(group, name), setting(group, other)), self.dtype)
            for group, name, other, form in self.ways
        }
        return len(found) == 1


def occurrences(graph: Graph) -> list[Value]:
    """The 0-d float constants among the arguments of calls, in order."""
    return [a for s in graph.steps if isinstance(s, Call) for a in flat(s.args) if is_number(a)]


def is_number(a: Any) -> bool:
    return isinstance(a, Value) and a.kind == "constant" and a._array.ndim == 0 and a.dtype.kind == "f"


def flat(args: Any) -> Iterator[Any]:
    for a in args:
        if type(a) in (tuple, list):
            yield from flat(a)
        else:
            yield a


def explained(old: list[bytes], new: list[Value], before: Snapshot, now: Snapshot) -> dict[int, Number] | None:
    """{index: Number} for each constant that a changed setting explains; None if no formula explains a constant that
    differs between two runs."""
    if len(old) != len(new):
        return None
    settings = changed_settings(before, now)
    found: dict[int, Number] = {}
    known: dict[tuple, Number] = {}  # the steps of all parameters use the same numbers
    for i, v in enumerate(new):
        then, here = old[i], v._array.tobytes()
        if (then, here, v.dtype) not in known:
            ways = formulas(then, here, v.dtype, settings)
            if then == here and ways:
                group, name, other, _ = ways[0]
                ways.append((group, name, other, partial(unchanged, v._array.item())))
            if then != here and not ways:
                return None
            known[then, here, v.dtype] = Number(ways, v.dtype)
        if known[then, here, v.dtype].ways:
            found[i] = known[then, here, v.dtype]
    return found


def formulas(then: bytes, here: bytes, dtype: np.dtype, settings: list[tuple]) -> list[tuple[dict, Any, Any, Callable]]:
    """The ways to compute a number from changed settings, in the last run (`then`) and now. Products with a setting
    that is 0 are excluded, since they do not depend on the other setting.
    """
    return [
        (group, name, other, form)
        for group, name, other, old, new in settings
        for form in FORMS
        if form(*old) != form(*new) and (as_bytes(form(*old), dtype), as_bytes(form(*new), dtype)) == (then, here)
    ]


def unchanged(number: float, *settings: float) -> float:
    """The formula of a constant."""
    return number


def as_bytes(value: float, dtype: np.dtype) -> bytes:
    return np.asarray(value, dtype).tobytes()


def changed_settings(before: Snapshot, now: Snapshot) -> list[tuple[dict, Any, Any, tuple, tuple]]:
    """(group, name of a changed setting, name of another, both values in `before`, both values now)."""
    then = {(id(c), name): v for c, k, v in before.items for name, v in settings(k, v)}
    found = []
    for group in optimizer_groups(now):
        names = [name for k, v in group.items() for name, _ in settings(k, v) if (id(group), name) in then]
        for name, other in product(names, names):
            pair, here = then[id(group), name], setting(group, name)
            if pair != here and pair * here > 0:  # only settings that keep their sign: optimizers branch on lr > 0
                found.append((group, name, other, (pair, then[id(group), other]), (here, setting(group, other))))
    return found


def settings(key: Any, value: Any) -> Iterator[tuple[Any, float]]:
    """(name, number) for each float of an item in an optimizer's group."""
    if type(key) is str and type(value) is float:
        yield key, value
    elif type(key) is str and type(value) is tuple:
        yield from (((key, i), v) for i, v in enumerate(value) if type(v) is float)


def optimizer_groups(snapshot: Snapshot) -> Iterator[dict]:
    """The param_groups of all optimizers that the function can reach; none if the user's code names `param_groups`."""
    if "param_groups" in snapshot.names:
        return
    for thing in snapshot.kept:
        if optimizer_of(type(thing)):
            yield from thing.param_groups


def made_inputs(graph: Graph, found: dict[int, Number]) -> None:
    """Replace these constants in the graph by inputs."""
    places = iter(range(1 << 60))
    made: dict[Number, Value] = {}

    def of(v: Value) -> Value:
        number = found.get(next(places)) if is_number(v) else None
        if number is None:
            return v
        if number not in made:
            made[number] = Value(v._array, "input", ("number", number))
            graph.inputs.append(made[number])
        return made[number]

    for step in graph.steps:
        if isinstance(step, Call):
            step.args = with_each(step.args, of)
