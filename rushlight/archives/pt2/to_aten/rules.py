"""The table of rules: which calls of ATen's operators express a step of a recorded graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.core.table import Op

from .writer import NotExpressed, Symbol, Writer


class Step(NamedTuple):
    """A step of a recorded graph. `args`: symbols and settings. `outs`: (dtype, shape, whether another step reads it)
    of each result. `made_by`: {name of a symbol: the step that made it}."""

    op: Op
    writer: Writer
    args: tuple
    outs: tuple[tuple[Any, tuple, bool], ...]
    made_by: dict[str, Step]

    def call(self, target: str, *args: Any, **named: Any) -> Any:
        """The result of an operator, which may be a list."""
        return self.writer.call(target, *args, **named)

    def runs(self, *functions: Any) -> bool:
        """Whether the step is a call of one of these ops."""
        return any([self.op is function.op for function in functions])

    def setting(self, k: int, default: Any = None) -> Any:
        """Argument k, which the call may have left out."""
        return self.args[k] if len(self.args) > k else default

    def unused(self, *numbers: int) -> None:
        """NotExpressed if another step reads one of these results."""
        if any(self.outs[k][2] for k in numbers if k < len(self.outs)):
            raise NotExpressed("one of its further results is read")


Rule = Callable[[Step], "Symbol | list[Symbol | None]"]
RULES: dict[Op, Rule] = {}


def expresses(*functions: Any) -> Callable[[Rule], Rule]:
    """The decorated function writes the calls for these ops. It returns the result, or a list of several results."""

    def register(rule: Rule) -> Rule:
        RULES.update((function.op, rule) for function in functions)
        return rule

    return register


class Same:
    """The rule of an op that ATen has with the same arguments."""

    def __init__(self, target: str):
        self.target = target

    def __call__(self, step: Step) -> Any:
        return step.call(self.target, *step.args)


def same(overload: str, *functions: Any) -> None:
    """Ops that ATen has under the same name."""
    for function in functions:
        RULES[function.op] = Same(f"{function.op.name}.{overload}")


def called(target: str, *functions: Any) -> None:
    """Ops that ATen has under another name."""
    for function in functions:
        RULES[function.op] = Same(target)
