"""A model as a file, the file as a module, the module as a file: also after training."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.onnx import export, load
from tests.onnx.onnx_case import TOLERANCE, error_of, largest_error, session

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import served_models


def convnet():
    rushlight.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
    ).eval()  # fmt: skip


@pytest.mark.parametrize("name", served_models.MODELS)
def test_served_models(name, tmp_path):
    served = served_models.MODELS[name]
    rushlight.manual_seed(0)
    model = served.make(nn).eval()
    examples = [tuple(map(rushlight.from_numpy, served.draw(np.random.default_rng(n), n))) for n in (2, 5)]
    dims = tuple({0: "batch"} for _ in examples[0])
    export(model, examples[0], tmp_path / "a.onnx", dynamic_shapes=dims, external_data=name == "resnet18")
    loaded = load(tmp_path / "a.onnx")
    again = session(export(loaded, examples[0], dynamic_shapes=dims))
    for args in examples:
        assert largest_error(again, model, args) <= TOLERANCE


def test_a_fine_tuned_file(tmp_path):
    """Two classes of images, which the loaded file learns; the new file gives the trained model's numbers."""
    export(convnet(), (rushlight.zeros(2, 1, 8, 8),), tmp_path / "a.onnx", dynamic_shapes=({0: "batch"},))
    model = load(tmp_path / "a.onnx")
    rng = np.random.default_rng(0)
    images = rng.standard_normal((32, 1, 8, 8)).astype(np.float32)
    classes = (images[:, 0, :, :4].mean((1, 2)) > images[:, 0, :, 4:].mean((1, 2))).astype(np.int64)
    x, y = rushlight.from_numpy(images), rushlight.from_numpy(classes)
    optimizer = rushlight.optim.Adam(model.parameters(), 0.02)
    losses = []
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
    model.eval()
    export(model, (x[:2],), tmp_path / "b.onnx", dynamic_shapes=({0: "batch"},), external_data=False)
    running = pytest.importorskip("onnxruntime").InferenceSession(str(tmp_path / "b.onnx"))
    got = running.run(None, {running.get_inputs()[0].name: images})[0]
    assert error_of(got, model(x).detach().numpy()) <= TOLERANCE
    assert (got.argmax(1) == classes).mean() > 0.9
    before = pytest.importorskip("onnxruntime").InferenceSession(str(tmp_path / "a.onnx"))
    assert error_of(before.run(None, {before.get_inputs()[0].name: images})[0], got) > 0.1
