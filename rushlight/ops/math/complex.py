"""Complex numbers: their parts, as views, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rushlight.base.errors import runtime_error, type_error
from rushlight.core.build import build, inner_view, op, view
from rushlight.core.tensor import Tensor, assign_property, method
from rushlight.core.worlds import ARRAYS
from rushlight.ops.composites import composite, given
from rushlight.ops.math.arithmetic import writing
from rushlight.ops.math.elementwise import conj as conjugate

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import join_pairs, to, view_pairs

ARRAYS["of_parts"] = lambda x, y: from_parts(x, y)
ARRAYS["view_pairs"] = lambda x: parted(np.asarray(x))
ARRAYS["join_pairs"] = lambda x: joined(x if x.strides[-1:] == (x.itemsize,) else np.ascontiguousarray(x))


def from_parts(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x + iy without adding: an infinite part does not make the other part nan."""
    r = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype, np.complex64))
    r.real, r.imag = x, y
    return r


def parted(x: np.ndarray) -> np.ndarray:
    """(...) complex numbers viewed as (..., 2) real ones."""
    if x.dtype.kind != "c":
        raise ValueError("only complex tensors can be viewed as pairs of real numbers")
    return as_strided(x.real, (*x.shape, 2), (*x.strides, x.real.itemsize))


def joined(x: np.ndarray) -> np.ndarray:
    """(..., 2) real numbers viewed as (...) complex ones."""
    if x.dtype.kind != "f":
        raise ValueError("view_as_complex is only supported for half, float and double tensors")
    if x.shape[-1:] != (2,):
        raise ValueError("Tensor must have a last dimension of size 2")
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]


# fmt: off
real_part = inner_view(lambda x, /: x.real, x=lambda g, x_dtype: to(g, x_dtype), batched="align")
imag_part = inner_view(lambda x, /: x.imag, x=lambda g, x_dtype: to(g, x_dtype) * 1j, batched="align")
of_parts = op(lambda x, y, /: x + 1j * y, x=lambda g: real(g), y=lambda g: real(g * 1j),
    method=False, inplace=False, function=False, node="ComplexBackward0", called="complex")
view_as_real    = view(lambda x, /: view_pairs(x), x=lambda g: view_as_complex(g), batched="align")
view_as_complex = view(lambda x, /: join_pairs(x), x=lambda g: view_as_real(conj(g)), copies=True, batched="align")
# fmt: on

build(globals())


@composite("complex", tensor=False)
def complex_of(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i imag, broadcast, for two tensors of the same floating-point dtype. RuntimeError for other dtypes.

    >>> rushlight.complex(rushlight.tensor(1.), rushlight.tensor(2.))
    tensor(1.+2.j)
    """
    for name, part in (("real", real), ("imag", imag), ("out", out)):
        if not isinstance(part, Tensor) and (name, part) != ("out", None):
            raise type_error(f"complex(): argument '{name}' must be Tensor, not {type(part).__name__}")
    check_pair(real, imag, out, op="complex")
    return given(out, of_parts(real, imag))


def check_pair(x: Tensor, y: Tensor, out: Tensor | None, **details: str) -> None:
    """RuntimeError unless x and y have one floating-point dtype, and `out` the complex dtype of the same precision."""
    a, b = x.dtype, y.dtype
    if not (a.is_floating_point and b.is_floating_point):
        raise runtime_error(
            f"Expected both inputs to be Half, Float or Double tensors but got {a.scalar_type} and {b.scalar_type}",
            "convert them: x.float()",
            **details,
        )
    if a is not b:
        raise runtime_error(
            f"Expected object of scalar type {a.scalar_type} but got scalar type {b.scalar_type} for second argument",
            "convert one with .to(dtype)",
            **details,
        )
    wanted = a.to_complex()  # raises for a dtype without a complex counterpart
    if out is not None and out.dtype is not wanted:
        raise runtime_error(
            f"Expected object of scalar type {wanted.scalar_type} but got scalar type {out.dtype.scalar_type} for "
            "argument 'out'",
            f"give an out= of dtype {wanted}",
            **details,
        )


@composite(tensor=False)
def real(input: Tensor) -> Tensor:
    """a of a + ib: the real part, a view; a real tensor is returned unchanged.

    >>> rushlight.real(rushlight.tensor([1 + 2j]))
    tensor([1.])
    """
    return real_part(input) if input.is_complex() else input


@composite(tensor=False)
def imag(input: Tensor) -> Tensor:
    """b of a + ib: the imaginary part, a view. RuntimeError for a real tensor.

    >>> rushlight.imag(rushlight.tensor([1 + 2j]))
    tensor([2.])
    """
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return imag_part(input)


@composite()
def conj(input: Tensor) -> Tensor:
    """a - ib for a + ib; a real tensor is returned unchanged.

    >>> rushlight.conj(rushlight.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return conjugate(input) if input.is_complex() else input


@composite()
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a - ib for a + ib, computed at once, like every `conj` here; a real tensor is returned unchanged.

    >>> rushlight.conj_physical(rushlight.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return given(out, conj(input))


method(writing(conj_physical))


@composite("resolve_conj", "resolve_neg")
def resolved(input: Tensor) -> Tensor:
    """out = input: conjugates and negatives are never lazy here.

    >>> rushlight.resolve_conj(rushlight.tensor([1 + 2j]).conj())
    tensor([1.-2.j])
    """
    return input


assign_property("real", real, lambda self, value: real(self).__setitem__(..., value))
assign_property("imag", imag, lambda self, value: imag(self).__setitem__(..., value))
