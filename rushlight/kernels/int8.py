"""Products with int8 weights, of activations that are quantized when they arrive.

A weight (out, in) is w = scale (p - z): p int8, one scale for the tensor or for each output, z mostly 0. Activations
(rows, in) are x = scale (q - zero): q uint8, one scale and zero for the tensor (torch.ao) or for each row (torchao).

    out[r, o] = x_scale w_scale (sum_k q[r, k] p[o, k] - zero sum_k p[o, k]) + bias[o],     the sums in int32

A weight is stored in tiles of 64 outputs and 4 inputs: processors with VNNI multiply 16 times 4 bytes at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site

OUTPUTS, INPUTS = 64, 4  # of a tile
EXACT = 512  # float32 holds the sum of this many products of uint8 and int8 exactly: 512 * 255 * 128 < 2**24
SMALLEST_SCALE = np.float32(6.1e-5)  # torch.ao quantizes activations no finer
EPS = np.finfo(np.float32).eps  # the least scale of torchao
ONE = np.float32(1)


class Int8Weight:
    """The weight and bias of a linear map, quantized. `tiles`: (groups of 64 outputs, groups of 4 inputs, 64, 4);
    scales and zeros: (1,), or (out,) if `per_output`; `sums`: the sum of each row. `place`: where loops keep addresses.
    """

    __slots__ = ("bias", "per_output", "place", "scales", "shape", "sums", "tiles", "zeros")

    def __init__(
        self, values: ndarray, scales: ndarray, zeros: ndarray | None = None, bias: ndarray | None = None,
        per_output: bool = False,
    ):  # fmt: skip
        self.shape, self.tiles, self.per_output = values.shape, tiled(values), per_output
        self.scales = np.ascontiguousarray(scales, np.float32).reshape(-1)
        self.zeros = None if zeros is None or not np.any(zeros) else np.asarray(zeros, np.int32).reshape(-1)
        self.sums, self.bias = values.sum(1, dtype=np.int32), bias
        self.place: Any = None

    def values(self) -> ndarray:
        """The int8 numbers (out, in)."""
        groups, quads = self.tiles.shape[:2]
        matrix = self.tiles.transpose(0, 2, 1, 3).reshape(groups * OUTPUTS, quads * INPUTS)
        return matrix[: self.shape[0], : self.shape[1]]

    def __reduce__(self) -> tuple:
        return Int8Weight, (self.values(), self.scales, self.zeros, self.bias, self.per_output)


def tiled(values: ndarray) -> ndarray:
    """(out, in) -> (groups of 64 outputs, groups of 4 inputs, 64, 4), filled up with zeros."""
    n, k = values.shape
    padded = np.zeros((-(-n // OUTPUTS) * OUTPUTS, -(-k // INPUTS) * INPUTS), np.int8)
    padded[:n, :k] = values
    parts = padded.reshape(len(padded) // OUTPUTS, OUTPUTS, padded.shape[1] // INPUTS, INPUTS)
    return np.ascontiguousarray(parts.transpose(0, 2, 1, 3))


# -- quantizing activations ------------------------------------------------------------------------


def scale_and_zero(low: Any, high: Any, most: int) -> tuple[np.float32, int]:
    """The scale and zero point by which torch.ao maps low ... high to 0 ... most; 0 is always representable."""
    low, high = min(np.float32(low), np.float32(0)), max(np.float32(high), np.float32(0))
    scale = (float(high) - float(low)) / most
    if np.float32(scale) == 0 or np.isinf(ONE / np.float32(scale)):
        scale = 0.1
    if scale < SMALLEST_SCALE:
        low, high = widened(low, high, np.float32(scale), most)
        scale = float(SMALLEST_SCALE)
    from_low, from_high = -float(low) / scale, most - float(high) / scale
    start = from_low if abs(from_low) < most + abs(float(high) / scale) else from_high
    return np.float32(scale), round(min(max(start, 0.0), float(most)))


def widened(low: Any, high: Any, scale: Any, most: int) -> tuple[Any, Any]:
    """The range that torch.ao uses in place of one that is too small."""
    if low == 0:
        return low, SMALLEST_SCALE * np.float32(most)
    if high == 0:
        return -SMALLEST_SCALE * np.float32(most), high
    return low * (SMALLEST_SCALE / scale), high * (SMALLEST_SCALE / scale)


def by_tensor(x: ndarray, most: int) -> tuple[ndarray, ndarray, ndarray]:
    """torch.ao's q (rows, in) in uint8, scale (1,) and zero (1,), for a range of 0 ... most."""
    scale, zero = scale_and_zero(x.min(), x.max(), most)
    q = np.clip(np.rint(x * (ONE / scale)) + zero, 0, 255).astype(np.uint8)
    return q, np.array([scale], np.float32), np.array([zero], np.int32)


def by_rows(x: ndarray, symmetric: bool) -> tuple[ndarray, ndarray, ndarray]:
    """torchao's int8 numbers, 128 added, as uint8 (rows, in); scales and zeros (rows, 1), 128 if `symmetric`."""
    low, high = np.minimum(x.min(1, keepdims=True), 0), np.maximum(x.max(1, keepdims=True), 0)
    spread = 2 * np.maximum(-low, high) if symmetric else high - low
    scale = np.maximum(spread / np.float32(255), EPS).astype(np.float32)
    zero = np.zeros_like(scale) if symmetric else np.clip(-128 - np.rint(low / scale), -128, 127)
    q = np.clip(np.rint(x * (ONE / scale)) + zero, -128, 127) + 128
    return q.astype(np.uint8), scale, zero.astype(np.int32) + 128


# -- products --------------------------------------------------------------------------------------


def products(q: ndarray, values: ndarray) -> ndarray:
    """q (rows, in) in uint8 times values (out, in) in int8 -> (rows, out) in int32."""
    total = np.zeros((len(q), len(values)), np.int32)
    for start in range(0, q.shape[1], EXACT):
        some = slice(start, start + EXACT)
        total += (q[:, some].astype(np.float32) @ values[:, some].astype(np.float32).T).astype(np.int32)
    return total


def corrected(q: ndarray, zero: ndarray, weight: Int8Weight) -> ndarray:
    """The sums of (q - zero) (p - z), int32 (rows, out)."""
    total = products(q, weight.values()) - zero.reshape(-1, 1) * weight.sums
    if weight.zeros is not None:
        rows = q.sum(1, dtype=np.int32, keepdims=True) - zero.reshape(-1, 1) * np.int32(q.shape[1])
        total -= rows * weight.zeros
    return total


def with_bias(out: ndarray, weight: Int8Weight) -> ndarray:
    return out if weight.bias is None else out + weight.bias


@site
def linear_by_tensor(x: ndarray, weight: Int8Weight, most: int) -> ndarray:
    """torch.ao's dynamic linear map, x (rows, in) in float32 -> (rows, out); x is quantized to 0 ... most."""
    if not x.size:
        return with_bias(np.zeros((len(x), weight.shape[0]), np.float32), weight)
    q, scale, zero = by_tensor(x, most)
    return with_bias(corrected(q, zero, weight).astype(np.float32) * (scale * weight.scales), weight)


@site
def linear_by_rows(x: ndarray, weight: Int8Weight, symmetric: bool) -> ndarray:
    """torchao's dynamic linear map, x (rows, in) in float32 -> (rows, out); each row is quantized by itself."""
    if not x.size:
        return with_bias(np.zeros((len(x), weight.shape[0]), np.float32), weight)
    q, scale, zero = by_rows(x, symmetric)
    return with_bias(corrected(q, zero, weight).astype(np.float32) * scale * weight.scales, weight)


@site
def linear_of_floats(x: ndarray, weight: Int8Weight) -> ndarray:
    """torchao's linear map of weights alone: x (rows, in) stays in float32."""
    return with_bias(x @ weight.values().astype(np.float32).T * weight.scales, weight)
