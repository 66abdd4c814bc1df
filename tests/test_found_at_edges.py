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
        x = lib.tensor([INF, INF, -INF, NAN, 90.0, -90.0] * n, requires_grad=True)
        y = lib.tensor([0.0, 1.0, 0.0, 0.5, 0.25, 0.75] * n)
        loss = lib.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")
        loss.sum().backward()
        return [loss.tolist(), x.grad.tolist()]
    for n in (1, 1000):
        np.testing.assert_allclose(run(rl, n), run(torch, n), rtol=1e-6)
    lost = rl.nn.functional.binary_cross_entropy_with_logits(rl.tensor([-INF]), rl.ones(1))
    assert lost == INF                            # torch's is nan: inf - inf


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


@pytest.mark.parametrize("name", ["outer", "inner", "kron", "ger", "mm", "bmm", "matmul"])
def test_products_of_what_is_no_tensor(name):
    x = rl.ones(*[2] * {"mm": 2, "bmm": 3}.get(name, 1))
    for args in ((x, 2), (1.5, x), (x, None)):
        with pytest.raises(TypeError, match=f"{'outer' if name == 'ger' else name}\\(\\): argument .*must be Tensor, not"):
            getattr(rl, name)(*args)


@pytest.mark.parametrize("ask", [
    lambda x, y: x & y, lambda x, y: rl.gcd(x, y), lambda x, y: rl.hypot(x * 1j, y), lambda x, y: x << y])
def test_shapes_are_looked_at_before_dtypes(ask):
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(4\)") as told:
        ask(rl.ones(3), rl.ones(4))
    assert not isinstance(told.value, NotImplementedError)
    with pytest.raises(NotImplementedError):
        ask(rl.ones(3), rl.ones(3))


def odd(lib):
    """Calls with an argument that few give."""
    x, m = lib.tensor([-2.5, -0.75, 1.25]), lib.arange(6.0).reshape(2, 3)
    for dtype in (lib.float16, lib.float64, lib.bfloat16):
        yield lib.nanmean(x, dtype=dtype)
        yield m.nanmean(1, True, dtype=dtype)
    yield lib.addr(lib.tensor(2), lib.tensor([1, 0], dtype=lib.int32), lib.tensor([4, -3], dtype=lib.int16))
    yield lib.take_along_dim(m, lib.tensor([3, 0], dtype=lib.int32))
    yield x.scatter_add(0, lib.tensor(2), lib.tensor([1.0, 2.0, 3.0]))
    yield x.scatter(0, lib.tensor(2), lib.tensor([1.0, 2.0, 3.0]))
    yield x.scatter_reduce(-1, lib.tensor(0), lib.tensor([0.25, -3.0, 1.0]), "amax")
    yield lib.zeros(0, 3).masked_scatter(lib.tensor([True, False, True]), lib.ones(0, 3))
    yield (lib.tensor([2.0]) @ lib.ones(3, 1, 2).transpose(0, 2)).view(-1)
    yield (lib.ones(1, 3, 2).transpose(0, 2) @ lib.ones(1, 2)).view(-1)


def test_calls_with_odd_arguments(torch):
    for ours, theirs in zip(odd(rl), odd(torch), strict=True):
        assert str(ours.dtype) == str(theirs.dtype)
        assert ours.stride() == theirs.stride()
        np.testing.assert_allclose(np.array(ours.tolist()), np.array(theirs.tolist()), rtol=1e-2)


@pytest.mark.parametrize("pair", [("float32", "float64"), ("int64", "float32"), ("bool", "int64"), ("float16", "float32")])
def test_numbers_of_different_dtypes_are_not_close(torch, pair):
    for lib in (rl, torch):
        x, y = (lib.ones(2, dtype=getattr(lib, dtype)) for dtype in pair)
        for f in (lib.isclose, lib.allclose, lambda x, y: x.allclose(y)):
            with pytest.raises(RuntimeError, match=" did not match "):
                f(x, y)


def test_the_mean_loss_of_nothing(torch):
    for smoothing in (0.0, 0.1):
        for made in (lambda lib: lib.zeros(0, 3), lambda lib: lib.zeros(0, dtype=lib.int64)):
            for lib in (rl, torch):
                assert lib.nn.functional.cross_entropy(lib.zeros(0, 3), made(lib), label_smoothing=smoothing).isnan()
