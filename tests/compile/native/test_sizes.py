"""Sizes that differ from call to call: their arithmetic is that of the numbers, for each n."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.sizes import ANY, Numbers, Size, at, fits, joined, sized, sizes_in

LEAST = 2
NUMBERS = range(LEAST, 12)
whole = st.integers(-6, 6)
sizes = st.builds(lambda slope, rest: Size(slope, rest, LEAST), whole.filter(bool), whole)
OPERATIONS = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.lt, operator.le, operator.gt,
    operator.ge,
)  # fmt: skip


@given(sizes, st.one_of(sizes, whole), st.sampled_from(OPERATIONS))
def test_an_operation_gives_the_number_of_each_call(x, y, operation):
    try:
        made = operation(x, y)
    except (NotNative, ZeroDivisionError):
        return  # the answer is no Size
    for n in NUMBERS:
        right = at(y, n)
        if right or operation not in (operator.floordiv, operator.mod):
            assert at(made, n) == operation(x.at(n), right)


@given(sizes, whole)
def test_a_number_may_stand_first(x, y):
    for n in NUMBERS:
        assert at(y + x, n) == y + x.at(n)
        assert at(y * x, n) == y * x.at(n)
        assert at(y - x, n) == y - x.at(n)


@given(sizes)
def test_a_comparison_that_depends_on_n_is_refused(x):
    signs = {(x.at(n) > 3) - (x.at(n) < 3) for n in range(LEAST, 1000)}
    if len(signs) > 1:
        with pytest.raises(NotNative):
            _ = x < 3, x > 3, x <= 3, x >= 3


@given(sizes, st.integers(LEAST, 50), st.integers(LEAST, 50))
def test_two_calls_give_the_sizes(x, n, m):
    if n != m:
        parts = lambda k: (x.at(k), (3, slice(None), x.at(k) + 1))
        made = joined((x.at(n), (3, x.at(n) + 1)), (x.at(m), (3, x.at(m) + 1)), n, m, LEAST)
        assert fits(made, (x.at(60), (3, x.at(60) + 1)), 60)
        assert not fits(made, (x.at(60), (3, x.at(60))), 60)
        assert at(parts(n), 7) == parts(n)


def test_numbers_of_constants_may_differ_and_other_facts_may_not():
    assert joined(Numbers(b"ab"), Numbers(b"cd"), 2, 3, LEAST) is ANY
    assert fits(ANY, Numbers(b"ef"), 5)
    assert not fits(ANY, b"ef", 5)
    for a, b in (("add", "mul"), ((1, 2), (1, 2, 3)), (1.0, 2.0), (True, False), (b"a", b"b")):
        with pytest.raises(NotNative):
            joined(a, b, 2, 3, LEAST)


def test_places_that_are_no_multiple_are_refused():
    assert sized(lambda n: ((n, 2 * n + 1), 7), LEAST) == ((Size(1, 0, LEAST), Size(2, 1, LEAST)), 7)
    with pytest.raises(NotNative):
        sized(lambda n: (n * n,), LEAST)


def test_sizes_inside_settings():
    x = Size(2, 1, LEAST)
    assert [*sizes_in((1, [slice(0, x)], x))] == [x, x]
    assert at((1, [slice(0, x)], x), 3) == (1, [slice(0, 7)], 7)
