"""torch.quasirandom: points that fill a cube more evenly than random points."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import scipy_part
from rushlight.base.dtypes import get_default_dtype
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.ops.shape.view_functions import cat
from rushlight.ops.tensor.random_tensors import randint
from rushlight.random import Generator


@lru_cache(maxsize=1)
def tables() -> tuple[ndarray, ndarray]:
    """Primitive polynomials (dims,), as bits, and the first direction numbers (dims, 18), of S. Joe and F. Y. Kuo
    (2008), from a file in SciPy.
    """
    scipy = scipy_part("version", "SobolEngine's direction numbers are those of")
    with np.load(Path(str(scipy.__file__)).parent / "stats" / "_sobol_direction_numbers.npz") as file:
        return file["poly"], file["vinit"]


def directions(dimension: int, bits: int) -> ndarray:
    """Direction numbers (dimension, bits) in units of 2^-bits; the k-th is a multiple of 2^(bits - 1 - k).

    With the polynomial x^m + a_1 x^(m-1) + ... + 1: v_j = v_(j-m) ^ 2 a_1 v_(j-1) ^ 4 a_2 v_(j-2) ^
    ... ^ 2^m v_(j-m)."""
    polynomials, first = tables()
    v = np.ones((dimension, bits), np.int64)  # the first dimension's polynomial is 1 throughout
    for d in range(1, dimension):
        p = int(polynomials[d])
        m = p.bit_length() - 1
        v[d, :m] = first[d, :m]
        for j in range(m, bits):
            new = v[d, j - m]
            for k in range(1, m + 1):
                if p >> (m - k) & 1:
                    new ^= v[d, j - k] << k
            v[d, j] = new
    return v << np.arange(bits - 1, -1, -1)


def scrambled(v: ndarray, lower: ndarray) -> ndarray:
    """The binary digits of the direction numbers (d, bits), most significant first, times triangular matrices (d, bits,
    bits) with ones on the diagonal, modulo 2: J. Matousek's scrambling (1998)."""
    places = np.arange(v.shape[1] - 1, -1, -1)
    digits = v[:, :, None] >> places & 1  # (d, bits, places)
    mixed = digits @ np.swapaxes(lower | np.eye(len(places), dtype=np.int64), 1, 2) & 1
    return (mixed << places).sum(-1)


class SobolEngine:
    """Points x_0, x_1, ... of a Sobol sequence in [0, 1)^dimension: x_(i+1) = x_i ^ v_c, where c is the number of ones
    at the end of i in base 2 (I. A. Antonov and V. M. Saleev, 1979) and v_c a direction number of the dimension.

    `scramble`: mix and shift the digits at random, with the given `seed`, so that means over the points are unbiased.
    The numbers are torch's. ValueError for more than 21201 dimensions.

    >>> rushlight.quasirandom.SobolEngine(2).draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise value_error(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        state, shift = directions(dimension, self.MAXBIT), np.zeros(dimension, np.int64)
        if scramble:
            source = None if seed is None else Generator().manual_seed(seed)
            shift = randint(2, (dimension, self.MAXBIT), generator=source)._array @ (1 << np.arange(self.MAXBIT))
            lower = randint(2, (dimension, self.MAXBIT, self.MAXBIT), generator=source)._array
            state = scrambled(state, np.tril(lower))
        self.sobolstate, self.shift, self.quasi = from_array(state), from_array(shift), from_array(shift.copy())
        self._first_point: Any = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next n points, (n, dimension), in the default dtype unless `dtype` is given."""
        dtype = get_default_dtype() if dtype is None else dtype
        start = self.num_generated == 0
        steps = np.arange(n - 1) if start else np.arange(self.num_generated - 1, self.num_generated - 1 + n)
        ends = ~steps & steps + 1  # the lowest zero bit of each step's number, as a power of 2
        taken = self.sobolstate._array[:, np.log2(ends).astype(np.int64)].T
        # (steps, dimension)
        whole = np.bitwise_xor.accumulate(np.concatenate([self.quasi._array[None], taken]))[1:]
        points: Any = from_array(whole.astype(dtype.numpy) * dtype.numpy.type(2.0**-self.MAXBIT))
        if len(whole):
            self.quasi = from_array(whole[-1].copy())
        if start:
            points = cat((self._first_point.to(dtype), points), -2)
        self.num_generated += n
        return points if out is None else out.resize_as_(points).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2^m points. ValueError unless the total number of points is then a power of 2, because only such
        point sets are balanced.
        """
        total = self.num_generated + 2**m
        if total & total - 1:
            raise value_error(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} "
                f"points have been previously generated, then: n={self.num_generated}+2**{m}={total}. If you "
                "still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Restart from the first point."""
        self.quasi, self.num_generated = from_array(self.shift._array.copy()), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip n points: the i-th point is the shift ^ the direction numbers at the ones of i ^ i / 2."""
        before = max(self.num_generated - 1, 0)
        after = max(self.num_generated + n - 1, 0)
        passed = before ^ before >> 1 ^ after ^ after >> 1
        places = [k for k in range(self.MAXBIT) if passed >> k & 1]
        self.quasi = from_array(self.quasi._array ^ np.bitwise_xor.reduce(self.sobolstate._array[:, places], 1))
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        more = [f"scramble={self.scramble}"] * bool(self.scramble) + [f"seed={self.seed}"] * (self.seed is not None)
        return f"{type(self).__name__}({', '.join([f'dimension={self.dimension}', *more])})"


__all__ = ["SobolEngine"]
