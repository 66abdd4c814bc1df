"""Exported pages of NumPy: short, the numbers of the model, any number of samples."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compile.export.model_folder import loaded
from rushlight.nn import functional as F


def lenet():
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )


class Text(nn.Module):
    """A transformer block over tokens with positions."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(20, 16), nn.Embedding(8, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
        self.head = nn.Linear(16, 20)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.block(x))


class Frames(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.layer, self.head = cell(5, 6, 2, batch_first=True, bidirectional=True), nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


def norms():
    return nn.Sequential(nn.Conv2d(4, 6, 3, bias=False), nn.BatchNorm2d(6), nn.Hardswish(), nn.AdaptiveAvgPool2d(1))


CASES = {
    "lenet": (lenet, (1, 28, 28), 75),
    "norms": (norms, (4, 9, 9), 65),
    "text": (Text, 8, 120),
    "lstm": (lambda: Frames(nn.LSTM), (7, 5), 60),
    "gru": (lambda: Frames(nn.GRU), (7, 5), 60),
    "groups": (lambda: nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), groups=2), (4, 9, 8), 45),
    "line": (lambda: nn.Conv1d(4, 6, 3, dilation=2), (4, 12), 45),
    "volume": (lambda: nn.Conv3d(2, 3, 2, padding=1), (2, 4, 5, 3), 45),
    "up": (lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2, dilation=2), (4, 5, 6), 45),
    "pool": (lambda: nn.MaxPool2d(3, 2, 1), (2, 9, 7), 45),
    "means": (lambda: nn.AvgPool2d((3, 2), 2, 1), (2, 9, 7), 50),
    "parts": (lambda: nn.GroupNorm(2, 4), (4, 5, 3), 30),
    "rnn": (lambda: Frames(nn.RNN), (7, 5), 60),
}


def drawn(shape, samples):
    return torch.randint(0, 20, (samples, shape)) if isinstance(shape, int) else torch.randn(samples, *shape)


@pytest.mark.parametrize("name", CASES)
def test_pages_are_short_and_compute_what_the_models_do(tmp_path, name):
    torch.manual_seed(0)
    make, shape, most = CASES[name]
    model = make().eval()
    for b in model.buffers():
        if b.dtype.is_floating_point:
            b.copy_(torch.rand(b.shape) + 0.5)
    fixed = torch.compiler.export(model, drawn(shape, 2), tmp_path / "fixed")
    any_number = torch.compiler.export(model, drawn(shape, 1), tmp_path / "dynamic", dynamic=True)
    for place, counts in ((fixed, [2]), (any_number, [1, 2, 7])):
        assert (place / "program.py").read_text().count("\n") < most
        with loaded(place) as package:
            for n in counts:
                x = drawn(shape, n)
                np.testing.assert_allclose(package.model(x.numpy()), model(x).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_elementwise_steps_are_signs(tmp_path):
    place = torch.compiler.export(lambda x, y: (x * 2 - y) / (x + y), (torch.ones(3), torch.ones(3)), tmp_path / "f")
    lines = (place / "program.py").read_text().split("def model(x, y):")[1].splitlines()
    assert [line.partition(" = ")[2] for line in lines[2:6]] == ["x * 2.0", "mul1 - y", "x + y", "sub1 / add1"]


def test_other_shapes_are_refused(tmp_path):
    place = torch.compiler.export(nn.Linear(3, 2), np.ones((4, 3), np.float32), tmp_path / "line", dynamic=True)
    with loaded(place) as package:
        assert package.model(np.ones((9, 3), np.float32)).shape == (9, 2)
        with pytest.raises(ValueError, match=r"input is float32\[9, 4\], but .* exported for float32\[samples, 3\]"):
            package.model(np.ones((9, 4), np.float32))


def test_one_argument_may_have_any_number_of_samples(tmp_path):
    place = torch.compiler.export(
        lambda x, weight: x @ weight, (torch.randn(2, 3), torch.randn(3, 4)), tmp_path / "f", dynamic={"x": {0: "n"}}
    )
    x, weight = np.random.default_rng(0).standard_normal((6, 3), np.float32), np.ones((3, 4), np.float32)
    with loaded(place) as package:
        np.testing.assert_allclose(package.model(x, weight), x @ weight, rtol=1e-5, atol=1e-5)
        with pytest.raises(ValueError, match="weight is"):
            package.model(x, np.ones((2, 4), np.float32))


def test_results_may_depend_on_all_samples(tmp_path):
    """Unlike a library's, a page's function gets all samples at once."""
    place = torch.compiler.export(lambda x: x - x.mean(0), torch.randn(2, 5), tmp_path / "f", dynamic=True)
    x = np.random.default_rng(0).standard_normal((6, 5), np.float32)
    with loaded(place) as package:
        np.testing.assert_allclose(package.model(x), x - x.mean(0), rtol=1e-5, atol=1e-5)


def test_what_depends_on_the_number_of_samples_in_another_way_is_refused(tmp_path):
    for f in (lambda x: x + torch.arange(len(x)).float()[:, None], lambda x: x.sum(0) if len(x) == 3 else x.mean(0)):
        with pytest.raises(ValueError, match="hint: export it without `dynamic`"):
            torch.compiler.export(f, torch.randn(2, 5), tmp_path / "f", dynamic=True)
    with pytest.raises(ValueError, match="a model that writes, draws, .* has static sizes"):
        torch.compiler.export(lambda x: F.dropout(x, 0.5), torch.randn(2, 5), tmp_path / "f", dynamic=True)


def test_wrong_indices_are_refused(tmp_path):
    place = torch.compiler.export(nn.Embedding(5, 2), torch.tensor([[0, 4]]), tmp_path / "table")
    with loaded(place) as package:
        for index in (5, -1):
            with pytest.raises(IndexError, match="out of range"):
                package.model(np.array([[0, index]]))


def test_attention_with_masks(tmp_path):
    """A query whose keys are all masked gets zeros."""
    q, k, v = (torch.randn(2, 3, 5, 4) for _ in range(3))
    mask = torch.zeros(5, 5)
    mask[2] = -torch.inf
    mask[3, 1:] = -torch.inf
    cases = {
        "causal": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v)),
        "masked": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), (q, k, v, mask)),
    }
    for name, (f, args) in cases.items():
        with loaded(torch.compiler.export(f, args, tmp_path / name)) as package:
            assert "attention(" in (tmp_path / name / "program.py").read_text()
            made = package.model(*[t.numpy() for t in args])
            np.testing.assert_allclose(made, f(*args).numpy(), rtol=1e-5, atol=1e-6)


def test_names_of_functions_and_arguments_do_not_meet(tmp_path):
    """Arguments called like functions; the copied kernel of a resize has functions called like ours."""

    def f(relu, W, lambda_):
        return F.interpolate(relu.relu(), scale_factor=2, mode="bilinear"), F.linear(W, lambda_).relu()

    args = torch.randn(1, 1, 3, 3), torch.randn(2, 3), torch.randn(4, 3)
    with loaded(torch.compiler.export(f, args, tmp_path / "f")) as package:
        for made, want in zip(package.model(*[t.numpy() for t in args]), f(*args)):
            np.testing.assert_allclose(made, want.numpy(), rtol=1e-5, atol=1e-6)


FUNCTIONS = (
    "gelu sigmoid silu hardswish elu selu celu mish softplus leaky_relu hardtanh logsigmoid relu6 hardshrink softsign"
)
OTHERS = {
    "erf": torch.erf,
    "log_softmax": lambda x: F.log_softmax(x, 0),
    "logsumexp": lambda x: x.logsumexp(0),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "threshold": lambda x: F.threshold(x, -1.0, -torch.inf),
    "std": lambda x: x[:-2].std(0),
    "clamp": lambda x: x.clamp(-2, 3.5),
    "power": lambda x: x.abs() ** 1.5,
    "argmax": lambda x: x.argmax(0),
    "index": lambda x: x[torch.tensor([3, -1])],
    "tril": lambda x: (x[:4] * x[:4, None]).tril(1),
}


@pytest.mark.parametrize("name", [*FUNCTIONS.split(), *OTHERS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_are_exact(tmp_path, name, dtype):
    """Also where an exponential overflows."""
    x = torch.tensor(np.concatenate([np.linspace(-12, 12, 97), [-800, 800]]).astype(dtype))
    f = OTHERS.get(name) or getattr(F, name)
    place = torch.compiler.export(lambda x: f(x), x, tmp_path / "f")
    assert (place / "program.py").read_text().count("\n") < 45
    with loaded(place) as package:
        made, rtol = package.model(x.numpy()), 1e-5 if dtype == "float32" else 1e-12
        assert made.dtype == f(x).numpy().dtype
        np.testing.assert_allclose(made, f(x).numpy(), rtol=rtol, atol=2e-6 if dtype == "float32" else 1e-12)
