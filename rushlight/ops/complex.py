"""Complex numbers: their parts, as views, and back."""
from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rushlight.ops.build import build, composite, inner_view, view
from rushlight.ops.elementwise import conj as conjugate
from rushlight.ops.worlds import ARRAYS
from rushlight.tensor import Tensor, assign_property

ARRAYS["view_pairs"] = lambda x: parted(np.asarray(x))
ARRAYS["join_pairs"] = lambda x: joined(x if x.strides[-1:] == (x.itemsize,) else np.ascontiguousarray(x))


def parted(x: np.ndarray) -> np.ndarray:
    """(...) complex numbers seen as (..., 2) real ones."""
    if x.dtype.kind != "c":
        raise ValueError("only complex tensors are seen as pairs of real numbers")
    return as_strided(x.real, (*x.shape, 2), (*x.strides, x.real.itemsize))


def joined(x: np.ndarray) -> np.ndarray:
    """(..., 2) real numbers seen as (...) complex ones."""
    if x.shape[-1:] != (2,):
        raise ValueError("Tensor must have a last dimension of size 2")
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]


real_part  = inner_view(lambda x, /: x.real,    x=lambda g, x_dtype: to(g, x_dtype))
imag_part  = inner_view(lambda x, /: x.imag,    x=lambda g, x_dtype: to(g, x_dtype) * 1j)
view_as_real = view(lambda x, /: view_pairs(x), x=lambda g: view_as_complex(g))
view_as_complex = view(lambda x, /: join_pairs(x), x=lambda g: view_as_real(conj(g)), copies=True)

build(globals())


@composite(tensor=False)
def real(input: Tensor) -> Tensor:
    """The real part, a view; a real tensor is its own."""
    return real_part(input) if input.is_complex() else input


@composite(tensor=False)
def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view. RuntimeError for a real tensor."""
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return imag_part(input)


@composite()
def conj(input: Tensor) -> Tensor:
    """a - ib for a + ib; a real tensor itself."""
    return conjugate(input) if input.is_complex() else input


@composite("resolve_conj", "resolve_neg")
def resolved(input: Tensor) -> Tensor:
    """The tensor itself: conjugates and negatives are computed at once here."""
    return input


assign_property("real", real)
assign_property("imag", imag)
