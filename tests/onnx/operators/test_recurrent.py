"""LSTM with weights of 8 bits: com.microsoft's DynamicQuantizeLSTM, beside onnxruntime and beside the LSTM of floats."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rushlight.onnx import load
from rushlight.onnx.operators.table import MICROSOFT
from tests.onnx.files import file, node

T, N, X, H = 7, 3, 5, 4  # times, batch, sizes of inputs and outputs
NAMES = "x w r b lengths h c p w_scale w_zero r_scale r_zero".split()


def arrays(directions, per_channel, signed):
    """The inputs of the operator, by name."""
    rng = np.random.default_rng(3)
    kind, low = (np.int8, -128) if signed else (np.uint8, 0)

    def quantized(inputs):
        shape = (directions, 4 * H) if per_channel else (directions,)
        whole = rng.integers(low, low + 256, (directions, inputs, 4 * H)).astype(kind)
        # onnxruntime takes one zero point for all gates, and 0 for signed weights with a scale for each gate
        zero = np.full(shape, low + (128 if signed and per_channel else 123), kind)
        return whole, rng.uniform(0.005, 0.01, shape).astype(np.float32), zero

    w, w_scale, w_zero = quantized(X)
    r, r_scale, r_zero = quantized(H)
    floats = {"x": (T, N, X), "b": (directions, 8 * H), "h": (directions, N, H), "c": (directions, N, H)}
    made = {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in floats.items()}
    made["p"] = rng.normal(0, 0.3, (directions, 3 * H)).astype(np.float32)
    made |= {"w": w, "r": r, "w_scale": w_scale, "w_zero": w_zero, "r_scale": r_scale, "r_zero": r_zero}
    return made | {"lengths": np.int32([T, 3, 5])}


def model_of(values, direction, without=""):
    """A file with the operator alone; all but x are weights."""
    given = " ".join("-" if name in without.split() else name for name in NAMES)
    step = node("DynamicQuantizeLSTM", given, "y h_last c_last", MICROSOFT, hidden_size=H, direction=direction)
    weights = {name: array for name, array in values.items() if name != "x" and name not in without.split()}
    inputs = [("x", "f4", (T, N, X))]
    return file(step, opset=17, domains={MICROSOFT: 1}, inputs=inputs, outputs="y h_last c_last", weights=weights)


def dequantized(values, name):
    """(directions, gates, inputs): the weight of an LSTM of floats."""
    zero, scale = (values[f"{name}_{part}"].astype(np.float32) for part in ("zero", "scale"))
    zero, scale = (a[:, None] if a.ndim == 2 else a[:, None, None] for a in (zero, scale))
    return ((values[name].astype(np.float32) - zero) * scale).transpose(0, 2, 1)


CASES = list(
    itertools.product(["forward", "reverse", "bidirectional"], [False, True], ["", "lengths", "b lengths h c p"])
)


@pytest.mark.parametrize(("direction", "per_channel", "without"), CASES)
def test_dynamic_quantize_lstm(direction, per_channel, without):
    """The LSTM of floats, up to the rounding of x and of the outputs to 256 steps."""
    values = arrays(2 if direction == "bidirectional" else 1, per_channel, signed=True)
    found = load(model_of(values, direction, without))(values["x"])
    floats = values | {name: dequantized(values, name) for name in ("w", "r")}
    weights = {n: a for n, a in floats.items() if n in NAMES[1:8] and n not in without.split()}
    given = " ".join("-" if name in without.split() else name for name in NAMES[:8])
    step = node("LSTM", given, "y h_last c_last", hidden_size=H, direction=direction)
    plain = load(file(step, opset=17, inputs="x", outputs="y h_last c_last", weights=weights))(values["x"])
    for ours, right in zip(found, plain):
        assert ours.shape == right.shape
        assert 0 < abs(ours - right).max() < 0.02


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("direction", "per_channel", "without"), CASES)
def test_dynamic_quantize_lstm_of_onnxruntime(direction, per_channel, without, signed):
    """The same numbers; with lengths to 0.01: outputs of onnxruntime after a sequence's end widen the range of the others."""
    onnxruntime = pytest.importorskip("onnxruntime")
    values = arrays(2 if direction == "bidirectional" else 1, per_channel, signed)
    model = model_of(values, direction, without)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    right = onnxruntime.InferenceSession(model, options).run(None, {"x": values["x"]})
    for ours, expected in zip(load(model)(values["x"]), right):
        np.testing.assert_allclose(ours.detach().numpy(), expected, atol=1e-5 if "lengths" in without else 1e-2)
