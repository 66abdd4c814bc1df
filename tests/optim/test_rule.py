"""The errors that the author of an optimizer's rule meets name the rule, its line and the fix."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.optim.elementwise import Elementwise

RATE = 0.5


def optimizer(rule, new_state=None, **defaults):
    """An optimizer with this rule, and its parameter, whose gradient is (-2, 4)."""
    body = {"_rule": staticmethod(rule)} | ({"_new_state": new_state} if new_state else {})
    mine = type("Mine", (Elementwise,), body)
    w = rushlight.tensor([-1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    return mine([w], {"lr": 0.1, **defaults}), w


def a_method(p, g, /, lr):
    return p - lr * g.sign()


def a_method_of_a_result(p, g, /, lr):
    return p - (lr * g).numpy()


def an_attribute(p, g, /, lr):
    return p - lr * g / g.shape[0]


def a_module(p, g, /, lr):
    return p - lr * np.sign(g)


def a_number_of_the_file(p, g, /, lr):
    return p - RATE * g


def a_function_of_the_file(p, g, /, lr):
    return p - lr * optimizer(g)


def a_misspelt_op(p, g, /, lr):
    return p - lr * sqtr(g)  # noqa: F821


def a_comparison(p, g, /, lr):
    return p - lr * g if lr > 0.5 else p


def an_if(p, g, /, lr):
    return p - lr * max(g, 0)


def a_reduction(p, g, /, lr):
    return p - lr * g / sum(g * g)


def an_index(p, g, /, lr):
    return p - lr * g[0]


def a_float(p, g, /, lr):
    return p - float(lr) * g


def a_root_of_a_number(p, g, /, lr):
    return p - sqrt(lr) * g  # noqa: F821


def a_keyword(p, g, /, lr):
    return p - clamp_min(g, min=0)  # noqa: F821


def an_operator(p, g, /, lr):
    return p - g @ g


def unpacking(p, g, /, lr, betas):
    first, second = betas
    return p - lr * first * second * g


ERRORS = [
    (a_method, "g.sign: a rule has no methods", "write sign(g)"),
    (a_method_of_a_result, "a result.numpy: a rule has no methods", "such as sqrt"),
    (an_attribute, "g.shape: a rule has no methods and attributes", "such as sqrt"),
    (a_module, "'np' is not an op", "sign(g), not np.sign(g)"),
    (a_number_of_the_file, "'RATE' is not an op", "make it a setting"),
    (a_function_of_the_file, "'optimizer' is not an op", "the lines of optimizer"),
    (a_misspelt_op, "there is no op 'sqtr'", "did you mean sqrt"),
    (a_comparison, "may test only whether a setting is 0 or state is None, not (lr > 0.5)", "multiply by (lr > 0.5)"),
    (an_if, "may test only whether a setting is 0 or state is None, not a result", "maximum(a, b)"),
    (a_reduction, "sum is not elementwise", "PerParameter"),
    (an_index, "g[0]: a rule computes all elements alike", "such as sqrt"),
    (a_float, "lr is not a number yet", "lr ** 0.5"),
    (a_root_of_a_number, "sqrt(lr): in a rule, numbers have only operators", "lr ** 0.5"),
    (a_keyword, "clamp_min() takes its arguments by position", "omit min="),
    (an_operator, "unsupported operand type(s) for @: 'array' and 'array'", "such as sqrt"),
    (unpacking, "betas cannot be unpacked", "write betas[0], betas[1]"),
]


@pytest.mark.parametrize(("rule", "what", "hint"), ERRORS, ids=lambda value: getattr(value, "__name__", ""))
def test_errors_in_a_rule(rule, what, hint):
    mine, w = optimizer(rule, betas=(0.9, 0.99))
    with pytest.raises(TypeError) as caught:
        mine.step()
    first, *facts = str(caught.value).split("\n")
    assert first.startswith(f"rule {rule.__name__}: ")
    assert what in first
    assert [fact.split(":")[0] for fact in facts] == ["  line", "  at", "  hint"]
    assert f"test_rule.py:{rule.__code__.co_firstlineno + 1}: " in facts[0]
    assert facts[1].endswith("mine.step()")
    assert hint in facts[2]
    assert w.tolist() == [-1, 2]


def no_slash(p, g, lr):
    return p - lr * g


def a_self(self, p, g, /, lr):
    return p - lr * g


def keywords_only(p, g, /, *, lr):
    return p - lr * g


def no_default(p, g, /, lr, beta):
    return p - lr * beta * g


def an_early_setting(p, g, /, beta, lr):
    return p - lr * beta * g


def a_late_step(p, g, /, lr, step):
    return p - lr * g / step


def two_counters(p, g, /, step, beta, lr):
    return p - lr * beta * g / step, beta * 2


@pytest.mark.parametrize(
    ("rule", "what", "hint"),
    [
        (no_slash, "must have the parameters p and g before a slash", "def no_slash(p, g, /, lr)"),
        (a_self, "must have the parameters p and g before a slash", "def a_self(p, g, /, lr)"),
        (keywords_only, "positional parameters only", "def keywords_only(p, g, /, lr): ..."),
        (no_default, "the setting 'beta' has no default", '{"lr": lr, "beta": beta}'),
        (an_early_setting, "the setting 'beta' has no default", '{"lr": lr, "beta": beta}'),
        (two_counters, "the setting 'beta' has no default", '{"lr": lr, "beta": beta}'),
        (a_late_step, "step must be the first parameter after the slash", "move it"),
    ],
)
def test_errors_in_a_signature(rule, what, hint):
    with pytest.raises(TypeError) as caught:
        optimizer(rule)
    assert str(caught.value).startswith(f"Mine: rule {rule.__name__}")
    assert what in str(caught.value).split("\n")[0]
    assert hint in str(caught.value).split("hint: ")[1]


def test_an_optimizer_without_a_rule():
    with pytest.raises(TypeError, match="Mine._rule must be a function, not None"):
        optimizer(None)


def test_counters_and_state_that_new_state_forgets():
    def decayed(p, g, m, /, step, beta, lr):
        return p - lr * beta * (g + m), m, beta / 2

    with pytest.raises(TypeError, match="counter 'beta', and the state of a parameter lacks it") as caught:
        optimizer(decayed, lambda self, p, group: {"step": rushlight.zeros(())})[0].step()
    assert "return beta from _new_state" in str(caught.value)
    one = {"step": rushlight.zeros(()), "beta": rushlight.ones(())}
    with pytest.raises(TypeError, match="an operand of add is None, not an array") as caught:
        optimizer(decayed, lambda self, p, group: dict(one))[0].step()
    assert "let _new_state return this state" in str(caught.value)
    mine, w = optimizer(decayed, lambda self, p, group: {**one, "m": rushlight.zeros_like(p)})
    mine.step()
    assert w.tolist() == pytest.approx([-0.8, 1.6])
    assert mine.state[w]["beta"] == 0.5


@pytest.mark.parametrize(
    ("results", "returned"),
    [
        (lambda p, m: p, "array"),
        (lambda p, m: None, "NoneType"),
        (lambda p, m: [p, m], "list"),
        (lambda p, m: (p, None), "array, NoneType"),
        (lambda p, m: (p, m * 1, m), "array, array, array"),
    ],
)
def test_wrong_results(results, returned):
    from rushlight.optim.program import Symbol
    from rushlight.optim.rule import check_results

    def rule(p, g, m, /, lr):
        return p, m

    symbols = [Symbol("p", []), Symbol("m", [])]
    given = results(*symbols)
    with pytest.raises(TypeError, match="rule rule must return the new values of p, m, in a tuple") as caught:
        check_results(rule, symbols, given if isinstance(given, tuple) else (given,), Symbol)
    assert f"  returned: {returned}\n" in str(caught.value)


@pytest.mark.parametrize("differentiable", [False, True])
def test_a_rule_without_a_return(differentiable):
    def forgotten(p, g, /, lr):
        p - lr * g

    mine, w = optimizer(forgotten)
    mine.param_groups[0]["differentiable"] = differentiable
    with rushlight.no_grad(), pytest.raises(TypeError, match="rule forgotten must return the new values of p\n"):
        mine.step()


def test_comparisons_are_elementwise():
    def equal(p, g, /, lr):
        return p + (g == 4) + 10 * (g != 4) + 100 * (lr != 0.5) + 1000 * (lr == 0.5)

    mine, w = optimizer(equal)
    mine.step()
    assert w.tolist() == [109, 103]


def test_an_optimizer_without_lr():
    def fixed(p, g, /):
        return p - 0.5 * g

    mine, w = optimizer(fixed)
    mine = type(mine)([w], {})
    mine.step()
    assert w.tolist() == [0, 0]
