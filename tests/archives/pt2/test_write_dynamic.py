"""torch.export.save of programs with dynamic sizes: torch 2.13 runs the archives with other sizes, and so does
rushlight."""

from __future__ import annotations

import io

import pytest

import rushlight
from rushlight import nn
from tests.archives.compared import TOLERANCE, difference
from tests.archives.pt2.test_write import saved, theirs
from tests.onnx.test_export_models import EXAMPLES, served

SERVED = {
    "resnet18": (
        lambda: served("resnet18"),
        [(rushlight.randn(n, 3, *size),) for n, size in ((1, (64, 64)), (2, (33, 70)), (1, (90, 51)))],
        ({0: "batch", 2: "height", 3: "width"},),
    ),
    "unet": (
        lambda: served("unet"),
        [(rushlight.randn(n, 3, *size),) for n, size in ((1, (32, 48)), (2, (64, 16)), (3, (16, 32)))],
        ({0: "batch", 2: "height", 3: "width"},),
    ),
    "bert": (
        lambda: served("bert"),
        [tuple(rushlight.ones(n, t, dtype=rushlight.int64) for _ in range(3)) for n, t in ((2, 8), (3, 20), (1, 1))],
        ({0: "batch", 1: "words"},) * 3,
    ),
}


class Sizes(nn.Module):
    """Slices, ranges, masks and numbers that follow from sizes; conditions on sizes that all sizes share."""

    def forward(self, x):
        batch, time = x.shape[:2]
        if time > 1:
            x = x[:, 1:]
        y = x[:, : time // 2] * batch + rushlight.linspace(0, 1, time // 2).unsqueeze(-1)
        mask = rushlight.ones(time, time, dtype=rushlight.bool).tril()
        z = rushlight.arange(time).flip(0) * 2 + rushlight.zeros(time)
        return y, mask, z, rushlight.cat([x, y], 1).flatten(1), x.reshape(batch, -1).unfold(1, 3, 2), batch * 2


class Layers(nn.Module):
    """Resizing in several modes, pooling, normalization over channels, an embedding of positions."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(3, 4, 5, 2, 2), nn.GroupNorm(2, 4)
        self.places = nn.Embedding(40, 4)

    def forward(self, x, image):
        y = self.norm(self.conv(x)).transpose(1, 2)
        y = y + self.places(rushlight.arange(y.shape[1]))
        wide = nn.functional.interpolate(x, x.shape[2] * 2, mode="linear")
        near = nn.functional.interpolate(image, scale_factor=3, mode="nearest")
        cubic = nn.functional.interpolate(image, (image.shape[2] + 3, 7), mode="bicubic", align_corners=True)
        pooled = nn.functional.max_pool2d(near, 3, 2, 1)
        return y, wide, near, cubic, pooled, nn.functional.avg_pool1d(wide, 2), nn.functional.pad(x, (1, 2))


OWN = {
    "sizes": (Sizes, [(rushlight.randn(*s, 3),) for s in ((2, 6), (1, 8), (5, 13))], ({0: "batch", 1: "time"},)),
    "layers": (
        Layers,
        [(rushlight.randn(n, 3, t), rushlight.randn(n, 2, h, 5)) for n, t, h in ((2, 9, 6), (1, 20, 4), (3, 31, 11))],
        ({0: "batch", 2: "time"}, {0: "batch", 2: "height"}),
    ),
    "large kernels": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 4, 7, stride=3), nn.ReLU(), nn.Conv1d(4, 3, 5, stride=2), nn.MaxPool1d(3, 2)
        ),
        [(rushlight.randn(n, 2, t),) for n, t in ((2, 90), (1, 60), (3, 143))],
        ({0: "batch", 2: "time"},),
    ),
    "perceptron": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)),
        [(rushlight.randn(n, 4),) for n in (3, 1, 9)],
        ({0: rushlight.export.Dim("rows", min=1, max=100)},),
    ),
    "lstm with padding": (
        lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
        [(rushlight.randn(*s, 3),) for s in ((2, 5), (1, 2), (4, 9))],
        ({0: rushlight.export.Dim.AUTO, 1: rushlight.export.Dim.DYNAMIC},),
    ),
}
MODELS = {**EXAMPLES, **SERVED, **OWN}


def leaves(value):
    """The tensors and other values of a result."""
    if isinstance(value, (dict, tuple, list)):
        inside = value.values() if isinstance(value, dict) else value
        return [leaf for part in inside for leaf in leaves(part)]
    return [value]


def agree(got, expected):
    pairs = [*zip(leaves(got), leaves(expected), strict=True)]
    assert all(a == b for a, b in pairs if not hasattr(b, "detach"))
    tensors = [pair for pair in pairs if hasattr(pair[1], "detach")]
    assert difference([a for a, _ in tensors], [b for _, b in tensors]) <= TOLERANCE


@pytest.mark.parametrize("name", MODELS)
def test_torch_runs_the_archive_with_other_sizes(torch, name):
    rushlight.manual_seed(0)
    make, examples, dynamic = MODELS[name]
    model = make().eval()
    content = saved(rushlight.export.export(model, examples[0], dynamic_shapes=dynamic))
    other, mine = torch.export.load(io.BytesIO(content)).module(), rushlight.export.load(io.BytesIO(content)).module()
    for args in examples:
        expected = model(*args)
        agree(mine(*args), expected)
        agree(other(*theirs(torch, args)), expected)


def test_bounds_of_a_dimension(torch):
    dim = rushlight.export.Dim("rows", min=2, max=50)
    program = rushlight.export.export(nn.Linear(3, 2), (rushlight.ones(3, 3),), dynamic_shapes=({0: dim},))
    found = torch.export.load(io.BytesIO(saved(program)))
    ((symbol, bounds),) = found.range_constraints.items()
    assert (str(symbol), bounds.lower, bounds.upper) == ("s0", 2, 50)
    assert found.module()(torch.ones(50, 3)).shape == (50, 2)
    with pytest.raises(AssertionError, match="<= 50|range"):
        found.module()(torch.ones(51, 3))


def test_an_archive_of_torch_with_dynamic_sizes_is_written_again(torch):
    """torch's own archive, read and saved by rushlight, keeps its dynamic sizes."""
    model = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(1))
    dims = torch.export.Dim("batch"), torch.export.Dim("time", min=4)
    file = io.BytesIO()
    shapes = ({0: dims[0], 2: dims[1]},)
    torch.export.save(torch.export.export(model, (torch.randn(2, 2, 9),), dynamic_shapes=shapes), file)
    again = torch.export.load(io.BytesIO(saved(rushlight.export.load(io.BytesIO(file.getvalue())))))
    for size in ((1, 2, 9), (4, 2, 20)):
        x = torch.randn(*size)
        assert difference(again.module()(x), model(x)) <= TOLERANCE


class Ways(nn.Module):
    def forward(self, x):
        return x.relu() if x.shape[0] > 4 else x.tanh()


class Reads(nn.Module):
    def forward(self, x):
        return rushlight.linalg.eigvals(x @ x.mT)


class Texts(nn.Module):
    def forward(self, x):
        return x.relu() if x.shape[0] > 1 else x, "a text"


def export_to(model, place):
    program = rushlight.export.export(model, (rushlight.ones(3, 3),), dynamic_shapes=({0: "rows"},))
    rushlight.export.save(program, place)


def test_what_no_archive_can_express_is_named(tmp_path):
    ways = (
        (Ways(), "computes differently for other sizes"),
        (Reads(), "linalg_eigvals"),
        (Texts(), "returns the text"),
    )
    for model, words in ways:
        with pytest.raises(rushlight.export.ExportError, match=words) as error:
            export_to(model, tmp_path / "a.pt2")
        assert model.__class__ is Texts or "test_write_dynamic.py" in str(error.value)


def test_sizes_beside_the_dynamic_ones_stay(torch):
    model, x = nn.Linear(3, 2), rushlight.ones(2, 4, 3)
    content = saved(rushlight.export.export(model, (x,), dynamic_shapes={"input": {0: "batch"}}))
    mine = rushlight.export.load(io.BytesIO(content)).module()
    assert mine(rushlight.ones(7, 4, 3)).shape == (7, 4, 2)
    with pytest.raises(RuntimeError):
        mine(rushlight.ones(7, 5, 3))
