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
from typing import Any, Literal as _Literal, NamedTuple as _NamedTuple, TypeAlias as _TypeAlias, overload as _overload

import numpy as _np

from rushlight.core.tensor import Tensor as _Tensor
from rushlight.base.device import Layout as _Layout
from rushlight.base.dtypes import dtype as _dtype
from rushlight.base.memory_format import memory_format as _memory_format
from rushlight.random.generator import Generator as _Generator
class _HistBin_edges(_NamedTuple):
    hist: _Tensor
    bin_edges: _Tensor

class _MantissaExponent(_NamedTuple):
    mantissa: _Tensor
    exponent: _Tensor

class _MinMax(_NamedTuple):
    min: _Tensor
    max: _Tensor

class _PLU(_NamedTuple):
    P: _Tensor
    L: _Tensor
    U: _Tensor

class _SolutionCloned_coefficient(_NamedTuple):
    solution: _Tensor
    cloned_coefficient: _Tensor

class _USV(_NamedTuple):
    U: _Tensor
    S: _Tensor
    V: _Tensor

class _ValuesIndices(_NamedTuple):
    values: _Tensor
    indices: _Tensor

_Number: _TypeAlias = _bool | _int | _float | _complex
_Operand: _TypeAlias = _Tensor | _Number | _np.ndarray

BFloat16Storage: _type[Any]
BFloat16Tensor: _type[Any]
Bits16Storage: _type[Any]
Bits1x8Storage: _type[Any]
Bits2x4Storage: _type[Any]
Bits4x2Storage: _type[Any]
Bits8Storage: _type[Any]
BoolStorage: _type[Any]
BoolTensor: _type[Any]
ByteStorage: _type[Any]
ByteTensor: _type[Any]
CharStorage: _type[Any]
CharTensor: _type[Any]
ComplexDoubleStorage: _type[Any]
ComplexFloatStorage: _type[Any]
ComplexHalfStorage: _type[Any]
from rushlight.types import DeviceObjType as DeviceObjType
DoubleStorage: _type[Any]
DoubleTensor: _type[Any]
from rushlight.compat.names.cuda import Event as Event
Float4_e2m1fn_x2Storage: _type[Any]
Float8_e4m3fnStorage: _type[Any]
Float8_e4m3fnuzStorage: _type[Any]
Float8_e5m2Storage: _type[Any]
Float8_e5m2fnuzStorage: _type[Any]
Float8_e8m0fnuStorage: _type[Any]
FloatStorage: _type[Any]
FloatTensor: _type[Any]
from rushlight.base.futures import Future as Future
from rushlight.random.generator import Generator as Generator
from rushlight.amp.grad_scaler import GradScaler as GradScaler
HalfStorage: _type[Any]
HalfTensor: _type[Any]
Int1Storage: _type[Any]
Int2Storage: _type[Any]
Int3Storage: _type[Any]
Int4Storage: _type[Any]
Int5Storage: _type[Any]
Int6Storage: _type[Any]
Int7Storage: _type[Any]
IntStorage: _type[Any]
IntTensor: _type[Any]
LongStorage: _type[Any]
LongTensor: _type[Any]
OutOfMemoryError: _type[Any]
from rushlight.compat.names._C import PyTorchFileReader as PyTorchFileReader
QInt32Storage: _type[Any]
QInt8Storage: _type[Any]
QUInt2x4Storage: _type[Any]
QUInt4x2Storage: _type[Any]
QUInt8Storage: _type[Any]
from rushlight.jit import ScriptFunction as ScriptFunction
from rushlight.jit import ScriptModule as ScriptModule
ShortStorage: _type[Any]
ShortTensor: _type[Any]
from rushlight.base.size import Size as Size
from rushlight.compat.names.cuda import Stream as Stream
from rushlight.types import SymBool as SymBool
from rushlight.types import SymFloat as SymFloat
from rushlight.types import SymInt as SymInt
from rushlight.autograd.custom_ops import Tag as Tag
from rushlight.core.tensor import Tensor as Tensor
from rushlight.compat.names._C import TensorType as TensorType
from rushlight.ops.tensor.storage_classes import TypedStorage as TypedStorage
from rushlight.ops.tensor.storage_classes import UntypedStorage as UntypedStorage
__version__: _str
def abs(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = abs(input). The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."""
def abs_(input: _Tensor) -> _Tensor: """out = abs(input). The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."""
def absolute(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = abs(input). The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."""
from rushlight.compat.names import accelerator as accelerator
def acos(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
def acos_(input: _Tensor) -> _Tensor: """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
def acosh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
def acosh_(input: _Tensor) -> _Tensor: """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
def adaptive_avg_pool1d(input: _Tensor, output_size: Any) -> _Tensor: ...
@_overload
def adaptive_max_pool1d(input: _Tensor, output_size: Any, return_indices: _Literal[False] = ...) -> _Tensor: ...
@_overload
def adaptive_max_pool1d(input: _Tensor, output_size: Any, *, return_indices: _Literal[True]) -> _tuple[_Tensor, _Tensor]: ...
@_overload
def adaptive_max_pool1d(input: _Tensor, output_size: Any, return_indices: _bool = ...) -> Any: ...
from rushlight.ops.math.arithmetic import add as add
def addbmm(input: _Tensor, batch1: _Tensor, batch2: _Tensor, *, beta: _int | _float | _complex | _bool = ..., alpha: _int | _float | _complex | _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def addcdiv(input: _Tensor, tensor1: _Tensor, tensor2: _Tensor, *, value: _int | _float | _complex | _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def addcmul(input: _Tensor, tensor1: _Tensor, tensor2: _Tensor, *, value: _int | _float | _complex | _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def addmm(input: _Tensor, mat1: _Tensor, mat2: _Tensor, *, beta: _int | _float | _complex | _bool = ..., alpha: _int | _float | _complex | _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def addmv(input: _Tensor, mat: _Tensor, vec: _Tensor, *, beta: _int | _float | _complex | _bool = ..., alpha: _int | _float | _complex | _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def addmv_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
def addr(input: _Tensor, vec1: _Tensor, vec2: _Tensor, *, beta: _int | _float | _complex | _bool = ..., alpha: _int | _float | _complex | _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.shape.flip_roll import adjoint as adjoint
from rushlight.nn.functional.aten_functions import affine_grid_generator as affine_grid_generator
def alias_copy(input: Any, *, out: Any = ...) -> Any: ...
def all(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = whether all of input over `dim`. Whether all elements are true; numbers are true unless 0."""
def allclose(input: _Tensor, other: _Tensor, rtol: _float = ..., atol: _float = ..., equal_nan: _bool = ...) -> _bool: ...
def alpha_dropout(input: _Tensor, p: _float = ..., training: _bool = ..., inplace: _bool = ...) -> _Tensor: ...
from rushlight.nn.functional.aten_functions import alpha_dropout_ as alpha_dropout_
def amax(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = largest over `dim` of input. The largest element; nan if one is nan. Ties share the gradient."""
def amin(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = smallest over `dim` of input. The smallest element; nan if one is nan. Ties share the gradient."""
def aminmax(input: _Tensor, *, dim: _int | None = ..., keepdim: _bool = ..., out: Any = ...) -> _MinMax: ...
from rushlight import amp as amp
def angle(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = angle(input). The angle of a complex number; 0 or pi for a real one."""
def any(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = whether any of input over `dim`. Whether some element is true; numbers are true unless 0."""
from rushlight.compat.names import ao as ao
def arange(start: Any = ..., end: Any = ..., step: Any = ..., *, out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def arccos(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
def arccos_(input: _Tensor) -> _Tensor: """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
def arccosh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
def arccosh_(input: _Tensor) -> _Tensor: """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
def arcsin(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
def arcsin_(input: _Tensor) -> _Tensor: """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
def arcsinh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = asinh(input). The inverse of sinh."""
def arcsinh_(input: _Tensor) -> _Tensor: """out = asinh(input). The inverse of sinh."""
def arctan(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
def arctan2(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = atan2(input, other). The angle, from -pi to pi, of the point with height `input` and width `other`."""
def arctan_(input: _Tensor) -> _Tensor: """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
def arctanh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
def arctanh_(input: _Tensor) -> _Tensor: """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
from rushlight.creation.process_settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
def argmax(input: _Tensor, dim: _int | None = ..., keepdim: _bool = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = argmax(input, dim, keepdim). The index of the largest element, the first of equal ones; without `dim` among all elements."""
def argmin(input: _Tensor, dim: _int | None = ..., keepdim: _bool = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = argmin(input, dim, keepdim). The index of the smallest element, the first of equal ones; without `dim` among all elements."""
def argsort(input: _Tensor, dim: _int = ..., descending: _bool = ..., stable: _bool = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.index.masks import argwhere as argwhere
from rushlight.ops.shape.as_strided import as_strided as as_strided
def as_strided_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
def as_strided_copy(input: Any, size: Any, stride: Any, storage_offset: Any = ..., *, out: Any = ...) -> Any: ...
def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any, storage_offset: Any = ..., *, out: Any = ...) -> Any: ...
def as_tensor(data: Any, dtype: _dtype | None = ..., device: Any = ...) -> _Tensor: ...
def asarray(obj: Any, *, dtype: _dtype | None = ..., device: Any = ..., copy: _bool | None = ..., requires_grad: _bool | None = ...) -> _Tensor: ...
def asin(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
def asin_(input: _Tensor) -> _Tensor: """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
def asinh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = asinh(input). The inverse of sinh."""
def asinh_(input: _Tensor) -> _Tensor: """out = asinh(input). The inverse of sinh."""
def atan(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
def atan2(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = atan2(input, other). The angle, from -pi to pi, of the point with height `input` and width `other`."""
def atan_(input: _Tensor) -> _Tensor: """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
def atanh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
def atanh_(input: _Tensor) -> _Tensor: """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
def atleast_1d(*tensors: Any) -> Any: ...
def atleast_2d(*tensors: Any) -> Any: ...
def atleast_3d(*tensors: Any) -> Any: ...
from rushlight.amp.autocast_mode import autocast as autocast
from rushlight import autograd as autograd
def avg_pool1d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: _bool = ..., count_include_pad: _bool = ..., divisor_override: _int | None = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight import backends as backends
def baddbmm(input: _Tensor, batch1: _Tensor, batch2: _Tensor, *, beta: _int | _float | _complex | _bool = ..., alpha: _int | _float | _complex | _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def bartlett_window(window_length: _int, periodic: _bool = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
from rushlight.nn.functional.aten_positional import batch_norm as batch_norm
def bernoulli(input: _Tensor, p: _float | None = ..., *, generator: _Generator | None = ..., out: _Tensor | None = ...) -> _Tensor: ...
bfloat16: _dtype
from rushlight.nn.functional.linear import bilinear as bilinear
def binary_cross_entropy_with_logits(*args: Any, **kwargs: Any) -> _Tensor: ...
def bincount(input: _Tensor, weights: _Tensor | None = ..., minlength: _int = ...) -> _Tensor: ...
from rushlight.ops.tensor.random_tensors import binomial as binomial
bits16: _dtype
bits1x8: _dtype
bits2x4: _dtype
bits4x2: _dtype
bits8: _dtype
def bitwise_and(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input & other. The bits that both have; for bool: and."""
def bitwise_left_shift(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = bitwise_left_shift(input, other). The bits moved up by `other` places."""
def bitwise_not(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = ~input. The other bits; for bool: not."""
def bitwise_or(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input | other. The bits that one has; for bool: or."""
def bitwise_right_shift(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = bitwise_right_shift(input, other). The bits moved down by `other` places."""
def bitwise_xor(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input ^ other. The bits that just one has; for bool: xor."""
def blackman_window(window_length: _int, periodic: _bool = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
from rushlight.ops.shape.join import block_diag as block_diag
from rushlight.ops.linalg.matmul_api import bmm as bmm
bool: _dtype
from rushlight.ops.shape.flip_roll import broadcast_shapes as broadcast_shapes
from rushlight.ops.shape.view_functions import broadcast_tensors as broadcast_tensors
from rushlight.ops.shape.view_functions import broadcast_to as broadcast_to
def bucketize(input: Any, boundaries: _Tensor, *, out_int32: _bool = ..., right: _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.base.dtypes import can_cast as can_cast
from rushlight.ops.shape.join import cartesian_prod as cartesian_prod
def cat(tensors: Sequence[_Tensor], dim: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def cdist(x1: _Tensor, x2: _Tensor, p: _float = ..., compute_mode: _str | None = ...) -> _Tensor: ...
cdouble: _dtype
def ceil(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = ceil(input). The smallest whole number that is not smaller."""
def ceil_(input: _Tensor) -> _Tensor: """out = ceil(input). The smallest whole number that is not smaller."""
def celu(input: _Tensor, alpha: _float = ..., inplace: _bool = ...) -> _Tensor: ...
def celu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
cfloat: _dtype
from rushlight.ops.linalg.products_api import chain_matmul as chain_matmul
chalf: _dtype
from rushlight.nn.functional.resize import channel_shuffle as channel_shuffle
channels_last: _memory_format
channels_last_3d: _memory_format
from rushlight.ops.linalg.decompose_api import cholesky as cholesky
from rushlight.ops.linalg.solve_api import cholesky_inverse as cholesky_inverse
from rushlight.ops.linalg.solve_api import cholesky_solve as cholesky_solve
def chunk(input: _Tensor, chunks: _int, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
def clamp(input: _Tensor, min: Any = ..., max: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.math.arithmetic import clamp_ as clamp_
def clamp_max(input: _Tensor, max: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = minimum(max, input). The number, or `max` where it is larger."""
def clamp_max_(input: _Tensor, max: _Operand) -> _Tensor: """out = minimum(max, input). The number, or `max` where it is larger."""
def clamp_min(input: _Tensor, min: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = maximum(min, input). The number, or `min` where it is smaller."""
def clamp_min_(input: _Tensor, min: _Operand) -> _Tensor: """out = maximum(min, input). The number, or `min` where it is smaller."""
from rushlight.compat.names import classes as classes
from rushlight.amp.legacy_api import clear_autocast_cache as clear_autocast_cache
def clip(input: _Tensor, min: Any = ..., max: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.math.arithmetic import clamp_ as _clamp_
clip_ = _clamp_
from rushlight.ops.tensor.casts import clone as clone
def column_stack(tensors: Sequence[_Tensor], *, out: _Tensor | None = ...) -> _Tensor: ...
def combinations(input: _Tensor, r: _int = ..., with_replacement: _bool = ...) -> _Tensor: ...
from rushlight.compile import compile as compile
from rushlight import compiler as compiler
from rushlight.ops.math.complex import complex_of as _complex_of
complex = _complex_of
complex128: _dtype
complex32: _dtype
complex64: _dtype
def concat(tensors: Sequence[_Tensor], dim: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def concatenate(tensors: Sequence[_Tensor], dim: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.tensor.control_flow import cond as cond
from rushlight.ops.math.complex import conj as conj
from rushlight.ops.math.complex import conj_physical as conj_physical
def conj_physical_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
from rushlight.ops.shape.flip_roll import constant_pad_nd as constant_pad_nd
contiguous_format: _memory_format
from rushlight.viz.contribution_shares import contributions as contributions
def conv1d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: _int = ...) -> _Tensor: ...
def conv2d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: _int = ...) -> _Tensor: ...
def conv3d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: _int = ...) -> _Tensor: ...
from rushlight.nn.functional.conv import conv_tbc as conv_tbc
def conv_transpose1d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: _int = ..., dilation: Any = ...) -> _Tensor: ...
def conv_transpose2d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: _int = ..., dilation: Any = ...) -> _Tensor: ...
def conv_transpose3d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: _int = ..., dilation: Any = ...) -> _Tensor: ...
from rushlight.nn.functional.aten_functions import convolution as convolution
def copysign(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = copysign(input, other). The size of `input` with the sign of `other`."""
from rushlight.ops.reduce.covariance import corrcoef as corrcoef
def cos(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = cos(input). The cosine of an angle in radians."""
def cos_(input: _Tensor) -> _Tensor: """out = cos(input). The cosine of an angle in radians."""
def cosh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = cosh(input). The hyperbolic cosine."""
def cosh_(input: _Tensor) -> _Tensor: """out = cosh(input). The hyperbolic cosine."""
def cosine_embedding_loss(*args: Any, **kwargs: Any) -> _Tensor: ...
def cosine_similarity(x1: _Tensor, x2: _Tensor, dim: _int = ..., eps: _float = ...) -> _Tensor: ...
def count_nonzero(input: _Tensor, dim: Any = ...) -> _Tensor: ...
def cov(input: _Tensor, *, correction: _int = ..., fweights: _Tensor | None = ..., aweights: _Tensor | None = ...) -> _Tensor: ...
from rushlight.compat.names import cpu as cpu
def cross(input: _Tensor, other: _Tensor, dim: _int | None = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def ctc_loss(*args: Any, **kwargs: Any) -> _Tensor: ...
from rushlight.compat.names import cuda as cuda
def cummax(input: _Tensor, dim: _int, *, out: Any = ...) -> _ValuesIndices: """out = cummax(input, dim)"""
def cummin(input: _Tensor, dim: _int, *, out: Any = ...) -> _ValuesIndices: """out = cummin(input, dim)"""
def cumprod(input: _Tensor, dim: _int, *, dtype: Any = ..., out: _Tensor | None = ...) -> _Tensor: ...
def cumsum(input: _Tensor, dim: _int, *, dtype: Any = ..., out: _Tensor | None = ...) -> _Tensor: ...
def cumulative_trapezoid(y: _Tensor, x: _Tensor | None = ..., *, dx: Any = ..., dim: _int = ...) -> _Tensor: ...
default_generator: _Generator
def deg2rad(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input * (pi / 180). An angle in degrees, in radians."""
def deg2rad_(input: _Tensor) -> _Tensor: """out = input * (pi / 180). An angle in degrees, in radians."""
def det(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.tensor.casts import detach as detach
from rushlight.ops.tensor.casts import detach_ as detach_
def detach_copy(input: Any, *, out: Any = ...) -> Any: ...
from rushlight.base.device import device as device
from rushlight.ops.shape.diagonals import diag as diag
def diag_embed(input: _Tensor, offset: _int = ..., dim1: _int = ..., dim2: _int = ...) -> _Tensor: ...
from rushlight.ops.shape.diagonals import diagflat as diagflat
def diagonal(input: _Tensor, offset: _int = ..., dim1: _int = ..., dim2: _int = ...) -> _Tensor: """out = diagonal(input, offset, dim1, dim2). The elements whose indices along `dim2` are `offset` more than along `dim1`; they come last."""
def diagonal_copy(input: Any, offset: Any = ..., dim1: Any = ..., dim2: Any = ..., *, out: Any = ...) -> Any: ...
def diagonal_scatter(input: Any, src: Any, offset: Any = ..., dim1: Any = ..., dim2: Any = ..., *, out: Any = ...) -> Any: ...
def diff(input: _Tensor, n: _int = ..., dim: _int = ..., prepend: _Tensor | None = ..., append: _Tensor | None = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def digamma(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = digamma(input). The derivative of lgamma. Needs SciPy."""
from rushlight.ops.reduce.norms_api import dist as dist
from rushlight import distributed as distributed
from rushlight import distributions as distributions
from rushlight.ops.math.arithmetic import div as div
from rushlight.ops.math.arithmetic import div as _div
divide = _div
from rushlight import docs as docs
def dot(input: _Tensor, tensor: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sum over i of input_i * tensor_i. The sum of the products of two vectors' elements."""
double: _dtype
def dropout(input: _Tensor, p: _float = ..., training: _bool = ..., inplace: _bool = ...) -> _Tensor: ...
from rushlight.nn.functional.aten_functions import dropout_ as dropout_
from rushlight.sparse.products import product as _product
dsmm = _product
def dsplit(input: _Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: _int | None = ...) -> _tuple[_Tensor, ...]: ...
def dstack(tensors: Sequence[_Tensor], *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.base.dtypes import dtype as dtype
e: _float
from rushlight.ops.linalg.einsum import einsum as einsum
from rushlight.nn.functional.aten_positional import embedding as embedding
from rushlight.nn.functional.aten_functions import embedding_bag as embedding_bag
from rushlight.nn.functional.aten_functions import embedding_renorm_ as embedding_renorm_
def empty(*shape: Any, size: Any = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ..., memory_format: Any = ...) -> _Tensor: ...
def empty_like(input: _Tensor, *, dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., memory_format: _memory_format = ..., pin_memory: _bool = ...) -> _Tensor: ...
def empty_permuted(size: Any, physical_layout: Any, *, dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def empty_strided(size: Any, stride: Any, *, dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
from rushlight.core.mode import enable_grad as enable_grad
def eq(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input == other. Whether they are equal."""
from rushlight.ops.reduce.reduce_api import equal as equal
def erf(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erf(input). The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `input`. Needs SciPy."""
def erf_(input: _Tensor) -> _Tensor: """out = erf(input). The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `input`. Needs SciPy."""
def erfc(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erfc(input). 1 - erf(input), exact also where that is tiny. Needs SciPy."""
def erfc_(input: _Tensor) -> _Tensor: """out = erfc(input). 1 - erf(input), exact also where that is tiny. Needs SciPy."""
def erfinv(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erfinv(input). The inverse of erf; inf and -inf at 1 and -1, nan outside. Needs SciPy."""
def exp(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = exp(input). e to the power of the number."""
def exp2(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = exp2(input). 2 to the power of the number."""
def exp2_(input: _Tensor) -> _Tensor: """out = exp2(input). 2 to the power of the number."""
def exp_(input: _Tensor) -> _Tensor: """out = exp(input). e to the power of the number."""
def expand_copy(input: Any, size: Any, *, implicit: Any = ..., out: Any = ...) -> Any: ...
from rushlight.viz.chain_rule import explain as explain
def expm1(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = exp(input) - 1. exp(input) - 1, exact also near 0."""
def expm1_(input: _Tensor) -> _Tensor: """out = exp(input) - 1. exp(input) - 1, exact also near 0."""
from rushlight.compat.names import export as export
def eye(n: _int, m: _int | None = ..., *, out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ...) -> _Tensor: ...
def feature_alpha_dropout(input: _Tensor, p: _float = ..., training: _bool = ..., inplace: _bool = ...) -> _Tensor: ...
from rushlight.nn.functional.aten_functions import feature_alpha_dropout_ as feature_alpha_dropout_
from rushlight.nn.functional.aten_functions import feature_dropout as feature_dropout
from rushlight.nn.functional.aten_functions import feature_dropout_ as feature_dropout_
from rushlight import fft as fft
from rushlight.ops.tensor.casts import fill as fill
from rushlight.ops.tensor.casts import fill_ as fill_
from rushlight.base.dtypes import finfo as finfo
def fix(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = trunc(input). The number without its fraction."""
def fix_(input: _Tensor) -> _Tensor: """out = trunc(input). The number without its fraction."""
def flatten(input: _Tensor, start_dim: _int = ..., end_dim: _int = ...) -> _Tensor: """out = flatten(input, start_dim, end_dim). The dimensions from `start_dim` to `end_dim` as one."""
def flip(input: _Tensor, *dims: Any, out: _Tensor | None = ...) -> _Tensor: """out = flip(input, *dims). The order along `dims` turned around; a copy."""
from rushlight.ops.shape.flip_roll import fliplr as fliplr
from rushlight.ops.shape.flip_roll import flipud as flipud
float: _dtype
float16: _dtype
float32: _dtype
float4_e2m1fn_x2: _dtype
float64: _dtype
float8_e4m3fn: _dtype
float8_e4m3fnuz: _dtype
float8_e5m2: _dtype
float8_e5m2fnuz: _dtype
float8_e8m0fnu: _dtype
from rushlight.ops.math.rare_functions import float_power as float_power
def floor(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = floor(input). The largest whole number that is not larger."""
def floor_(input: _Tensor) -> _Tensor: """out = floor(input). The largest whole number that is not larger."""
def floor_divide(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = floor(input / other). The quotient rounded down, as Python's //."""
def fmax(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = fmax(input, other). The larger one; the number if the other is nan."""
def fmin(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = fmin(input, other). The smaller one; the number if the other is nan."""
def fmod(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input - other * trunc(input / other). What is left of `input` after division by `other`, with the sign of `input`, as C's fmod."""
def frac(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input - trunc(input). The fraction, with the number's sign."""
def frac_(input: _Tensor) -> _Tensor: """out = input - trunc(input). The fraction, with the number's sign."""
def frexp(input: _Tensor, *, out: Any = ...) -> _MantissaExponent: """out = frexp(input). m and e with input = m 2^e and 1/2 <= |m| < 1."""
from rushlight.nn.functional.aten_functions import frobenius_norm as frobenius_norm
def from_dlpack(other: Any, *, device: Any = ..., copy: _bool | None = ...) -> _Tensor: ...
from rushlight.ops.tensor.storage import from_file as from_file
from rushlight.creation.factories import from_numpy as from_numpy
def frombuffer(buffer: Any, *, dtype: _dtype, count: _int = ..., offset: _int = ..., requires_grad: _bool = ...) -> _Tensor: ...
def full(size: Any, fill_value: Any, *, out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def full_like(input: _Tensor, fill_value: Any, *, dtype: _dtype | None = ..., device: Any = ..., requires_grad: _bool = ..., memory_format: _memory_format = ..., layout: Any = ..., pin_memory: _bool = ...) -> _Tensor: ...
from rushlight import func as func
from rushlight import functional as functional
from rushlight import futures as futures
from rushlight import fx as fx
def gather(input: _Tensor, dim: _int, index: _Tensor, *, sparse_grad: _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def gcd(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = gcd(input, other). The greatest whole number that divides both; of 0 and 0 it is 0."""
def gcd_(input: _Tensor, other: _Operand) -> _Tensor: """out = gcd(input, other). The greatest whole number that divides both; of 0 and 0 it is 0."""
def ge(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input >= other. Whether `input` is greater or equal."""
from rushlight.ops.linalg.decompose_api import geqrf as geqrf
from rushlight.ops.linalg.matmul_api import outer as _outer
ger = _outer
from rushlight.amp.legacy_api import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from rushlight.amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from rushlight.amp.legacy_api import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from rushlight.creation.process_settings import get_default_device as get_default_device
from rushlight.base.dtypes import get_default_dtype as get_default_dtype
from rushlight.creation.process_settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from rushlight.ops.tensor.predicates import get_device as get_device
from rushlight.backends import get_device_module as get_device_module
from rushlight.backends import get_float32_matmul_precision as get_float32_matmul_precision
from rushlight.base.threads import get_num_interop_threads as get_num_interop_threads
from rushlight.base.threads import get_num_threads as get_num_threads
from rushlight.ops.tensor.random_tensors import get_rng_state as get_rng_state
def gradient(input: _Tensor, *, spacing: Any = ..., dim: Any = ..., edge_order: _int = ...) -> _tuple[_Tensor, ...]: ...
def greater(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input > other. Whether `input` is greater."""
def greater_equal(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input >= other. Whether `input` is greater or equal."""
from rushlight.nn.functional.grid import grid_sampler as grid_sampler
from rushlight.nn.functional.grid import grid_sampler_2d as grid_sampler_2d
from rushlight.nn.functional.grid import grid_sampler_3d as grid_sampler_3d
def group_norm(input: _Tensor, num_groups: _int, weight: _Tensor | None = ..., bias: _Tensor | None = ..., eps: _float = ...) -> _Tensor: ...
def gru(input: _Tensor, *args: Any) -> _tuple[_Tensor, ...]: ...
from rushlight.nn.functional.recurrent import gru_cell as gru_cell
def gt(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input > other. Whether `input` is greater."""
half: _dtype
def hamming_window(window_length: _int, periodic: _bool = ..., alpha: _float = ..., beta: _float = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def hann_window(window_length: _int, periodic: _bool = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
from rushlight.nn.functional.activation import hardshrink as hardshrink
has_cuda: _bool
has_cudnn: _bool
has_lapack: _bool
has_mkl: _bool
has_mps: _bool
has_openmp: _bool
has_spectral: _bool
def hash_tensor(input: _Tensor, dim: Any = ..., *, keepdim: _bool = ..., mode: _int = ..., out: _Tensor | None = ...) -> _Tensor: ...
def heaviside(input: _Tensor, values: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = where(input == 0, values, input > 0). The step from 0 to 1 at 0, where it is `values`."""
def hinge_embedding_loss(*args: Any, **kwargs: Any) -> _Tensor: ...
def histc(input: _Tensor, bins: _int = ..., min: _float = ..., max: _float = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def histogram(input: _Tensor, bins: Any = ..., *, range: Any = ..., weight: _Tensor | None = ..., density: _bool = ..., out: Any = ...) -> _HistBin_edges: ...
def histogramdd(input: _Tensor, bins: Any, *, range: Any = ..., weight: _Tensor | None = ..., density: _bool = ...) -> Any: ...
def hsplit(input: _Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: _int | None = ...) -> _tuple[_Tensor, ...]: ...
def hstack(tensors: Sequence[_Tensor], *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight import hub as hub
def hypot(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = sqrt(input * input + other * other). The length of the hypotenuse of a right triangle with these legs."""
def i0(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = i0(input). The modified Bessel function of the first kind of order 0. Needs SciPy."""
def i0_(input: _Tensor) -> _Tensor: """out = i0(input). The modified Bessel function of the first kind of order 0. Needs SciPy."""
def igamma(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = igamma(input, other)"""
def igammac(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = igammac(input, other)"""
from rushlight.base.dtypes import iinfo as iinfo
from rushlight.ops.math.complex import imag as imag
def index_add(input: _Tensor, dim: _int, index: _Tensor, source: _Tensor, *, alpha: Any = ..., out: _Tensor | None = ...) -> _Tensor: ...
def index_copy(input: _Tensor, dim: _int, index: _Tensor, source: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
def index_fill(input: _Tensor, dim: _int, index: _Tensor, value: Any) -> _Tensor: ...
from rushlight.ops.index.gather_scatter import index_put as index_put
def index_put_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
def index_reduce(input: _Tensor, dim: _int, index: _Tensor, source: _Tensor, reduce: _str, *, include_self: _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def index_select(input: _Tensor, dim: _int, index: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
inf: _float
from rushlight.core.mode import inference_mode as inference_mode
from rushlight.random import initial_seed as initial_seed
from rushlight.ops.linalg.products_api import inner as inner
from rushlight.nn.functional.aten_positional import instance_norm as instance_norm
int: _dtype
int1: _dtype
int16: _dtype
int2: _dtype
int3: _dtype
int32: _dtype
int4: _dtype
int5: _dtype
int6: _dtype
int64: _dtype
int7: _dtype
int8: _dtype
def inverse(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.creation.process_settings import is_anomaly_enabled as is_anomaly_enabled
from rushlight.amp.autocast_mode import is_autocast_cache_enabled as is_autocast_cache_enabled
from rushlight.amp.autocast_mode import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from rushlight.amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from rushlight.creation.type_queries import is_complex as is_complex
from rushlight.ops.tensor.predicates import is_conj as is_conj
from rushlight.creation.process_settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from rushlight.ops.tensor.predicates import is_distributed as is_distributed
from rushlight.creation.type_queries import is_floating_point as is_floating_point
from rushlight.core.mode import is_grad_enabled as is_grad_enabled
from rushlight.ops.tensor.predicates import is_inference as is_inference
from rushlight.core.mode import is_inference_mode_enabled as is_inference_mode_enabled
from rushlight.ops.tensor.predicates import is_neg as is_neg
from rushlight.ops.tensor.predicates import is_nonzero as is_nonzero
from rushlight.ops.tensor.predicates import is_same_size as is_same_size
from rushlight.ops.tensor.predicates import is_signed as is_signed
from rushlight.ops.tensor.storage import is_storage as is_storage
from rushlight.creation.type_queries import is_tensor as is_tensor
from rushlight.creation.process_settings import is_warn_always_enabled as is_warn_always_enabled
def isclose(input: _Tensor, other: _Tensor, rtol: _float = ..., atol: _float = ..., equal_nan: _bool = ...) -> _Tensor: ...
def isfinite(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = isfinite(input). Whether it is neither nan nor inf nor -inf."""
def isin(elements: Any, test_elements: Any, *, assume_unique: _bool = ..., invert: _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def isinf(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = isinf(input). Whether it is inf or -inf."""
def isnan(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input != input. Whether it is nan."""
def isneginf(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = isneginf(input). Whether it is -inf."""
def isposinf(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = isposinf(input). Whether it is inf."""
def isreal(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = isreal(input). Whether the imaginary part is 0."""
def istft(input: _Tensor, n_fft: _int, hop_length: _int | None = ..., win_length: _int | None = ..., window: _Tensor | None = ..., center: _bool = ..., normalized: _bool = ..., onesided: _bool | None = ..., length: _int | None = ..., return_complex: _bool = ...) -> _Tensor: ...
jagged: _Layout
from rushlight import jit as jit
def kaiser_window(window_length: _int, periodic: _bool = ..., beta: _float = ..., *, dtype: Any = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def kl_div(*args: Any, **kwargs: Any) -> _Tensor: ...
from rushlight.ops.linalg.products_api import kron as kron
def kthvalue(input: _Tensor, k: _int, dim: _int = ..., keepdim: _bool = ..., *, out: Any = ...) -> _ValuesIndices: """out = kthvalue(input, k, dim, keepdim). The k-th smallest element along `dim`, k from 1 on, and where it stands."""
def layer_norm(input: _Tensor, normalized_shape: Sequence[_int], weight: _Tensor | None = ..., bias: _Tensor | None = ..., eps: _float = ...) -> _Tensor: ...
from rushlight.base.device import Layout as _Layout
layout = _Layout
def lcm(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = lcm(input, other). The least whole number that both divide."""
def lcm_(input: _Tensor, other: _Operand) -> _Tensor: """out = lcm(input, other). The least whole number that both divide."""
from rushlight.ops.math.rare_functions import ldexp as ldexp
def ldexp_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
def le(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input <= other. Whether `input` is less or equal."""
def lerp(input: _Tensor, end: _Operand, weight: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input + weight * (end - input). The point at `weight` on the way from `input` (0) to `end` (1)."""
def less(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input < other. Whether `input` is less."""
def less_equal(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input <= other. Whether `input` is less or equal."""
def lgamma(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = lgamma(input). The logarithm of the absolute value of the gamma function. Needs SciPy."""
from rushlight import library as library
from rushlight import linalg as linalg
def linspace(start: Any, end: Any, steps: _int, *, out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ...) -> _Tensor: ...
from rushlight.serialization import load as load
from rushlight.ops.linalg.low_rank import lobpcg as lobpcg
def log(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log(input). The natural logarithm; -inf for 0, nan for negative numbers."""
def log10(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log10(input). The logarithm to base 10; -inf for 0, nan for negative numbers."""
def log10_(input: _Tensor) -> _Tensor: """out = log10(input). The logarithm to base 10; -inf for 0, nan for negative numbers."""
def log1p(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log(1 + input). log(1 + input), exact also near 0."""
def log1p_(input: _Tensor) -> _Tensor: """out = log(1 + input). log(1 + input), exact also near 0."""
def log2(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log2(input). The logarithm to base 2; -inf for 0, nan for negative numbers."""
def log2_(input: _Tensor) -> _Tensor: """out = log2(input). The logarithm to base 2; -inf for 0, nan for negative numbers."""
def log_(input: _Tensor) -> _Tensor: """out = log(input). The natural logarithm; -inf for 0, nan for negative numbers."""
def log_softmax(input: _Tensor, dim: _int, dtype: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def logaddexp(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = log(exp(input) + exp(other)). The logarithm of a sum of exponentials; nothing overflows."""
def logaddexp2(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = log2(exp2(input) + exp2(other)). The same to base 2; nothing overflows."""
def logcumsumexp(input: _Tensor, dim: _int, *, out: _Tensor | None = ...) -> _Tensor: """out = logcumsumexp(input, dim). log(exp(x_0) + ... + exp(x_i)), never overflowing; in float64, as torch does: the error would grow with every step."""
from rushlight.ops.linalg.solve_api import logdet as logdet
def logical_and(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = logical_and(input, other). Whether both are true; numbers are true unless 0."""
def logical_not(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = logical_not(input). Whether it is false, or 0."""
def logical_or(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = logical_or(input, other). Whether one is true; numbers are true unless 0."""
def logical_xor(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = logical_xor(input, other). Whether just one is true; numbers are true unless 0."""
def logit(input: _Tensor, eps: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = logit(input, eps)"""
def logit_(input: _Tensor, eps: Any = ...) -> _Tensor: """out = logit(input, eps)"""
def logspace(start: Any, end: Any, steps: _int, base: _float = ..., *, out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ...) -> _Tensor: ...
def logsumexp(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = log(sum over `dim` of exp(input)). The logarithm of the sum of the exponentials; nothing overflows."""
long: _dtype
def lstm(input: _Tensor, *args: Any) -> _tuple[_Tensor, ...]: ...
from rushlight.nn.functional.recurrent import lstm_cell as lstm_cell
def lt(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input < other. Whether `input` is less."""
def lu(A: _Tensor, pivot: _bool = ..., get_infos: _bool = ..., out: Any = ...) -> Any: ...
from rushlight.ops.linalg.lu import lu_solve as lu_solve
def lu_unpack(LU_data: _Tensor, LU_pivots: _Tensor, unpack_data: _bool = ..., unpack_pivots: _bool = ..., *, out: Any = ...) -> _PLU: ...
from rushlight.random import manual_seed as manual_seed
def margin_ranking_loss(*args: Any, **kwargs: Any) -> _Tensor: ...
from rushlight import masked as masked
from rushlight.ops.index.masks import masked_fill as masked_fill
def masked_scatter(input: _Tensor, mask: _Tensor, source: _Tensor) -> _Tensor: ...
from rushlight.ops.index.masks import masked_select as masked_select
from rushlight.ops.linalg.matmul_api import matmul as matmul
def matrix_exp(input: _Tensor) -> _Tensor: ...
def matrix_power(input: _Tensor, n: _int, *, out: _Tensor | None = ...) -> _Tensor: ...
@_overload
def max(input: _Tensor) -> _Tensor: ...
@_overload
def max(input: _Tensor, dim: _int, keepdim: _bool = ..., *, out: Any = ...) -> _ValuesIndices: ...
@_overload
def max(input: _Tensor, other: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
@_overload
def max_pool1d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., return_indices: _Literal[False] = ...) -> _Tensor: ...
@_overload
def max_pool1d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., *, return_indices: _Literal[True]) -> _tuple[_Tensor, _Tensor]: ...
@_overload
def max_pool1d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., return_indices: _bool = ...) -> Any: ...
from rushlight.nn.functional.aten_functions import max_pool1d_with_indices as max_pool1d_with_indices
@_overload
def max_pool2d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., return_indices: _Literal[False] = ...) -> _Tensor: ...
@_overload
def max_pool2d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., *, return_indices: _Literal[True]) -> _tuple[_Tensor, _Tensor]: ...
@_overload
def max_pool2d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., return_indices: _bool = ...) -> Any: ...
@_overload
def max_pool3d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., return_indices: _Literal[False] = ...) -> _Tensor: ...
@_overload
def max_pool3d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., *, return_indices: _Literal[True]) -> _tuple[_Tensor, _Tensor]: ...
@_overload
def max_pool3d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., return_indices: _bool = ...) -> Any: ...
def maximum(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = maximum(input, other). The larger one; nan if one is nan. Ties share the gradient."""
def mean(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = (sum over `dim` of input) / n. The sum of the elements divided by their number."""
@_overload
def median(input: _Tensor) -> _Tensor: ...
@_overload
def median(input: _Tensor, dim: _int, keepdim: _bool = ..., *, out: Any = ...) -> _ValuesIndices: ...
from rushlight.base.memory_format import memory_format as memory_format
from rushlight.ops.shape.join import meshgrid as meshgrid
@_overload
def min(input: _Tensor) -> _Tensor: ...
@_overload
def min(input: _Tensor, dim: _int, keepdim: _bool = ..., *, out: Any = ...) -> _ValuesIndices: ...
@_overload
def min(input: _Tensor, other: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
def minimum(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = minimum(input, other). The smaller one; nan if one is nan. Ties share the gradient."""
from rushlight.ops.linalg.matmul_api import mm as mm
def mode(input: _Tensor, dim: _int = ..., keepdim: _bool = ..., *, out: Any = ...) -> _ValuesIndices: """out = mode(input, dim, keepdim). The most frequent element along `dim`, the smallest of several, and the last place it has."""
from rushlight.ops.shape.view_functions import movedim as _movedim
moveaxis = _movedim
from rushlight.ops.shape.view_functions import movedim as movedim
from rushlight.compat.names import mps as mps
from rushlight.ops.reduce.sorting import msort as msort
def mul(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input * other. The product."""
def multinomial(input: _Tensor, num_samples: _int, replacement: _bool = ..., *, generator: _Generator | None = ..., out: _Tensor | None = ...) -> _Tensor: ...
def multiply(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input * other. The product."""
from rushlight import multiprocessing as multiprocessing
def mv(input: _Tensor, vec: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out_i = sum over k of input_ik * vec_k. The product of a matrix and a vector."""
from rushlight.ops.math.special_functions import mvlgamma as mvlgamma
nan: _float
def nan_to_num(input: _Tensor, nan: _float = ..., posinf: Any = ..., neginf: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = nan_to_num(input, nan, posinf, neginf). nan, inf and -inf replaced by `nan`, `posinf` and `neginf`, or by the largest numbers."""
def nan_to_num_(input: _Tensor, nan: _float = ..., posinf: Any = ..., neginf: Any = ...) -> _Tensor: """out = nan_to_num(input, nan, posinf, neginf). nan, inf and -inf replaced by `nan`, `posinf` and `neginf`, or by the largest numbers."""
def nanmean(input: _Tensor, dim: Any = ..., keepdim: _bool = ..., *, dtype: Any = ..., out: _Tensor | None = ...) -> _Tensor: ...
@_overload
def nanmedian(input: _Tensor) -> _Tensor: ...
@_overload
def nanmedian(input: _Tensor, dim: _int, keepdim: _bool = ..., *, out: Any = ...) -> _ValuesIndices: ...
def nanquantile(input: _Tensor, q: Any, dim: _int | None = ..., keepdim: _bool = ..., *, interpolation: _str = ..., out: _Tensor | None = ...) -> _Tensor: ...
def nansum(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = nansum(input, dim, keepdim)"""
def narrow(input: _Tensor, dim: _int, start: Any, length: _int) -> _Tensor: ...
def narrow_copy(input: Any, dim: Any, start: Any, length: Any, *, out: Any = ...) -> Any: ...
from rushlight.nn.functional.aten_norms import native_batch_norm as native_batch_norm
from rushlight.nn.functional.resize import native_channel_shuffle as native_channel_shuffle
from rushlight.nn.functional.aten_functions import native_dropout as native_dropout
from rushlight.nn.functional.aten_norms import native_group_norm as native_group_norm
from rushlight.nn.functional.aten_norms import native_layer_norm as native_layer_norm
def ne(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input != other. Whether they differ."""
def neg(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = -input. The number with the opposite sign."""
def neg_(input: _Tensor) -> _Tensor: """out = -input. The number with the opposite sign."""
def negative(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = -input. The number with the opposite sign."""
def negative_(input: _Tensor) -> _Tensor: """out = -input. The number with the opposite sign."""
newaxis: None
def nextafter(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = nextafter(input, other). The next floating-point number on the way to `other`."""
from rushlight import nn as nn
from rushlight.core.mode import no_grad as no_grad
from rushlight.ops.index.masks import nonzero as nonzero
def nonzero_static(input: _Tensor, *, size: _int, fill_value: _int = ..., out: _Tensor | None = ...) -> _Tensor: ...
def norm(input: _Tensor, p: Any = ..., dim: Any = ..., keepdim: _bool = ..., out: _Tensor | None = ..., dtype: Any = ...) -> _Tensor: ...
from rushlight.nn.functional.aten_functions import norm_except_dim as norm_except_dim
def normal(mean: Any = ..., std: Any = ..., size: Any = ..., *, generator: _Generator | None = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def not_equal(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input != other. Whether they differ."""
from rushlight.nn.functional.aten_functions import nuclear_norm as nuclear_norm
from rushlight.creation.type_queries import numel as numel
def ones(*shape: Any, size: Any = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ..., memory_format: Any = ...) -> _Tensor: ...
def ones_like(input: _Tensor, *, dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., memory_format: _memory_format = ..., pin_memory: _bool = ...) -> _Tensor: ...
from rushlight.compat.names import onnx as onnx
from rushlight import optim as optim
def orgqr(A: _Tensor, tau: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
def ormqr(input: _Tensor, tau: _Tensor, other: _Tensor, left: _bool = ..., transpose: _bool = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.ops.linalg.matmul_api import outer as outer
from rushlight import overrides as overrides
def pairwise_distance(x1: _Tensor, x2: _Tensor, p: _float = ..., eps: _float = ..., keepdim: _bool = ...) -> _Tensor: ...
def pca_lowrank(A: _Tensor, q: _int | None = ..., center: _bool = ..., niter: _int = ...) -> _tuple[Any, ...]: ...
from rushlight.nn.functional.linear import pdist as pdist
def permute(input: _Tensor, *dims: Any) -> _Tensor: """out = permute(input, *dims). The dimensions in another order."""
def permute_copy(input: Any, *dims: Any, out: Any = ...) -> Any: ...
pi: _float
from rushlight.ops.linalg.solve_api import pinverse as pinverse
from rushlight.nn.functional.resize import pixel_shuffle as pixel_shuffle
from rushlight.nn.functional.resize import pixel_unshuffle as pixel_unshuffle
from rushlight.ops.tensor.random_tensors import poisson as poisson
def poisson_nll_loss(*args: Any, **kwargs: Any) -> _Tensor: ...
from rushlight.ops.math.rare_functions import polar as polar
def polygamma(n: _int, input: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = polygamma(n, input). The n-th derivative of digamma. Needs SciPy."""
from rushlight.ops.math.rare_functions import positive as positive
def pow(input: _Tensor, exponent: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input ** exponent. `input` to the power of `exponent`; its gradient for an exponent of 0 is 0, and for a base of 0 too."""
from rushlight.nn.functional.activation import prelu as prelu
preserve_format: _memory_format
def prod(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = product over `dim` of input. The product of the elements; the gradient is right where some are 0 too."""
from rushlight import profiler as profiler
def promote_types(type1: _dtype, type2: _dtype) -> _dtype: ...
from rushlight.ops.index.take_put import put as put
qint32: _dtype
qint8: _dtype
from rushlight.ops.linalg.decompose_api import qr as qr
def quantile(input: _Tensor, q: Any, dim: _int | None = ..., keepdim: _bool = ..., *, interpolation: _str = ..., out: _Tensor | None = ...) -> _Tensor: ...
from rushlight import quasirandom as quasirandom
quint2x4: _dtype
quint4x2: _dtype
quint8: _dtype
def rad2deg(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input * (180 / pi). An angle in radians, in degrees."""
def rad2deg_(input: _Tensor) -> _Tensor: """out = input * (180 / pi). An angle in radians, in degrees."""
def rand(*shape: Any, size: Any = ..., generator: _Generator | None = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def rand_like(input: _Tensor, *args: Any, dtype: _dtype | None = ..., memory_format: Any = ..., **options: Any) -> _Tensor: ...
def randint(low: _int = ..., high: Any = ..., size: Any = ..., *, generator: _Generator | None = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ...) -> _Tensor: ...
from rushlight.ops.tensor.random_tensors import randint_like as randint_like
def randn(*shape: Any, size: Any = ..., generator: _Generator | None = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def randn_like(input: _Tensor, *args: Any, dtype: _dtype | None = ..., memory_format: Any = ..., **options: Any) -> _Tensor: ...
from rushlight import random as random
def randperm(n: _int, *, generator: _Generator | None = ..., out: _Tensor | None = ..., dtype: _dtype = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
from rushlight.creation.ranges import closed_range as _closed_range
range = _closed_range
from rushlight.ops.shape.flip_roll import ravel as ravel
from rushlight.ops.math.complex import real as real
def reciprocal(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = 1 / input. 1 divided by the number."""
def reciprocal_(input: _Tensor) -> _Tensor: """out = 1 / input. 1 divided by the number."""
from rushlight.recording import record as record
def relu(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = maximum(input, 0). The number where it is positive, 0 elsewhere; the gradient at 0 is 0."""
def relu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
def remainder(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input - other * floor(input / other). What is left of `input` after division by `other`, with the sign of `other`, as Python's %."""
def renorm(input: _Tensor, p: _float, dim: _int, maxnorm: _float, *, out: _Tensor | None = ...) -> _Tensor: ...
def repeat_interleave(input: Any = ..., repeats: Any = ..., dim: _int | None = ..., *, output_size: _int | None = ...) -> _Tensor: ...
from rushlight.recording import replay as replay
def reshape(input: _Tensor, *shape: Any) -> _Tensor: """out = reshape(input, *shape). The elements, in their order, in another shape; -1 stands for what is left."""
from rushlight.ops.shape.as_strided import resize_as_ as resize_as_
from rushlight.ops.math.complex import resolved as _resolved
resolve_conj = _resolved
from rushlight.ops.math.complex import resolved as _resolved
resolve_neg = _resolved
from rushlight.creation.type_queries import result_type as result_type
from rushlight import return_types as return_types
def rms_norm(input: _Tensor, normalized_shape: Sequence[_int], weight: _Tensor | None = ..., eps: _float | None = ...) -> _Tensor: ...
def rnn_relu(input: _Tensor, *args: Any) -> _tuple[_Tensor, ...]: ...
from rushlight.nn.functional.recurrent import rnn_relu_cell as rnn_relu_cell
def rnn_tanh(input: _Tensor, *args: Any) -> _tuple[_Tensor, ...]: ...
from rushlight.nn.functional.recurrent import rnn_tanh_cell as rnn_tanh_cell
from rushlight.ops.shape.view_functions import roll as roll
def rot90(input: _Tensor, k: _int = ..., dims: Any = ...) -> _Tensor: ...
from rushlight.ops.math.arithmetic import round as round
def round_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
def row_stack(tensors: Sequence[_Tensor], *, out: _Tensor | None = ...) -> _Tensor: ...
def rrelu(input: _Tensor, lower: _float = ..., upper: _float = ..., training: _bool = ..., inplace: _bool = ...) -> _Tensor: ...
def rrelu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
def rsqrt(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = 1 / sqrt(input). The reciprocal of the square root; nan for negative numbers."""
def rsqrt_(input: _Tensor) -> _Tensor: """out = 1 / sqrt(input). The reciprocal of the square root; nan for negative numbers."""
from rushlight.ops.math.arithmetic import rsub as rsub
from rushlight.serialization import save as save
def scalar_tensor(s: Any, *, dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def scatter(input: _Tensor, dim: _int, index: _Tensor, src: Any = ..., *, value: Any = ..., reduce: _str | None = ..., out: _Tensor | None = ...) -> _Tensor: ...
def scatter_add(input: _Tensor, dim: _int, index: _Tensor, src: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: ...
def scatter_reduce(input: _Tensor, dim: _int, index: _Tensor, src: _Tensor, reduce: _str, *, include_self: _bool = ..., out: _Tensor | None = ...) -> _Tensor: ...
def searchsorted(sorted_sequence: _Tensor, input: Any, *, out_int32: _bool = ..., right: _bool = ..., side: _str | None = ..., sorter: _Tensor | None = ..., out: _Tensor | None = ...) -> _Tensor: ...
from rushlight.random import seed as seed
def segment_reduce(data: _Tensor, reduce: _str, *, lengths: _Tensor | None = ..., indices: _Tensor | None = ..., offsets: _Tensor | None = ..., axis: _int = ..., unsafe: _bool = ..., initial: Any = ...) -> _Tensor: ...
def select(input: _Tensor, dim: _int, index: _int) -> _Tensor: """out = select(input, dim, index). The slice at `index` along `dim`, without that dimension."""
def select_copy(input: Any, dim: Any, index: Any, *, out: Any = ...) -> Any: ...
def select_scatter(input: Any, src: Any, dim: Any, index: Any, *, out: Any = ...) -> Any: ...
from rushlight.nn.functional.activation import selu as selu
def selu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
from rushlight import serialization as serialization
from rushlight.amp.autocast_mode import set_autocast_cache_enabled as set_autocast_cache_enabled
from rushlight.amp.legacy_api import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from rushlight.amp.legacy_api import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from rushlight.amp.autocast_mode import set_autocast_dtype as set_autocast_dtype
from rushlight.amp.autocast_mode import set_autocast_enabled as set_autocast_enabled
from rushlight.amp.legacy_api import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from rushlight.creation.process_settings import set_default_device as set_default_device
from rushlight.base.dtypes import set_default_dtype as set_default_dtype
from rushlight.ops.tensor.legacy_types import set_default_tensor_type as set_default_tensor_type
from rushlight.creation.process_settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from rushlight.backends import set_float32_matmul_precision as set_float32_matmul_precision
from rushlight.creation.process_settings import set_flush_denormal as set_flush_denormal
from rushlight.core.mode import set_grad_enabled as set_grad_enabled
from rushlight.base.threads import set_num_interop_threads as set_num_interop_threads
from rushlight.base.threads import set_num_threads as set_num_threads
from rushlight.base.printing import set_printoptions as set_printoptions
from rushlight.ops.tensor.random_tensors import set_rng_state as set_rng_state
from rushlight.creation.process_settings import set_warn_always as set_warn_always
def sgn(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input / abs(input). The sign; of a complex number the number of length 1 in its direction."""
short: _dtype
def sigmoid(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = 1 / (1 + exp(-input)). The logistic function, from 0 to 1."""
def sigmoid_(input: _Tensor) -> _Tensor: """out = 1 / (1 + exp(-input)). The logistic function, from 0 to 1."""
def sign(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sign(input). -1, 0 or 1: the sign."""
from rushlight import signal as signal
def signbit(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = signbit(input). Whether the sign is a minus, that of -0 too."""
def sin(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sin(input). The sine of an angle in radians."""
def sin_(input: _Tensor) -> _Tensor: """out = sin(input). The sine of an angle in radians."""
def sinc(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sinc(input). sin(pi input) / (pi input), and 1 at 0."""
def sinc_(input: _Tensor) -> _Tensor: """out = sinc(input). sin(pi input) / (pi input), and 1 at 0."""
def sinh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sinh(input). The hyperbolic sine."""
def sinh_(input: _Tensor) -> _Tensor: """out = sinh(input). The hyperbolic sine."""
def slice_copy(input: Any, dim: Any = ..., start: Any = ..., end: Any = ..., step: Any = ..., *, out: Any = ...) -> Any: ...
def slice_scatter(input: Any, src: Any, dim: Any = ..., start: Any = ..., end: Any = ..., step: Any = ..., *, out: Any = ...) -> Any: ...
from rushlight.ops.linalg.solve_api import old_slogdet as _old_slogdet
slogdet = _old_slogdet
def softmax(input: _Tensor, dim: _int, dtype: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def sort(input: _Tensor, dim: _int = ..., descending: _bool = ..., stable: _bool = ..., *, out: Any = ...) -> _ValuesIndices: """values, indices = sort(input, dim, descending), values[i] = input[indices[i]]. The elements in order along `dim`, and where each of them was."""
from rushlight import sparse as sparse
sparse_bsc: _Layout
sparse_bsr: _Layout
from rushlight.sparse.compressed import sparse_compressed_tensor as sparse_compressed_tensor
sparse_coo: _Layout
from rushlight.sparse.creation import sparse_coo_tensor as sparse_coo_tensor
sparse_csc: _Layout
from rushlight.sparse.compressed import sparse_csc_tensor as sparse_csc_tensor
sparse_csr: _Layout
from rushlight.sparse.compressed import sparse_csr_tensor as sparse_csr_tensor
from rushlight import special as special
def split(tensor: _Tensor, split_size_or_sections: Any, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
def split_copy(input: Any, split_size: Any, dim: Any = ..., *, out: Any = ...) -> Any: ...
def split_with_sizes(input: _Tensor, split_sizes: Any, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
def split_with_sizes_copy(input: Any, split_sizes: Any, dim: Any = ..., *, out: Any = ...) -> Any: ...
from rushlight.sparse.products import product as _product
spmm = _product
def sqrt(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sqrt(input). The square root; nan for negative numbers."""
def sqrt_(input: _Tensor) -> _Tensor: """out = sqrt(input). The square root; nan for negative numbers."""
def square(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input * input. The square."""
def square_(input: _Tensor) -> _Tensor: """out = input * input. The square."""
def squeeze(input: _Tensor, dim: _int | Sequence[_int] | None = ...) -> _Tensor: """out = squeeze(input, dim). The tensor without dimensions of length 1: all, or those in `dim` that are."""
def squeeze_copy(input: Any, dim: Any = ..., *, out: Any = ...) -> Any: ...
def stack(tensors: Sequence[_Tensor], dim: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def std(input: _Tensor, dim: Any = ..., unbiased: _bool | None = ..., keepdim: _bool = ..., *, correction: _float | None = ..., out: _Tensor | None = ...) -> _Tensor: ...
def std_mean(input: _Tensor, dim: Any = ..., unbiased: _bool | None = ..., keepdim: _bool = ..., *, correction: _float | None = ...) -> _tuple[_Tensor, _Tensor]: ...
def stft(input: _Tensor, n_fft: _int, hop_length: _int | None = ..., win_length: _int | None = ..., window: _Tensor | None = ..., center: _bool = ..., pad_mode: _str = ..., normalized: _bool = ..., onesided: _bool | None = ..., return_complex: _bool | None = ..., align_to_window: _bool | None = ...) -> _Tensor: ...
from rushlight import storage as storage
strided: _Layout
from rushlight.ops.math.arithmetic import sub as sub
from rushlight.ops.math.arithmetic import sub as _sub
subtract = _sub
def sum(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = sum over `dim` of input. The sum of the elements."""
def svd(input: _Tensor, some: _bool = ..., compute_uv: _bool = ..., *, out: Any = ...) -> _USV: ...
def svd_lowrank(A: _Tensor, q: _int | None = ..., niter: _int | None = ..., M: _Tensor | None = ...) -> _tuple[Any, ...]: ...
from rushlight.ops.shape.flip_roll import swapaxes as swapaxes
def swapdims(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: """out = transpose(input, dim0, dim1). Two dimensions swapped."""
from rushlight.ops.tensor.control_flow import sym_float as sym_float
from rushlight.ops.tensor.control_flow import sym_int as sym_int
from rushlight.ops.tensor.control_flow import sym_ite as sym_ite
from rushlight.ops.tensor.control_flow import sym_max as sym_max
from rushlight.ops.tensor.control_flow import sym_min as sym_min
from rushlight.ops.tensor.control_flow import sym_not as sym_not
from rushlight.ops.tensor.control_flow import sym_sqrt as sym_sqrt
from rushlight.ops.tensor.control_flow import sym_sum as sym_sum
from rushlight.ops.linalg.matmul_api import t as t
def t_copy(input: Any, *, out: Any = ...) -> Any: ...
from rushlight.ops.index.take_put import take as take
def take_along_dim(input: _Tensor, indices: _Tensor, dim: _int | None = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def tan(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = tan(input). The tangent of an angle in radians."""
def tan_(input: _Tensor) -> _Tensor: """out = tan(input). The tangent of an angle in radians."""
def tanh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = tanh(input). The hyperbolic tangent."""
def tanh_(input: _Tensor) -> _Tensor: """out = tanh(input). The hyperbolic tangent."""
from rushlight.teaching import teach as teach
def tensor(data: Any, *, dtype: _dtype | None = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ...) -> _Tensor: ...
def tensor_split(input: _Tensor, indices_or_sections: Any = ..., dim: _int = ..., *, indices: Any = ..., sections: _int | None = ...) -> _tuple[_Tensor, ...]: ...
from rushlight.ops.linalg.products_api import tensordot as tensordot
from rushlight import testing as testing
from rushlight.nn.functional.activation import threshold as threshold
def threshold_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
from rushlight.ops.shape.view_functions import tile as tile
from rushlight.utils.dlpack import to_dlpack as to_dlpack
def topk(input: _Tensor, k: _int, dim: _int = ..., largest: _bool = ..., sorted: _bool = ..., *, out: Any = ...) -> _ValuesIndices: """values, indices = topk(input, k, dim, largest, sorted). The k largest (or smallest) elements along `dim`, and where they were."""
from rushlight import torch_version as torch_version
from rushlight.ops.linalg.products_api import trace as trace
def transpose(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: """out = transpose(input, dim0, dim1). Two dimensions swapped."""
def transpose_copy(input: Any, dim0: Any, dim1: Any, *, out: Any = ...) -> Any: ...
def trapezoid(y: _Tensor, x: _Tensor | None = ..., *, dx: Any = ..., dim: _int = ...) -> _Tensor: ...
def trapz(y: _Tensor, x: _Tensor | None = ..., *, dx: Any = ..., dim: _int = ...) -> _Tensor: ...
def triangular_solve(b: _Tensor, A: _Tensor, upper: _bool = ..., transpose: _bool = ..., unitriangular: _bool = ..., *, out: Any = ...) -> _SolutionCloned_coefficient: ...
def tril(input: _Tensor, diagonal: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = tril(input, diagonal). The lower triangle of a matrix, up to the diagonal that `diagonal` names; 0 elsewhere."""
def tril_indices(row: _int, col: _int, offset: _int = ..., *, dtype: _dtype | None = ..., device: Any = ..., layout: Any = ...) -> _Tensor: ...
def triplet_margin_loss(*args: Any, **kwargs: Any) -> _Tensor: ...
def triu(input: _Tensor, diagonal: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = triu(input, diagonal). The upper triangle of a matrix, from the diagonal that `diagonal` names; 0 elsewhere."""
def triu_indices(row: _int, col: _int, offset: _int = ..., *, dtype: _dtype | None = ..., device: Any = ..., layout: Any = ...) -> _Tensor: ...
from rushlight.ops.math.arithmetic import div as _div
true_divide = _div
def trunc(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = trunc(input). The number without its fraction."""
def trunc_(input: _Tensor) -> _Tensor: """out = trunc(input). The number without its fraction."""
from rushlight.ops.tensor.predicates import typename as typename
from rushlight import types as types
uint1: _dtype
uint16: _dtype
uint2: _dtype
uint3: _dtype
uint32: _dtype
uint4: _dtype
uint5: _dtype
uint6: _dtype
uint64: _dtype
uint7: _dtype
uint8: _dtype
def unbind(input: _Tensor, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
def unbind_copy(input: Any, dim: Any = ..., *, out: Any = ...) -> Any: ...
def unflatten(input: _Tensor, dim: _int, sizes: Any) -> _Tensor: ...
def unfold_copy(input: Any, dimension: Any, size: Any, step: Any, *, out: Any = ...) -> Any: ...
def unique(input: _Tensor, sorted: _bool = ..., return_inverse: _bool = ..., return_counts: _bool = ..., dim: _int | None = ...) -> Any: ...
def unique_consecutive(input: _Tensor, return_inverse: _bool = ..., return_counts: _bool = ..., dim: _int | None = ...) -> Any: ...
def unravel_index(indices: _Tensor, shape: Any) -> _tuple[_Tensor, ...]: ...
def unsafe_chunk(input: _Tensor, chunks: _int, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
def unsafe_split(input: _Tensor, split_size: Any, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
def unsafe_split_with_sizes(input: _Tensor, split_sizes: Any, dim: _int = ...) -> _tuple[_Tensor, ...]: ...
def unsqueeze(input: _Tensor, dim: _int) -> _Tensor: """out = unsqueeze(input, dim). The tensor with a dimension of length 1 put in at `dim`."""
def unsqueeze_copy(input: Any, dim: Any, *, out: Any = ...) -> Any: ...
from rushlight.creation.process_settings import use_deterministic_algorithms as use_deterministic_algorithms
from rushlight import utils as utils
def vander(x: _Tensor, N: _int | None = ..., increasing: _bool = ...) -> _Tensor: ...
def var(input: _Tensor, dim: Any = ..., unbiased: _bool | None = ..., keepdim: _bool = ..., *, correction: _float | None = ..., out: _Tensor | None = ...) -> _Tensor: ...
def var_mean(input: _Tensor, dim: Any = ..., unbiased: _bool | None = ..., keepdim: _bool = ..., *, correction: _float | None = ...) -> _tuple[_Tensor, _Tensor]: ...
from rushlight.ops.linalg.products_api import vdot as vdot
from rushlight import version as version
def view_as_complex(input: _Tensor) -> _Tensor: """out = view_as_complex(input). Pairs of real and imaginary part as a complex tensor."""
def view_as_complex_copy(input: Any, *, out: Any = ...) -> Any: ...
def view_as_real(input: _Tensor) -> _Tensor: """out = view_as_real(input). A complex tensor as pairs of real and imaginary part."""
def view_as_real_copy(input: Any, *, out: Any = ...) -> Any: ...
def view_copy(input: Any, *shape: Any, size: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
from rushlight import vision as vision
from rushlight import viz as viz
from rushlight.func.vmap_transform import vmap as vmap
def vsplit(input: _Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: _int | None = ...) -> _tuple[_Tensor, ...]: ...
def vstack(tensors: Sequence[_Tensor], *, out: _Tensor | None = ...) -> _Tensor: ...
@_overload
def where(condition: _Tensor, input: _Operand, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: ...
@_overload
def where(condition: _Tensor) -> _tuple[_Tensor, ...]: ...
from rushlight.ops.tensor.control_flow import while_loop as while_loop
def xlogy(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input * log(other). input * log(other), and 0 where `input` is 0."""
def xlogy_(input: _Tensor, other: _Operand) -> _Tensor: """out = input * log(other). input * log(other), and 0 where `input` is 0."""
from rushlight.compat.names import xpu as xpu
from rushlight.ops.tensor.casts import zero_ as zero_
def zeros(*shape: Any, size: Any = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ..., memory_format: Any = ...) -> _Tensor: ...
def zeros_like(input: _Tensor, *, dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., memory_format: _memory_format = ..., pin_memory: _bool = ...) -> _Tensor: ...
