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
