"""Random numbers inside compiled functions: eager's, drawn anew at each call."""
from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, programs
from rushlight.nn import functional as F

CALLS = 5

DRAWS = {
    "rand": lambda x: x + torch.rand(2, 3),
    "randn_like": lambda x: x * torch.randn_like(x) + torch.randn(3),
    "randint": lambda x: x[torch.randint(0, 2, (4,))],
    "randperm": lambda x: x[:, torch.randperm(3)],
    "normal": lambda x: x + torch.normal(1.0, 2.0, (3,)),
    "double": lambda x: x + torch.rand(3, dtype=torch.float64),
    "uniform_": lambda x: x.clone().uniform_(-1, 1) + x,
    "normal_": lambda x: torch.empty(2, 3).normal_() + x,
    "dropout": lambda x: F.dropout(x, 0.5) + torch.rand(()),
    "unused": lambda x: (torch.rand(3), x + torch.rand(1))[1],
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_numbers_as_eager(name):
    f = DRAWS[name]
    g = compile(f, backend="numpy", fullgraph=True)
    results = []
    for seed in range(CALLS):
        x = torch.arange(6.).view(2, 3) + 1
        torch.manual_seed(seed)
        want, after = f(x), torch.rand(1).item()
        torch.manual_seed(seed)
        got = g(x)
        assert got.tolist() == want.tolist()
        assert got.dtype == want.dtype
        assert torch.rand(1).item() == after      # as many have been drawn
        results.append(str(got.tolist()))
    assert len(programs(g)) == 1
    assert len(set(results)) > 1


def test_a_generator_of_ones_own_is_left_alone():
    mine = torch.Generator().manual_seed(3)
    g = compile(lambda x: x + torch.rand(2, generator=mine), backend="numpy")
    with pytest.warns(UserWarning, match="runs as it is"):
        got = [g(torch.zeros(2)).tolist() for _ in range(CALLS)]
    again = torch.Generator().manual_seed(3)
    assert got == [torch.rand(2, generator=again).tolist() for _ in range(CALLS)]


def test_a_variational_autoencoder_trains_as_in_eager():
    def losses(backend):
        torch.manual_seed(0)
        encode, decode = nn.Linear(8, 6), nn.Linear(3, 8)
        optimizer = optim.Adam([*encode.parameters(), *decode.parameters()], lr=0.01)

        def step(x):
            optimizer.zero_grad()
            mean, log_var = encode(x).chunk(2, -1)
            z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
            loss = F.mse_loss(decode(z), x) - 0.5 * (1 + log_var - mean ** 2 - log_var.exp()).mean()
            loss.backward()
            optimizer.step()
            return loss
        f = compile(step, backend=backend, fullgraph=True) if backend else step
        data = torch.rand(20, 4, 8)
        made = [float(f(x)) for x in data]
        assert backend is None or programs(f)
        return made
    assert losses("numpy") == pytest.approx(losses(None), rel=1e-5)
