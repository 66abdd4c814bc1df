"""What layers, losses and whole models did otherwise at the sizes they are used at, eager or compiled."""
from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compile import compile, programs


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


RECURRENT = [("LSTM", (7, 3, 5)), ("GRU", (7, 3, 5)), ("RNN", (7, 3, 5)), ("GRUCell", (3, 5)), ("RNNCell", (3, 5))]


@pytest.mark.parametrize(("kind", "shape"), RECURRENT)
def test_steps_of_recurrent_layers_are_programs(kind, shape):
    """Backward reads a copy of what GRU and RNN give, since users may write to it: no program knew where it came from."""
    model, x = getattr(nn, kind)(5, 4), torch.randn(shape)
    eager, _ = stepped(model, x, False)
    found, run = stepped(model, x, True)
    assert programs(run)
    for a, b in zip(found, eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


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


HALVES = {"layer norm": (lambda: nn.LayerNorm(8), (5, 3, 8)), "batch norm": (lambda: nn.BatchNorm1d(8), (5, 8)),
          "batch norm of images": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), (2, 3, 6, 6)),
          "group norm": (lambda: nn.Sequential(nn.Conv1d(8, 8, 1), nn.GroupNorm(2, 8)), (5, 8, 4)),
          "instance norm": (lambda: nn.Sequential(nn.Conv1d(8, 8, 1), nn.InstanceNorm1d(8)), (5, 8, 4)),
          "lstm": (lambda: nn.LSTM(8, 4, 2), (5, 3, 8)), "gru": (lambda: nn.GRU(8, 4, 2), (5, 3, 8)),
          "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8))}


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


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_dropout_between_large_layers_draws_torchs_numbers(oracle, kind, batch_first):
    """In the order of steps, however the loops of large layers lay out what they give."""
    x = np.random.default_rng(0).standard_normal((4, 60, 8)).astype(np.float32)

    def run(t):
        t.manual_seed(3)
        model = getattr(t.nn, kind)(8, 48, 2, dropout=0.3, batch_first=batch_first)
        given = t.tensor(x) if batch_first else t.tensor(x).transpose(0, 1)
        return model(given)[0].detach()
    np.testing.assert_allclose(run(torch).numpy(), oracle(run), atol=1e-6)


def test_gradients_that_cancel_are_no_other_numbers():
    """Of one number to normalize, each gradient is a number less itself; a loop that multiplies and subtracts at once leaves
    its rounding, and where so many are looked at, some had been shaken by the same in all of three tries."""
    layer, x = nn.LayerNorm(1), torch.randn(640, 960, 1, requires_grad=True)
    weights = torch.randn(640, 960, 1)

    def step(x):
        (layer(x) * weights).sum().backward()
    run = compile(step, fullgraph=True)
    for _ in range(3):
        run(x)
    assert programs(run)
    assert x.grad.abs().max() < 1e-3


FACTORS = [((4, 3), (2.0, 1.3)), ((4, 3), (1.2, 1.3)), ((4, 3), (2.3, 2.3)), ((5, 7), (2.1, 2.1)), ((10, 10), (1.05, 1.05))]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
@pytest.mark.parametrize("last", [False, True])
def test_sizes_that_a_factor_keeps_or_doubles(oracle, mode, last):
    """Torch then goes by the sizes: 1.3 times 2 elements are the 2, 2.3 times 3 are each one twice."""
    def resized(t):
        found = []
        for size, factors in FACTORS:
            x = t.arange(2.0 * 3 * size[0] * size[1]).sin().reshape(2, 3, *size)
            x = (x.contiguous(memory_format=t.channels_last) if last else x).requires_grad_()
            y = t.nn.functional.interpolate(x, scale_factor=factors, mode=mode)
            (y * t.arange(float(y.numel())).cos().reshape(y.shape)).sum().backward()
            found += [y, x.grad]
        return found
    for a, b in zip(resized(torch), oracle(resized), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b, atol=1e-5)


def test_the_gradient_of_logaddexp2_at_infinity(oracle):
    """What is infinitely larger takes all of it; infinity less infinity is no number."""
    def gradients(t):
        x, y = (t.tensor(v, requires_grad=True) for v in ([np.inf, 1.0, -np.inf, 2000.0], [1.0, np.inf, 3.0, 1999.0]))
        t.logaddexp2(x, y).sum().backward()
        return [x.grad, y.grad]
    for a, b in zip(gradients(torch), oracle(gradients), strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)


def test_asarray_stays_in_the_graph(oracle):
    """As in torch 2.13, unless it is told `requires_grad`."""
    def found(t):
        made = [t.asarray(t.ones(2, requires_grad=True) * factor, copy=copy, **how)
                for factor in (1, 2) for copy in (None, True)
                for how in ({}, {"requires_grad": True}, {"requires_grad": False})]
        return [[y.requires_grad, y.grad_fn is not None] for y in made]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")           # torch says that the default has changed
        assert found(torch) == oracle(found)


NOTHING = {
    "linear of no features": lambda t: (t.nn.functional.linear, (2, 4, 0), (3, 0), (3,)),
    "linear to no features": lambda t: (t.nn.functional.linear, (2, 4, 5), (0, 5), (0,)),
    "layer norm of none": lambda t: (lambda x: t.nn.functional.layer_norm(x, (0,)), (2, 4, 0)),
    "attention of none": lambda t: (t.nn.functional.scaled_dot_product_attention, (2, 3, 0), (2, 4, 0), (2, 4, 5)),
}


@pytest.mark.parametrize("name", NOTHING)
def test_layers_of_no_features(oracle, name):
    """-1 does not say how many rows there are, where rows hold nothing."""
    def shapes(t):
        f, *sizes = NOTHING[name](t)
        inputs = [t.ones(size, requires_grad=True) for size in sizes]
        out = f(*inputs)
        out.sum().backward()
        return [out, *(x.grad for x in inputs)]
    for a, b in zip(shapes(torch), oracle(shapes), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_many_halves_beside_none(dtype):
    x = torch.ones(600, 1, dtype=getattr(torch, dtype))
    none = torch.ones(1, 0, dtype=x.dtype)
    assert (x + none).shape == (x < none).shape == torch.maximum(x, none).shape == (600, 0)


def test_products_of_many_halves_with_none_are_programs():
    x, y = torch.ones(2, 64, 0).bfloat16().requires_grad_(), torch.ones(2, 0, 257).bfloat16().requires_grad_()
    slope = torch.ones(2, 64, 257).bfloat16()
    run = compile(lambda x, y: torch.autograd.grad(torch.bmm(x, y), [x, y], slope), fullgraph=True, backend="numpy")
    assert [g.shape for _ in range(3) for g in run(x, y)] == [(2, 64, 0), (2, 0, 257)] * 3
    assert programs(run)


@pytest.mark.parametrize("slope", [0.0, 1e-6])
def test_first_steps_of_radam_in_float16(oracle, slope):
    """Their step has no divisor; there is no 1e-8 in float16, and 0 times infinity was no number."""
    def stepped(t):
        w = t.ones(600, dtype=t.float16, requires_grad=True)
        optimizer = t.optim.RAdam([w], lr=0.1)
        for _ in range(5):
            w.grad = t.full_like(w, slope)
            optimizer.step()
        return w.detach().float()
    np.testing.assert_allclose(stepped(torch).numpy(), oracle(stepped), rtol=1e-3)


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


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(("size", "step"), [(1, 1), (3, 1), (4, 2), (5, 2), (5, 3), (2, 4), (7, 7), (6, 5)])
def test_windows_add_up_where_they_came_from(size, step, dim):
    x = torch.zeros(7, 9, 8, dtype=torch.float64, requires_grad=True)
    windows = x.unfold(dim, size, step)
    g = torch.randn(windows.shape, dtype=torch.float64)
    windows.backward(g)
    expected, shown = np.zeros(x.shape), np.moveaxis(g.numpy(), -1, dim + 1)
    for i in range(windows.shape[dim]):
        expected[(slice(None),) * dim + (slice(i * step, i * step + size),)] += shown[(slice(None),) * dim + (i,)]
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-12)
    assert x.grad.is_contiguous()
