"""Padding with a number, where negative amounts crop, so that the opposite amounts undo it; and padding with the
tensor's own elements.
"""

from __future__ import annotations

from numpy import ndarray

from rushlight.core.build import build, inner
from rushlight.core.worlds import adopt, shared
from rushlight.kernels import pad_modes as kernels
from rushlight.kernels.layout import room

adopt(kernels)


def padded(x: ndarray, amounts: tuple[tuple[int, int], ...], value: float) -> ndarray:
    """x with (before, after) elements of `value` added in each dimension; negative amounts crop."""
    shape = tuple([n + a + b for n, (a, b) in zip(x.shape, amounts)])
    if min(shape, default=0) < 0:
        raise ValueError(
            f"the padding {amounts} of an input of size {list(x.shape)} would leave the negative size {list(shape)}; "
            "hint: crop less"
        )
    r = room(shape, x)
    r.fill(value)
    into = tuple([slice(a if a > 0 else 0, n - b if b > 0 else n) for n, (a, b) in zip(shape, amounts)])
    taken = tuple([slice(-a if a < 0 else 0, n + b if b < 0 else n) for n, (a, b) in zip(x.shape, amounts)])
    r[into] = x[taken]
    return r


def sizes_of_pad(x, amounts, value):
    """Each size plus the amounts before and after it."""
    shape = tuple([n + a + b for n, (a, b) in zip(x.shape, amounts)])
    return [(shape, x.dtype)] if min(shape, default=0) >= 0 else None


@shared
def opposite(amounts):
    return tuple((-a, -b) for a, b in amounts)


# fmt: off
constant_pad = inner(lambda x, /, amounts, value: constant_pad(x, amounts, value),
    x=lambda g, amounts: constant_pad(g, opposite(amounts), 0),
    kernel=padded, node="ConstantPadNdBackward0", batched="shift", sizes=sizes_of_pad)

# mode: 'reflect', 'replicate' or 'circular'; amounts: for each dimension, none below 0
bordered = inner(lambda x, /, mode, amounts: bordered(x, mode, amounts),
    x=lambda g, mode, amounts: unbordered(g, mode, amounts), batched="shift")
unbordered = inner(lambda x, /, mode, amounts: unbordered(x, mode, amounts),
    x=lambda g, mode, amounts: bordered(g, mode, amounts), batched="shift")
# fmt: on

build(globals())
