"""Random numbers inside compiled functions: eager's, drawn anew at each call."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import distributions as d
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
        x = torch.arange(6.0).view(2, 3) + 1
        torch.manual_seed(seed)
        want, after = f(x), torch.rand(1).item()
        torch.manual_seed(seed)
        got = g(x)
        assert got.tolist() == want.tolist()
        assert got.dtype == want.dtype
        assert torch.rand(1).item() == after  # as many have been drawn
        results.append(str(got.tolist()))
    assert len(programs(g)) == 1
    assert len(set(results)) > 1


def definite(x):
    return x @ x.mT + 3 * torch.eye(3)


# What draws by given chances, and what looks at its arguments to raise an error if they are wrong.
CHANCES = {
    "bernoulli": lambda w, x: (torch.bernoulli(torch.sigmoid(x)) * w).sum(),
    "bernoulli_": lambda w, x: (torch.empty(3, 3).bernoulli_(torch.sigmoid(x[0])) * w).sum(),
    "multinomial": lambda w, x: w[torch.arange(3), torch.multinomial(torch.softmax(x, -1), 1)[:, 0]].sum(),
    "replacement": lambda w, x: (torch.multinomial(torch.softmax(x, -1), 7, True) * w.sum()).sum(),
    "normal": lambda w, x: (torch.normal(x, x.exp()) * w).sum() + (torch.normal(x, 0.1) * w).sum(),
    "poisson": lambda w, x: (torch.poisson(x.exp().mT) * w).sum(),
    "gumbel": lambda w, x: (F.gumbel_softmax(w * x, 0.5, hard=True) * x).sum(),
    "Normal": lambda w, x: d.Normal(w, x.exp()).rsample().sum() + d.Normal(w, x.exp()).log_prob(x).sum(),
    "Categorical": lambda w, x: d.Categorical(logits=w * x).log_prob(d.Categorical(logits=w * x).sample()).sum(),
    "Bernoulli": lambda w, x: d.Bernoulli(logits=w).log_prob(d.Bernoulli(torch.sigmoid(x)).sample()).sum(),
    "Binomial": lambda w, x: (d.Binomial(5, probs=torch.sigmoid(x)).sample() * w).sum(),
    "Uniform": lambda w, x: (d.Uniform(x, x + 1).rsample() * w).sum(),
    "Gumbel": lambda w, x: d.Gumbel(w, x.exp()).rsample().sum(),
    "Beta": lambda w, x: d.Beta(w.exp(), x.exp()).log_prob(torch.sigmoid(x)).sum(),
    "Wishart": lambda w, x: d.Wishart(torch.tensor(6.0), definite(x)).log_prob(definite(w)).sum(),
    "MultivariateNormal": lambda w, x: d.MultivariateNormal(w[0], definite(x)).rsample().sum(),
    "kl_divergence": lambda w, x: d.kl_divergence(d.Normal(w, x.exp()), d.Normal(w * 0, x.exp() * 2)).sum(),
    "solve": lambda w, x: torch.linalg.solve(definite(x), w).sum(),
    "inv": lambda w, x: (torch.linalg.inv(definite(x)) @ w).sum(),
    "pinv": lambda w, x: torch.linalg.pinv(x * w).sum(),
    "cholesky": lambda w, x: torch.cholesky_inverse(torch.linalg.cholesky(definite(x))).sum() * w.sum(),
    "quantile": lambda w, x: torch.quantile(x * w, torch.sigmoid(x[0]), dim=1).sum() + torch.nanquantile(x * w, 0.3),
    "stft": lambda w, x: torch.istft(torch.stft((x * w).flatten().repeat(9), 8, return_complex=True), 8).sum(),
}


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("name", CHANCES)
def test_the_same_numbers_and_gradients_as_eager(name):
    function, results = CHANCES[name], []
    for backend in (None, "numpy"):
        torch.manual_seed(0)
        w, data = torch.randn(3, 3, requires_grad=True), torch.randn(CALLS + 1, 3, 3)

        def step(x, w=w):
            w.grad = None
            loss = function(w, x)
            loss.backward()
            return loss

        run = compile(step, backend=backend, fullgraph=True) if backend else step
        results.append([(run(x).detach(), w.grad.clone(), torch.rand(1)) for x in data])
    assert len(programs(run)) == 1
    torch.testing.assert_close(*results)


def test_an_argument_that_is_wrong_in_a_later_call():
    def scored(x, scale):
        return d.Normal(x, scale).log_prob(x).sum()

    f, x = compile(scored, backend="numpy"), torch.ones(3)
    for _ in range(CALLS):
        f(x, x)
    assert programs(f)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        f(x, -x)
    assert f(x, x).item() == scored(x, x).item()


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
            loss = F.mse_loss(decode(z), x) - 0.5 * (1 + log_var - mean**2 - log_var.exp()).mean()
            loss.backward()
            optimizer.step()
            return loss

        f = compile(step, backend=backend, fullgraph=True) if backend else step
        data = torch.rand(20, 4, 8)
        made = [float(f(x)) for x in data]
        assert backend is None or programs(f)
        return made

    assert losses("numpy") == pytest.approx(losses(None), rel=1e-5)
