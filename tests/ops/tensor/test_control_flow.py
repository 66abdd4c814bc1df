"""cond and checks as functions."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.origin("scripts")
def test_branches_and_checks_as_functions():
    x = rushlight.ones(2, requires_grad=True)
    y = rushlight.cond(x.sum() > 3, lambda x: x, lambda x: 2 * x, (x,))
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    rushlight._check(True)
    rushlight._check_is_size(0)
    rushlight._check_tensor_all(x > 0)
    for wrong, kind in (
        (lambda: rushlight._check(False, lambda: "odd"), RuntimeError),
        (lambda: rushlight._check_index(False, lambda: "odd"), IndexError),
        (lambda: rushlight._check_value(False, lambda: "odd"), ValueError),
        (lambda: rushlight._check_not_implemented(False, lambda: "odd"), NotImplementedError),
        (lambda: rushlight._check_tensor_all(x > 1, lambda: "odd"), RuntimeError),
        (lambda: rushlight._check_type(False, lambda: "odd"), TypeError),
    ):
        with pytest.raises(kind, match="odd"):
            wrong()
    with pytest.raises(RuntimeError, match="single-element"):
        rushlight.cond(rushlight.ones(2), len, len)
