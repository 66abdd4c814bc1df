"""Compiled equals eager, for every op: forward and gradient, with other numbers at each call.

What cannot become a program runs as it is and says why; never may a program keep the numbers of the run it was made
of."""

from __future__ import annotations

import collections
import warnings

import pytest

import rushlight
from rushlight.autograd import grad
from rushlight.compile import compile, programs
from tests.support.op_calls import agree, arrays_in, call, check_all, fixed, leaf, put_into
from tests.table.samples import NAMES, SAMPLES, function_of, is_random

CALLS = 5  # two watched, one that compiles, two by the program
REASONS = collections.Counter()


def with_gradients(function, args, kwargs):
    """The function of its tensors alone: its results, then the gradients of their sum."""

    def run(*tensors):
        rest = iter(tensors)
        a, k = (put_into(v, lambda _: next(rest)) for v in (args, kwargs))
        outs = arrays_in(function(*a, **k))
        chosen, leaves = [t for t in outs if t.requires_grad], [t for t in tensors if t.requires_grad]
        seeds = [rushlight.ones_like(t) for t in chosen]
        grads = grad(chosen, leaves, seeds, allow_unused=True) if chosen and leaves else ()
        return [t.detach() for t in outs] + [g for g in grads if g is not None]

    return run


def other_numbers(sample, i, make):
    """The sample's tensors, of the same shapes, for the i-th call."""
    args, kwargs = type(sample).make(renamed(sample, f"{sample.name} {i}"), "float64")
    return [make(a) for a in arrays_in([args, kwargs])]


def renamed(sample, name):
    copy = type(sample)(*sample.args, **sample.kwargs)
    copy.name = name
    return copy


def takes(function, sample):
    try:
        call(function, sample, "float64", fixed)
        return bool(arrays_in(list(sample.make("float64"))))
    except (RuntimeError, TypeError, IndexError):
        return False


@pytest.mark.parametrize("name", [name for name in NAMES if not is_random(name)])
def test_compiled_equals_eager(name):
    function = function_of(name)

    def check(sample, _):
        run = with_gradients(function, *sample.make("float64"))
        compiled = compile(run, backend="numpy")
        for i in range(CALLS):
            tensors = other_numbers(sample, i, leaf)
            try:
                expected = run(*tensors)
            except (RuntimeError, IndexError):  # these numbers do not do: a singular matrix
                continue
            agree(list(compiled(*tensors)), [t._array for t in expected], f"call {i}")
        REASONS["compiled" if programs(compiled) else "as it is"] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_all([(sample, None) for sample in SAMPLES[name][:3] if takes(function, sample)], check)


def test_most_ops_become_programs():
    """After the others, where they ran in this process: falling back is safe, but not what the compiler is for."""
    if sum(REASONS.values()) < 500:
        pytest.skip("only some ops were tried here")
    assert REASONS["compiled"] > 0.7 * sum(REASONS.values()), REASONS
