"""An optimizer's rule: the names of the parameters, the evaluation, and the errors in the rule's text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from numbers import Number
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from rushlight.base.errors import describe, meant, place, type_error
from rushlight.core.table import TABLE
from rushlight.core.worlds import rebind

VAR_PARAMETERS = 12  # the flags of a code object with *args or **kwargs
HINT = "a rule has operators and elementwise ops, such as sqrt(g) and where(g > 0, a, b)"


class RuleError(TypeError):
    """A symbol is used in a way that a program cannot express: (what, hint). `evaluate` adds the rule and its line."""


@lru_cache(maxsize=256)
def names_of(rule: Callable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of a rule's arrays (the parameters before the slash) and of its settings."""
    code = rule.__code__
    names = code.co_varnames[: code.co_argcount]
    return names[: code.co_posonlyargcount], names[code.co_posonlyargcount :]


def evaluate(rule: Callable, world: dict[str, Any], arguments: list[Any]) -> tuple:
    """The results of a rule whose names come from `world` (ops on arrays, tensors or symbols), as a tuple. TypeError
    for an error in the rule's text.
    """
    try:
        results = rebind(rule, world)(*arguments)
    except (NameError, TypeError, ValueError) as error:
        # an error of an op has its own text, and a RuntimeError may be a signal (vmap, sparse)
        if isinstance(error, RuntimeError) or "\n  at: " in str(error):
            raise
        what, hint = explanation(rule, error)
        raise type_error(f"rule {rule.__name__}: {what}", hint, line=line_in(rule, error.__traceback__)) from None
    return results if isinstance(results, tuple) else (results,)


def line_in(rule: Callable, trace: TracebackType | None) -> str | None:
    """The last line of the rule in a traceback."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code is rule.__code__:
            line = place(rule.__code__, trace.tb_lasti)
        trace = trace.tb_next
    return line


def explanation(rule: Callable, error: Exception) -> tuple[str, str]:
    """(what, hint) for an error that Python raised in a rule."""
    if isinstance(error, RuleError):
        return error.args
    name = getattr(error, "name", None)
    if name is None:
        return str(error).replace("'Symbol'", "'array'"), HINT
    value = getattr(rule, "__globals__", {}).get(name)
    for kind, hint in (
        (ModuleType, f"write the op's name alone: sign(g), not {name}.sign(g)"),
        (Number, f"make it a setting: a parameter {name} after the slash, and a default"),
        (FunctionType, f"write the lines of {name} into the rule"),
    ):
        if isinstance(value, kind):
            return f"'{name}' is not an op, and names in a rule are ops", hint
    near = meant(name, [op for op in TABLE if TABLE[op].elementwise])
    return f"there is no op '{name}'", near.removeprefix("; ") or HINT


def check_rule(optimizer: Any, defaults: dict[str, Any], default_state: bool) -> None:
    """TypeError unless an optimizer has a rule with a slash, and a default for each setting of the rule.

    `default_state`: the optimizer does not make state of its own, and `step` is the only counter."""
    name = type(optimizer).__name__
    rule: Any = getattr(type(optimizer), "_rule", None)
    code = getattr(rule, "__code__", None)
    if code is None:
        raise type_error(f"{name}._rule must be a function, not {describe(rule)}", "write _rule = staticmethod(rule)")
    arrays, settings = names_of(rule)
    called, known = f"{name}: rule {rule.__name__}", [*arrays, *settings]
    if code.co_kwonlyargcount or code.co_flags & VAR_PARAMETERS:
        raise type_error(f"{called} may have positional parameters only", f"def {rule.__name__}(p, g, /, lr): ...")
    if len(arrays) < 2 or arrays[0] == "self":
        words = [word for word in known if word != "self"]
        raise type_error(
            f"{called} must have the parameters p and g before a slash",
            f"put the slash after p, g and the state: def {rule.__name__}({', '.join([*words[:2], '/', *words[2:]])})",
            parameters=", ".join(known),
        )
    lacking = [word for word in settings if word not in defaults]
    counters = [word for word, setting in zip(lacking, settings) if word == setting]  # they come before the settings
    if counters[:1] == ["step"]:
        lacking = lacking[1 if default_state else len(counters) :]
    if "step" in lacking:
        raise type_error(f"{called}: the counter step must be the first parameter after the slash", "move it")
    if lacking:
        raise type_error(
            f"{called}: the setting '{lacking[0]}' has no default{meant(lacking[0], [*defaults])}",
            f'call super().__init__(params, {{"lr": lr, "{lacking[0]}": {lacking[0]}}}); state goes before the slash',
            defaults=", ".join(defaults),
        )


def check_results(rule: Callable, targets: list[Any], results: tuple, kind: type) -> None:
    """TypeError unless a rule returns the new p, then the new value of each piece of state. Counters may follow.

    `targets`: symbols of p and of the state, None for absent state; `kind`: the class of the results."""
    names = ["p", *names_of(rule)[0][2:]]
    kinds = [kind if target is not None else object for target in targets]
    few = len(results) < len(targets) or not all(map(isinstance, results, kinds))
    if few or any([getattr(extra, "tape", None) is not None for extra in results[len(targets) :]]):
        raise type_error(
            f"rule {rule.__name__} must return the new values of {', '.join(names)}{', in a tuple' * (len(names) > 1)}",
            f"return {', '.join(names)}",
            returned=", ".join(["array" if isinstance(v, kind) else type(v).__name__ for v in results]),
        )
