"""Operators of com.microsoft, beside onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.onnx import load
from rushlight.onnx.operators.table import MICROSOFT, TABLE, load_operators
from tests.onnx.files import file, node

rng = np.random.default_rng(5)


def normal(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)


def u8(*shape):
    return rng.integers(0, 256, shape).astype(np.uint8)


def i8(*shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


def f4(*numbers):
    return np.float32(numbers[0] if len(numbers) == 1 else numbers)


def scale_and_zero(scale, zero, kind=np.uint8):
    return [f4(scale), kind(zero)]


X, A, B = normal(2, 5, 8), normal(2, 3, 4), normal(2, 4, 5)
IDS, SEGMENTS = rng.integers(0, 9, (2, 4)).astype(np.int32), rng.integers(0, 2, (2, 4)).astype(np.int32)
MASK = np.int32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
QUANTIZED = [u8(2, 6), *scale_and_zero(0.05, 120)]
ANGLES = np.arange(10)[:, None] * 0.3 ** np.arange(2)
COS, SIN = np.cos(ANGLES).astype(np.float32), np.sin(ANGLES).astype(np.float32)
ATTENTION = [X, normal(8, 24), normal(24)]
HEADS = [normal(2, 5, 8), normal(2, 6, 8), normal(2, 6, 8)]

# name, inputs (None: left out), attributes, number of outputs
CASES = [
    ("Gelu", [X], {}, 1),
    ("BiasGelu", [X, normal(8)], {}, 1),
    ("FastGelu", [X], {}, 1),
    ("FastGelu", [X, normal(8)], {}, 1),
    ("QuickGelu", [X], {"alpha": 1.5}, 1),
    ("FusedMatMul", [A, B], {"alpha": 0.25}, 1),
    ("FusedMatMul", [A.swapaxes(1, 2).copy(), B.swapaxes(1, 2).copy()], {"transA": 1, "transB": 1}, 1),
    ("FusedMatMul", [normal(3, 2, 4), normal(2, 4, 5)], {"transBatchA": 1}, 1),
    ("FusedGemm", [A[0], B[0], normal(5)], {"activation": "Relu", "alpha": 0.5}, 1),
    ("FusedGemm", [A[0], B[0].T.copy()], {"activation": "LeakyRelu", "activation_alpha": 0.2, "transB": 1}, 1),
    ("FusedConv", [normal(1, 2, 6, 6), normal(3, 2, 3, 3), normal(3)], {"activation": "Relu", "pads": [1] * 4}, 1),
    (
        "FusedConv",
        [normal(1, 2, 6, 6), normal(3, 2, 3, 3)],
        {"activation": "Clip", "activation_params": [0.0, 0.5], "strides": [2, 2]},
        1,
    ),
    ("SkipLayerNormalization", [X, normal(2, 5, 8), normal(8), normal(8), normal(8)], {"epsilon": 1e-5}, 1),
    ("SkipLayerNormalization", [X, normal(2, 5, 8), normal(8), normal(8)], {}, "y - - total"),
    ("SkipSimplifiedLayerNormalization", [X, normal(2, 5, 8), normal(8)], {}, "y - - total"),
    (
        "EmbedLayerNormalization",
        [IDS, SEGMENTS, normal(9, 8), normal(6, 8), normal(2, 8), normal(8), normal(8), MASK[:, :4].copy()],
        {},
        2,
    ),
    ("EmbedLayerNormalization", [IDS, None, normal(9, 8), normal(6, 8), None, normal(8), normal(8)], {}, 2),
    ("Attention", ATTENTION, {"num_heads": 2}, 1),
    ("Attention", [*ATTENTION, MASK], {"num_heads": 2, "unidirectional": 0}, 1),
    ("Attention", [*ATTENTION, np.int32([3, 5])], {"num_heads": 2}, 1),
    ("Attention", ATTENTION, {"num_heads": 2, "unidirectional": 1, "scale": 0.3}, 1),
    ("Attention", [*ATTENTION, None, normal(2, 2, 2, 3, 4)], {"num_heads": 2, "unidirectional": 1}, 2),
    ("Attention", [*ATTENTION, None, None, normal(2, 2, 5, 5)], {"num_heads": 2}, 1),
    ("Attention", [X, normal(8, 20), normal(20)], {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}, 1),
    ("MultiHeadAttention", HEADS, {"num_heads": 2}, 1),
    ("MultiHeadAttention", [*HEADS, normal(24)], {"num_heads": 4, "scale": 0.5}, 1),
    ("MultiHeadAttention", [*HEADS, None, np.int32([[1, 1, 1, 1, 0, 0], [1] * 6])], {"num_heads": 2}, 1),
    ("MultiHeadAttention", [*HEADS, None, None, normal(2, 2, 5, 6)], {"num_heads": 2}, 1),
    (
        "MultiHeadAttention",
        [normal(2, 1, 8), normal(2, 1, 8), normal(2, 1, 8), None, None, None, normal(2, 2, 3, 4), normal(2, 2, 3, 4)],
        {"num_heads": 2, "unidirectional": 1},
        3,
    ),
    ("RotaryEmbedding", [normal(2, 3, 8), np.int64([[0, 1, 2], [4, 5, 6]]), COS, SIN], {}, 1),
    ("RotaryEmbedding", [normal(2, 3, 8), np.int64([2]), COS, SIN], {"interleaved": 1}, 1),
    ("RotaryEmbedding", [normal(1, 2, 3, 4), np.int64([[1, 2, 3]]), COS, SIN], {}, 1),
    ("MatMulIntegerToFloat", [u8(3, 8), i8(8, 4), f4(0.02), f4(0.1), np.uint8(99), np.int8(0), normal(4)], {}, 1),
    ("MatMulIntegerToFloat", [u8(3, 8), u8(8, 4), f4(0.02), f4(0.1, 0.2, 0.3, 0.4), np.uint8(9), u8(4)], {}, 1),
    ("DynamicQuantizeMatMul", [normal(3, 8), i8(8, 4), f4(0.1), np.int8(0)], {}, 1),
    ("DynamicQuantizeMatMul", [normal(3, 8), u8(8, 4), f4(0.1), np.uint8(120), normal(4)], {}, 1),
    ("MatMulNBits", [normal(2, 3, 64), u8(5, 2, 16), normal(10)], {"K": 64, "N": 5, "bits": 4, "block_size": 32}, 1),
    (
        "MatMulNBits",
        [normal(3, 64), u8(5, 2, 16), normal(10), u8(5), None, normal(5)],
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
        1,
    ),
]
TO_Y = scale_and_zero(0.07, 128)
QUANTIZED_CASES = [
    ("QLinearAdd", [*QUANTIZED, u8(2, 6), *scale_and_zero(0.02, 3), *TO_Y], {}),
    ("QLinearAdd", [i8(2, 6), *scale_and_zero(0.05, 1, np.int8), i8(6), *scale_and_zero(0.02, 3, np.int8), *scale_and_zero(0.07, -4, np.int8)], {}),
    ("QLinearMul", [*QUANTIZED, u8(2, 6), *scale_and_zero(0.02, 3), *TO_Y], {}),
    ("DequantizeLinear", QUANTIZED, {"axis": 0}),
    ("QuantizeLinear", [normal(3, 4), *TO_Y], {"axis": 0}),
    ("QLinearSigmoid", [*QUANTIZED, *scale_and_zero(1 / 256, 0)], {}),
    ("QLinearLeakyRelu", [*QUANTIZED, *TO_Y], {"alpha": 0.1}),
    ("QLinearGlobalAveragePool", [u8(2, 3, 4, 4), *scale_and_zero(0.05, 120), *scale_and_zero(0.03, 100)], {}),
    ("QLinearAveragePool", [u8(2, 3, 6, 6), *scale_and_zero(0.05, 120), *TO_Y], {"kernel_shape": [3, 3], "pads": [1] * 4}),
    ("QLinearConcat", [*TO_Y, *QUANTIZED, u8(2, 3), *scale_and_zero(0.03, 7)], {"axis": 1}),
    ("QLinearSoftmax", [*QUANTIZED, *scale_and_zero(1 / 256, 0)], {"axis": -1, "opset": 13}),
    ("QGemm", [u8(3, 8), *scale_and_zero(0.02, 99), i8(8, 4), *scale_and_zero(0.01, 0, np.int8), rng.integers(-99, 99, 4).astype(np.int32), *TO_Y], {}),
    ("QGemm", [u8(3, 8), *scale_and_zero(0.02, 99), u8(4, 8), *scale_and_zero(0.01, 7)], {"transB": 1}),
]  # fmt: skip


def model_of(name, values, attributes, outputs):
    """A file with the operator alone. The inputs of the file are the values that are not left out."""
    names = [f"x{k}" for k in range(len(values))]
    given = " ".join("-" if value is None else name for name, value in zip(names, values))
    results = outputs if isinstance(outputs, str) else " ".join(["y", "second", "third"][:outputs])
    inputs = [(n, v.dtype.str, v.shape) for n, v in zip(names, values) if v is not None]
    made = node(name, given, results, MICROSOFT, **attributes)
    made.output = ["" if part == "-" else part for part in results.split()]
    shown = " ".join(part for part in results.split() if part != "-")
    return file(made, opset=17, domains={MICROSOFT: 1}, inputs=inputs, outputs=shown)


def of_onnxruntime(content, values):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    running = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return running.run(None, {f"x{k}": np.array(value) for k, value in enumerate(values) if value is not None})


def of_rushlight(content, values):
    found = load(content)(*[rushlight.from_numpy(np.array(v)) for v in values if v is not None])
    return [t.detach().numpy() for t in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize(("name", "values", "attributes", "outputs"), CASES)
def test_fused_operators(name, values, attributes, outputs):
    content = model_of(name, values, attributes, outputs)
    got, expected = of_rushlight(content, values), of_onnxruntime(content, values)
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * max(np.abs(b).max(), 1e-30))


@pytest.mark.parametrize(("name", "values", "attributes"), QUANTIZED_CASES)
def test_quantized_operators(name, values, attributes):
    """Equal up to one step: onnxruntime computes some of them by a table or with integers, which round otherwise."""
    content = model_of(name, values, attributes, 1)
    (got,), (expected,) = of_rushlight(content, values), of_onnxruntime(content, values)
    assert got.dtype == expected.dtype
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        return
    away = np.abs(got.astype(int) - expected.astype(int))
    assert away.max() <= 1
    assert away.mean() <= 0.1
    assert expected.std() > 0


def test_simplified_layer_normalization():
    """The name by which onnxruntime fuses RMS norm, in the default domain."""
    values = [X, normal(8)]
    inputs = [(f"x{k}", "f4", v.shape) for k, v in enumerate(values)]
    made = node("SimplifiedLayerNormalization", "x0 x1", "y", epsilon=1e-4)
    content = file(made, opset=17, inputs=inputs, outputs="y")
    np.testing.assert_allclose(of_rushlight(content, values)[0], of_onnxruntime(content, values)[0], 1e-5, 1e-6)


def test_each_operator_is_compared():
    load_operators()
    compared = {name for name, *_ in (*CASES, *QUANTIZED_CASES)}
    assert {*TABLE[MICROSOFT]} == compared | {"DynamicQuantizeLSTM"}  # test_recurrent.py


def test_what_is_not_supported_is_named():
    values = [X, normal(8, 24), normal(24)]
    model = load(model_of("Attention", values, {"num_heads": 2, "do_rotary": 1}, 1))
    with pytest.raises(NotImplementedError, match="do_rotary"):
        model(*map(rushlight.from_numpy, values))
