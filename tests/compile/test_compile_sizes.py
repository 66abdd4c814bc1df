"""Compiled steps at sizes where kernels change their ways: one program comes out, with eager's numbers, gradients and
state.

Kernels choose by size (a few thousand numbers, a block, a page): what is right for small tensors may have another shape
or another rounding for large ones, and a step that falls back gives right results, slowly. Nobody would notice."""

from __future__ import annotations

import copy
import math
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, programs
from rushlight.nn import functional as F
from rushlight.nn.utils import clip_grad_norm_

SIZES = (1, 3, 127, 128, 129, 1000, 1024, 1025, 4095, 4096, 4097, 5000, 65537)
MOST, CALLS, SEEDS = 140_000, 5, 60

SAME_SHAPE = {  # of a matrix, a row and an index for each of its rows
    "softmax": lambda x, y, i: torch.softmax(x, -1),
    "log_softmax": lambda x, y, i: F.log_softmax(x, 0),
    "layer_norm": lambda x, y, i: F.layer_norm(x, x.shape[-1:], y, y),
    "row": lambda x, y, i: x * y,
    "rms_norm": lambda x, y, i: F.rms_norm(x, x.shape[-1:]),
    "centered": lambda x, y, i: x - x.mean(0),
    "scaled": lambda x, y, i: x / (x.square().mean() + 1),
    "cumsum": lambda x, y, i: x.cumsum(-1) / x.shape[-1],
    "sorted": lambda x, y, i: x.sort(-1)[0],
    "gelu": lambda x, y, i: F.gelu(x),
    "picked": lambda x, y, i: x[i],
    "dropped": lambda x, y, i: F.dropout(x, 0.3),
    "noisy": lambda x, y, i: x + torch.randn_like(x),
    "gathered": lambda x, y, i: x.gather(0, i[:, None].expand(x.shape)),
    "clamped": lambda x, y, i: x.clamp(-0.5, 0.7),
    "scattered": lambda x, y, i: (x * 0.5).scatter_add(0, i[:, None].expand(x.shape), x),
    "bias": lambda x, y, i: x + y,
    "split": lambda x, y, i: torch.cat(x.chunk(2)[::-1]),
    "masked": lambda x, y, i: x.masked_fill(x > 0.5, 0.1),
    "half": lambda x, y, i: x.half().float(),
    "double": lambda x, y, i: (x.double() * 2).float(),
    "turned": lambda x, y, i: (x.mT * 2).contiguous().mT,
    "flat": lambda x, y, i: x.flatten().view(x.shape) * 2,
    "logsumexp": lambda x, y, i: x - x.logsumexp(1, keepdim=True),
    "written": lambda x, y, i: written(x),
    "largest": lambda x, y, i: x - x.amax(1, keepdim=True),
}
TO_LESS = {
    "sum": lambda x, i: x.sum(),
    "sum 0": lambda x, i: x.sum(0),
    "sum -1": lambda x, i: x.sum(-1, keepdim=True),
    "mean (0, 1)": lambda x, i: x.mean((0, 1)),
    "sum of all, flat": lambda x, i: x.flatten().sum(0) * 1e-3,
    "var": lambda x, i: x.var(0, correction=0),
    "std": lambda x, i: (x.flatten() + torch.arange(x.numel())).std(0),
    "norm": lambda x, i: torch.linalg.vector_norm(x, dim=1),
    "norm of all": lambda x, i: x.norm(),
    "logsumexp of all": lambda x, i: x.flatten().logsumexp(0),
    "amax": lambda x, i: x.amax(0),
    "gram": lambda x, i: (x.mT @ x if x.shape[0] > x.shape[1] else x @ x.mT) / x.numel(),
    "topk": lambda x, i: x.topk(1, 0)[0],
    "median": lambda x, i: x.median(1)[0],
    "any": lambda x, i: (x > 1).float().mean(0),
    "entropy": lambda x, i: F.cross_entropy(x, i % x.shape[1]),
    "product": lambda x, i: (1 + x.tanh() / x.numel()).prod(0),
}
OPTIMIZERS = {  # `eps`: or those that divide by the size of a gradient make noise large
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"amsgrad": True, "maximize": True, "eps": 1e-3},
    "AdamW": {"foreach": True, "eps": 1e-3},
    "RMSprop": {"centered": True, "momentum": 0.9, "eps": 1e-3},
    "Adagrad": {"lr_decay": 0.1, "eps": 1e-3},
    "NAdam": {"eps": 1e-3},
    "RAdam": {"foreach": False, "eps": 1e-3},
    "Adamax": {"weight_decay": 0.01, "eps": 1e-3},
    "Adadelta": {"eps": 1e-3},
    "ASGD": {},
}


def written(x):
    """Through views of views, beside and across one another."""
    z = x.clone()
    z[::2] *= 0.5
    z.mT[:1] += 0.1
    z.view(-1)[-1:].fill_(0.3)
    return z


def numbers(seed, *shape):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def drawn(seed):
    """A step: the sizes of its matrix, which ops one after the other, which sums of what is left, which optimizer."""
    rng = np.random.default_rng(seed)
    rows, columns = 0, 0
    while not 64 <= rows * columns <= MOST:
        rows, columns = (int(n) for n in rng.choice(SIZES, 2))
    ops = [str(name) for name in rng.choice([*SAME_SHAPE], rng.integers(1, 5))]
    sums = [str(name) for name in rng.choice([*TO_LESS], 2)]
    return rows, columns, ops, sums, str(rng.choice([*OPTIMIZERS])), bool(rng.random() < 0.5)


def played(seed, wrapped):
    """What each call gives; parameters, gradients, the optimizer's state and the generator's after all; the
    function."""
    rows, columns, ops, sums, name, clipped = drawn(seed)
    w, row = numbers(seed, rows, columns).requires_grad_(), numbers(seed + 1, columns).requires_grad_()
    optimizer = getattr(optim, name)([w, row], lr=1e-3, **OPTIMIZERS[name])
    total = torch.zeros(rows, columns)  # a buffer that each step writes to

    def step(x, i):
        optimizer.zero_grad()
        total.mul_(0.9).add_(x, alpha=0.1)
        z = w * 0.3 + x
        for op in ops:
            z = SAME_SHAPE[op](z, row, i)
        found = [TO_LESS[s](z, i) for s in sums]
        loss = sum((f / (f.detach().abs().max() + 1)).square().mean() for f in found) + z.mean()
        loss.backward()
        if clipped:
            clip_grad_norm_([w, row], 0.1)
        optimizer.step()
        return [z.detach() * 1, loss.detach(), *(f.detach() for f in found)]

    f, results = wrapped(step), []
    for call in range(CALLS):
        torch.manual_seed(call)
        results += f(numbers(call, rows, columns), torch.randint(0, rows, (rows,)))
    state = [v for p in (w, row) for v in optimizer.state[p].values() if isinstance(v, torch.Tensor)]
    after = [w.detach(), row.detach(), total, *[p.grad for p in (w, row) if p.grad is not None], *state, torch.rand(1)]
    return results + after, f


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_step(seed):
    want, _ = played(seed, lambda f: f)
    got, f = played(seed, lambda f: compile(f, backend="numpy"))
    made = programs(f)
    change = made[0].outline.before.difference(made[-1].outline.before) if made else ""
    assert len(made) == 1, (drawn(seed), f.given_up or f.unsteady, change, [p.holds() for p in made])
    for a, b in zip(got, want, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), drawn(seed)
        size = float(b[b.isfinite()].abs().max()) if b.isfinite().any() else 0.0
        wrong = ~np.isclose(a.numpy(), b.numpy(), rtol=2e-3, atol=2e-4 * size + 1e-6)
        assert wrong.mean() <= 0.002, (drawn(seed), float((a - b).abs().max()), size)


SUMS = {
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(-1),
    "sum of all": lambda x: x.sum(),
    "var": lambda x: x.var(0),
    "amax": lambda x: x.amax(0),
    "norm": lambda x: x.norm(),
    "vector_norm": lambda x: torch.linalg.vector_norm(x, 1, 0),
    "logsumexp": lambda x: x.logsumexp(0),
    "prod": lambda x: (1 + x / x.numel()).prod(0),
    "dot": lambda x: x @ x,
    "kept": lambda x: x.sum(0, keepdim=True),
    "any": lambda x: (x > 2).any(0),
    "argmax": lambda x: x.argmax(0),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64], ids=str)
def test_sums_along_the_only_dimension(dtype):
    """Of each size, all in one program; the shapes and dtypes are those of few numbers."""
    takes = {
        name: f
        for name, f in SUMS.items()
        if dtype.is_floating_point or name in ("sum", "sum of all", "amax", "kept", "any", "argmax", "dot")
    }
    takes = {name: f for name, f in takes.items() if dtype is not torch.float16 or name not in ("prod",)}

    def all_of_them(*given):
        return [f(x) for x in given for f in takes.values()]

    f = compile(all_of_them, backend="numpy")
    for call in range(CALLS):
        given = [numbers(call, n).mul(3).to(dtype) for n in SIZES[1:]]
        for i, (a, b) in enumerate(zip(f(*given), all_of_them(*given), strict=True)):
            x, name = given[i // len(takes)], [*takes][i % len(takes)]
            few = takes[name](x[:3])
            assert (a.shape, b.shape, a.dtype, b.dtype) == (few.shape, few.shape, few.dtype, few.dtype), (name, x.shape)
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-2 if dtype.itemsize == 2 else 1e-5, atol=1e-5)
    assert len(programs(f)) == 1, f.given_up


@pytest.mark.parametrize("shape", [(40, 1025), (4097, 16), (1, 65537)], ids=str)
def test_norms_softmax_and_variances(shape):
    """The benchmark's W8, of fewer numbers; fused."""
    pytest.importorskip("llvmlite")
    data, rows = (numbers(1, *shape), numbers(2, *shape)), shape[0]

    def gradients(wrapped):
        given = numbers(3, *shape), numbers(4, shape[1]), numbers(5, shape[1])
        x, gamma, beta = (t.requires_grad_() for t in given)

        def step(a, t):
            x.grad = gamma.grad = beta.grad = None
            h = F.layer_norm(x + a, shape[1:], gamma, beta)
            y = (F.softmax(h, -1) * t).sum() / rows + torch.logsumexp(x, 1).mean() + x.var(0, correction=0).mean()
            y.backward()
            return y.detach()

        f = wrapped(step)
        return [f(*data) for _ in range(4)] + [x.grad, gamma.grad, beta.grad], f

    (want, _), (got, f) = gradients(lambda f: f), gradients(compile)
    assert len(programs(f)) == 1, f.given_up
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-5 * math.ceil(float(b.abs().max())))


RECURRENT = [("LSTM", (7, 3, 5)), ("GRU", (7, 3, 5)), ("RNN", (7, 3, 5)), ("GRUCell", (3, 5)), ("RNNCell", (3, 5))]


def first(out):
    return out[0] if isinstance(out, tuple) else out


def stepped(model, x, compiled):
    """The losses and parameters of 4 steps, and the function that made them. No warning is let pass."""
    model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)

    def step(x):
        optimizer.zero_grad()
        loss = first(model(x)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    run = compile(step, fullgraph=True, backend="numpy") if compiled else step
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        losses = [run(x).item() for _ in range(4)]
    return losses + [p.detach().float().numpy() for p in model.parameters()], run


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize(("kind", "shape"), RECURRENT)
def test_steps_of_recurrent_layers_are_programs(kind, shape):
    """Backward reads a copy of what GRU and RNN give, since users may write to it: no program knew where it came
    from."""
    model, x = getattr(nn, kind)(5, 4), torch.randn(shape)
    eager, _ = stepped(model, x, False)
    found, run = stepped(model, x, True)
    assert programs(run)
    for a, b in zip(found, eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("make", [nn.GRU, nn.RNN])
def test_programs_keep_what_was_there_before_a_write(make):
    model, x = make(5, 4), torch.randn(7, 3, 5)

    def step(x):
        model.zero_grad()
        out = model(x)[0]
        out.mul_(3)
        out.square().sum().backward()
        return model.weight_hh_l0.grad

    run = compile(step, fullgraph=True, backend="numpy")
    expected = step(x).clone()
    for _ in range(4):
        np.testing.assert_allclose(run(x).numpy(), expected.numpy(), rtol=1e-4, atol=1e-6)
    assert programs(run)


HALVES = {
    "layer norm": (lambda: nn.LayerNorm(8), (5, 3, 8)),
    "batch norm": (lambda: nn.BatchNorm1d(8), (5, 8)),
    "batch norm of images": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), (2, 3, 6, 6)),
    "group norm": (lambda: nn.Sequential(nn.Conv1d(8, 8, 1), nn.GroupNorm(2, 8)), (5, 8, 4)),
    "instance norm": (lambda: nn.Sequential(nn.Conv1d(8, 8, 1), nn.InstanceNorm1d(8)), (5, 8, 4)),
    "lstm": (lambda: nn.LSTM(8, 4, 2), (5, 3, 8)),
    "gru": (lambda: nn.GRU(8, 4, 2), (5, 3, 8)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
}


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", HALVES)
def test_models_in_half_precision_are_programs(name, dtype):
    """Recorded backward mixed single, that statistics are in, with half precision, and products refused it."""
    make, shape = HALVES[name]
    model, x = nn.Sequential(nn.Linear(shape[-1], shape[-1]), make()).to(dtype), torch.randn(shape).to(dtype)
    found, run = stepped(model, x, True)
    assert programs(run)
    for a, b in zip(found, stepped(model, x, False)[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=0.03, atol=0.01)


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("name", HALVES)
def test_second_derivatives_in_half_precision(name):
    make, shape = HALVES[name]
    found = []
    for dtype in (torch.bfloat16, torch.float32):
        torch.manual_seed(0)
        model, x = make().to(dtype), torch.randn(shape).to(dtype).requires_grad_()
        [g] = torch.autograd.grad(first(model(x)).pow(3).sum(), x, create_graph=True)
        assert g.dtype is dtype
        g.square().sum().backward()
        assert x.grad.dtype is dtype
        found.append(g.detach().float().numpy())
    np.testing.assert_allclose(*found, atol=0.1 * np.abs(found[1]).max())


@pytest.mark.origin("sizes in use")
def test_products_of_many_halves_with_none_are_programs():
    x, y = torch.ones(2, 64, 0).bfloat16().requires_grad_(), torch.ones(2, 0, 257).bfloat16().requires_grad_()
    slope = torch.ones(2, 64, 257).bfloat16()
    run = compile(lambda x, y: torch.autograd.grad(torch.bmm(x, y), [x, y], slope), fullgraph=True, backend="numpy")
    assert [g.shape for _ in range(3) for g in run(x, y)] == [(2, 64, 0), (2, 0, 257)] * 3
    assert programs(run)


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (3, 0), (3, 1)])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "logcumsumexp"])
def test_scans_of_next_to_nothing_are_programs(name, shape):
    x = torch.full(shape, 2.0, requires_grad=True)
    for dim in range(len(shape)):

        def step(x, dim=dim):
            return torch.autograd.grad(first(getattr(x, name)(dim)), x, torch.ones(shape))[0]

        run = compile(step, fullgraph=True, backend="numpy")
        for _ in range(3):
            np.testing.assert_array_equal(run(x).numpy(), step(x).numpy())
        assert programs(run)
