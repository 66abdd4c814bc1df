"""Compiled loops over random words: the same bits as the NumPy versions, faster.

The functions are compiled from their text (loops/source_text.py). Every operation rounds as NumPy's. The polynomials
are defined in `vector_math`; `fused` is the processor's instruction, or the C library's function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rushlight.loops.cache import of
from rushlight.loops.source_text import program

from . import rejection

if TYPE_CHECKING:
    from rushlight.loops.loop_names import fused, real_of, word_of

F, I, U = np.float32, np.int32, np.uint32
ULP = F(2.0**-24)


def compiled(function: Callable) -> Callable:
    """The decorator of all loops. A draw that has read words may not stop, so the draw waits for the loop."""
    made = program(exact=True)(function)
    of(made).waits = True
    return made


def twisted(one: np.uint32, next_one: np.uint32, far: np.uint32) -> np.uint32:
    """The twister's recurrence: the new word from word k, word k + 1 and word k + 397 of the key."""
    y = (one & U(0x8000_0000)) | (next_one & U(0x7FFF_FFFF))
    return far ^ (y >> U(1)) ^ ((U(0) - (next_one & U(1))) & U(0x9908_B0DF))


@compiled
def words(key: np.ndarray, out: np.ndarray) -> None:
    """Write the twister's next words into `out`, (624 k,); advances its key (624,). Matsumoto and Nishimura, "Mersenne
    Twister" (1998), in loops that LLVM vectorizes; NumPy calls a function for each word."""
    for start in range(0, len(out), 624):
        for i in range(227):
            key[i] = twisted(key[i], key[i + 1], key[i + 397])
        for i in range(227, 623):
            key[i] = twisted(key[i], key[i + 1], key[i - 227])
        key[623] = twisted(key[623], key[0], key[396])
        for i in range(624):
            y = key[i]
            y ^= y >> U(11)
            y ^= (y << U(7)) & U(0x9D2C_5680)
            y ^= (y << U(15)) & U(0xEFC6_0000)
            out[start + i] = y ^ (y >> U(18))


@compiled
def chances(words: np.ndarray, out: np.ndarray, below: np.uint64) -> None:
    """out = 1 if the 53 bits of a pair of words are less than `below`, else 0, as in `bernoulli_scalar`."""
    low = np.uint64(2**53 - 1)
    for i in range(len(out)):
        pair = np.uint64(words[2 * i]) << np.uint64(32) | np.uint64(words[2 * i + 1])
        out[i] = (pair & low) < below


def uniform24(word: np.uint32) -> np.float32:
    return F(I(word & 0xFF_FFFF)) * ULP


def log32(x: np.float32) -> np.float32:
    """Natural logarithm of a normal positive number."""
    i = word_of(x)
    m = real_of((i & I(0x007F_FFFF)) | I(0x3F00_0000))  # x = m * 2^exponent, m in [0.5, 1)
    small = m < F(0.707106781186547524)
    exponent = F((i >> I(23)) - I(126)) - (F(1) if small else F(0))
    m = (m - F(1)) + (m if small else F(0))
    y = fused(F(7.0376836292e-2), m, F(-1.1514610310e-1))
    y = fused(y, m, F(1.1676998740e-1))
    y = fused(y, m, F(-1.2420140846e-1))
    y = fused(y, m, F(1.4249322787e-1))
    y = fused(y, m, F(-1.6668057665e-1))
    y = fused(y, m, F(2.0000714765e-1))
    y = fused(y, m, F(-2.4999993993e-1))
    y = fused(y, m, F(3.3333331174e-1))
    y = fused(y * m, m * m, exponent * F(-2.12194440e-4))
    return fused(exponent, F(0.693359375), m + fused(m * m, F(-0.5), y))


def sincos32(x: np.float32) -> tuple[np.float32, np.float32]:
    """Sine and cosine of a number in [0, 2^13]."""
    octant = (I(x * F(1.27323954473516)) + I(1)) & I(-2)
    multiple = F(octant)
    x = fused(multiple, F(-0.78515625), x)
    x = fused(multiple, F(-2.4187564849853515625e-4), x)
    x = fused(multiple, F(-3.77489497744594108e-8), x)
    z = x * x
    c = fused(fused(F(2.443315711809948e-5), z, F(-1.388731625493765e-3)), z, F(4.166664568298827e-2)) * z
    c = fused(c, z, z * F(-0.5)) + F(1)
    s = fused(fused(F(-1.9515295891e-4), z, F(8.3321608736e-3)), z, F(-1.6666654611e-1)) * z
    s = fused(s, x, x)
    swap = (octant & I(2)) != I(0)
    top = I(-(2**31))
    return (
        real_of(word_of(c if swap else s) ^ ((octant << I(29)) & top)),
        real_of(word_of(s if swap else c) ^ (((octant + I(2)) << I(29)) & top)),
    )


@compiled
def uniforms(words: np.ndarray, out: np.ndarray, width: np.float32, low: np.float32) -> None:
    """out = low + width * u, as `uniform`."""
    for i in range(len(out)):
        out[i] = fused(uniform24(words[i]), width, low)


def pairs(of_radius: np.ndarray, of_angle: np.ndarray, std: np.float32, mean: np.float32) -> None:
    """Turn pairs of uniforms into normals, in place. A single loop over contiguous arrays, so that LLVM vectorizes
    it."""
    for i in range(len(of_radius)):
        radius = F(math.sqrt(F(-2) * log32(F(1) - of_radius[i])))
        sine, cosine = sincos32(F(2.0 * math.pi) * of_angle[i])
        of_radius[i] = fused(radius * cosine, std, mean)
        of_angle[i] = fused(radius * sine, std, mean)


@compiled
def normals(words: np.ndarray, out: np.ndarray, std: np.float32, mean: np.float32) -> None:
    """(16 k,) words -> (16 k,) normals, as in `normal`: each 16 words are 8 radii, then 8 angles."""
    half = len(out) // 2
    first, second = np.empty(half, np.float32), np.empty(half, np.float32)
    for group in range(half // 8):
        for i in range(8):
            first[8 * group + i] = uniform24(words[16 * group + i])
            second[8 * group + i] = uniform24(words[16 * group + 8 + i])
    pairs(first, second, std, mean)
    for group in range(half // 8):
        for i in range(8):
            out[16 * group + i] = first[8 * group + i]
            out[16 * group + 8 + i] = second[8 * group + i]


@compiled
def exchange(partners: np.ndarray, order: np.ndarray) -> None:
    """Exchange elements i and partners[i] of `order`, for i = 0, 1, ..."""
    for i in range(len(partners)):
        order[i], order[partners[i]] = order[partners[i]], order[i]


def exchanged(partners: np.ndarray) -> np.ndarray:
    """0, ..., n-1 after exchanging i with partners[i], for i = 0, 1, ..."""
    order = np.arange(len(partners))
    exchange(partners, order)
    return order


def each(function: Callable) -> Callable:
    """A loop that applies a function of module `math` to each element."""

    def run(x: np.ndarray, out: np.ndarray) -> None:
        for i in range(len(x)):
            out[i] = function(x[i])

    return compiled(run)


log1p, log, cos, sin, tan = map(each, (math.log1p, math.log, math.cos, math.sin, math.tan))
poisson, binomial, gamma = (
    compiled(rejection.filler(one)) for one in (rejection.poisson, rejection.binomial, rejection.gamma)
)
