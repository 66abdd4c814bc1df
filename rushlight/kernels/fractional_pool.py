"""Maxima over windows that begin at random steps, so that an image shrinks by a fraction.

B. Graham, Fractional Max-Pooling, https://arxiv.org/abs/1412.6071
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.kernels.im2col import Ints

NAMES = {2: ("height", "width"), 3: ("time", "height", "width")}


def check_windows(size: Ints, kernel: Ints, out: Ints) -> None:
    """RuntimeError if the windows do not fit."""
    room = 1 if len(size) == 3 else 0  # torch's 3d version needs one element to spare
    for name, n, k, o in zip(NAMES[len(size)], size, kernel, out):
        if o + k - 1 > n - room:
            raise RuntimeError(
                f"fractional_max_pool{len(size)}d(): pool {name} {k} too large relative to input {name} {n}; hint: "
                f"kernel_size + output_size may be at most {n + 1 - room}"
            )


def fractional_max_pool(x: ndarray, samples: ndarray, kernel: Ints, out: Ints) -> tuple[ndarray, ndarray]:
    """The maximum of each window, and its flat position in the plane.

    x (N, C, *size), samples (N, C, dimensions) uniform in [0, 1) -> values and int64 indices (N, C, *out). Among equal
    elements the first counts, among NaN the last. RuntimeError if the windows do not fit.
    """
    size = x.shape[2:]
    check_windows(size, kernel, out)
    planes = x.reshape(x.shape[0] * x.shape[1], prod(size))
    drawn = samples[: len(x)].reshape(len(planes), len(size)).T
    # torch's order: (width, height), (time, height, width)
    drawn = drawn[::-1] if len(size) == 2 else drawn
    starts = [window_starts(u, *dims) for u, dims in zip(drawn, zip(size, kernel, out))]
    values, indices = best(planes, starts, size, kernel)
    shape = (*x.shape[:2], *out)
    return values.reshape(shape), indices.reshape(shape)


def window_starts(u: ndarray, size: int, kernel: int, out: int) -> ndarray:
    """The starts of the windows (P, out): floor((i + u) alpha) - floor(u alpha), the last one at the end."""
    r = np.empty((len(u), out), np.int64)
    if out > 1:
        alpha = u.dtype.type(size - kernel) / u.dtype.type(out - 1)
        steps = (np.arange(out - 1, dtype=u.dtype) + u[:, None]) * alpha
        r[:, :-1] = steps.astype(np.int64) - (u * alpha).astype(np.int64)[:, None]
    r[:, -1:] = size - kernel
    return r


def best(x: ndarray, starts: list[ndarray], size: Ints, kernel: Ints) -> tuple[ndarray, ndarray]:
    """Maxima and flat positions of x (P, S), tap by tap over all windows; `starts` (P, out) for each dimension."""
    n = len(size)
    values, indices = None, None
    for tap in product(*map(range, kernel)):
        place: ndarray = np.zeros((len(x),) + (1,) * n, np.int64)
        for d in range(n):
            at = starts[d] + tap[d]
            along = (slice(None), *[slice(None) if i == d else None for i in range(n)])
            place = place * size[d] + at[along]
        found = np.take_along_axis(x, place.reshape(len(x), prod(place.shape[1:])), 1).reshape(place.shape)
        if values is None or indices is None:
            values, indices = found, place
        else:
            better = (found > values) | (found != found)
            values, indices = np.where(better, found, values), np.where(better, place, indices)
    return values, indices  # type: ignore[return-value]
