# Written by `make stubs` from the op table and the functions of the package: do not edit.
# ruff: noqa
# mypy: disable-error-code="misc, override"
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import dict as _dict
from builtins import float as _float
from builtins import int as _int
from builtins import list as _list
from builtins import object as _object
from builtins import set as _set
from builtins import slice as _slice
from builtins import str as _str
from builtins import tuple as _tuple
from builtins import type as _type
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple as _NamedTuple, TypeAlias as _TypeAlias

import numpy as _np

from rushlight.core.tensor import Tensor as _Tensor
from rushlight.base.dtypes import dtype as _dtype
from rushlight.base.memory_format import memory_format as _memory_format
from rushlight.ops.tensor.storage_classes import TypedStorage as _TypedStorage
from rushlight.ops.tensor.storage_classes import UntypedStorage as _UntypedStorage
from rushlight.sparse.compressed import CompressedTensor as _CompressedTensor
from rushlight.sparse.tensor import SparseTensor as _SparseTensor

class _MantissaExponent(_NamedTuple):
    mantissa: _Tensor
    exponent: _Tensor

class _ValuesIndices(_NamedTuple):
    values: _Tensor
    indices: _Tensor

_Number: _TypeAlias = _bool | _int | _float | _complex
_Operand: _TypeAlias = _Tensor | _Number | _np.ndarray

class Methods:
    @property
    def H(self) -> _Tensor: ...
    @property
    def T(self) -> _Tensor: ...
    def __abs__(self) -> _Tensor: ...
    def __add__(self, other: Any) -> _Tensor: ...
    def __and__(self, other: Any) -> _Tensor: ...
    def __contains__(self, value: Any) -> _bool: ...
    def __deepcopy__(self, memo: _dict[Any, Any]) -> _Tensor: ...
    def __delitem__(self, key: Any) -> None: ...
    def __eq__(self, other: Any) -> _Tensor: ...
    def __floordiv__(self, other: Any) -> _Tensor: ...
    def __ge__(self, other: Any) -> _Tensor: ...
    def __getitem__(self, key: Any) -> _Tensor: ...
    def __gt__(self, other: Any) -> _Tensor: ...
    def __iadd__(self, other: Any) -> _Tensor: ...
    def __iand__(self, other: Any) -> _Tensor: ...
    def __ifloordiv__(self, other: Any) -> _Tensor: ...
    def __ilshift__(self, other: Any) -> _Tensor: ...
    def __imatmul__(self, other: Any) -> _Tensor: ...
    def __imod__(self, other: Any) -> _Tensor: ...
    def __imul__(self, other: Any) -> _Tensor: ...
    def __invert__(self) -> _Tensor: ...
    def __ior__(self, other: Any) -> _Tensor: ...
    def __ipow__(self, other: Any) -> _Tensor: ...
    def __irshift__(self, other: Any) -> _Tensor: ...
    def __isub__(self, other: Any) -> _Tensor: ...
    def __iter__(self) -> Iterator[_Tensor]: ...
    def __itruediv__(self, other: Any) -> _Tensor: ...
    def __ixor__(self, other: Any) -> _Tensor: ...
    def __le__(self, other: Any) -> _Tensor: ...
    def __lshift__(self, other: Any) -> _Tensor: ...
    def __lt__(self, other: Any) -> _Tensor: ...
    def __matmul__(self, other: Any) -> _Tensor: ...
    def __mod__(self, other: Any) -> _Tensor: ...
    def __mul__(self, other: Any) -> _Tensor: ...
    def __ne__(self, other: Any) -> _Tensor: ...
    def __neg__(self) -> _Tensor: ...
    def __or__(self, other: Any) -> _Tensor: ...
    def __pos__(self) -> _Tensor: ...
    def __pow__(self, other: Any) -> _Tensor: ...
    def __radd__(self, other: Any) -> _Tensor: ...
    def __rand__(self, other: Any) -> _Tensor: ...
    def __rdiv__(self, other: Any) -> _Tensor: ...
    def __reduce_ex__(self, protocol: Any) -> _tuple[Any, ...]: ...
    def __reversed__(self) -> _Tensor: ...
    def __rfloordiv__(self, other: Any) -> _Tensor: ...
    def __rlshift__(self, other: Any) -> _Tensor: ...
    def __rmatmul__(self, other: Any) -> _Tensor: ...
    def __rmod__(self, other: Any) -> _Tensor: ...
    def __rmul__(self, other: Any) -> _Tensor: ...
    def __ror__(self, other: Any) -> _Tensor: ...
    def __rpow__(self, other: Any) -> _Tensor: ...
    def __rrshift__(self, other: Any) -> _Tensor: ...
    def __rshift__(self, other: Any) -> _Tensor: ...
    def __rsub__(self, other: Any) -> _Tensor: ...
    def __rtruediv__(self, other: Any) -> _Tensor: ...
    def __rxor__(self, other: Any) -> _Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __sub__(self, other: Any) -> _Tensor: ...
    def __truediv__(self, other: Any) -> _Tensor: ...
    def __xor__(self, other: Any) -> _Tensor: ...
    def abs(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = abs(input). The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."""
    def abs_(self) -> _Tensor:
        """out = abs(input). The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."""
    def absolute(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = abs(input). The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."""
    def absolute_(self) -> _Tensor:
        """out = abs(input). The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."""
    def acos(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
    def acos_(self) -> _Tensor:
        """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
    def acosh(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
    def acosh_(self) -> _Tensor:
        """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
    def add(
        self,
        other: Any,
        *older: Any,
        alpha: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def add_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def addbmm(
        self,
        batch1: _Tensor,
        batch2: _Tensor,
        *,
        beta: _int | _float | _complex | _bool = ...,
        alpha: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def addbmm_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def addcdiv(
        self,
        tensor1: _Tensor,
        tensor2: _Tensor,
        *,
        value: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def addcdiv_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def addcmul(
        self,
        tensor1: _Tensor,
        tensor2: _Tensor,
        *,
        value: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def addcmul_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def addmm(
        self,
        mat1: _Tensor,
        mat2: _Tensor,
        *,
        beta: _int | _float | _complex | _bool = ...,
        alpha: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def addmm_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def addmv(
        self,
        mat: _Tensor,
        vec: _Tensor,
        *,
        beta: _int | _float | _complex | _bool = ...,
        alpha: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def addmv_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def addr(
        self,
        vec1: _Tensor,
        vec2: _Tensor,
        *,
        beta: _int | _float | _complex | _bool = ...,
        alpha: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def addr_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def adjoint(self) -> _Tensor: ...
    def all(
        self,
        dim: _int | Sequence[_int] | None = ...,
        keepdim: _bool = ...,
        *,
        dtype: _dtype | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor:
        """out = whether all of input over `dim`. Whether all elements are true; numbers are true unless 0."""
    def allclose(
        self, other: _Tensor, rtol: _float = ..., atol: _float = ..., equal_nan: _bool = ...
    ) -> _bool: ...
    def amax(
        self,
        dim: _int | Sequence[_int] | None = ...,
        keepdim: _bool = ...,
        *,
        dtype: _dtype | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor:
        """out = largest over `dim` of input. The largest element; nan if one is nan. Ties share the gradient."""
    def amin(
        self,
        dim: _int | Sequence[_int] | None = ...,
        keepdim: _bool = ...,
        *,
        dtype: _dtype | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor:
        """out = smallest over `dim` of input. The smallest element; nan if one is nan. Ties share the gradient."""
    def aminmax(self, *, dim: _int | None = ..., keepdim: _bool = ..., out: Any = ...) -> Any: ...
    def angle(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = angle(input). The angle of a complex number; 0 or pi for a real one."""
    def angle_(self) -> _Tensor:
        """out = angle(input). The angle of a complex number; 0 or pi for a real one."""
    def any(
        self,
        dim: _int | Sequence[_int] | None = ...,
        keepdim: _bool = ...,
        *,
        dtype: _dtype | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor:
        """out = whether any of input over `dim`. Whether some element is true; numbers are true unless 0."""
    def apply_(self, callable: Callable[..., Any]) -> _Tensor: ...
    def arccos(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
    def arccos_(self) -> _Tensor:
        """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
    def arccosh(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
    def arccosh_(self) -> _Tensor:
        """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
    def arcsin(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
    def arcsin_(self) -> _Tensor:
        """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
    def arcsinh(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = asinh(input). The inverse of sinh."""
    def arcsinh_(self) -> _Tensor:
        """out = asinh(input). The inverse of sinh."""
    def arctan(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
    def arctan2(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = atan2(input, other). The angle, from -pi to pi, of the point with height `input` and width `other`."""
    def arctan2_(self, other: _Operand) -> _Tensor:
        """out = atan2(input, other). The angle, from -pi to pi, of the point with height `input` and width `other`."""
    def arctan_(self) -> _Tensor:
        """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
    def arctanh(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
    def arctanh_(self) -> _Tensor:
        """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
    def argmax(
        self, dim: _int | None = ..., keepdim: _bool = ..., *, out: _Tensor | None = ...
    ) -> _Tensor:
        """out = argmax(input, dim, keepdim). The index of the largest element, the first of equal ones; without `dim` among all elements."""
    def argmin(
        self, dim: _int | None = ..., keepdim: _bool = ..., *, out: _Tensor | None = ...
    ) -> _Tensor:
        """out = argmin(input, dim, keepdim). The index of the smallest element, the first of equal ones; without `dim` among all elements."""
    def argsort(
        self,
        dim: _int = ...,
        descending: _bool = ...,
        stable: _bool = ...,
        *,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def argwhere(self) -> _Tensor: ...
    def as_strided(self, size: Any, stride: Any, storage_offset: _int | None = ...) -> _Tensor: ...
    def as_strided_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def as_strided_scatter(
        self, src: Any, size: Any, stride: Any, storage_offset: Any = ..., *, out: Any = ...
    ) -> Any: ...
    def as_subclass(self, cls: _type) -> Any: ...
    def asin(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
    def asin_(self) -> _Tensor:
        """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
    def asinh(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = asinh(input). The inverse of sinh."""
    def asinh_(self) -> _Tensor:
        """out = asinh(input). The inverse of sinh."""
    def atan(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
    def atan2(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = atan2(input, other). The angle, from -pi to pi, of the point with height `input` and width `other`."""
    def atan2_(self, other: _Operand) -> _Tensor:
        """out = atan2(input, other). The angle, from -pi to pi, of the point with height `input` and width `other`."""
    def atan_(self) -> _Tensor:
        """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
    def atanh(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
    def atanh_(self) -> _Tensor:
        """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
    def backward(
        self,
        gradient: _Tensor | None = ...,
        retain_graph: _bool | None = ...,
        create_graph: _bool = ...,
        inputs: Any = ...,
    ) -> None: ...
    def baddbmm(
        self,
        batch1: _Tensor,
        batch2: _Tensor,
        *,
        beta: _int | _float | _complex | _bool = ...,
        alpha: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def baddbmm_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def bernoulli(self, p: Any = ..., *, generator: Any = ..., out: Any = ...) -> Any: ...
    def bernoulli_(self, p: Any = ..., *, generator: Any = ...) -> Any: ...
    def bfloat16(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def bincount(self, weights: _Tensor | None = ..., minlength: _int = ...) -> _Tensor: ...
    def bitwise_and(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input & other. The bits that both have; for bool: and."""
    def bitwise_and_(self, other: _Operand) -> _Tensor:
        """out = input & other. The bits that both have; for bool: and."""
    def bitwise_left_shift(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = bitwise_left_shift(input, other). The bits moved up by `other` places."""
    def bitwise_left_shift_(self, other: _Operand) -> _Tensor:
        """out = bitwise_left_shift(input, other). The bits moved up by `other` places."""
    def bitwise_not(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = ~input. The other bits; for bool: not."""
    def bitwise_not_(self) -> _Tensor:
        """out = ~input. The other bits; for bool: not."""
    def bitwise_or(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input | other. The bits that one has; for bool: or."""
    def bitwise_or_(self, other: _Operand) -> _Tensor:
        """out = input | other. The bits that one has; for bool: or."""
    def bitwise_right_shift(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = bitwise_right_shift(input, other). The bits moved down by `other` places."""
    def bitwise_right_shift_(self, other: _Operand) -> _Tensor:
        """out = bitwise_right_shift(input, other). The bits moved down by `other` places."""
    def bitwise_xor(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input ^ other. The bits that just one has; for bool: xor."""
    def bitwise_xor_(self, other: _Operand) -> _Tensor:
        """out = input ^ other. The bits that just one has; for bool: xor."""
    def bmm(self, mat2: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def bool(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def broadcast_to(self, size: Any) -> _Tensor: ...
    def byte(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def cauchy_(self, median: Any = ..., sigma: Any = ..., *, generator: Any = ...) -> Any: ...
    def ccol_indices(self) -> Any: ...
    def cdouble(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def ceil(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = ceil(input). The smallest whole number that is not smaller."""
    def ceil_(self) -> _Tensor:
        """out = ceil(input). The smallest whole number that is not smaller."""
    def cfloat(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def char(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def cholesky(self, upper: _bool = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
    def cholesky_ex(
        self, *, upper: _bool = ..., check_errors: _bool = ..., out: Any = ...
    ) -> Any: ...
    def cholesky_inverse(self, upper: _bool = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
    def cholesky_solve(
        self, L: _Tensor, upper: _bool = ..., *, out: _Tensor | None = ...
    ) -> _Tensor: ...
    def chunk(self, chunks: _int, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
    def clamp(self, min: Any = ..., max: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
    def clamp_(self, min: Any = ..., max: Any = ...) -> _Tensor: ...
    def clamp_max(self, max: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = minimum(max, input). The number, or `max` where it is larger."""
    def clamp_max_(self, max: _Operand) -> _Tensor:
        """out = minimum(max, input). The number, or `max` where it is larger."""
    def clamp_min(self, min: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = maximum(min, input). The number, or `min` where it is smaller."""
    def clamp_min_(self, min: _Operand) -> _Tensor:
        """out = maximum(min, input). The number, or `min` where it is smaller."""
    def clip(self, min: Any = ..., max: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
    def clip_(self, min: Any = ..., max: Any = ...) -> _Tensor: ...
    def clone(self, *, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def coalesce(self) -> Any: ...
    def col_indices(self) -> Any: ...
    def conj(self) -> _Tensor: ...
    def conj_physical(self, *, out: _Tensor | None = ...) -> _Tensor: ...
    def conj_physical_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def constant_pad_nd(self, pad: Any, value: Any = ...) -> _Tensor: ...
    def contiguous(self, memory_format: _memory_format = ...) -> _Tensor: ...
    def copy_(self, source: Any, non_blocking: _bool = ...) -> _Tensor: ...
    def copysign(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = copysign(input, other). The size of `input` with the sign of `other`."""
    def copysign_(self, other: _Operand) -> _Tensor:
        """out = copysign(input, other). The size of `input` with the sign of `other`."""
    def corrcoef(self) -> _Tensor: ...
    def cos(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = cos(input). The cosine of an angle in radians."""
    def cos_(self) -> _Tensor:
        """out = cos(input). The cosine of an angle in radians."""
    def cosh(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = cosh(input). The hyperbolic cosine."""
    def cosh_(self) -> _Tensor:
        """out = cosh(input). The hyperbolic cosine."""
    def count_nonzero(self, dim: Any = ...) -> _Tensor: ...
    def cov(
        self,
        *,
        correction: _int = ...,
        fweights: _Tensor | None = ...,
        aweights: _Tensor | None = ...,
    ) -> _Tensor: ...
    def cpu(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def cross(
        self, other: _Tensor, dim: _int | None = ..., *, out: _Tensor | None = ...
    ) -> _Tensor: ...
    def crow_indices(self) -> Any: ...
    def cuda(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def cummax(self, dim: _int, *, out: Any = ...) -> _ValuesIndices:
        """out = cummax(input, dim). The largest element so far, and the last place where it stood."""
    def cummin(self, dim: _int, *, out: Any = ...) -> _ValuesIndices:
        """out = cummin(input, dim). The smallest element so far, and the last place where it stood."""
    def cumprod(self, dim: _int, *, dtype: Any = ..., out: _Tensor | None = ...) -> _Tensor: ...
    def cumprod_(self, dim: _int, *, dtype: Any = ...) -> _Tensor: ...
    def cumsum(self, dim: _int, *, dtype: Any = ..., out: _Tensor | None = ...) -> _Tensor: ...
    def cumsum_(self, dim: _int, *, dtype: Any = ...) -> _Tensor: ...
    def deg2rad(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input * (pi / 180). An angle in degrees, in radians."""
    def deg2rad_(self) -> _Tensor:
        """out = input * (pi / 180). An angle in degrees, in radians."""
    def dense_dim(self) -> _int: ...
    def det(self, *, out: _Tensor | None = ...) -> _Tensor: ...
    def detach(self) -> _Tensor: ...
    def detach_(self) -> _Tensor: ...
    def diag(self, diagonal: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
    def diag_embed(self, offset: _int = ..., dim1: _int = ..., dim2: _int = ...) -> _Tensor: ...
    def diagflat(self, offset: _int = ...) -> _Tensor: ...
    def diagonal(self, offset: _int = ..., dim1: _int = ..., dim2: _int = ...) -> _Tensor:
        """out = diagonal(input, offset, dim1, dim2). The elements whose indices along `dim2` are `offset` more than along `dim1`; they come last."""
    def diagonal_scatter(
        self, src: Any, offset: Any = ..., dim1: Any = ..., dim2: Any = ..., *, out: Any = ...
    ) -> Any: ...
    def diff(
        self,
        n: _int = ...,
        dim: _int = ...,
        prepend: _Tensor | None = ...,
        append: _Tensor | None = ...,
        *,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def digamma(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = digamma(input). The derivative of lgamma. Needs SciPy."""
    def digamma_(self) -> _Tensor:
        """out = digamma(input). The derivative of lgamma. Needs SciPy."""
    def dim_order(self) -> _tuple[_int, ...]: ...
    def dist(self, other: _Tensor, p: _float = ...) -> _Tensor: ...
    def div(
        self, other: Any, *, rounding_mode: _str | None = ..., out: _Tensor | None = ...
    ) -> _Tensor: ...
    def div_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def divide(
        self, other: Any, *, rounding_mode: _str | None = ..., out: _Tensor | None = ...
    ) -> _Tensor: ...
    def divide_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def dot(self, tensor: _Tensor, *, out: _Tensor | None = ...) -> _Tensor:
        """out = sum over i of input_i * tensor_i. The sum of the products of two vectors' elements."""
    def double(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def dsplit(
        self, indices_or_sections: Any = ..., *, indices: Any = ..., sections: _int | None = ...
    ) -> _tuple[_Tensor, ...]: ...
    def eig(self, *, out: Any = ...) -> Any: ...
    def eigh(self, UPLO: _str = ..., *, out: Any = ...) -> Any: ...
    def eigvals(self, *, out: _Tensor | None = ...) -> _Tensor: ...
    def eigvalsh(self, UPLO: _str = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
    def eq(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input == other. Whether they are equal."""
    def eq_(self, other: _Operand) -> _Tensor:
        """out = input == other. Whether they are equal."""
    def equal(self, other: _Tensor) -> _bool: ...
    def erf(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = erf(input). The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `input`. Needs SciPy."""
    def erf_(self) -> _Tensor:
        """out = erf(input). The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `input`. Needs SciPy."""
    def erfc(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = erfc(input). 1 - erf(input), exact also where that is tiny. Needs SciPy."""
    def erfc_(self) -> _Tensor:
        """out = erfc(input). 1 - erf(input), exact also where that is tiny. Needs SciPy."""
    def erfinv(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = erfinv(input). The inverse of erf; inf and -inf at 1 and -1, nan outside. Needs SciPy."""
    def erfinv_(self) -> _Tensor:
        """out = erfinv(input). The inverse of erf; inf and -inf at 1 and -1, nan outside. Needs SciPy."""
    def exp(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = exp(input). e to the power of the number."""
    def exp2(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = exp2(input). 2 to the power of the number."""
    def exp2_(self) -> _Tensor:
        """out = exp2(input). 2 to the power of the number."""
    def exp_(self) -> _Tensor:
        """out = exp(input). e to the power of the number."""
    def expand(self, *size: Any) -> _Tensor:
        """out = expand(input, *size). Dimensions of length 1 repeated to `size`, without a copy; -1 leaves a length as it is."""
    def expand_as(self, other: _Tensor) -> _Tensor: ...
    def expm1(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = exp(input) - 1. exp(input) - 1, exact also near 0."""
    def expm1_(self) -> _Tensor:
        """out = exp(input) - 1. exp(input) - 1, exact also near 0."""
    def exponential_(self, lambd: Any = ..., *, generator: Any = ...) -> Any: ...
    def fill(self, value: Any, *, out: _Tensor | None = ...) -> _Tensor: ...
    def fill_(self, value: Any) -> _Tensor: ...
    def fill_diagonal_(self, fill_value: Any, wrap: _bool = ...) -> _Tensor: ...
    def fix(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = trunc(input). The number without its fraction."""
    def fix_(self) -> _Tensor:
        """out = trunc(input). The number without its fraction."""
    def flatten(self, start_dim: _int = ..., end_dim: _int = ...) -> _Tensor:
        """out = flatten(input, start_dim, end_dim). The dimensions from `start_dim` to `end_dim` as one."""
    def flip(self, *dims: Any, out: _Tensor | None = ...) -> _Tensor:
        """out = flip(input, *dims). The order along `dims` turned around; a copy."""
    def fliplr(self) -> _Tensor: ...
    def flipud(self) -> _Tensor: ...
    def float(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def float_power(self, exponent: Any, *, out: _Tensor | None = ...) -> _Tensor: ...
    def float_power_(self, exponent: Any) -> _Tensor: ...
    def floor(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = floor(input). The largest whole number that is not larger."""
    def floor_(self) -> _Tensor:
        """out = floor(input). The largest whole number that is not larger."""
    def floor_divide(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = floor(input / other). The quotient rounded down, as Python's //."""
    def floor_divide_(self, other: _Operand) -> _Tensor:
        """out = floor(input / other). The quotient rounded down, as Python's //."""
    def fmax(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = fmax(input, other). The larger one; the number if the other is nan."""
    def fmax_(self, other: _Operand) -> _Tensor:
        """out = fmax(input, other). The larger one; the number if the other is nan."""
    def fmin(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = fmin(input, other). The smaller one; the number if the other is nan."""
    def fmin_(self, other: _Operand) -> _Tensor:
        """out = fmin(input, other). The smaller one; the number if the other is nan."""
    def fmod(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input - other * trunc(input / other). What is left of `input` after division by `other`, with the sign of `input`, as C's fmod."""
    def fmod_(self, other: _Operand) -> _Tensor:
        """out = input - other * trunc(input / other). What is left of `input` after division by `other`, with the sign of `input`, as C's fmod."""
    def frac(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input - trunc(input). The fraction, with the number's sign."""
    def frac_(self) -> _Tensor:
        """out = input - trunc(input). The fraction, with the number's sign."""
    def frexp(self, *, out: Any = ...) -> _MantissaExponent:
        """out = frexp(input). m and e with input = m 2^e and 1/2 <= |m| < 1."""
    def gather(
        self, dim: _int, index: _Tensor, *, sparse_grad: _bool = ..., out: _Tensor | None = ...
    ) -> _Tensor: ...
    def gcd(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = gcd(input, other). The greatest whole number that divides both; of 0 and 0 it is 0."""
    def gcd_(self, other: _Operand) -> _Tensor:
        """out = gcd(input, other). The greatest whole number that divides both; of 0 and 0 it is 0."""
    def ge(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input >= other. Whether `input` is greater or equal."""
    def ge_(self, other: _Operand) -> _Tensor:
        """out = input >= other. Whether `input` is greater or equal."""
    def geometric_(self, p: Any, *, generator: Any = ...) -> Any: ...
    def geqrf(self, *, out: Any = ...) -> Any: ...
    def ger(self, vec2: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def get_device(self) -> _int: ...
    def greater(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input > other. Whether `input` is greater."""
    def greater_(self, other: _Operand) -> _Tensor:
        """out = input > other. Whether `input` is greater."""
    def greater_equal(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input >= other. Whether `input` is greater or equal."""
    def greater_equal_(self, other: _Operand) -> _Tensor:
        """out = input >= other. Whether `input` is greater or equal."""
    def gt(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input > other. Whether `input` is greater."""
    def gt_(self, other: _Operand) -> _Tensor:
        """out = input > other. Whether `input` is greater."""
    def half(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def hardshrink(self, lambd: _float = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
    def hash_tensor(
        self, dim: Any = ..., *, keepdim: _bool = ..., mode: _int = ..., out: _Tensor | None = ...
    ) -> _Tensor: ...
    def heaviside(self, values: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = where(input == 0, values, input > 0). The step from 0 to 1 at 0, where it is `values`."""
    def heaviside_(self, values: _Operand) -> _Tensor:
        """out = where(input == 0, values, input > 0). The step from 0 to 1 at 0, where it is `values`."""
    def histc(
        self, bins: _int = ..., min: _float = ..., max: _float = ..., *, out: _Tensor | None = ...
    ) -> _Tensor: ...
    def histogram(
        self,
        bins: Any = ...,
        *,
        range: Any = ...,
        weight: _Tensor | None = ...,
        density: _bool = ...,
        out: Any = ...,
    ) -> Any: ...
    def householder_product(self, tau: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def hsplit(
        self, indices_or_sections: Any = ..., *, indices: Any = ..., sections: _int | None = ...
    ) -> _tuple[_Tensor, ...]: ...
    def hypot(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = sqrt(input * input + other * other). The length of the hypotenuse of a right triangle with these legs."""
    def hypot_(self, other: _Operand) -> _Tensor:
        """out = sqrt(input * input + other * other). The length of the hypotenuse of a right triangle with these legs."""
    def i0(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = i0(input). The modified Bessel function of the first kind of order 0. Needs SciPy."""
    def i0_(self) -> _Tensor:
        """out = i0(input). The modified Bessel function of the first kind of order 0. Needs SciPy."""
    def igamma(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = igamma(input, other). The regularized lower incomplete gamma function: of y, with the parameter x."""
    def igamma_(self, other: _Operand) -> _Tensor:
        """out = igamma(input, other). The regularized lower incomplete gamma function: of y, with the parameter x."""
    def igammac(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = igammac(input, other). 1 - igamma(x, y), exact also where that is tiny."""
    def igammac_(self, other: _Operand) -> _Tensor:
        """out = igammac(input, other). 1 - igamma(x, y), exact also where that is tiny."""
    @property
    def imag(self) -> _Tensor: ...
    def index_add(
        self,
        dim: _int,
        index: _Tensor,
        source: _Tensor,
        *,
        alpha: Any = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def index_add_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def index_copy(
        self, dim: _int, index: _Tensor, source: _Tensor, *, out: _Tensor | None = ...
    ) -> _Tensor: ...
    def index_copy_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def index_fill(self, dim: _int, index: _Tensor, value: Any) -> _Tensor: ...
    def index_fill_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def index_put(
        self,
        indices: Sequence[_Tensor | None],
        values: _Tensor,
        accumulate: _bool = ...,
        *,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def index_put_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def index_reduce(
        self,
        dim: _int,
        index: _Tensor,
        source: _Tensor,
        reduce: _str,
        *,
        include_self: _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def index_reduce_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def index_select(self, dim: _int, index: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def indices(self) -> Any: ...
    def inner(self, other: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def int(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def inv(self, *, out: _Tensor | None = ...) -> _Tensor: ...
    def inv_ex(self, *, check_errors: _bool = ..., out: Any = ...) -> Any: ...
    def inverse(self, *, out: _Tensor | None = ...) -> _Tensor: ...
    def is_coalesced(self) -> Any: ...
    def is_conj(self) -> _bool: ...
    def is_contiguous(self, memory_format: _memory_format = ...) -> _bool: ...
    def is_distributed(self) -> _bool: ...
    def is_inference(self) -> _bool: ...
    def is_neg(self) -> _bool: ...
    def is_nonzero(self) -> _bool: ...
    def is_pinned(self, device: Any = ...) -> _bool: ...
    def is_same_size(self, other: _Tensor) -> _bool: ...
    def is_set_to(self, tensor: _Tensor) -> _bool: ...
    def is_shared(self) -> _bool: ...
    def is_signed(self) -> _bool: ...
    def isclose(
        self, other: _Tensor, rtol: _float = ..., atol: _float = ..., equal_nan: _bool = ...
    ) -> _Tensor: ...
    def isfinite(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = isfinite(input). Whether it is neither nan nor inf nor -inf."""
    def isinf(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = isinf(input). Whether it is inf or -inf."""
    def isnan(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input != input. Whether it is nan."""
    def isneginf(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = isneginf(input). Whether it is -inf."""
    def isposinf(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = isposinf(input). Whether it is inf."""
    def isreal(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = isreal(input). Whether the imaginary part is 0."""
    def istft(
        self,
        n_fft: _int,
        hop_length: _int | None = ...,
        win_length: _int | None = ...,
        window: _Tensor | None = ...,
        center: _bool = ...,
        normalized: _bool = ...,
        onesided: _bool | None = ...,
        length: _int | None = ...,
        return_complex: _bool = ...,
    ) -> _Tensor: ...
    def kron(self, other: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def kthvalue(
        self, k: _int, dim: _int = ..., keepdim: _bool = ..., *, out: Any = ...
    ) -> _ValuesIndices:
        """out = kthvalue(input, k, dim, keepdim). The k-th smallest element along `dim`, k from 1 on, and where it stands."""
    def lcm(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = lcm(input, other). The least whole number that both divide."""
    def lcm_(self, other: _Operand) -> _Tensor:
        """out = lcm(input, other). The least whole number that both divide."""
    def ldexp(self, other: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def ldexp_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def ldl_factor(self, *, hermitian: _bool = ..., out: Any = ...) -> Any: ...
    def ldl_factor_ex(
        self, *, hermitian: _bool = ..., check_errors: _bool = ..., out: Any = ...
    ) -> Any: ...
    def ldl_solve(
        self, pivots: _Tensor, B: _Tensor, *, hermitian: _bool = ..., out: _Tensor | None = ...
    ) -> _Tensor: ...
    def le(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input <= other. Whether `input` is less or equal."""
    def le_(self, other: _Operand) -> _Tensor:
        """out = input <= other. Whether `input` is less or equal."""
    def lerp(self, end: _Operand, weight: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input + weight * (end - input). The point at `weight` on the way from `input` (0) to `end` (1)."""
    def lerp_(self, end: _Operand, weight: _Operand) -> _Tensor:
        """out = input + weight * (end - input). The point at `weight` on the way from `input` (0) to `end` (1)."""
    def less(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input < other. Whether `input` is less."""
    def less_(self, other: _Operand) -> _Tensor:
        """out = input < other. Whether `input` is less."""
    def less_equal(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input <= other. Whether `input` is less or equal."""
    def less_equal_(self, other: _Operand) -> _Tensor:
        """out = input <= other. Whether `input` is less or equal."""
    def lgamma(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = lgamma(input). The logarithm of the absolute value of the gamma function. Needs SciPy."""
    def lgamma_(self) -> _Tensor:
        """out = lgamma(input). The logarithm of the absolute value of the gamma function. Needs SciPy."""
    def linalg_cholesky(self, *, upper: _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
    def linalg_diagonal(
        self, *, offset: _int = ..., dim1: _int = ..., dim2: _int = ...
    ) -> _Tensor: ...
    def linalg_lu(self, *, pivot: _bool = ..., out: Any = ...) -> Any: ...
    def linalg_lu_solve(
        self,
        pivots: _Tensor,
        B: _Tensor,
        *,
        left: _bool = ...,
        adjoint: _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def linalg_qr(self, mode: _str = ..., *, out: Any = ...) -> Any: ...
    def linalg_svd(
        self, full_matrices: _bool = ..., *, driver: _str | None = ..., out: Any = ...
    ) -> Any: ...
    def log(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = log(input). The natural logarithm; -inf for 0, nan for negative numbers."""
    def log10(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = log10(input). The logarithm to base 10; -inf for 0, nan for negative numbers."""
    def log10_(self) -> _Tensor:
        """out = log10(input). The logarithm to base 10; -inf for 0, nan for negative numbers."""
    def log1p(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = log(1 + input). log(1 + input), exact also near 0."""
    def log1p_(self) -> _Tensor:
        """out = log(1 + input). log(1 + input), exact also near 0."""
    def log2(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = log2(input). The logarithm to base 2; -inf for 0, nan for negative numbers."""
    def log2_(self) -> _Tensor:
        """out = log2(input). The logarithm to base 2; -inf for 0, nan for negative numbers."""
    def log_(self) -> _Tensor:
        """out = log(input). The natural logarithm; -inf for 0, nan for negative numbers."""
    def log_normal_(self, mean: Any = ..., std: Any = ..., *, generator: Any = ...) -> Any: ...
    def log_softmax(self, dim: _int, dtype: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
    def logaddexp(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = log(exp(input) + exp(other)). The logarithm of a sum of exponentials; nothing overflows."""
    def logaddexp2(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = log2(exp2(input) + exp2(other)). The same to base 2; nothing overflows."""
    def logaddexp2_(self, other: _Operand) -> _Tensor:
        """out = log2(exp2(input) + exp2(other)). The same to base 2; nothing overflows."""
    def logaddexp_(self, other: _Operand) -> _Tensor:
        """out = log(exp(input) + exp(other)). The logarithm of a sum of exponentials; nothing overflows."""
    def logcumsumexp(self, dim: _int, *, out: _Tensor | None = ...) -> _Tensor:
        """out = logcumsumexp(input, dim). log(exp(x_0) + ... + exp(x_i)), never overflowing; in float64, as torch does: the error would grow with every step."""
    def logdet(self) -> _Tensor: ...
    def logical_and(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = logical_and(input, other). Whether both are true; numbers are true unless 0."""
    def logical_and_(self, other: _Operand) -> _Tensor:
        """out = logical_and(input, other). Whether both are true; numbers are true unless 0."""
    def logical_not(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = logical_not(input). Whether it is false, or 0."""
    def logical_not_(self) -> _Tensor:
        """out = logical_not(input). Whether it is false, or 0."""
    def logical_or(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = logical_or(input, other). Whether one is true; numbers are true unless 0."""
    def logical_or_(self, other: _Operand) -> _Tensor:
        """out = logical_or(input, other). Whether one is true; numbers are true unless 0."""
    def logical_xor(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = logical_xor(input, other). Whether just one is true; numbers are true unless 0."""
    def logical_xor_(self, other: _Operand) -> _Tensor:
        """out = logical_xor(input, other). Whether just one is true; numbers are true unless 0."""
    def logit(self, eps: Any = ..., *, out: _Tensor | None = ...) -> _Tensor:
        """out = logit(input, eps)"""
    def logit_(self, eps: Any = ...) -> _Tensor:
        """out = logit(input, eps)"""
    def logsumexp(
        self,
        dim: _int | Sequence[_int] | None = ...,
        keepdim: _bool = ...,
        *,
        dtype: _dtype | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor:
        """out = log(sum over `dim` of exp(input)). The logarithm of the sum of the exponentials; nothing overflows."""
    def long(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def lt(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input < other. Whether `input` is less."""
    def lt_(self, other: _Operand) -> _Tensor:
        """out = input < other. Whether `input` is less."""
    def lu(self, pivot: _bool = ..., get_infos: _bool = ..., out: Any = ...) -> Any: ...
    def lu_factor(self, *, pivot: _bool = ..., out: Any = ...) -> Any: ...
    def lu_factor_ex(
        self, *, pivot: _bool = ..., check_errors: _bool = ..., out: Any = ...
    ) -> Any: ...
    def lu_solve(
        self, LU_data: _Tensor, LU_pivots: _Tensor, *, out: _Tensor | None = ...
    ) -> _Tensor: ...
    @property
    def mH(self) -> _Tensor: ...
    @property
    def mT(self) -> _Tensor: ...
    def map2_(self, x: _Tensor, y: _Tensor, callable: Callable[..., Any]) -> _Tensor: ...
    def map_(self, tensor: _Tensor, callable: Callable[..., Any]) -> _Tensor: ...
    def masked_fill(self, mask: _Tensor, value: Any) -> _Tensor: ...
    def masked_fill_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def masked_scatter(self, mask: _Tensor, source: _Tensor) -> _Tensor: ...
    def masked_scatter_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def masked_select(self, mask: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def matmul(self, other: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def matrix_exp(self) -> _Tensor: ...
    def matrix_power(self, n: _int, *, out: _Tensor | None = ...) -> _Tensor: ...
    def max(
        self, dim: Any = ..., keepdim: Any = ..., *, other: _Tensor | None = ..., out: Any = ...
    ) -> Any: ...
    def maximum(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = maximum(input, other). The larger one; nan if one is nan. Ties share the gradient."""
    def maximum_(self, other: _Operand) -> _Tensor:
        """out = maximum(input, other). The larger one; nan if one is nan. Ties share the gradient."""
    def mean(
        self,
        dim: _int | Sequence[_int] | None = ...,
        keepdim: _bool = ...,
        *,
        dtype: _dtype | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor:
        """out = (sum over `dim` of input) / n. The sum of the elements divided by their number."""
    def median(self, dim: Any = ..., keepdim: _bool = ..., *, out: Any = ...) -> Any: ...
    def min(
        self, dim: Any = ..., keepdim: Any = ..., *, other: _Tensor | None = ..., out: Any = ...
    ) -> Any: ...
    def minimum(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = minimum(input, other). The smaller one; nan if one is nan. Ties share the gradient."""
    def minimum_(self, other: _Operand) -> _Tensor:
        """out = minimum(input, other). The smaller one; nan if one is nan. Ties share the gradient."""
    def mm(self, mat2: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def mode(self, dim: _int = ..., keepdim: _bool = ..., *, out: Any = ...) -> _ValuesIndices:
        """out = mode(input, dim, keepdim). The most frequent element along `dim`, the smallest of several, and the last place it has."""
    def moveaxis(self, source: Any, destination: Any) -> _Tensor: ...
    def movedim(self, source: Any, destination: Any) -> _Tensor: ...
    def msort(self, *, out: _Tensor | None = ...) -> _Tensor: ...
    def mul(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input * other. The product."""
    def mul_(self, other: _Operand) -> _Tensor:
        """out = input * other. The product."""
    def multinomial(
        self, num_samples: Any, replacement: Any = ..., *, generator: Any = ..., out: Any = ...
    ) -> Any: ...
    def multiply(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input * other. The product."""
    def multiply_(self, other: _Operand) -> _Tensor:
        """out = input * other. The product."""
    def mv(self, vec: _Tensor, *, out: _Tensor | None = ...) -> _Tensor:
        """out_i = sum over k of input_ik * vec_k. The product of a matrix and a vector."""
    def mvlgamma(self, p: _int, *, out: _Tensor | None = ...) -> _Tensor: ...
    def mvlgamma_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def nan_to_num(
        self, nan: _float = ..., posinf: Any = ..., neginf: Any = ..., *, out: _Tensor | None = ...
    ) -> _Tensor:
        """out = nan_to_num(input, nan, posinf, neginf). nan, inf and -inf replaced by `nan`, `posinf` and `neginf`, or by the largest numbers."""
    def nan_to_num_(self, nan: _float = ..., posinf: Any = ..., neginf: Any = ...) -> _Tensor:
        """out = nan_to_num(input, nan, posinf, neginf). nan, inf and -inf replaced by `nan`, `posinf` and `neginf`, or by the largest numbers."""
    def nanmean(
        self, dim: Any = ..., keepdim: _bool = ..., *, dtype: Any = ..., out: _Tensor | None = ...
    ) -> _Tensor: ...
    def nanmedian(self, dim: Any = ..., keepdim: _bool = ..., *, out: Any = ...) -> Any: ...
    def nanquantile(
        self,
        q: Any,
        dim: _int | None = ...,
        keepdim: _bool = ...,
        *,
        interpolation: _str = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def nansum(
        self,
        dim: _int | Sequence[_int] | None = ...,
        keepdim: _bool = ...,
        *,
        dtype: _dtype | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor:
        """out = nansum(input, dim, keepdim)"""
    def narrow(self, dim: _int, start: Any, length: _int) -> _Tensor: ...
    def narrow_copy(self, dim: Any, start: Any, length: Any, *, out: Any = ...) -> Any: ...
    def ne(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input != other. Whether they differ."""
    def ne_(self, other: _Operand) -> _Tensor:
        """out = input != other. Whether they differ."""
    def neg(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = -input. The number with the opposite sign."""
    def neg_(self) -> _Tensor:
        """out = -input. The number with the opposite sign."""
    def negative(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = -input. The number with the opposite sign."""
    def negative_(self) -> _Tensor:
        """out = -input. The number with the opposite sign."""
    def new(self, *args: Any, **keywords: Any) -> _Tensor: ...
    def new_empty(self, *size: Any, dtype: _dtype | None = ..., **options: Any) -> _Tensor: ...
    def new_empty_strided(
        self, *size: Any, dtype: _dtype | None = ..., **options: Any
    ) -> _Tensor: ...
    def new_full(self, *size: Any, dtype: _dtype | None = ..., **options: Any) -> _Tensor: ...
    def new_ones(self, *size: Any, dtype: _dtype | None = ..., **options: Any) -> _Tensor: ...
    def new_tensor(self, *size: Any, dtype: _dtype | None = ..., **options: Any) -> _Tensor: ...
    def new_zeros(self, *size: Any, dtype: _dtype | None = ..., **options: Any) -> _Tensor: ...
    def nextafter(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = nextafter(input, other). The next floating-point number on the way to `other`."""
    def nextafter_(self, other: _Operand) -> _Tensor:
        """out = nextafter(input, other). The next floating-point number on the way to `other`."""
    def nonzero(self, *, out: _Tensor | None = ..., as_tuple: _bool = ...) -> Any: ...
    def nonzero_static(
        self, *, size: _int, fill_value: _int = ..., out: _Tensor | None = ...
    ) -> _Tensor: ...
    def norm(
        self,
        p: Any = ...,
        dim: Any = ...,
        keepdim: _bool = ...,
        out: _Tensor | None = ...,
        dtype: Any = ...,
    ) -> _Tensor: ...
    def normal_(self, mean: Any = ..., std: Any = ..., *, generator: Any = ...) -> Any: ...
    def not_equal(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input != other. Whether they differ."""
    def not_equal_(self, other: _Operand) -> _Tensor:
        """out = input != other. Whether they differ."""
    def orgqr(self, tau: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def ormqr(
        self,
        tau: _Tensor,
        other: _Tensor,
        left: _bool = ...,
        transpose: _bool = ...,
        *,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def outer(self, vec2: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def permute(self, *dims: Any) -> _Tensor:
        """out = permute(input, *dims). The dimensions in another order."""
    def pin_memory(self, device: Any = ...) -> _Tensor: ...
    def pinverse(self, rcond: _float = ...) -> _Tensor: ...
    def polygamma(self, n: _int, *, out: _Tensor | None = ...) -> _Tensor:
        """out = polygamma(n, input). The n-th derivative of digamma. Needs SciPy."""
    def polygamma_(self, n: _int) -> _Tensor:
        """out = polygamma(n, input). The n-th derivative of digamma. Needs SciPy."""
    def positive(self) -> _Tensor: ...
    def pow(self, exponent: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input ** exponent. `input` to the power of `exponent`; its gradient for an exponent of 0 is 0, and for a base of 0 too."""
    def pow_(self, exponent: _Operand) -> _Tensor:
        """out = input ** exponent. `input` to the power of `exponent`; its gradient for an exponent of 0 is 0, and for a base of 0 too."""
    def prelu(self, weight: _Tensor) -> _Tensor: ...
    def prod(
        self,
        dim: _int | Sequence[_int] | None = ...,
        keepdim: _bool = ...,
        *,
        dtype: _dtype | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor:
        """out = product over `dim` of input. The product of the elements; the gradient is right where some are 0 too."""
    def put(self, index: _Tensor, source: _Tensor, accumulate: _bool = ...) -> _Tensor: ...
    def put_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def qr(self, some: _bool = ..., *, out: Any = ...) -> Any: ...
    def quantile(
        self,
        q: Any,
        dim: _int | None = ...,
        keepdim: _bool = ...,
        *,
        interpolation: _str = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def rad2deg(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input * (180 / pi). An angle in radians, in degrees."""
    def rad2deg_(self) -> _Tensor:
        """out = input * (180 / pi). An angle in radians, in degrees."""
    def random_(self, low: Any = ..., to: Any = ..., *, generator: Any = ...) -> Any: ...
    def ravel(self) -> _Tensor: ...
    @property
    def real(self) -> _Tensor: ...
    def reciprocal(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = 1 / input. 1 divided by the number."""
    def reciprocal_(self) -> _Tensor:
        """out = 1 / input. 1 divided by the number."""
    def relu(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = maximum(input, 0). The number where it is positive, 0 elsewhere; the gradient at 0 is 0."""
    def relu_(self) -> _Tensor:
        """out = maximum(input, 0). The number where it is positive, 0 elsewhere; the gradient at 0 is 0."""
    def remainder(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input - other * floor(input / other). What is left of `input` after division by `other`, with the sign of `other`, as Python's %."""
    def remainder_(self, other: _Operand) -> _Tensor:
        """out = input - other * floor(input / other). What is left of `input` after division by `other`, with the sign of `other`, as Python's %."""
    def renorm(
        self, p: _float, dim: _int, maxnorm: _float, *, out: _Tensor | None = ...
    ) -> _Tensor: ...
    def renorm_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def repeat(self, *repeats: Any, out: _Tensor | None = ...) -> _Tensor:
        """out = repeat(input, *repeats). The tensor laid side by side with itself, `repeats` times along each dimension."""
    def repeat_interleave(
        self, repeats: Any = ..., dim: _int | None = ..., *, output_size: _int | None = ...
    ) -> _Tensor: ...
    def reshape(self, *shape: Any) -> _Tensor:
        """out = reshape(input, *shape). The elements, in their order, in another shape; -1 stands for what is left."""
    def reshape_as(self, other: _Tensor) -> _Tensor: ...
    def resize_(self, *size: Any, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def resize_as_(
        self, the_template: _Tensor, *, memory_format: _memory_format | None = ...
    ) -> _Tensor: ...
    def resolve_conj(self) -> _Tensor: ...
    def resolve_neg(self) -> _Tensor: ...
    def roll(self, shifts: Any, dims: Any = ...) -> _Tensor: ...
    def rot90(self, k: _int = ..., dims: Any = ...) -> _Tensor: ...
    def round(self, *, decimals: _int = ..., out: _Tensor | None = ...) -> _Tensor: ...
    def round_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def row_indices(self) -> Any: ...
    def rsqrt(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = 1 / sqrt(input). The reciprocal of the square root; nan for negative numbers."""
    def rsqrt_(self) -> _Tensor:
        """out = 1 / sqrt(input). The reciprocal of the square root; nan for negative numbers."""
    def rsub(self, other: Any, *, alpha: _int | _float | _complex | _bool = ...) -> _Tensor: ...
    def scatter(
        self,
        dim: _int,
        index: _Tensor,
        src: Any = ...,
        *,
        value: Any = ...,
        reduce: _str | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def scatter_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def scatter_add(
        self, dim: _int, index: _Tensor, src: _Tensor, *, out: _Tensor | None = ...
    ) -> _Tensor: ...
    def scatter_add_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def scatter_reduce(
        self,
        dim: _int,
        index: _Tensor,
        src: _Tensor,
        reduce: _str,
        *,
        include_self: _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def scatter_reduce_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def select(self, dim: _int, index: _int) -> _Tensor:
        """out = select(input, dim, index). The slice at `index` along `dim`, without that dimension."""
    def select_scatter(self, src: Any, dim: Any, index: Any, *, out: Any = ...) -> Any: ...
    def set_(
        self,
        source: Any = ...,
        storage_offset: _int = ...,
        size: Sequence[_int] | None = ...,
        stride: Sequence[_int] | None = ...,
    ) -> _Tensor: ...
    def sgn(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input / abs(input). The sign; of a complex number the number of length 1 in its direction."""
    def sgn_(self) -> _Tensor:
        """out = input / abs(input). The sign; of a complex number the number of length 1 in its direction."""
    def share_memory_(self) -> _Tensor: ...
    def short(self, memory_format: _memory_format | None = ...) -> _Tensor: ...
    def sigmoid(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = 1 / (1 + exp(-input)). The logistic function, from 0 to 1."""
    def sigmoid_(self) -> _Tensor:
        """out = 1 / (1 + exp(-input)). The logistic function, from 0 to 1."""
    def sign(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = sign(input). -1, 0 or 1: the sign."""
    def sign_(self) -> _Tensor:
        """out = sign(input). -1, 0 or 1: the sign."""
    def signbit(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = signbit(input). Whether the sign is a minus, that of -0 too."""
    def sin(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = sin(input). The sine of an angle in radians."""
    def sin_(self) -> _Tensor:
        """out = sin(input). The sine of an angle in radians."""
    def sinc(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = sinc(input). sin(pi input) / (pi input), and 1 at 0."""
    def sinc_(self) -> _Tensor:
        """out = sinc(input). sin(pi input) / (pi input), and 1 at 0."""
    def sinh(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = sinh(input). The hyperbolic sine."""
    def sinh_(self) -> _Tensor:
        """out = sinh(input). The hyperbolic sine."""
    def slice_scatter(
        self,
        src: Any,
        dim: Any = ...,
        start: Any = ...,
        end: Any = ...,
        step: Any = ...,
        *,
        out: Any = ...,
    ) -> Any: ...
    def slogdet(self, *, out: Any = ...) -> Any: ...
    def softmax(self, dim: _int, dtype: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
    def sort(
        self, dim: _int = ..., descending: _bool = ..., stable: _bool = ..., *, out: Any = ...
    ) -> _ValuesIndices:
        """values, indices = sort(input, dim, descending), values[i] = input[indices[i]]. The elements in order along `dim`, and where each of them was."""
    def sparse_dim(self) -> _int: ...
    def sparse_mask(self, mask: _SparseTensor) -> _SparseTensor: ...
    def split(self, split_size: Any, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
    def split_with_sizes(self, split_sizes: Any, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
    def sqrt(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = sqrt(input). The square root; nan for negative numbers."""
    def sqrt_(self) -> _Tensor:
        """out = sqrt(input). The square root; nan for negative numbers."""
    def square(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input * input. The square."""
    def square_(self) -> _Tensor:
        """out = input * input. The square."""
    def squeeze(self, dim: _int | Sequence[_int] | None = ...) -> _Tensor:
        """out = squeeze(input, dim). The tensor without dimensions of length 1: all, or those in `dim` that are."""
    def squeeze_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def std(
        self,
        dim: Any = ...,
        unbiased: _bool | None = ...,
        keepdim: _bool = ...,
        *,
        correction: _float | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def stft(
        self,
        n_fft: _int,
        hop_length: _int | None = ...,
        win_length: _int | None = ...,
        window: _Tensor | None = ...,
        center: _bool = ...,
        pad_mode: _str = ...,
        normalized: _bool = ...,
        onesided: _bool | None = ...,
        return_complex: _bool | None = ...,
        align_to_window: _bool | None = ...,
    ) -> _Tensor: ...
    def storage(self) -> _TypedStorage: ...
    def sub(
        self,
        other: Any,
        *older: Any,
        alpha: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def sub_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def subtract(
        self,
        other: Any,
        *older: Any,
        alpha: _int | _float | _complex | _bool = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def subtract_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def sum(
        self,
        dim: _int | Sequence[_int] | None = ...,
        keepdim: _bool = ...,
        *,
        dtype: _dtype | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor:
        """out = sum over `dim` of input. The sum of the elements."""
    def sum_to_size(self, *size: Any) -> _Tensor: ...
    def svd(self, some: _bool = ..., compute_uv: _bool = ..., *, out: Any = ...) -> Any: ...
    def svdvals(self, *, driver: _str | None = ..., out: _Tensor | None = ...) -> _Tensor: ...
    def swapaxes(self, axis0: _int, axis1: _int) -> _Tensor: ...
    def swapaxes_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def swapdims(self, dim0: _int, dim1: _int) -> _Tensor:
        """out = transpose(input, dim0, dim1). Two dimensions swapped."""
    def swapdims_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def t(self) -> _Tensor: ...
    def t_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def take(self, index: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def take_along_dim(
        self, indices: _Tensor, dim: _int | None = ..., *, out: _Tensor | None = ...
    ) -> _Tensor: ...
    def tan(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = tan(input). The tangent of an angle in radians."""
    def tan_(self) -> _Tensor:
        """out = tan(input). The tangent of an angle in radians."""
    def tanh(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = tanh(input). The hyperbolic tangent."""
    def tanh_(self) -> _Tensor:
        """out = tanh(input). The hyperbolic tangent."""
    def tensor_split(
        self,
        indices_or_sections: Any = ...,
        dim: _int = ...,
        *,
        indices: Any = ...,
        sections: _int | None = ...,
    ) -> _tuple[_Tensor, ...]: ...
    def tile(self, *repeats: Any, dims: Any = ...) -> _Tensor: ...
    def to(
        self,
        *args: Any,
        dtype: Any = ...,
        device: Any = ...,
        non_blocking: _bool = ...,
        copy: _bool = ...,
        memory_format: _memory_format | None = ...,
        other: _Tensor | None = ...,
    ) -> _Tensor: ...
    def to_dense(self, dtype: Any = ..., *, masked_grad: _bool | None = ...) -> _Tensor: ...
    def to_sparse(
        self,
        sparse_dim: _int | None = ...,
        *,
        layout: Any = ...,
        blocksize: Any = ...,
        dense_dim: _int | None = ...,
    ) -> _SparseTensor: ...
    def to_sparse_bsc(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_sparse_bsr(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_sparse_coo(
        self,
        sparse_dim: _int | None = ...,
        *,
        layout: Any = ...,
        blocksize: Any = ...,
        dense_dim: _int | None = ...,
    ) -> _SparseTensor: ...
    def to_sparse_csc(self, dense_dim: _int | None = ...) -> _CompressedTensor: ...
    def to_sparse_csr(self, dense_dim: _int | None = ...) -> _CompressedTensor: ...
    def topk(
        self, k: _int, dim: _int = ..., largest: _bool = ..., sorted: _bool = ..., *, out: Any = ...
    ) -> _ValuesIndices:
        """values, indices = topk(input, k, dim, largest, sorted). The k largest (or smallest) elements along `dim`, and where they were."""
    def trace(self) -> _Tensor: ...
    def transpose(self, dim0: _int, dim1: _int) -> _Tensor:
        """out = transpose(input, dim0, dim1). Two dimensions swapped."""
    def transpose_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def triangular_solve(
        self,
        A: _Tensor,
        upper: _bool = ...,
        transpose: _bool = ...,
        unitriangular: _bool = ...,
        *,
        out: Any = ...,
    ) -> Any: ...
    def tril(self, diagonal: _int = ..., *, out: _Tensor | None = ...) -> _Tensor:
        """out = tril(input, diagonal). The lower triangle of a matrix, up to the diagonal that `diagonal` names; 0 elsewhere."""
    def tril_(self, diagonal: _int = ...) -> _Tensor:
        """out = tril(input, diagonal). The lower triangle of a matrix, up to the diagonal that `diagonal` names; 0 elsewhere."""
    def triu(self, diagonal: _int = ..., *, out: _Tensor | None = ...) -> _Tensor:
        """out = triu(input, diagonal). The upper triangle of a matrix, from the diagonal that `diagonal` names; 0 elsewhere."""
    def triu_(self, diagonal: _int = ...) -> _Tensor:
        """out = triu(input, diagonal). The upper triangle of a matrix, from the diagonal that `diagonal` names; 0 elsewhere."""
    def true_divide(
        self, other: Any, *, rounding_mode: _str | None = ..., out: _Tensor | None = ...
    ) -> _Tensor: ...
    def true_divide_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def trunc(self, *, out: _Tensor | None = ...) -> _Tensor:
        """out = trunc(input). The number without its fraction."""
    def trunc_(self) -> _Tensor:
        """out = trunc(input). The number without its fraction."""
    def type(self, dtype: Any = ..., non_blocking: _bool = ...) -> Any: ...
    def type_as(self, other: _Tensor) -> _Tensor: ...
    def unbind(self, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
    def unflatten(self, dim: _int, sizes: Any) -> _Tensor: ...
    def unfold(self, dimension: _int, size: _int, step: _int) -> _Tensor:
        """out = unfold(input, dimension, size, step). Windows of `size` along a dimension, every `step`: a new last dimension. Read-only where they overlap."""
    def unfold_dim(self, dimension: _int, size: _int, step: _int) -> _Tensor:
        """out = unfold(input, dimension, size, step). Windows of `size` along a dimension, every `step`: a new last dimension. Read-only where they overlap."""
    def uniform_(self, a: Any = ..., b: Any = ..., *, generator: Any = ...) -> Any: ...
    def unique(
        self,
        sorted: _bool = ...,
        return_inverse: _bool = ...,
        return_counts: _bool = ...,
        dim: _int | None = ...,
    ) -> Any: ...
    def unique_consecutive(
        self, return_inverse: _bool = ..., return_counts: _bool = ..., dim: _int | None = ...
    ) -> Any: ...
    def unsafe_chunk(self, chunks: _int, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
    def unsafe_split(self, split_size: Any, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
    def unsafe_split_with_sizes(
        self, split_sizes: Any, dim: _int = ...
    ) -> _tuple[_Tensor, ...]: ...
    def unsqueeze(self, dim: _int) -> _Tensor:
        """out = unsqueeze(input, dim). The tensor with a dimension of length 1 put in at `dim`."""
    def unsqueeze_(self, *args: Any, **kwargs: Any) -> _Tensor: ...
    def untyped_storage(self) -> _UntypedStorage: ...
    def values(self) -> Any: ...
    def var(
        self,
        dim: Any = ...,
        unbiased: _bool | None = ...,
        keepdim: _bool = ...,
        *,
        correction: _float | None = ...,
        out: _Tensor | None = ...,
    ) -> _Tensor: ...
    def vdot(self, other: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
    def vecdot(self, y: _Tensor, *, dim: _int = ..., out: _Tensor | None = ...) -> _Tensor: ...
    def view(self, *shape: Any, size: Any = ..., dtype: _dtype | None = ...) -> _Tensor: ...
    def view_as(self, other: _Tensor) -> _Tensor: ...
    def view_as_complex(self) -> _Tensor:
        """out = view_as_complex(input). Pairs of real and imaginary part as a complex tensor."""
    def view_as_real(self) -> _Tensor:
        """out = view_as_real(input). A complex tensor as pairs of real and imaginary part."""
    def vsplit(
        self, indices_or_sections: Any = ..., *, indices: Any = ..., sections: _int | None = ...
    ) -> _tuple[_Tensor, ...]: ...
    def where(self, condition: _Tensor, other: Any) -> _Tensor: ...
    def xlogy(self, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor:
        """out = input * log(other). input * log(other), and 0 where `input` is 0."""
    def xlogy_(self, other: _Operand) -> _Tensor:
        """out = input * log(other). input * log(other), and 0 where `input` is 0."""
    def zero_(self) -> _Tensor: ...
