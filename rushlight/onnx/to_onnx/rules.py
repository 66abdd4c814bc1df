"""The table of rules: which ONNX nodes express a step of a recorded graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.core.table import Op
from rushlight.onnx.to_onnx.onnx_graph import NotExpressed, OnnxGraph, Symbol
from rushlight.onnx.to_onnx.sizes import Size, Varying


class Result(NamedTuple):
    """A result of a step. `shape`: integers and Sizes; `used`: whether another step reads the result."""

    dtype: Any
    shape: tuple
    used: bool


class Step(NamedTuple):
    """A step of a recorded graph. `args`: symbols and settings; integers that vary are Sizes. `made_by`: {name of a
    symbol: the step that made it}."""

    op: Op
    graph: OnnxGraph
    args: tuple
    results: tuple[Result, ...]
    made_by: dict[str, Step]

    @property
    def out(self) -> Result:
        """The first result."""
        return self.results[0]

    def runs(self, *functions: Any) -> bool:
        """Whether the step is a call of one of these ops."""
        return any([self.op is function.op for function in functions])

    def setting(self, k: int, default: Any = None) -> Any:
        """Argument k, which the call may have left out."""
        return self.args[k] if len(self.args) > k else default


Rule = Callable[[Step], "Symbol | list[Symbol | None]"]
RULES: dict[Op, Rule] = {}


def expresses(*functions: Any) -> Callable[[Rule], Rule]:
    """The decorated function writes the nodes of these ops. It returns the result, or a list of several results."""

    def register(rule: Rule) -> Rule:
        RULES.update((function.op, rule) for function in functions)
        return rule

    return register


def fixed(value: Any, what: str) -> Any:
    """An integer, or integers, that ONNX takes as an attribute, which cannot vary."""
    each = value if isinstance(value, (tuple, list)) else (value,)
    if any(isinstance(n, (Size, Varying)) for n in each):
        raise NotExpressed(f"its {what} depends on a dynamic dimension")
    return value


def unused(step: Step, *numbers: int) -> None:
    """NotExpressed if another step reads one of these results."""
    if any(step.results[k].used for k in numbers if k < len(step.results)):
        raise NotExpressed("one of its further results is read")


def dims_of(step: Step, k: int = 1) -> tuple[int, ...]:
    """The dimensions that a reduction goes over: its argument k, where None or () are all dimensions."""
    dims, ndim = step.setting(k), step.args[0].ndim
    if dims is None or dims == () or dims == []:
        return tuple(range(ndim))
    return tuple([d % ndim for d in (dims if isinstance(dims, (tuple, list)) else (dims,))]) if ndim else ()
