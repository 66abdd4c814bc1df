"""The discrete Fourier transform: three ops, of complex to complex, real to complex and complex to real numbers.

Each op is the derivative of another: the matrix of the transform is symmetric. `forward`: the sign of the exponent is
minus. `power`: the sum is divided by n^power, with power 0, 0.5 or 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, inner
from rushlight.core.worlds import adopt, shared
from rushlight.kernels import fft as kernels

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import cat, narrow, to

adopt(kernels)

# dims, a tuple; x may be real
# fmt: off
c2c = inner(lambda x, /, dims, forward, power: c2c(x, dims, forward, power),
    x=lambda g, x_dtype, dims, forward, power: to(c2c(g, dims, forward, power), x_dtype),
    node="FftC2CBackward0", batched="shift")
# (..., n, ...) -> (..., n // 2 + 1, ...)
r2c = inner(lambda x, /, dim, forward, power: r2c(x, dim, forward, power),
    x=lambda g, x_shape, dim, forward, power: c2r(
        mirrored(g, x_shape[dim], dim, 0.5), dim, x_shape[dim], forward, power
    ),
    node="FftR2CBackward0", batched="shift")
# (..., n // 2 + 1, ...) -> (..., n, ...)
c2r = inner(lambda x, /, dim, n, forward, power: c2r(x, dim, n, forward, power),
    x=lambda g, dim, n, forward, power: mirrored(r2c(g, dim, not forward, power), n, dim, 2),
    node="FftC2RBackward0", batched="shift")
# fmt: on


@shared
def mirrored(x, n, dim, factor):
    """x (..., n // 2 + 1, ...), times `factor` for elements that also represent their mirror image (all except 0 and n
    / 2)."""
    inside, last = (n - 1) // 2, n // 2 - (n - 1) // 2
    return cat((narrow(x, dim, 0, 1), narrow(x, dim, 1, inside) * factor, narrow(x, dim, 1 + inside, last)), dim)


build(globals())
