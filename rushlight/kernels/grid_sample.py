"""Sampling images at points: the positions of points, the elements near each, and weighted sums of the elements.

Points x (N, P, n) have the image's last dimension first: (x, y) or (x, y, z), -1 to 1 from edge to edge, or between the
centres of the corner elements if `align`. A point has K taps, numbered with x fastest.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.base.intp import as_intp

Ints = tuple[int, ...]
# the most elements of all taps and channels for which one NumPy call serves all images
AT_ONCE_ELEMENTS = 1 << 12
OFFSETS = {"nearest": (0,), "bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}


def grid_position(x: ndarray, size: Ints, padding: str, align: bool) -> ndarray:
    """Positions in elements: 0 is the centre of the first element. Every `padding` except 'zeros' moves outside
    positions into the image.
    """
    return plainly(x, size, align)[1] if padding == "zeros" else placed(x, size, padding, align)[0]


def grid_slope(x: ndarray, size: Ints, padding: str, align: bool) -> ndarray:
    """The derivative of `grid_position`: constant up to its sign, and 0 for points that were moved to the edge."""
    if padding == "zeros":
        return np.broadcast_to(plainly(x, size, align)[0], x.shape)
    return placed(x, size, padding, align)[1]


@lru_cache(maxsize=64)
def slopes(size: Ints, align: bool, dtype: np.dtype) -> ndarray:
    """The number of elements by which a position moves when its point moves by 1; shared, so read-only."""
    r = np.array([n - 1 if align else n for n in size], dtype) * dtype.type(0.5)
    r.flags.writeable = False
    return r


def plainly(x: ndarray, size: Ints, align: bool) -> tuple[ndarray, ndarray]:
    """Slopes and positions without padding."""
    slope = slopes(size, align, x.dtype)
    position = moved(x, slope)
    return slope, position if align else np.subtract(position, x.dtype.type(0.5), out=position)


@site
def moved(x: ndarray, slope: ndarray) -> ndarray:
    """(x + 1) slope; slope (n,)."""
    return (x + x.dtype.type(1)) * slope


def placed(x: ndarray, size: Ints, padding: str, align: bool) -> tuple[ndarray, ndarray]:
    """Positions and their slopes with padding, one coordinate at a time."""
    x, sizes = np.ascontiguousarray(np.moveaxis(x, -1, 0)), np.array(size, x.dtype)[:, None, None]
    slope, half = slopes(size, align, x.dtype)[:, None, None], x.dtype.type(0.5)
    position = (x + x.dtype.type(1)) * slope - (0 if align else half)
    slope = np.broadcast_to(slope, position.shape)
    if padding == "reflection":
        position, sign = reflected(position, sizes, align)
        slope = slope * sign
    slope = np.where((position > 0) & (position < sizes - 1), slope, 0)
    position = clipped(position, sizes)
    return np.moveaxis(position, 0, -1), np.moveaxis(slope.astype(x.dtype, copy=False), 0, -1)


def clipped(position: ndarray, sizes: ndarray) -> ndarray:
    """Positions clamped to the image; nan becomes 0, as in torch."""
    return np.where(position > 0, np.where(position < sizes - 1, position, sizes - 1), 0).astype(position.dtype)


def reflected(position: ndarray, sizes: ndarray, align: bool) -> tuple[ndarray, ndarray]:
    """Positions reflected at the edges until they are inside, and the sign of their slope."""
    low, span = (0, sizes - 1) if align else (-0.5, sizes)
    far = position - position.dtype.type(low)
    sign = np.where(far < 0, -1, 1)
    far = np.abs(far)
    with np.errstate(invalid="ignore", divide="ignore"):
        rest, odd = np.fmod(far, span), np.floor(far / span) % 2 == 1
    inside = np.where(odd, span - rest, rest) + position.dtype.type(low)
    return np.where(span > 0, inside, 0), np.where(span > 0, np.where(odd, -sign, sign), 0)


def grid_taps(x: ndarray, size: Ints, mode: str, padding: str, align: bool) -> tuple[ndarray, ndarray, ndarray]:
    """For positions x (N, P, n): the distance from tap 0 (N, P, n), the flat indices of the taps (N, K, P) int64, and 1
    for taps inside the image, else 0 (N, K, P).
    """
    low = np.rint(x) if mode == "nearest" else np.floor(x)
    batch, points, _ = x.shape
    lengths = np.array(size, x.dtype)[:, None, None]
    place = np.ascontiguousarray(low.swapaxes(1, 2))[:, :, None] + np.array(OFFSETS[mode], x.dtype)[:, None]
    if mode == "bicubic" and padding != "zeros":
        place = clipped(reflected(place, lengths, align)[0] if padding == "reflection" else place, lengths)
    # (N, n, taps of a dimension, P)
    valid = (place >= 0) & (place <= lengths - lengths.dtype.type(1))
    steps = np.where(valid, place, place.dtype.type(0)).astype(np.int64)
    at, inside, pitch = steps[:, 0], valid[:, 0], 1
    for i in range(1, len(size)):
        pitch *= size[i - 1]
        taps = (batch, steps.shape[2] * at.shape[1], points)
        at = ((steps[:, i] * pitch)[:, :, None] + at[:, None]).reshape(taps)
        inside = (valid[:, i, :, None] & inside[:, None]).reshape(taps)
    return x - low, at, inside.astype(x.dtype)


def bilinear(x: ndarray, inside: ndarray) -> ndarray:
    """The weights of taps: products of 1 - t and t, t = x (N, P, n), times `inside` (N, K, P)."""
    t = x.swapaxes(1, 2)
    own = np.empty((*t.shape[:2], 2, t.shape[2]), x.dtype)
    np.subtract(x.dtype.type(1), t, out=own[:, :, 0])
    own[:, :, 1] = t
    product = own[:, 0]
    for i in range(1, t.shape[1]):
        product = (own[:, i, :, None] * product[:, None]).reshape(len(x), 2 << i, x.shape[1])
    return product * inside


def flat_places(at: ndarray, channels: int, size: int) -> ndarray | None:
    """The flat indices of the taps in the whole batch, (N, C, K, P): three NumPy calls instead of three per image. None
    if there are many.
    """
    if at.size * channels > AT_ONCE_ELEMENTS:
        return None
    return at[:, None] + (np.arange(len(at) * channels) * size).reshape(len(at), channels, 1, 1)


@site
def sampled(x: ndarray, weight: ndarray, at: ndarray) -> ndarray:
    """out[n, c, p] = sum over k of weight[n, k, p] x[n, c, at[n, k, p]]; x (N, C, S) -> (N, C, P)."""
    flat = flat_places(at, *x.shape[1:])
    if flat is not None:
        return np.add.reduce(x.reshape(-1).take(as_intp(flat)) * weight[:, None], 2)
    r = np.zeros((*x.shape[:2], at.shape[2]), x.dtype)
    for image, weights, places, out in zip(x, weight, at, r):
        for w, place in zip(weights, places):
            part = image.take(as_intp(place), 1)
            part *= w
            out += part
    return r


@site
def sampled_back(g: ndarray, weight: ndarray, at: ndarray, size: int) -> ndarray:
    """out[n, c, at[n, k, p]] += weight[n, k, p] g[n, c, p]; g (N, C, P) -> (N, C, size), added up in float64."""
    shape = (*g.shape[:2], size)
    flat = flat_places(at, *shape[1:])
    if flat is not None:
        weights = (weight[:, None] * g[:, :, None]).ravel()
        every = np.bincount(as_intp(flat.ravel()), weights, g.shape[0] * g.shape[1] * size)
        return every.astype(g.dtype).reshape(shape)
    r = np.empty(shape, g.dtype)
    for planes, weights, places, out in zip(g, weight, at, r):
        flat = as_intp(places.ravel())
        for c, plane in enumerate(planes):
            out[c] = np.bincount(flat, (weights * plane).ravel(), size)
    return r


@site
def sampled_slope(g: ndarray, x: ndarray, at: ndarray) -> ndarray:
    """out[n, k, p] = sum over c of g[n, c, p] x[n, c, at[n, k, p]]; g (N, C, P), x (N, C, S) -> (N, K, P)."""
    flat = flat_places(at, *x.shape[1:])
    if flat is not None:
        return np.add.reduce(x.reshape(-1).take(as_intp(flat)) * g[:, :, None], 1)
    r = np.empty(at.shape, g.dtype)
    for planes, image, places, out in zip(g, x, at, r):
        for k, place in enumerate(places):
            part = image.take(as_intp(place), 1)
            part *= planes
            np.add.reduce(part, 0, out=out[k], initial=0)
    return r
