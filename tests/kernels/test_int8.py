"""Products of int8: exact sums, and torch's scales and zero points."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from rushlight.kernels import int8

SHAPES = [(1, 3, 5), (7, 130, 33), (4, 1500, 16)]


def problem(rows, inputs, outputs, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(-128, 128, (outputs, inputs)).astype(np.int8)
    scales, bias = rng.random(outputs).astype(np.float32) + 0.1, rng.standard_normal(outputs).astype(np.float32)
    return rng.standard_normal((rows, inputs)).astype(np.float32), values, scales, bias


@pytest.mark.parametrize("shape", SHAPES)
def test_tiles_hold_the_values(shape):
    _, values, scales, _ = problem(*shape)
    weight = int8.Int8Weight(values, scales)
    assert (weight.values() == values).all()
    assert (copy.deepcopy(weight).values() == values).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_are_exact(shape):
    rows, inputs, outputs = shape
    q = np.full((rows, inputs), 255, np.uint8)
    values = np.full((outputs, inputs), -128, np.int8)
    assert (int8.products(q, values) == -255 * 128 * inputs).all()
    _, values, *_ = problem(*shape)
    expected = q.astype(np.int64) @ values.astype(np.int64).T
    assert (int8.products(q, values) == expected).all()


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1, 2), (0, 3), (-3, 0), (0, 0), (0.5, 2), (-2, -0.5), (-1e-5, 2e-5), (0, 1e-4), (-1e-4, 0), (-1e-40, 1e-40)],
)
def test_zero_is_an_integer_of_the_range(low, high):
    scale, zero = int8.scale_and_zero(low, high, 127)
    assert scale > 0
    assert 0 <= zero <= 127
    # the range is covered up to half a step
    assert (min(low, 0) / scale + zero) >= -0.5 - 1e-3
    assert (max(high, 0) / scale + zero) <= 127.5 + 1e-3


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("zeros", [False, True])
def test_linear_by_tensor_is_the_float_product_of_the_quantized_numbers(shape, zeros):
    x, values, scales, bias = problem(*shape)
    z = np.arange(shape[2]) % 7 - 3 if zeros else None
    q, scale, zero = int8.by_tensor(x, 127)
    wide = scale.astype(float) * (q.astype(float) - zero)
    weight = scales[:, None] * (values.astype(float) - (0 if z is None else z[:, None]))
    found = int8.linear_by_tensor(x, int8.Int8Weight(values, scales, z, bias), 127)
    np.testing.assert_allclose(found, wide @ weight.T + bias, rtol=1e-4, atol=1e-3)
    assert abs(wide - x).max() <= scale[0] / 2 * (1 + 1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("symmetric", [True, False])
def test_linear_by_rows_quantizes_each_row(shape, symmetric):
    x, values, scales, bias = problem(*shape)
    x *= 10.0 ** np.arange(len(x), dtype=np.float32)[:, None]
    q, scale, zero = int8.by_rows(x, symmetric)
    wide = scale.astype(float) * (q.astype(float) - zero)
    found = int8.linear_by_rows(x, int8.Int8Weight(values, scales, None, bias), symmetric)
    expected = wide @ (scales[:, None] * values.astype(float)).T + bias
    assert (abs(found - expected) <= 1e-5 * abs(expected).max(1, keepdims=True)).all()
    assert (abs(wide - x) <= scale * (1 + 1e-5)).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_linear_of_floats(shape):
    x, values, scales, bias = problem(*shape)
    found = int8.linear_of_floats(x, int8.Int8Weight(values, scales, None, bias))
    expected = x.astype(float) @ (scales[:, None] * values.astype(float)).T + bias
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("function", [int8.linear_by_tensor, int8.linear_by_rows])
def test_no_rows_and_no_inputs(function):
    empty = int8.Int8Weight(np.zeros((3, 0), np.int8), np.ones(1), None, np.arange(3, dtype=np.float32))
    assert function(np.zeros((2, 0), np.float32), empty, 127).tolist() == [[0, 1, 2]] * 2
    weight = int8.Int8Weight(np.ones((3, 4), np.int8), np.ones(1))
    assert function(np.zeros((0, 4), np.float32), weight, 127).shape == (0, 3)
