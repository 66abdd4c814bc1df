"""A formula as steps: the parts of an op (`parts=` in its entry), or the rule of a derivative, run on symbols that
record each op and its arguments.

    e = exp(x - amax(x, dim, True)); e / sum(e, dim, True)
    -> amax(x), sub(x, .), exp(.), sum(.), div(., .)

fast/row_text.py writes loops from the steps; compile/passes/decompose.py writes calls of ops. Equal steps are shared.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from rushlight.core.table import SHARED, TABLE, Op, rebind


class Step:
    """The op `name` of `args`: steps, numbers and settings. The name of an input is "input"."""

    __slots__ = ("args", "name", "recorded")

    def __init__(self, name: str, args: tuple, recorded: dict):
        self.name, self.args, self.recorded = name, args, recorded

    @property
    def shape(self) -> tuple:
        """Three sizes, each the number of elements in a row. Rules multiply the sizes of the reduced dimensions; a row
        here has one dimension."""
        return (step("count", self),) * 3

    @property
    def entry(self) -> Op | None:
        """The entry of the op; None for an input, and for a count."""
        return TABLE.get(self.name)

    @property
    def steps(self) -> list[Step]:
        """The arguments that are steps."""
        return [a for a in self.args if isinstance(a, Step)]

    def __neg__(self) -> Any:
        return step("neg", self)


def step(name: str, *args: Any) -> Any:
    """The step of an op, or its simplification."""
    match name, *args:
        case ("mul", 0, _) | ("mul", _, 0) | ("div", 0, _):  # a factor is a gradient that is known to be 0
            return 0
        case ("mul", 1, x) | ("sub", x, 0):
            return x
    recorded = next(a for a in args if isinstance(a, Step)).recorded
    key = (name, *(() if name == "count" else args))
    if key not in recorded:
        recorded[key] = Step(name, key[1:], recorded)
    return recorded[key]


def operator(name: str) -> tuple[Callable, Callable]:
    """The method of an operator, and its reflected method."""
    return lambda x, y: step(name, x, y), lambda x, y: step(name, y, x)


for _name, _op in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}.items():
    _direct, _reflected = operator(_op)
    setattr(Step, f"__{_name}__", _direct)
    setattr(Step, f"__r{_name}__", _reflected)


def inputs(names: Iterable) -> list[Step]:
    """Symbols for arrays with these names; all symbols record steps in the same dict."""
    recorded: dict = {}
    return [Step("input", (name,), recorded) for name in names]


def needed(results: Step | tuple[Step, ...]) -> list[Step]:
    """The steps that lead to the results, each after its arguments."""
    wanted, found = {*(results if isinstance(results, tuple) else (results,))}, []
    for made in reversed([*next(iter(wanted)).recorded.values()]):
        if made in wanted:
            found.append(made)
            wanted.update(made.steps)
    return found[::-1]


def on_steps(formula: Callable, names: Mapping[str, Callable] = MappingProxyType({})) -> Callable:
    """The formula with its names looked up as steps: those in `names`, helpers of rules, and ops. Ops that have a
    formula of other ops are expanded, unless they are elementwise.
    """
    world: dict[str, Any] = {"__builtins__": builtins}
    for name in formula.__code__.co_names:
        if name in names:
            world[name] = names[name]
        elif name == "single":  # loops do not support half precision
            world[name] = lambda x: x
        elif name in SHARED:
            world[name] = on_steps(SHARED[name], names)
        elif name in TABLE:
            op = TABLE[name]
            known = op.elementwise or name in op.forward.__code__.co_names
            world[name] = step_of(name) if known else on_steps(op.forward, names)
    return rebind(formula, world)


def step_of(name: str) -> Callable:
    return lambda *args: step(name, *args)
