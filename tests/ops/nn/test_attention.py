"""Attention as one op: in NumPy's blocks and in compiled loops, against the same by ops and against torch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.autograd import grad
from rushlight.fast import attention as loops
from rushlight.fast import policy
from rushlight.kernels import attention as kernels
from rushlight.ops.nn import attention as ops

SHAPES = {
    "one head": ((5, 4), (7, 4), (7, 4)),
    "three dimensions": ((3, 9, 4), (3, 9, 4), (3, 9, 4)),
    "heads": ((2, 3, 9, 4), (2, 3, 7, 4), (2, 3, 7, 6)),
    "several tiles": ((1, 2, 70, 20), (1, 2, 133, 20), (1, 2, 133, 35)),
}


def numbers(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def mask_for(shapes, kind):
    (*lead, length, _), source = shapes[0], shapes[1][-2]
    if kind == "numbers":
        return numbers(length, source)
    if kind == "booleans":
        mask = np.random.default_rng(0).random((*lead[:-1], *[1] * bool(lead), length, source)) > 0.4
        mask[..., 0, :] = False  # a query that may look at nothing
        return mask
    return None


def attended(lib, shapes, dtype=np.float64, mask=None, causal=False, twice=False, by_ops=False):
    """The output, the gradients of q, k and v, and those of a sum of their squares."""
    qkv = [lib.tensor(numbers(*shape, seed=i, dtype=dtype), requires_grad=True) for i, shape in enumerate(shapes)]
    mask = None if mask is None else lib.tensor(mask if mask.dtype == bool else mask.astype(dtype))
    if by_ops:
        p, somewhere = ops.weights(qkv[0], qkv[1], mask, causal, shapes[0][-1] ** -0.5)
        out = ops.seen(p, qkv[2], somewhere)
    else:
        out = lib.nn.functional.scaled_dot_product_attention(*qkv, attn_mask=mask, is_causal=causal)
    g = lib.tensor(numbers(*out.shape, seed=9, dtype=dtype))
    found = lib.autograd.grad(out, qkv, g, create_graph=twice)
    if twice:
        found = (*found, *lib.autograd.grad(sum((x * x).sum() for x in found), qkv))
    return [x.detach().numpy() for x in (out, *found)]


def same(a, b, tol):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=tol, atol=tol * np.abs(y).max())


CASES = [(shapes, kind) for shapes in SHAPES for kind in ("nothing", "causal", "numbers", "booleans")]


@pytest.mark.parametrize(("shapes", "kind"), CASES)
def test_one_op_is_the_same_by_ops(shapes, kind, monkeypatch):
    monkeypatch.setattr(kernels, "BLOCK_SCORES", 300)  # several blocks of rows, and of samples
    given = {"shapes": SHAPES[shapes], "mask": mask_for(SHAPES[shapes], kind), "causal": kind == "causal"}
    same(attended(rushlight, **given, twice=True), attended(rushlight, **given, twice=True, by_ops=True), 1e-10)


@pytest.mark.parametrize(("shapes", "kind"), CASES)
def test_loops_give_the_same(shapes, kind, monkeypatch):
    pytest.importorskip("llvmlite")
    given = {"shapes": SHAPES[shapes], "mask": mask_for(SHAPES[shapes], kind), "causal": kind == "causal"}
    exact = attended(rushlight, **given, by_ops=True)
    monkeypatch.setattr(loops, "ATTENTION_PRODUCTS", 1)
    same(attended(rushlight, **given, dtype=np.float32), exact, 4e-6)


LAYOUTS = {
    "columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "numbers backwards": lambda x: x[..., ::-1],
    "rows backwards": lambda x: x[..., ::-1, :],
    "every other number": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "one for all samples": lambda x: np.broadcast_to(x[:1], x.shape),
    "between numbers": lambda x: np.frombuffer(b"-" + x.tobytes(), np.float32, offset=1).reshape(x.shape),
}


@pytest.mark.parametrize("width", [1, 5, 32])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_loops_find_numbers_however_they_lie(layout, width, monkeypatch):
    pytest.importorskip("llvmlite")
    q, k, v, g = (LAYOUTS[layout](numbers(2, 3, 11, width, seed=i, dtype=np.float32)) for i in range(4))
    mask, found = LAYOUTS[layout](numbers(11, 11, dtype=np.float32)), []
    for least in (1 << 40, 1):
        monkeypatch.setattr(loops, "ATTENTION_PRODUCTS", least)
        monkeypatch.setattr(policy.small_arrays, "left", float("inf"))
        out, lse = kernels.attention([q, k, v, mask], False, 0.5)
        found.append([out, lse, *kernels.attention_back([q, k, v, mask, out, lse, g], False, 0.5)])
    same(*found, 4e-6)


@pytest.mark.faster
def test_loops_do_little_too_once_that_was_enough(monkeypatch):
    pytest.importorskip("llvmlite")
    found, run = [], loops.run
    monkeypatch.setattr(
        loops, "run", lambda name, arrays, *given: (found.append(arrays[0].shape[-2]), run(name, arrays, *given))
    )
    small, large = (numbers(1, 4, n, 32, dtype=np.float32) for n in (3, 64))
    for x in (small, large, small):
        kernels.attention([x, x, x], True, 0.5)
    assert found == [64]
    monkeypatch.setattr(policy.small_arrays, "left", 0.0)
    kernels.attention([small, small, small], True, 0.5)
    assert found == [64, 3]


@pytest.mark.parametrize("shapes", ["three dimensions", "heads"])
def test_against_torch(shapes, oracle):
    given = {"shapes": SHAPES[shapes], "mask": mask_for(SHAPES[shapes], "booleans")}
    same(attended(rushlight, **given), oracle(lambda torch: attended(torch, **given)), 1e-10)


def test_results_lie_in_memory_as_the_queries_do(oracle):
    def strides(lib):
        flat = lib.ones(2, 7, 3 * 4)
        turned, whole = flat.view(2, 7, 3, 4).transpose(1, 2), lib.ones(2, 3, 7, 4)
        attention = lib.nn.functional.scaled_dot_product_attention
        return [np.array(attention(q, q, q).stride()) for q in (turned, whole)]

    for ours, theirs in zip(strides(rushlight), oracle(strides), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_nan_and_large_scores_stay_where_they_are(monkeypatch):
    pytest.importorskip("llvmlite")
    q, k, v = (numbers(1, 1, 40, 4, seed=i, dtype=np.float32) for i in range(3))
    q[0, 0, 3, 1], k[0, 0, 30, 2] = np.nan, 1e4
    expected = None
    for least in (1 << 40, 1):
        monkeypatch.setattr(loops, "ATTENTION_PRODUCTS", least)
        with np.errstate(invalid="ignore"):
            out = kernels.attention([q, k, v], True, 0.5)[0]
        expected = out if expected is None else expected
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    assert np.isnan(out[0, 0, 3]).all()
    assert np.isfinite(np.delete(out[0, 0], 3, 0)).all()


def test_scores_are_never_all_in_memory(nothing_paid):
    import tracemalloc

    x = [rushlight.tensor(numbers(1, 4, 2048, 8, seed=i), requires_grad=True) for i in range(3)]
    tracemalloc.start()
    rushlight.nn.functional.scaled_dot_product_attention(*x, is_causal=True).sum().backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2048 * 2048 * 8 / 4  # a quarter of the scores


@pytest.mark.parametrize("dtype", [rushlight.bfloat16, rushlight.float16])
def test_half_precision_rounds_once(dtype):
    q = rushlight.tensor(numbers(1, 2, 6, 4)).to(dtype)
    out = rushlight.nn.functional.scaled_dot_product_attention(q, q, q)
    wide = rushlight.nn.functional.scaled_dot_product_attention(*[q.float()] * 3)
    assert out.dtype is dtype
    assert rushlight.equal(out, wide.to(dtype))


def test_a_mask_that_learns():
    q = rushlight.tensor(numbers(2, 5, 3), requires_grad=True)
    mask = rushlight.tensor(numbers(5, 5), requires_grad=True)
    out = rushlight.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert grad(out.sum(), [q, mask])[1].abs().sum() > 0


def test_under_vmap_and_forward_mode():
    q = rushlight.tensor(numbers(4, 2, 5, 3))
    attention = rushlight.nn.functional.scaled_dot_product_attention
    mapped = rushlight.vmap(lambda x: attention(x, x, x, is_causal=True))(q)
    np.testing.assert_allclose(mapped.numpy(), attention(q, q, q, is_causal=True).numpy(), rtol=1e-12)
    tangent = rushlight.tensor(numbers(4, 2, 5, 3, seed=5))
    _, along = rushlight.func.jvp(lambda x: attention(x, x, x), (q,), (tangent,))
    step = 1e-6
    ends = [attention(*[q + sign * step * tangent] * 3) for sign in (1, -1)]
    np.testing.assert_allclose(along.numpy(), ((ends[0] - ends[1]) / (2 * step)).numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["nothing", "booleans"])
def test_compiled(kind):
    shapes = SHAPES["heads"]
    mask = mask_for(shapes, kind)

    def loss(q, k, v):
        m = None if mask is None else rushlight.tensor(mask)
        return rushlight.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=m).square().sum()

    def step(q, k, v):
        return grad(loss(q, k, v), [q, k, v])

    compiled = rushlight.compile(step, fullgraph=True)
    for seed in range(3):
        qkv = [rushlight.tensor(numbers(*shape, seed=seed + i), requires_grad=True) for i, shape in enumerate(shapes)]
        same([x.numpy() for x in compiled(*qkv)], [x.numpy() for x in step(*qkv)], 1e-10)
