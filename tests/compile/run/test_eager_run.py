"""The results of a compiled function are the same bits in each call, from the first one on."""

from __future__ import annotations

import io

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compiler import programs
from rushlight.nn import functional as F

STEPS = 8


def bits(x):
    """The bytes of a tensor's elements."""
    return x.detach().numpy().tobytes()


LAYERS = {
    "tanh": lambda: [nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1)],
    "batch_norm, dropout": lambda: [nn.Linear(4, 32), nn.BatchNorm1d(32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 1)],
    "layer_norm": lambda: [nn.Linear(4, 32), nn.LayerNorm(32), nn.SiLU(), nn.Linear(32, 1)],
}
OPTIMIZERS = {"SGD": lambda p: optim.SGD(p, 0.05, momentum=0.9), "AdamW": lambda p: optim.AdamW(p, 0.01, amsgrad=True)}


class Training:
    """A model, its optimizer and its schedule, with one compiled function: of the whole step, or of the model alone."""

    def __init__(self, layers, optimizer, whole):
        torch.manual_seed(1)
        self.model = nn.Sequential(*LAYERS[layers]())
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10)
        model, optimizer = self.model if whole else torch.compile(self.model), self.optimizer

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        self.step = torch.compile(step) if whole else step

    def parts(self):
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def checkpoint(self):
        stored = io.BytesIO()
        states = {name: part.state_dict() for name, part in self.parts().items()}
        torch.save([states, torch.get_rng_state()], stored)
        return stored.getvalue()

    def resume(self, stored):
        states, random = torch.load(io.BytesIO(stored))
        for name, part in self.parts().items():
            part.load_state_dict(states[name])
        torch.set_rng_state(random)


def trained(layers, optimizer, whole, stop_at=None):
    """The losses of all steps and the last parameters, as bytes. The training is stopped before a step, and another
    process, as it were, goes on."""
    training = Training(layers, optimizer, whole)
    torch.manual_seed(2)
    found = []
    for i in range(STEPS):
        if i == stop_at:
            stored = training.checkpoint()
            training = Training(layers, optimizer, whole)
            training.resume(stored)
        x = torch.randn(16, 4)
        found.append(bits(training.step(x, x.sum(1, keepdim=True))))
        training.schedule.step()
    return found + [bits(p) for p in training.model.state_dict().values()]


@pytest.mark.parametrize("whole", [True, False], ids=["step", "model"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("layers", LAYERS)
def test_a_training_that_is_stopped_and_resumed_is_the_same_to_the_bit(layers, optimizer, whole):
    uninterrupted = trained(layers, optimizer, whole)
    for stop_at in (1, 3, 6):
        assert trained(layers, optimizer, whole, stop_at) == uninterrupted


def test_each_call_gives_the_same_bits():
    def f(x, y):
        return F.gelu(x * y + x.exp()).softmax(-1), (x * y).sum()

    g = torch.compile(f)
    x, y = torch.randn(20, 30), torch.randn(20, 30)
    first = [bits(t) for t in g(x, y)]
    for _ in range(4):
        assert [bits(t) for t in g(x, y)] == first
    assert programs(g)


def test_what_the_function_writes_is_written_once():
    """The eager run's writes are undone before the program runs."""
    total, seen = torch.zeros(3), []

    def f(x):
        seen.append(1)
        total.add_(x)
        x.mul_(2)
        return total * 2

    x, g = torch.ones(3), torch.compile(f)
    assert g(x).tolist() == [2.0] * 3
    assert len(seen) == 1
    assert (total.tolist(), x.tolist()) == ([1.0] * 3, [2.0] * 3)
    assert total._version == 1 or total._version == 2  # the eager run's write, and the program's


def test_gradients_and_random_numbers_of_the_first_call():
    w = torch.ones(3, requires_grad=True)

    def f(x):
        loss = (F.dropout(x, 0.5) * w).sum()
        loss.backward()
        return loss

    g = torch.compile(f)
    for _ in range(4):
        torch.manual_seed(0)
        w.grad = None
        expected = f(torch.ones(3)).item(), w.grad.tolist(), torch.rand(1).item()
        torch.manual_seed(0)
        w.grad = None
        assert (g(torch.ones(3)).item(), w.grad.tolist(), torch.rand(1).item()) == expected


def test_the_first_call_can_be_differentiated_twice():
    """Also if the function draws random numbers: then the eager run's graph is differentiated."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    g = torch.compile(lambda x: (F.dropout(x, 0.5) * w**3).sum())
    torch.manual_seed(0)
    (first,) = torch.autograd.grad(g(torch.ones(2)), w, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), w)
    torch.manual_seed(0)
    kept = F.dropout(torch.ones(2), 0.5)
    assert np.allclose(first.detach().numpy(), (3 * kept * w.detach() ** 2).numpy())
    assert np.allclose(second.numpy(), (6 * kept * w.detach()).numpy())
