"""Native programs for several sizes of the arguments: their machine code is shared, and their numbers are eager's."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import rushlight as torch
from rushlight import nn
from rushlight.compile import compile, programs
from rushlight.nn import functional as F


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


class Text(nn.Module):
    """Tokens (N, T) -> (N, T, 16): rows of tables, attention, norms."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(64, 16)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1, enable_nested_tensor=False
        )

    def forward(self, x):
        return self.layers(self.tokens(x) + self.places(torch.arange(x.shape[1])))


class Causal(nn.Module):
    """A parameter is cut to the length of the text."""

    def __init__(self):
        super().__init__()
        self.places, self.heads = nn.Parameter(torch.randn(64, 24)), nn.Linear(24, 72)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.heads(x + self.places[:t]).view(n, t, 3, 3, 8).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, 24)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(5, 9, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.layer(x)[0]


def images():
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 20, 3, stride=2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(20, 5),
    )  # fmt: skip


def waves():
    return nn.Sequential(nn.Conv1d(3, 8, 5, padding=2), nn.GELU(), nn.Conv1d(8, 6, 3, dilation=2), nn.Softmax(1))


def rows():
    return nn.Sequential(nn.Linear(7, 33), nn.LayerNorm(33), nn.Tanh(), nn.Linear(33, 3), nn.LogSoftmax(-1))


class Joined(nn.Module):
    """A padding and a concatenation along the size that differs."""

    def forward(self, x):
        return torch.cat([F.pad(x * 2, (0, 0, 0, 0, 1, 2)), x.flip(1)]) + 1


DRAWS = {
    "rows": (rows, lambda n: torch.randn(n, 7)),
    "images": (images, lambda n: torch.randn(n, 2, 12, 12)),
    "taller images": (images, lambda n: torch.randn(2, 2, 4 * n + 8, 12)),
    "wider images": (images, lambda n: torch.randn(1, 2, 12, 4 * n + 8)),
    "waves": (waves, lambda n: torch.randn(n, 3, 20)),
    "longer waves": (waves, lambda n: torch.randn(2, 3, n + 9)),
    "texts": (Text, lambda n: torch.randint(0, 20, (n, 6))),
    "longer texts": (Text, lambda n: torch.randint(0, 20, (2, n))),
    "longer causal texts": (Causal, lambda n: torch.randn(2, n, 24)),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda n: torch.randn(n, 4, 5)),
    "longer lstm": (lambda: Recurrent(nn.LSTM), lambda n: torch.randn(3, n, 5)),
    "gru": (lambda: Recurrent(nn.GRU), lambda n: torch.randn(n, 4, 5)),
    "joined": (Joined, lambda n: torch.randn(n, 5, 3)),
}
SIZES = (3, 4, 7, 17, 2, 33, 1, 40)


def natives(f):
    return [p.native for p in programs(f) if p.native is not None]


@pytest.mark.parametrize("name", DRAWS)
def test_sizes_share_machine_code(name):
    make, draw = DRAWS[name]
    model = make().eval()
    f = compile(lambda x: model(x))
    for n in SIZES:
        x = draw(n)
        for _ in range(2):
            torch.testing.assert_close(f(x), model(x), rtol=1e-4, atol=1e-5)
    made = natives(f)
    assert len(made) == len(SIZES), [p.native_reason for p in programs(f)]
    assert len({id(native.code) for native in made}) <= 5  # the first size, size 1, and code for one and two cores


def test_a_parameter_that_changes_changes_all_sizes():
    model = rows().eval()
    f = compile(lambda x: model(x))
    inputs = [torch.randn(n, 7) for n in (3, 5, 8, 13)]
    for x in inputs:
        f(x), f(x)
    assert len({id(native.code) for native in natives(f)}) == 2
    for change in (
        lambda: model[0].weight.mul_(1.5),
        lambda: model.load_state_dict({k: v * 0.5 for k, v in model.state_dict().items()}),
        lambda: setattr(model[3], "bias", nn.Parameter(torch.ones(3))),
    ):
        change()
        for x in (*inputs, *inputs[::-1]):
            torch.testing.assert_close(f(x), model(x), rtol=1e-4, atol=1e-5)


def test_packed_weights_are_shared():
    model = rows().eval()
    f = compile(lambda x: model(x))
    for n in (3, 5, 8, 13):
        f(torch.randn(n, 7)), f(torch.randn(n, 7))
    first, *others = natives(f)
    assert all(native.code.arrays is others[0].code.arrays for native in others)
    assert first.code is not others[0].code


def test_python_that_does_something_else_for_a_size_has_code_of_its_own():
    def g(x):
        return torch.tanh(x) * 2 if len(x) > 6 else torch.tanh(x) * 3

    f = compile(g)
    for n in (3, 4, 5, 8, 9, 6, 7, 12):
        x = torch.randn(n, 4)
        for _ in range(2):
            torch.testing.assert_close(f(x), g(x))


def test_constants_that_depend_on_the_size():
    """The numbers of positions, and a mask, are made anew for each size."""

    def g(x):
        n = x.shape[1]
        places = torch.arange(n) * 0.5
        return F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(n, n).tril() * 0.1) + places[:, None]

    f = compile(g)
    for n in (3, 4, 6, 9):
        x = torch.randn(2, n, 8)
        for _ in range(2):
            torch.testing.assert_close(f(x), g(x), rtol=1e-4, atol=1e-5)


def test_other_strides_have_code_of_their_own():
    f = compile(lambda x: torch.relu(x) + 1)
    for n in (3, 4, 5, 6):
        for x in (torch.randn(n, 8), torch.randn(8, n).T, torch.randn(n, 16)[:, ::2]):
            for _ in range(2):
                torch.testing.assert_close(f(x), torch.relu(x) + 1)


def test_wrong_indices_are_refused_for_every_size():
    table = nn.Embedding(10, 4)
    f = compile(lambda x: table(x) * 2)
    for n in (3, 5, 8, 13):
        f(torch.arange(n) % 10), f(torch.arange(n) % 10)
    with pytest.raises(IndexError):
        f(torch.full((8,), 10))
    np.testing.assert_array_equal(f(torch.zeros(8, dtype=torch.int64)), table(torch.zeros(8, dtype=torch.int64)) * 2)


def test_two_cores(monkeypatch):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).eval()
    f = compile(lambda x: model(x))
    for n in (20, 33, 41, 64):
        x = torch.randn(n, 256)
        for _ in range(3):
            torch.testing.assert_close(f(x), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_other_numbers_of_threads(threads):
    """Attention of any length needs room for each thread."""
    f = compile(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        for n in (80, 96, 130):
            x = torch.randn(4, 8, n, 32)
            torch.testing.assert_close(f(x), F.scaled_dot_product_attention(x, x, x, is_causal=True))
        torch.set_num_threads(threads)
        for n in (80, 130, 70):
            x = torch.randn(4, 8, n, 32)
            for _ in range(3):
                torch.testing.assert_close(f(x), F.scaled_dot_product_attention(x, x, x, is_causal=True))
    finally:
        torch.set_num_threads(before)
