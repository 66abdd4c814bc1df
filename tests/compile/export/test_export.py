"""`rushlight.export`: a folder that gives the model's answers without rushlight."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compile import CannotCompile
from rushlight.nn import functional as F

RUN = """
import sys
import numpy as np
for name in ("rushlight", "scipy", "safetensors", "llvmlite"):
    sys.modules[name] = None
from {folder} import model
given = np.load("given.npz")
made = model(*[given[str(i)] for i in range(len(given.files))])
again = model(*[given[str(i)] for i in range(len(given.files))])
assert np.array_equal(made, again)
np.save("made.npy", made)
"""


def answers(place, arrays):
    """What the folder's model gives in a process of its own."""
    (place.parent / "run.py").write_text(RUN.format(folder=place.name))
    np.savez(place.parent / "given.npz", **{str(i): a for i, a in enumerate(arrays)})
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=place.parent, capture_output=True, text=True, env={"PATH": ""}
    )
    assert done.returncode == 0, done.stderr
    return np.load(place.parent / "made.npy")


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.drop, self.line = nn.Dropout(0.5), nn.Linear(4 * 25, 3)

    def forward(self, image):
        x = F.max_pool2d(F.gelu(self.norm(self.conv(image))), 2)
        return F.softmax(self.line(self.drop(x.flatten(1))), -1)


@pytest.mark.parametrize("images", [10, 32])
def test_convolutions_by_loops(tmp_path, images):
    """Of ten images by one way, of many by another; a second pooling's places, which nobody reads, are let go of."""
    model = nn.Sequential(
        nn.Conv2d(2, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 4, 3), nn.MaxPool2d(2), nn.Flatten()
    )
    x = torch.randn(images, 2, 28, 28)
    place = torch.compiler.export(model, x, tmp_path / "convolutions")
    want = model(x).detach().numpy()
    np.testing.assert_allclose(answers(place, [x.numpy()]), want, rtol=1e-5, atol=1e-5)


def test_a_folder_answers_as_the_model_does(tmp_path):
    torch.manual_seed(0)
    model = Small()
    model.norm.running_mean.fill_(0.3)
    x = torch.randn(2, 1, 12, 12)
    place = torch.compiler.export(model, x, tmp_path / "small")
    assert model.training
    assert model.drop.training
    model.eval()
    want = model(x).detach().numpy()
    np.testing.assert_allclose(answers(place, [x.numpy()]), want, rtol=1e-5, atol=1e-6)
    weights = torch.load(place / "weights.safetensors")
    assert set(weights) >= {"conv.weight", "norm.running_mean", "line.bias"}
    assert len((place / "program.py").read_text()) < 4_000


def test_a_folder_of_calls_alone_is_small(tmp_path):
    model = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 2))
    place = torch.compiler.export(model, torch.randn(1, 20), tmp_path / "mlp")
    x = torch.randn(1, 20)
    np.testing.assert_allclose(answers(place, [x.numpy()]), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert len((place / "program.py").read_text()) < 1_000


def load(place):
    """The folder as a package of this process."""
    spec = importlib.util.spec_from_file_location(
        place.name, place / "__init__.py", submodule_search_locations=[str(place)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[place.name] = package
    sys.modules.pop(f"{place.name}.program", None)
    spec.loader.exec_module(package)
    return package


def test_what_is_given_and_returned_may_be_nested(tmp_path):
    def f(pair, named, k):
        return {"sum": pair[0] + named["y"] * k, "same": [pair[1], 3, None], "pair": (pair[0].exp(),)}

    a, b, y = torch.ones(2), torch.zeros(3), torch.tensor([1.0, 2.0])
    package = load(torch.compiler.export(f, ((a, b), {"y": y}, 2), tmp_path / "nested"))
    made = package.model((a.numpy(), b.numpy()), {"y": y.numpy()})
    assert made["sum"].tolist() == [3, 5]
    assert made["same"][1:] == [3, None]
    assert made["same"][0].tolist() == [0, 0, 0]
    assert isinstance(made["pair"], tuple)


def test_other_shapes_and_dtypes_are_refused(tmp_path):
    """NumPy's arrays may be an example, too."""
    model = load(torch.compiler.export(nn.Linear(3, 2), np.ones((4, 3), np.float32), tmp_path / "line")).model
    with pytest.raises(ValueError, match=r"input is float32\[5, 3\], but the model was exported for float32\[4, 3\]"):
        model(np.ones((5, 3), np.float32))
    with pytest.raises(ValueError, match=r"float64\[4, 3\].*hint: input.astype\('float32'\)"):
        model(np.ones((4, 3)))


def test_an_existing_folder_stays_unless_told(tmp_path):
    place = tmp_path / "line"
    torch.compiler.export(nn.Linear(3, 2), torch.ones(4, 3), place)
    before = (place / "__init__.py").read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        torch.compiler.export(nn.Linear(3, 1), torch.ones(4, 3), place)
    assert (place / "__init__.py").read_bytes() == before
    torch.compiler.export(nn.Linear(3, 1), torch.ones(4, 3), place, overwrite=True)
    assert (place / "__init__.py").read_bytes() != before
    assert sorted(f.name for f in tmp_path.iterdir()) == ["line"]  # nothing half written is left


def test_a_failed_export_leaves_nothing(tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("rushlight.compile.export.page_folder.save_file", broken)
    with pytest.raises(OSError, match="disk full"):
        torch.compiler.export(nn.Linear(3, 2), torch.ones(4, 3), tmp_path / "line")
    assert not list(tmp_path.iterdir())


def test_graph_breaks_are_named(tmp_path):
    def f(x):
        if x.sum() > 0:
            x = x + 1
        return x

    with pytest.raises(CannotCompile, match=r"test_export.py:\d+"):
        torch.compiler.export(f, torch.ones(2), tmp_path / "f")
    with pytest.raises(ValueError, match="is not a name that Python can import"):
        torch.compiler.export(nn.Linear(1, 1), torch.ones(1, 1), tmp_path / "my-model")
    assert not list(tmp_path.iterdir())


def test_large_constants_lie_among_the_weights(tmp_path):
    mask = np.sqrt(np.arange(1600, dtype=np.float32)).reshape(40, 40)

    def f(x):
        return x + torch.arange(1600.0).sqrt().reshape(40, 40)

    place = torch.compiler.export(f, torch.ones(40, 40), tmp_path / "masked")
    made = load(place).model(np.ones((40, 40), np.float32))
    assert np.array_equal(made, mask + 1)
    assert len((place / "program.py").read_text()) < 1_000


class Decoder(nn.Module):
    """A bias that is one number, images made larger, bags of rows."""

    def __init__(self):
        super().__init__()
        self.bag, self.up = nn.EmbeddingBag(10, 16, mode="mean"), nn.ConvTranspose2d(1, 1, 4, 2, 1)

    def forward(self, rows):
        image = self.up(self.bag(rows).reshape(-1, 1, 4, 4)).tanh()
        return F.interpolate(image, scale_factor=2, mode="bilinear") + F.interpolate(image, size=16, mode="nearest")


def test_a_folder_of_other_layers(tmp_path):
    model, rows = Decoder(), torch.randint(0, 10, (3, 5))
    place = torch.compiler.export(model, rows, tmp_path / "decoder")
    want = model(rows).detach().numpy()
    np.testing.assert_allclose(answers(place, [rows.numpy()]), want, rtol=1e-5, atol=1e-6)


class Counting(nn.Module):
    """Changes its buffers; one of them is read the other way round."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(3, 2))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(this, x):
        this.rows.mul_(0.5).add_(1)
        this.calls += 1
        return x @ this.rows.T + this.calls


def test_what_a_model_writes_to_its_buffers_is_counted_once(tmp_path):
    """Not by the export."""
    model, x = Counting(), torch.ones(4, 2)
    package = load(torch.compiler.export(model, x, tmp_path / "counting"))
    assert model.calls == 0
    for _ in range(4):
        assert np.array_equal(package.model(x.numpy()), model(x).numpy())


def test_each_call_draws_other_numbers(tmp_path):
    package = load(torch.compiler.export(lambda x: F.dropout(x, 0.5) * 2, torch.ones(64), tmp_path / "drops"))
    x = np.ones(64, np.float32)
    drawn = [package.model(x) for _ in range(3)]
    assert len({a.tobytes() for a in drawn}) == 3
    assert all({*a.tolist()} == {0, 4} for a in drawn)


def test_a_model_of_float16(tmp_path):
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Softmax(-1)).half()
    x = torch.randn(5, 6).half()
    place = torch.compiler.export(model, x, tmp_path / "half")
    got = answers(place, [x.numpy()])
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=2e-3, atol=1e-3)


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


@dataclass
class Both:
    first: torch.Tensor
    second: torch.Tensor


def test_named_tuples_are_given_as_tuples_and_other_objects_are_refused(tmp_path):
    one, two = torch.ones(2), torch.full((2,), 2.0)
    package = load(
        torch.compiler.export(lambda p: Pair(p.second - p.first, p.first), (Pair(one, two),), tmp_path / "pairs")
    )
    made = package.model((one.numpy(), two.numpy()))
    assert [a.tolist() for a in made] == [[1, 1], [1, 1]]
    with pytest.raises(TypeError, match="hint: pass the model tensors, or tuples, lists and dicts"):
        torch.compiler.export(lambda p: p.first, (Both(one, two),), tmp_path / "both")


def test_bfloat16_is_refused_with_a_hint(tmp_path):
    pytest.importorskip("ml_dtypes")
    line, x = nn.Linear(3, 2).bfloat16(), torch.ones(1, 3)
    for model, given in ((line, x.bfloat16()), (lambda x: x.bfloat16().float(), x)):
        with pytest.raises(
            NotImplementedError, match=r"bfloat16, which NumPy alone does not have(.|\n)*model.float\(\)"
        ):
            torch.compiler.export(model, given, tmp_path / "half")


def test_attributes_that_change_are_named_with_a_hint(tmp_path):
    class Changing(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls = self.calls + 1
            return x + self.calls

    with pytest.raises(CannotCompile, match=r"'calls'(.|\n)*hint: let the model store values that change in buffers"):
        torch.compiler.export(Changing(), torch.ones(2), tmp_path / "changing")


def test_arrays_that_cannot_be_written_or_do_not_lie_in_order_are_inputs_too(tmp_path):
    package = load(torch.compiler.export(lambda x: (x + 1).relu(), torch.ones(4, 3), tmp_path / "one"))
    x = np.arange(12, dtype=np.float32).reshape(3, 4).T
    assert np.array_equal(package.model(x), x + 1)
    assert np.array_equal(package.model(np.broadcast_to(np.float32(1), (4, 3))), np.full((4, 3), 2))
