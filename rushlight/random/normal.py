"""Normal numbers: `torch.randn` and `normal_`. As in torch, fewer than 16 numbers are drawn pair by pair, more in
groups of 16.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.random.blocks import DType, Shape, blocks, empty
from rushlight.random.choose_loop import Loop
from rushlight.random.fma import fma32, fma64, narrow

from .rejection import TWO_PI, pair
from .stream import Stream
from .vector_math import each, log32, sincos32

_LOOP = Loop("normals", call=3000)
GROUP = 16  # 8 radii, then 8 angles
MAX_ONE_CALL = 2048  # draws of fewer numbers compute the groups and the last 16 numbers together
# a draw of up to this many numbers computes the normals of a whole block of 624 words, for later draws, too
MAX_AHEAD = 156
_ONE, _MINUS_TWO, _TWO_PI_32 = (np.array(c, np.float32) for c in (1.0, -2.0, TWO_PI))


def normal(
    stream: Stream, shape: Shape, dtype: DType = np.float32, mean: float = 0.0, std: float = 1.0,
    contiguous: bool = True,
) -> np.ndarray:  # fmt: skip
    """mean + std * sqrt(-2 log u) * cos 2 pi v, and the same with sin, for u, v uniform (Box-Muller).

    Shape: `shape`. Dtypes: float16, bfloat16, float32, float64; complex64 and complex128, each part with std / sqrt 2.
    `contiguous=False` draws as torch does for a tensor that is not contiguous. RuntimeError for std < 0.

    >>> rushlight.Generator().manual_seed(0).normal(2)
    array([ 1.5409961, -0.2934289], dtype=float32)
    """
    if not std >= 0.0:
        raise runtime_error(f"normal expects std >= 0.0, but found std {std:g}")
    out, parts = empty("normal", shape, dtype, "fc")
    if parts.dtype != out.dtype:
        std = std / math.sqrt(2.0)
    if len(parts) < GROUP or not contiguous:
        parts[...] = narrow(fma64(standard(stream, len(parts)), std, mean), parts.dtype)
    elif parts.itemsize == 8:
        _fill(parts, stream.uniform53, _groups64, mean, std, lost=len(parts) % GROUP)
    elif _LOOP(len(parts)) is None and len(parts) % GROUP == 0 and len(parts) <= min(MAX_AHEAD, stream.left):
        parts[...] = scaled32(stream.in_groups(len(parts), GROUP, standard32), mean, std)
    else:
        draw, groups = (stream.uniform24, _groups32) if _LOOP.compiled is None else (stream.words, _groups_by_loop)
        _fill(parts, draw, groups, mean, std, lost=len(parts) % GROUP if parts.itemsize == 4 else 0)
    return out


def standard(stream: Stream, n: int) -> np.ndarray:
    """n standard normals, (n,) float64, pair by pair; for odd n the stream keeps the second of the last pair."""
    normals = [] if stream.spare_normal is None else [stream.spare_normal]
    pairs = (n - len(normals) + 1) // 2
    uniforms = stream.uniform53(2 * pairs)
    if pairs < GROUP:
        for of_angle, of_radius in uniforms.reshape(-1, 2).tolist():
            normals += pair(of_angle, of_radius)
        stream.spare_normal = normals.pop() if len(normals) > n else None
        return np.array(normals, np.float64)
    radius = np.sqrt(-2.0 * each(math.log1p, -uniforms[1::2]))  # vectorized: faster than `pair`
    angle = TWO_PI * uniforms[0::2]
    made = np.empty(len(normals) + 2 * pairs)
    made[: len(normals)] = normals
    made[len(normals) :: 2], made[len(normals) + 1 :: 2] = (
        radius * each(math.cos, angle),
        radius * each(math.sin, angle),
    )
    stream.spare_normal = float(made[-1]) if len(made) > n else None
    return made[:n]


Draw = Callable[[int], np.ndarray]


def _fill(parts: np.ndarray, draw: Draw, groups: Callable[..., np.ndarray], mean: float, std: float, lost: int) -> None:
    """Fill whole groups of 16, then the last 16 numbers again from new uniforms, as torch does.

    `lost`: uniforms that torch draws in between and does not use."""
    whole = len(parts) // GROUP * GROUP
    if whole < len(parts) < MAX_ONE_CALL:  # one call for both parts
        drawn = draw(whole + lost + GROUP)
        normals = groups(np.concatenate((drawn[:whole], drawn[-GROUP:])), mean, std)
        parts[:whole], parts[-GROUP:] = normals[:whole], normals[-GROUP:]
        return
    for block in blocks(parts[:whole]):
        block[...] = groups(draw(len(block)), mean, std)
    if whole < len(parts):
        draw(lost)
        parts[-GROUP:] = groups(draw(GROUP), mean, std)


def _groups32(uniforms: np.ndarray, mean: float, std: float) -> np.ndarray:
    """(16 k,) uniforms float32 -> (16 k,) normals."""
    return scaled32(standard32(uniforms), mean, std)


def scaled32(normals: np.ndarray, mean: float, std: float) -> np.ndarray:
    """mean + std * normals, with torch's roundings."""
    return fma32(normals, float(np.float32(std)), float(np.float32(mean)))


def standard32(uniforms: np.ndarray) -> np.ndarray:
    """(16 k,) float32 uniforms -> (16 k,) standard normals; each 16 uniforms are 8 radii, then 8 angles."""
    of_radius, of_angle = uniforms.reshape(-1, 2, 8).swapaxes(0, 1)  # (k, 8) each
    radius = np.sqrt(_MINUS_TWO * log32((_ONE - of_radius).reshape(-1)))
    sine, cosine = sincos32((_TWO_PI_32 * of_angle).reshape(-1))
    # (k, 2, 8)
    pairs = np.stack(((radius * cosine).reshape(-1, 8), (radius * sine).reshape(-1, 8)), 1)
    return pairs.reshape(-1)


def _groups_by_loop(words: np.ndarray, mean: float, std: float) -> np.ndarray:
    """(16 k,) words -> (16 k,) normals float32."""
    normals = np.empty(len(words), np.float32)
    _LOOP.compiled(words, normals, np.float32(std), np.float32(mean))  # type: ignore[misc]
    return normals


def _groups64(uniforms: np.ndarray, mean: float, std: float) -> np.ndarray:
    """(16 k,) uniforms float64 -> (16 k,) normals."""
    of_radius, of_angle = uniforms.reshape(-1, 2, 8).swapaxes(0, 1)
    radius = np.sqrt(-2.0 * each(math.log, 1.0 - of_radius))
    angle = TWO_PI * of_angle
    pairs = np.stack((radius * each(math.cos, angle), radius * each(math.sin, angle)), 1)
    return fma64(pairs, std, mean).reshape(-1)
