"""Linear maps of int8 weights, of inputs that are quantized when they arrive. No op has a gradient."""

from __future__ import annotations

from numpy import ndarray

from rushlight.core.build import build, inner
from rushlight.kernels.int8 import Int8Weight, linear_by_tensor


def rows_of(x: ndarray, weight: Int8Weight, most: int) -> ndarray:
    """x (..., in) -> (..., out)."""
    n, k = weight.shape
    return linear_by_tensor(x.reshape(-1, k), weight, most).reshape(*x.shape[:-1], n)


# fmt: off
# torch.ao's dynamic linear map; x is quantized to 0 ... most
int8_linear = inner(lambda x, /, weight, most: int8_linear(x, weight, most), kernel=rows_of, takes="f")
# fmt: on

build(globals())
