"""What random comparisons with torch found: small integers beside large numbers, infinite gradients, no elements."""
from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as rl
from rushlight.ops.kernels.elementwise import where


@pytest.mark.parametrize("divide", [
    lambda x, n: x / n, lambda x, n: rl.div(x, n), lambda x, n: x.true_divide(n), lambda x, n: 1 / (n / x)])
@pytest.mark.parametrize(("dtype", "number"), [(rl.uint8, -1), (rl.uint8, 300), (rl.int8, 300), (rl.int16, 100_000)])
def test_integers_are_divided_by_numbers_that_they_do_not_hold(divide, dtype, number):
    x = rl.tensor([9, 100], dtype=dtype)
    np.testing.assert_allclose(divide(x, number).numpy(), np.array([9, 100]) / number, rtol=1e-6)


def test_floats_of_integers_beside_numbers_that_they_do_not_hold():
    x = rl.tensor([9, 100], dtype=rl.uint8)
    np.testing.assert_allclose(rl.xlogy(x, 300).numpy(), np.array([9, 100]) * np.log(300), rtol=1e-6)
    assert rl.copysign(x, -1).tolist() == [-9.0, -100.0]


def test_alpha_times_small_integers_in_the_common_dtype():
    small = rl.tensor([30_000], dtype=rl.int16)
    assert rl.add(rl.tensor([1.0]), small, alpha=3).tolist() == [90_001.0]
    assert rl.sub(rl.tensor([1]), small, alpha=3).tolist() == [-89_999]
    assert rl.add(rl.tensor([1.0]), rl.tensor([3]), alpha=0.5).tolist() == [2.5]
    assert rl.add(rl.tensor([True]), rl.tensor([True]), alpha=True).dtype is rl.bool
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        rl.add(rl.tensor([1]), rl.tensor([3]), alpha=0.5)


@pytest.mark.parametrize("after", [rl.sqrt, rl.log, lambda x: x ** 0.5])
@pytest.mark.parametrize("n", [3, 5000, 100_000])
def test_relu_keeps_infinite_gradients_back(after, n):
    x = rl.full((n,), -1.0)
    x[0], x[1] = 4.0, 0.0
    x.requires_grad_()
    after(rl.relu(x)).sum().backward()
    assert x.grad[0] > 0
    assert not x.grad[1:].any()
    x = rl.full((n,), float("nan"), requires_grad=True)
    rl.relu(x).sum().backward()
    assert (x.grad == 1).all()                    # as torch: nan is not kept back


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int64])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (4, 5), (40, 50)])
def test_where_beside_zero(dtype, shape):
    rng = np.random.default_rng(0)
    x, mask = (rng.standard_normal(shape) * 9).astype(dtype), rng.random(shape) < 0.5
    for a, m in ((x, mask), (x.T, mask.T), (x[..., ::-1] if x.ndim else x, mask)):
        made = where(m, a, 0)
        assert (made.dtype, made.shape) == (dtype, a.shape)
        np.testing.assert_array_equal(made, np.where(m, a, np.zeros((), dtype)))


def test_divisions_of_nothing():
    x, none = rl.ones(4096, 1), rl.ones(0)
    for function in (rl.fmod, rl.remainder, rl.floor_divide):
        assert function(x, none).shape == (4096, 0)
    empty = rl.zeros(0, 3, dtype=rl.int8)
    assert (empty % 0).shape == rl.div(empty, 0, rounding_mode="trunc").shape == (0, 3)


def test_mean_of_halves_does_not_overflow():
    for dtype in (rl.float16, rl.bfloat16):
        x = rl.full((300, 400), 10.0, dtype=dtype)
        assert (x.mean().item(), x.mean().dtype) == (10.0, dtype)
        assert x.mean(0).tolist() == [10.0] * 400


def test_truncated_quotients_are_flat():
    x, y = rl.tensor([1.0, np.inf, 2.0], requires_grad=True), rl.tensor([2.0, 0.5, 0.0], requires_grad=True)
    rl.div(x, y, rounding_mode="trunc").sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.0] * 3


def test_ldexp_of_large_exponents():
    x = rl.tensor([-3.0, 1.0, 0.0, float("inf"), 1e-30, 1e30])
    n = np.array([-2**30, 2**30, 2**20, -2000, 140, -140], np.int32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rl.ldexp(x, rl.tensor(n)).numpy(), np.ldexp(x.numpy(), n))


def test_products_of_integers_along_a_dimension_of_one():
    x = rl.tensor([[3], [4]], dtype=rl.int16)
    made = rl.inner(x, x)
    assert (made.dtype, made.tolist()) == (rl.int16, [[9, 12], [12, 16]])


def test_distances_of_no_numbers_and_masks_of_bytes():
    assert rl.cdist(rl.ones(3, 0), rl.ones(2, 0), p=float("inf")).tolist() == [[0.0, 0.0]] * 3
    assert rl.where(rl.tensor([2, 0], dtype=rl.uint8), 1.0, 3.0).tolist() == [1.0, 3.0]
    similar = rl.nn.functional.cosine_similarity(rl.tensor([[1.0, 1.0]]), rl.tensor([[1, 0]]))
    assert abs(similar.item() - 0.5 ** 0.5) < 1e-6
    assert rl.lcm(rl.tensor([1631506276]), rl.tensor([10])).item() > 0


def test_bfloat16_in_order_with_nan_last():
    x = rl.tensor([3, float("nan"), 1, 2, float("nan"), -1])
    half = x.bfloat16()
    assert half.sort()[1].tolist() == half.argsort(stable=True).tolist() == x.sort()[1].tolist() == [5, 2, 3, 0, 1, 4]
    assert half.sort(descending=True)[1].tolist() == [1, 4, 0, 3, 2, 5]
    assert half.topk(2, largest=False)[0].tolist() == [-1.0, 1.0]
    assert half.kthvalue(3)[0].item() == half.nanmedian(0)[0].item() + 1 == 2.0
    assert half.unique()[:4].tolist() == [-1.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
def test_sums_of_halves_are_made_in_single_precision(dtype):
    n = 100_000
    x = rl.zeros(n, dtype=dtype, requires_grad=True)
    assert abs(rl.softmax(x, 0)[0].item() * n - 1) < 0.05
    assert abs(rl.log_softmax(x, 0)[0].item() + np.log(n)) < 0.05
    assert abs(rl.logsumexp(x, 0).item() - np.log(n)) < 0.05
    assert abs(rl.cumsum(rl.full((6000,), 0.25, dtype=dtype), 0)[-1].item() - 1500) < 8
    (x.mean() * 1000).backward()
    assert abs(x.grad[0].item() * 100 - 1) < 0.01
    wide = (rl.arange(7000) % 7 * 500).to(dtype).requires_grad_()
    assert abs(wide.std().item() - 1000) < 8
    wide.std().backward()
    assert wide.grad[0] < 0 < wide.grad[6]
    assert abs(rl.nn.functional.rms_norm(wide, (7000,)).square().mean().item() - 1) < 0.05
    small = rl.tensor([1e-3, 2e-3, -1e-3], dtype=dtype)            # beside float32's eps
    assert abs(rl.nn.functional.rms_norm(small, (3,))[0].item() - 0.687) < 0.005


@pytest.mark.parametrize("key", [
    lambda i, m: (0, slice(None), i), lambda i, m: (i, slice(None), -1), lambda i, m: (0, None, i), lambda i, m: (0, ..., i),
    lambda i, m: (slice(None), 1, slice(None), i), lambda i, m: (1, slice(None), i, 2), lambda i, m: (0, slice(None), m),
    lambda i, m: (i, 0), lambda i, m: (0, i), lambda i, m: (..., 0, slice(None), i), lambda i, m: (0, slice(None), -1, i)])
def test_integers_of_a_key_are_taken_before_its_tensors(key):
    """Of NumPy they count as index tensors, and their dimension comes first."""
    x = np.arange(120.0).reshape(2, 3, 4, 5)
    i, m = np.array([0, 1, 1]), np.array([True, False, True, True])
    parts = key(i, m)
    taken = key(slice(None), slice(None))
    y = x[tuple(p for p in taken if p is not None)]                # the integers alone
    expected = y[tuple(p for p in parts if not isinstance(p, int))]
    t = rl.tensor(x, requires_grad=True)
    of_tensors = tuple(rl.tensor(p) if isinstance(p, np.ndarray) else p for p in parts)
    made = t[of_tensors]
    np.testing.assert_array_equal(made.detach().numpy(), expected)
    made.sum().backward()
    assert t.grad.sum().item() == expected.size
    written = rl.zeros(2, 3, 4, 5, dtype=rl.float64)
    written[of_tensors] = t.detach()[of_tensors]
    np.testing.assert_array_equal(written[of_tensors].numpy(), expected)


def test_numbers_written_to_integers():
    x = rl.zeros(3, dtype=rl.uint8)
    x[0], x[rl.tensor([1])] = -3, 7
    assert x.tolist() == [253, 7, 0]
    for number in (300, float("nan")):
        with pytest.raises(RuntimeError, match="without overflow"):
            x[1:] = number


def test_gradients_at_places_of_no_elements():
    x = rl.zeros(3, 4, 0, requires_grad=True)
    x[rl.tensor([-2, 2, 2])].sum().backward()
    assert x.grad.shape == (3, 4, 0)


def test_addcmul_of_bytes_wraps_around():
    ones = rl.ones(2, dtype=rl.uint8)
    assert rl.addcmul(ones * 3, ones, ones, value=-1).tolist() == [2, 2]


@pytest.mark.parametrize("name", ["addmm", "addmv", "baddbmm"])
def test_what_is_added_nought_times_has_a_gradient_of_noughts(name):
    shapes = {"addmm": ((2, 4), (2, 3), (3, 4)), "addmv": ((2,), (2, 3), (3,)), "baddbmm": ((5, 2, 4), (5, 2, 3), (5, 3, 4))}
    x, a, b = [rl.ones(shape) for shape in shapes[name]]
    x = (x * math.nan).requires_grad_()
    made = getattr(rl, name)(x, a, b, beta=0)
    assert (made == 3).all()
    made.sum().backward()
    assert x.grad.shape == x.shape
    assert not x.grad.any()
    assert not getattr(rl, name)(x.detach(), a, b, beta=0).requires_grad


@pytest.mark.parametrize("to", [lambda t: t.cuda(), lambda t: t.to("cuda"), lambda t: rl.ones(2, device="cuda:0"),
                                lambda t: rl.nn.Linear(2, 2).cuda(), lambda t: rl.cuda.set_device(0)])
@pytest.mark.parametrize("kind", [RuntimeError, AssertionError])
def test_both_kinds_of_error_tell_that_there_is_no_cuda(to, kind):
    with pytest.raises(kind, match="Torch not compiled with CUDA enabled"):
        to(rl.ones(2))


def test_bytes_are_masks_as_indices():
    x, mask = rl.arange(6.0).reshape(3, 2), rl.tensor([1, 0, 1], dtype=rl.uint8)
    assert x[mask].tolist() == [[0, 1], [4, 5]]
    x[mask, 0] = 9.0
    assert x.tolist() == [[9, 1], [2, 3], [9, 5]]


@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_one_number_scattered_to_a_row_of_one(oracle, name, shape):
    """It is a source of its own, with a gradient, not a number to be written everywhere: two places are too many."""
    def found(t):
        x, y = t.ones(shape, requires_grad=True), t.ones(2, requires_grad=True)
        out = getattr(x, name)(-1, t.tensor([0]), y.sum())
        (3 * out).sum().backward()
        return [out.detach(), x.grad, y.grad]
    for ours, theirs in zip(found(rl), oracle(found)):
        assert ours.tolist() == theirs.tolist()
    with pytest.raises(RuntimeError, match="no larger size than src"):
        getattr(rl.ones(4), name)(-1, rl.tensor([0, 0]), rl.tensor(1.0))


# -- ties, infinities and the ends of single precision ---------------------------------------------------------------

@pytest.mark.parametrize("name", ["lt_", "le_", "gt_", "ge_", "eq_", "ne_", "less_", "not_equal_"])
def test_a_comparison_in_place_still_asks_for_a_gradient(torch, name):
    def run(lib):
        x = lib.arange(3.).requires_grad_()
        y, other = x * 2, lib.ones(3)
        made = getattr(y, name)(1)
        (made * 3 + x).sum().backward()
        beside = getattr(other, name)(x)
        counted = getattr(lib.arange(3), name)(x.detach() * 2)
        return made.tolist(), made.dtype.__repr__(), y._version, x.grad.tolist(), beside.requires_grad, counted.tolist()
    assert run(rl) == run(torch)


SPREADS = [[1e28, 2e28, -3e28, 1e28], [1e30] * 4, [1e19, 2e19, 3e19, -1e19], [1e-30, 2e-30, 3e-30, -1e-30],
           [1e-22, 3e-22, 1e-23, 0.0], [1e7, 1e7 + 1, 1e7 + 2, 1e7 + 4], [16777216.0, 16777218.0, 16777220.0, 16777222.0],
           [-1e5, -1e5 + 1, -1e5, -1e5], [1e28, 1.0, 1e-28, 0.0], [0.1] * 4]


@pytest.mark.parametrize("given", [lambda x: x, lambda x: x.T.contiguous().T, lambda x: x.repeat(40, 8)])
def test_deviations_at_the_ends_of_single_precision(given):
    """As in double precision: squares that overflow, or are too small, or of numbers that differ in their last digits."""
    x = rl.tensor(SPREADS, requires_grad=True)
    made, expected = given(x).std(1), given(x.double()).std(1)
    assert rl.allclose(made, expected.float(), rtol=1e-6, atol=1e-38)
    assert rl.allclose(given(x.T).std(0), given(x.T.double()).std(0).float(), rtol=1e-6, atol=1e-38)
    assert [row.std().item() for row in given(x)] == pytest.approx(made.tolist(), rel=1e-6)
    assert made[-1] == made[1] == 0
    for y, row in zip(given(x)[3:].var(1), given(x)[3:].double().var(1), strict=True):
        assert math.isclose(y, row, rel_tol=1e-6, abs_tol=1e-40) or row > 1e38
    got, wanted = (rl.autograd.grad(y[:5].sum(), x)[0] for y in (made, expected))
    assert rl.allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_deviations_of_infinities(torch):
    x = [[math.inf] * 4, [-math.inf] * 4, [0.0] * 4, [2.0] * 4, [math.nan, 1.0, 2.0, 3.0]]
    for dtype in ("float32", "float64"):
        ours, theirs = ([lib.tensor(x, dtype=getattr(lib, dtype)).std(1).tolist(),
                         lib.tensor(x, dtype=getattr(lib, dtype)).var(1).tolist()] for lib in (rl, torch))
        assert np.array_equal(ours, theirs, equal_nan=True)


def test_gradients_of_logcumsumexp_beside_infinities(torch):
    def run(lib):
        x = lib.tensor([[1.0, 0.0, math.inf, 2.0, math.inf],
                        [-math.inf, -math.inf, 1.0, -math.inf, 2.0]], requires_grad=True)
        x.logcumsumexp(1).backward(lib.arange(1.0, 11.0).reshape(2, 5))
        return x.grad.tolist()
    ours, theirs = np.array(run(rl)), np.array(run(torch))
    finite = np.isfinite(theirs)
    assert np.allclose(ours[finite], theirs[finite])


@pytest.mark.parametrize("ask", [
    lambda lib: lib.stack([lib.tensor(1.0), lib.tensor(1.0)], 1), lambda lib: lib.stack([lib.ones(3)] * 2, -3),
    lambda lib: lib.cat([lib.ones(2)] * 2, 1), lambda lib: lib.tensor(2.0).index_select(0, lib.tensor([0, 0])),
    lambda lib: lib.cat([lib.ones(2, 3), lib.ones(2)], 1)])
def test_errors_of_dimensions_that_are_not_there(torch, ask):
    with pytest.raises(Exception) as expected:
        ask(torch)
    with pytest.raises(expected.type) as got:
        ask(rl)
    assert str(got.value).startswith(str(expected.value).partition("\n")[0][:40])


TURNS = [lambda x: x.t_(), lambda x: x.transpose_(0, 1), lambda x: x.unsqueeze_(1), lambda x: x.squeeze_()]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("view", [lambda x: x[:2], lambda x: x * 1])
def test_views_in_place_without_grad_move_the_place_in_the_graph_too(turn, view):
    x = rl.arange(6.0).reshape(2, 3).clone().requires_grad_()
    y = view(x)
    with rl.no_grad():
        turn(y)
    (y * y.detach()).sum().backward()
    assert x.grad.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_what_is_the_tensor_itself_and_what_a_view():
    x = rl.ones(3, requires_grad=True)
    assert x.flatten() is x
    assert rl.broadcast_tensors(x, rl.ones(1))[0] is x
    assert x.t() is not x
    assert x.t()._base is x
    assert not x.t().is_leaf
    assert rl.ones(2, 3).flatten(1) is not x
    assert rl.ones(2, 3).flatten().shape == (6,)


def test_backward_to_a_tensor_that_is_no_leaf_retains_its_gradient():
    x = rl.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.sum().backward(inputs=[y], retain_graph=True)
    assert y.grad.tolist() == [1, 1]
    assert x.grad is None
    y.sum().backward()
    assert y.grad.tolist() == [2, 2]
    assert x.grad.tolist() == [2, 2]


def test_the_gradient_of_the_product_of_a_number_does_not_depend_on_the_product():
    x = rl.tensor(3.0, requires_grad=True)
    y = x.prod()
    y.register_hook(lambda g: -g)
    g, = rl.autograd.grad(y, x, create_graph=True)
    (g + x).backward()
    assert g.item() == -1
    assert x.grad.item() == 1


def test_nothing_is_written_at_false():
    x = rl.ones(2)
    x[False] = 3.0
    assert x.tolist() == [1, 1]
    assert x._version == 0
