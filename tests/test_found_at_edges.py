"""What functions do with nan, infinities, ties and dtypes that torch refuses."""
from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as rl

INF, NAN = math.inf, math.nan
DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8", "bool")


def outcome(work, lib):
    """The dtype and the numbers of what is made, or the error's class and first words."""
    try:
        made = work(lib)
        return str(made.dtype), np.array(made.tolist(), float).round(3).tolist()
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        return type(error), str(error).partition("\n")[0].partition(". Use")[0][:45]


@pytest.mark.parametrize("name", ["binary_cross_entropy", "mse_loss", "kl_div"])
@pytest.mark.parametrize("target", DTYPES)
def test_dtypes_of_targets(torch, name, target):
    for given in ("float32", "float64", "int64"):
        def work(lib, given=given):
            x, y = lib.tensor([0.0, 1.0, 1.0]), lib.tensor([1.0, 1.0, 0.0])
            return getattr(lib.nn.functional, name)(x.to(getattr(lib, given)), y.to(getattr(lib, target)))
        if name == "mse_loss" and given == "int64" and target in ("int32", "uint8", "bool", "int64"):
            with pytest.raises(NotImplementedError, match='"mse_cpu" not implemented for'):
                work(rl)
        else:
            assert outcome(work, rl) == outcome(work, torch)


@pytest.mark.parametrize("target", ["int64", "int32", "bool"])
def test_logits_refuse_whole_targets(torch, target):
    for lib in (rl, torch):
        with pytest.raises(RuntimeError):
            lib.nn.functional.binary_cross_entropy_with_logits(lib.ones(2), lib.ones(2).to(getattr(lib, target)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_classes(torch, dtype):
    def work(lib):
        return lib.nn.functional.cross_entropy(lib.arange(6.0).reshape(2, 3) % 4, lib.tensor([0, 1]).to(getattr(lib, dtype)))
    assert outcome(work, rl) == outcome(work, torch)


@pytest.mark.parametrize("key", [
    lambda i, m: (slice(None), i, ..., i), lambda i, m: (None, i, i, ..., i), lambda i, m: (i, ..., slice(1), i),
    lambda i, m: (m, ..., i), lambda i, m: (0, i, ..., i), lambda i, m: (i, ..., i), lambda i, m: (i, ..., 0, i)])
def test_an_ellipsis_between_indices_that_stands_for_nothing(torch, key):
    def run(lib):
        x = lib.arange(27.0).reshape(3, 3, 3).requires_grad_()
        k = key(lib.tensor([0, 2, 1]), lib.tensor([[True, False, True], [False, False, False], [True, False, False]]))
        y = x[k]
        (y * lib.arange(1.0, y.numel() + 1).reshape(y.shape)).sum().backward()
        z = lib.zeros(3, 3, 3)
        z[k] = y.detach()
        return [tuple(y.shape), y.tolist(), x.grad.tolist(), z.tolist()]
    assert run(rl) == run(torch)


def test_logits_at_the_ends(torch):
    def run(lib, n):
        x = lib.tensor([INF, INF, -INF, -INF, NAN, 90.0, -90.0] * n, requires_grad=True)
        y = lib.tensor([0.0, 1.0, 0.0, 1.0, 0.5, 0.25, 0.75] * n)
        loss = lib.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")
        loss.sum().backward()
        return [loss.tolist(), x.grad.tolist()]
    for n in (1, 1000):
        np.testing.assert_allclose(run(rl, n), run(torch, n), rtol=1e-6)


def test_logits_at_the_ends_compiled():
    def loss(x, y):
        return rl.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")
    x, y = rl.tensor([INF, INF, -INF, -INF, 90.0, -90.0]), rl.tensor([0.0, 1.0, 0.0, 1.0, 0.25, 0.75])
    np.testing.assert_allclose(rl.compile(loss)(x, y).numpy(), loss(x, y).numpy(), rtol=1e-6)


@pytest.mark.parametrize("p", [0.0, 1.0, INF])
def test_all_that_tie_for_the_largest_difference(torch, p):
    def run(lib):
        x = lib.tensor([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [2.0, 0.0, 2.0]], requires_grad=True)
        y = lib.tensor([[1.0, 1.0, 2.0], [1.0, -1.0, 0.0]], requires_grad=True)
        between = lib.cdist(x, y, p)
        (between * lib.arange(1.0, 7.0).reshape(3, 2)).sum().backward(retain_graph=True)
        pairs = lib.nn.functional.pdist(x, p)
        (pairs * lib.tensor([1.0, 10.0, 100.0])).sum().backward()
        return [between.tolist(), x.grad.tolist(), y.grad.tolist(), pairs.tolist()]
    assert run(rl) == run(torch)
    assert rl.cdist(rl.ones(2, 0), rl.ones(3, 0), INF).tolist() == [[0] * 3] * 2


def test_determinants_of_what_is_not_finite():
    good = [[2.0, 1.0], [1.0, 3.0]]
    x = rl.tensor([[[NAN, 2.0], [3.0, 4.0]], good, [[1.0, 2.0], [2.0, 4.0]], [[INF, 1.0], [1.0, 1.0]]], requires_grad=True)
    made = rl.linalg.det(x)
    made.sum().backward()
    assert made[0].isnan()
    assert x.grad[0].isnan().all()
    np.testing.assert_allclose(x.grad[1:3].numpy(), [[[3, -1], [-1, 2]], [[4, -2], [-2, 1]]], rtol=1e-5)


def test_gradients_of_exponential_units_at_nan():
    for name in ("elu", "selu", "celu"):
        for n in (1, 5000):
            x = rl.full((n,), NAN).requires_grad_()
            getattr(rl.nn.functional, name)(x).sum().backward()
            assert x.grad.isnan().all()
