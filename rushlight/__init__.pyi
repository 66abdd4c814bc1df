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

from rushlight.tensor import Tensor as _Tensor
from rushlight.device import Layout as _Layout
from rushlight.dtypes import dtype as _dtype
from rushlight.random.generator import Generator as _Generator
class _ValuesIndices(_NamedTuple):
    values: _Tensor
    indices: _Tensor

_Number: _TypeAlias = _bool | _int | _float | _complex
_Operand: _TypeAlias = _Tensor | _Number | _np.ndarray

from rushlight.random.generator import Generator as Generator
from rushlight.size import Size as Size
from rushlight.tensor import Tensor as Tensor
__version__: _str
def abs(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = abs(input). The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."""
def absolute(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = abs(input). The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."""
def acos(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
def acosh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
def adaptive_avg_pool1d(input: _Tensor, output_size: Any) -> _Tensor: ...
def adaptive_max_pool1d(input: _Tensor, output_size: Any, return_indices: _bool = ...) -> Any: ...
from rushlight.ops.arithmetic import add as add
def addcmul(input: _Tensor, tensor1: _Operand, tensor2: _Operand, value: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = input + tensor1 * tensor2 * value"""
from rushlight.ops.products import addmm as addmm
from rushlight.ops.products import addmv as addmv
def all(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = whether all of input over `dim`. Whether all elements are true; numbers are true unless 0."""
from rushlight.ops.reductions import allclose as allclose
from rushlight.nn.functional.dropout import alpha_dropout as alpha_dropout
def amax(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = largest over `dim` of input. The largest element; nan if one is nan. Ties share the gradient."""
def amin(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = smallest over `dim` of input. The smallest element; nan if one is nan. Ties share the gradient."""
def angle(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = angle(input). The angle of a complex number; 0 or pi for a real one."""
def any(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = whether any of input over `dim`. Whether some element is true; numbers are true unless 0."""
from rushlight.creation import arange as arange
def arccos(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = acos(input). The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."""
def arccosh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = acosh(input). The inverse of cosh: the number of at least 0; nan below 1."""
def arcsin(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
def arcsinh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = asinh(input). The inverse of sinh."""
def arctan(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
def arctan2(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = atan2(input, other). The angle, from -pi to pi, of the point with height `input` and width `other`."""
def arctanh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
def argmax(input: _Tensor, dim: _int | None = ..., keepdim: _bool = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = argmax(input, dim, keepdim). The index of the largest element, the first of equal ones; without `dim` among all elements."""
def argmin(input: _Tensor, dim: _int | None = ..., keepdim: _bool = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = argmin(input, dim, keepdim). The index of the smallest element, the first of equal ones; without `dim` among all elements."""
from rushlight.ops.reductions import argsort as argsort
from rushlight.ops.shapes import argwhere as argwhere
from rushlight.creation import as_tensor as as_tensor
from rushlight.creation import as_tensor as asarray
def asin(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = asin(input). The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."""
def asinh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = asinh(input). The inverse of sinh."""
def atan(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = atan(input). The angle, from -pi/2 to pi/2, with this tangent."""
def atan2(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = atan2(input, other). The angle, from -pi to pi, of the point with height `input` and width `other`."""
def atanh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = atanh(input). The inverse of tanh; nan outside [-1, 1]."""
from rushlight.ops.shapes import atleast_1d as atleast_1d
from rushlight import autograd as autograd
def avg_pool1d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., ceil_mode: _bool = ..., count_include_pad: _bool = ..., divisor_override: _int | None = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
from rushlight import backends as backends
from rushlight.ops.products import baddbmm as baddbmm
from rushlight.sampling import bernoulli as bernoulli
bfloat16: _dtype
from rushlight.nn.functional.linear import bilinear as bilinear
from rushlight.sampling import binomial as binomial
def bitwise_and(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input & other. The bits that both have; for bool: and."""
def bitwise_left_shift(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = bitwise_left_shift(input, other). The bits moved up by `other` places."""
def bitwise_not(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = ~input. The other bits; for bool: not."""
def bitwise_or(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input | other. The bits that one has; for bool: or."""
def bitwise_right_shift(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = bitwise_right_shift(input, other). The bits moved down by `other` places."""
def bitwise_xor(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input ^ other. The bits that just one has; for bool: xor."""
from rushlight.ops.products import bmm as bmm
bool: _dtype
from rushlight.ops.shapes import broadcast_tensors as broadcast_tensors
from rushlight.ops.shapes import broadcast_to as broadcast_to
from rushlight.dtypes import can_cast as can_cast
def cat(tensors: Sequence[_Tensor], dim: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = cat(tensors, dim). Tensors joined along a dimension that they have."""
cdouble: _dtype
def ceil(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = ceil(input). The smallest whole number that is not smaller."""
from rushlight.nn.functional.activation import celu as celu
def celu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
cfloat: _dtype
from rushlight.nn.functional.resize import channel_shuffle as channel_shuffle
from rushlight.ops.shapes import chunk as chunk
from rushlight.ops.arithmetic import clamp as clamp
def clamp_max(input: _Tensor, max: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = minimum(input, max). The number, or `max` where it is larger."""
def clamp_min(input: _Tensor, min: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = maximum(input, min). The number, or `min` where it is smaller."""
from rushlight.ops.arithmetic import clamp as clip
from rushlight.ops.arithmetic import clone_tensor as clone
from rushlight.compile import compile as compile
from rushlight import compiler as compiler
from rushlight.creation import complex_from_parts as complex
complex128: _dtype
complex64: _dtype
def concat(tensors: Sequence[_Tensor], dim: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = cat(tensors, dim). Tensors joined along a dimension that they have."""
def concatenate(tensors: Sequence[_Tensor], dim: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = cat(tensors, dim). Tensors joined along a dimension that they have."""
from rushlight.ops.complex import conj as conj
def conj_physical(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = conj(input). The complex conjugate; a real number is its own."""
def conv1d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: _int = ...) -> _Tensor: ...
def conv2d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: _int = ...) -> _Tensor: ...
def conv3d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., dilation: Any = ..., groups: _int = ...) -> _Tensor: ...
def conv_transpose1d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: _int = ..., dilation: Any = ...) -> _Tensor: ...
def conv_transpose2d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: _int = ..., dilation: Any = ...) -> _Tensor: ...
def conv_transpose3d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = ..., stride: Any = ..., padding: Any = ..., output_padding: Any = ..., groups: _int = ..., dilation: Any = ...) -> _Tensor: ...
def copysign(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = copysign(input, other). The size of `input` with the sign of `other`."""
def cos(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = cos(input). The cosine of an angle in radians."""
def cosh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = cosh(input). The hyperbolic cosine."""
from rushlight.nn.functional.linear import cosine_similarity as cosine_similarity
from rushlight.ops.reductions import count_nonzero as count_nonzero
from rushlight import cuda as cuda
def cummax(input: _Tensor, dim: _int, *, out: Any = ...) -> _ValuesIndices: """out = cummax(input, dim). The largest element so far, and the last place where it stood."""
from rushlight.ops.reductions import cumprod as cumprod
from rushlight.ops.reductions import cumsum as cumsum
default_generator: _Generator
def deg2rad(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input * (pi / 180). An angle in degrees, in radians."""
from rushlight.device import device as device
def diagonal(input: _Tensor, offset: _int = ..., dim1: _int = ..., dim2: _int = ...) -> _Tensor: """out = diagonal(input, offset, dim1, dim2). The elements whose indices along `dim2` are `offset` more than along `dim1`; they come last."""
def digamma(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = digamma(input). The derivative of lgamma. Needs SciPy."""
from rushlight.ops.arithmetic import div as div
from rushlight.ops.arithmetic import div as divide
def dot(input: _Tensor, tensor: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sum over i of input_i * tensor_i. The sum of the products of two vectors' elements."""
double: _dtype
from rushlight.nn.functional.dropout import dropout as dropout
from rushlight.dtypes import dtype as dtype
e: _float
from rushlight.ops.einsum import einsum as einsum
def empty(*shape: Any, size: Any = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ..., memory_format: Any = ...) -> _Tensor: ...
def empty_like(input: _Tensor, *, dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., memory_format: Any = ..., pin_memory: _bool = ...) -> _Tensor: ...
from rushlight.autograd.grad_mode import enable_grad as enable_grad
def eq(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input == other. Whether they are equal."""
from rushlight.ops.reductions import equal as equal
def erf(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erf(input). The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `input`. Needs SciPy."""
def erfc(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erfc(input). 1 - erf(input), exact also where that is tiny. Needs SciPy."""
def erfinv(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erfinv(input). The inverse of erf; inf and -inf at 1 and -1, nan outside. Needs SciPy."""
def exp(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = exp(input). e to the power of the number."""
def exp2(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = exp2(input). 2 to the power of the number."""
def expm1(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = exp(input) - 1. exp(input) - 1, exact also near 0."""
from rushlight.creation import eye as eye
from rushlight.nn.functional.dropout import feature_alpha_dropout as feature_alpha_dropout
from rushlight.dtypes import finfo as finfo
def fix(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = trunc(input). The number without its fraction."""
def flatten(input: _Tensor, start_dim: _int = ..., end_dim: _int = ...) -> _Tensor: """out = flatten(input, start_dim, end_dim). The dimensions from `start_dim` to `end_dim` as one."""
def flip(input: _Tensor, *dims: Any, out: _Tensor | None = ...) -> _Tensor: """out = flip(input, *dims). The order along `dims` turned around; a copy."""
float: _dtype
float16: _dtype
float32: _dtype
float64: _dtype
def floor(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = floor(input). The largest whole number that is not larger."""
def floor_divide(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = floor(input / other). The quotient rounded down, as Python's //."""
def fmax(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = fmax(input, other). The larger one; the number if the other is nan."""
def fmin(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = fmin(input, other). The smaller one; the number if the other is nan."""
def fmod(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input - other * trunc(input / other). What is left of `input` after division by `other`, with the sign of `input`, as C's fmod."""
def frac(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input - trunc(input). The fraction, with the number's sign."""
from rushlight.creation import from_dlpack as from_dlpack
from rushlight.creation import from_numpy as from_numpy
from rushlight.creation import frombuffer as frombuffer
from rushlight.creation import full as full
from rushlight.creation import full_like as full_like
def gather(input: _Tensor, dim: _int, index: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out[i][j] = input[index[i][j]][j] for dim 0, and so on. For each place in `index`, the element of `input` there along `dim`."""
def ge(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input >= other. Whether `input` is greater or equal."""
from rushlight.ops.products import outer as ger
from rushlight.dtypes import get_default_dtype as get_default_dtype
from rushlight.threads import get_num_interop_threads as get_num_interop_threads
from rushlight.threads import get_num_threads as get_num_threads
from rushlight.sampling import get_rng_state as get_rng_state
def greater(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input > other. Whether `input` is greater."""
def greater_equal(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input >= other. Whether `input` is greater or equal."""
from rushlight.nn.functional.normalization import group_norm as group_norm
def gt(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input > other. Whether `input` is greater."""
half: _dtype
from rushlight.nn.functional.activation import hardshrink as hardshrink
def heaviside(input: _Tensor, values: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = where(input == 0, values, input > 0). The step from 0 to 1 at 0, where it is `values`."""
from rushlight.ops.shapes import hstack as hstack
def hypot(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = sqrt(input * input + other * other). The length of the hypotenuse of a right triangle with these legs."""
from rushlight.dtypes import iinfo as iinfo
from rushlight.ops.complex import imag as imag
from rushlight.ops.scattering import index_add as index_add
def index_copy(input: _Tensor, dim: _int, index: _Tensor, source: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input, but out[index[i]] = source[i] for dim 0, and so on. A copy of `input` with the slices of `source` written at `index` along `dim`."""
from rushlight.ops.shapes import index_fill as index_fill
from rushlight.ops.shapes import index_put as index_put
def index_select(input: _Tensor, dim: _int, index: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out[i] = input[index[i]] for dim 0, and so on. The slices at `index` along `dim`, a copy."""
inf: _float
from rushlight.autograd.grad_mode import inference_mode as inference_mode
from rushlight.random import initial_seed as initial_seed
int: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
int8: _dtype
from rushlight.creation import is_complex as is_complex
from rushlight.creation import is_floating_point as is_floating_point
from rushlight.autograd.grad_mode import is_grad_enabled as is_grad_enabled
from rushlight.autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from rushlight.creation import is_tensor as is_tensor
from rushlight.ops.reductions import isclose as isclose
def isfinite(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = isfinite(input). Whether it is neither nan nor inf nor -inf."""
def isinf(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = isinf(input). Whether it is inf or -inf."""
def isnan(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input != input. Whether it is nan."""
def isneginf(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = isneginf(input). Whether it is -inf."""
def isposinf(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = isposinf(input). Whether it is inf."""
from rushlight.nn.functional.normalization import layer_norm as layer_norm
from rushlight.device import Layout as layout
def le(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input <= other. Whether `input` is less or equal."""
def lerp(input: _Tensor, end: _Operand, weight: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input + weight * (end - input). The point at `weight` on the way from `input` (0) to `end` (1)."""
def less(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input < other. Whether `input` is less."""
def less_equal(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input <= other. Whether `input` is less or equal."""
def lgamma(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = lgamma(input). The logarithm of the absolute value of the gamma function. Needs SciPy."""
from rushlight.creation import linspace as linspace
from rushlight.serialization import load as load
def log(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log(input). The natural logarithm; -inf for 0, nan for negative numbers."""
def log10(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log10(input). The logarithm to base 10; -inf for 0, nan for negative numbers."""
def log1p(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log(1 + input). log(1 + input), exact also near 0."""
def log2(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log2(input). The logarithm to base 2; -inf for 0, nan for negative numbers."""
from rushlight.ops.reductions import log_softmax as log_softmax
def logaddexp(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = log(exp(input) + exp(other)). The logarithm of a sum of exponentials; nothing overflows."""
def logaddexp2(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = log2(exp2(input) + exp2(other)). The same to base 2; nothing overflows."""
def logical_and(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = logical_and(input, other). Whether both are true; numbers are true unless 0."""
def logical_not(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = logical_not(input). Whether it is false, or 0."""
def logical_or(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = logical_or(input, other). Whether one is true; numbers are true unless 0."""
def logical_xor(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = logical_xor(input, other). Whether just one is true; numbers are true unless 0."""
from rushlight.creation import logspace as logspace
def logsumexp(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = log(sum over `dim` of exp(input)). The logarithm of the sum of the exponentials; nothing overflows."""
long: _dtype
def lt(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input < other. Whether `input` is less."""
from rushlight.random import manual_seed as manual_seed
from rushlight.ops.shapes import masked_fill as masked_fill
from rushlight.ops.shapes import masked_select as masked_select
from rushlight.ops.products import matmul as matmul
def max(input: _Tensor, dim: Any = ..., keepdim: Any = ..., *, other: _Tensor | None = ..., out: Any = ...) -> Any: ...
def max_pool1d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., return_indices: _bool = ...) -> Any: ...
def max_pool2d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., return_indices: _bool = ...) -> Any: ...
def max_pool3d(input: _Tensor, kernel_size: Any, stride: Any = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: _bool = ..., return_indices: _bool = ...) -> Any: ...
def maximum(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = maximum(input, other). The larger one; nan if one is nan. Ties share the gradient."""
def mean(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = (sum over `dim` of input) / n. The sum of the elements divided by their number."""
from rushlight.ops.shapes import meshgrid as meshgrid
def min(input: _Tensor, dim: Any = ..., keepdim: Any = ..., *, other: _Tensor | None = ..., out: Any = ...) -> Any: ...
def minimum(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = minimum(input, other). The smaller one; nan if one is nan. Ties share the gradient."""
def mm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input @ mat2. The product of matrices."""
from rushlight.ops.shapes import movedim as moveaxis
from rushlight.ops.shapes import movedim as movedim
def mul(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input * other. The product."""
from rushlight.sampling import multinomial as multinomial
def multiply(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input * other. The product."""
from rushlight.ops.products import mv as mv
nan: _float
def nan_to_num(input: _Tensor, nan: _float = ..., posinf: Any = ..., neginf: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = nan_to_num(input, nan, posinf, neginf). nan, inf and -inf replaced by `nan`, `posinf` and `neginf`, or by the largest numbers."""
def nansum(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = nansum(input, dim, keepdim)"""
def narrow(input: _Tensor, dim: _int, start: _int, length: _int) -> _Tensor: """out = narrow(input, dim, start, length). `length` slices along `dim`, from `start` on."""
def ne(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input != other. Whether they differ."""
def neg(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = -input. The number with the opposite sign."""
def negative(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = -input. The number with the opposite sign."""
newaxis: None
from rushlight import nn as nn
from rushlight.autograd.grad_mode import no_grad as no_grad
from rushlight.ops.shapes import nonzero as nonzero
from rushlight.ops.reductions import norm as norm
from rushlight.sampling import normal as normal
def not_equal(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input != other. Whether they differ."""
from rushlight.creation import numel as numel
def ones(*shape: Any, size: Any = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ..., memory_format: Any = ...) -> _Tensor: ...
def ones_like(input: _Tensor, *, dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., memory_format: Any = ..., pin_memory: _bool = ...) -> _Tensor: ...
from rushlight import optim as optim
from rushlight.ops.products import outer as outer
from rushlight.nn.functional.linear import pairwise_distance as pairwise_distance
from rushlight.nn.functional.linear import pdist as pdist
def permute(input: _Tensor, *dims: Any) -> _Tensor: """out = permute(input, *dims). The dimensions in another order."""
pi: _float
from rushlight.nn.functional.resize import pixel_shuffle as pixel_shuffle
from rushlight.nn.functional.resize import pixel_unshuffle as pixel_unshuffle
from rushlight.sampling import poisson as poisson
def polygamma(n: _int, input: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = polygamma(n, input). The n-th derivative of digamma. Needs SciPy."""
def pow(input: _Tensor, exponent: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input ** exponent. `input` to the power of `exponent`; its gradient for an exponent of 0 is 0, and for a base of 0 too."""
from rushlight.nn.functional.activation import prelu as prelu
def prod(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = product over `dim` of input. The product of the elements; the gradient is right where some are 0 too."""
def promote_types(type1: _dtype, type2: _dtype) -> _dtype: ...
def rad2deg(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input * (180 / pi). An angle in radians, in degrees."""
from rushlight.sampling import rand as rand
def rand_like(input: _Tensor, *args: Any, dtype: _dtype | None = ..., memory_format: Any = ..., **options: Any) -> _Tensor: ...
from rushlight.sampling import randint as randint
from rushlight.sampling import randint_like as randint_like
from rushlight.sampling import randn as randn
def randn_like(input: _Tensor, *args: Any, dtype: _dtype | None = ..., memory_format: Any = ..., **options: Any) -> _Tensor: ...
from rushlight import random as random
from rushlight.sampling import randperm as randperm
from rushlight.ops.complex import real as real
def reciprocal(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = 1 / input. 1 divided by the number."""
def relu(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = maximum(input, 0). The number where it is positive, 0 elsewhere; the gradient at 0 is 0."""
def relu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
def remainder(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input - other * floor(input / other). What is left of `input` after division by `other`, with the sign of `other`, as Python's %."""
from rushlight.ops.shapes import repeat_interleave as repeat_interleave
def reshape(input: _Tensor, *shape: Any) -> _Tensor: """out = reshape(input, *shape). The elements, in their order, in another shape; -1 stands for what is left."""
from rushlight.ops.complex import resolved as resolve_conj
from rushlight.ops.complex import resolved as resolve_neg
from rushlight.creation import result_type as result_type
from rushlight.nn.functional.normalization import rms_norm as rms_norm
from rushlight.ops.shapes import roll as roll
from rushlight.ops.arithmetic import round as round
from rushlight.nn.functional.activation import rrelu as rrelu
def rrelu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
def rsqrt(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = 1 / sqrt(input). The reciprocal of the square root; nan for negative numbers."""
from rushlight.ops.arithmetic import rsub as rsub
from rushlight.serialization import save as save
from rushlight.ops.scattering import scatter as scatter
def scatter_add(input: _Tensor, dim: _int, index: _Tensor, src: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input, but out[index[i][j]][j] += src[i][j] for dim 0, and so on. A copy of `input` with the elements of `src` added at `index` along `dim`."""
from rushlight.random import seed as seed
def select(input: _Tensor, dim: _int, index: _int) -> _Tensor: """out = select(input, dim, index). The slice at `index` along `dim`, without that dimension."""
from rushlight.nn.functional.activation import selu as selu
def selu_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
from rushlight import serialization as serialization
from rushlight.dtypes import set_default_dtype as set_default_dtype
from rushlight.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from rushlight.threads import set_num_interop_threads as set_num_interop_threads
from rushlight.threads import set_num_threads as set_num_threads
from rushlight.printing import set_printoptions as set_printoptions
from rushlight.sampling import set_rng_state as set_rng_state
def sgn(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input / abs(input). The sign; of a complex number the number of length 1 in its direction."""
short: _dtype
def sigmoid(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = 1 / (1 + exp(-input)). The logistic function, from 0 to 1."""
def sign(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sign(input). -1, 0 or 1: the sign."""
def signbit(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = signbit(input). Whether the sign is a minus, that of -0 too."""
def sin(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sin(input). The sine of an angle in radians."""
def sinc(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sinc(input). sin(pi input) / (pi input), and 1 at 0."""
def sinh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sinh(input). The hyperbolic sine."""
from rushlight.ops.reductions import softmax as softmax
def sort(input: _Tensor, dim: _int = ..., descending: _bool = ..., stable: _bool = ..., *, out: Any = ...) -> _ValuesIndices: """values, indices = sort(input, dim, descending), values[i] = input[indices[i]]. The elements in order along `dim`, and where each of them was."""
from rushlight.ops.shapes import split as split
from rushlight.ops.shapes import split as split_with_sizes
def sqrt(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sqrt(input). The square root; nan for negative numbers."""
def square(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = input * input. The square."""
def squeeze(input: _Tensor, dim: _int | Sequence[_int] | None = ...) -> _Tensor: """out = squeeze(input, dim). The tensor without dimensions of length 1: all, or those in `dim` that are."""
def stack(tensors: Sequence[_Tensor], dim: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = stack(tensors, dim). Tensors joined along a new dimension."""
from rushlight.ops.reductions import std as std
from rushlight.ops.reductions import std_mean as std_mean
strided: _Layout
from rushlight.ops.arithmetic import sub as sub
from rushlight.ops.arithmetic import sub as subtract
def sum(input: _Tensor, dim: _int | Sequence[_int] | None = ..., keepdim: _bool = ..., *, dtype: _dtype | None = ..., out: _Tensor | None = ...) -> _Tensor: """out = sum over `dim` of input. The sum of the elements."""
def swapaxes(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: """out = transpose(input, dim0, dim1). Two dimensions swapped."""
def swapdims(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: """out = transpose(input, dim0, dim1). Two dimensions swapped."""
from rushlight.ops.products import t as t
def tan(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = tan(input). The tangent of an angle in radians."""
def tanh(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = tanh(input). The hyperbolic tangent."""
from rushlight.creation import tensor as tensor
from rushlight.nn.functional.activation import threshold as threshold
def threshold_(input: _Tensor, *args: Any, **kwargs: Any) -> _Tensor: ...
from rushlight.ops.shapes import tile as tile
def topk(input: _Tensor, k: _int, dim: _int = ..., largest: _bool = ..., sorted: _bool = ..., *, out: Any = ...) -> _ValuesIndices: """values, indices = topk(input, k, dim, largest, sorted). The k largest (or smallest) elements along `dim`, and where they were."""
def transpose(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: """out = transpose(input, dim0, dim1). Two dimensions swapped."""
def tril(input: _Tensor, diagonal: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = tril(input, diagonal). The lower triangle of a matrix, up to the diagonal that `diagonal` names; 0 elsewhere."""
from rushlight.creation import tril_indices as tril_indices
def triu(input: _Tensor, diagonal: _int = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = triu(input, diagonal). The upper triangle of a matrix, from the diagonal that `diagonal` names; 0 elsewhere."""
from rushlight.creation import triu_indices as triu_indices
from rushlight.ops.arithmetic import div as true_divide
def trunc(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = trunc(input). The number without its fraction."""
uint16: _dtype
uint32: _dtype
uint64: _dtype
uint8: _dtype
from rushlight.ops.shapes import unbind as unbind
def unflatten(input: _Tensor, dim: _int, sizes: Any) -> _Tensor: """out = unflatten(input, dim, sizes). One dimension as several; -1 stands for what is left."""
def unsqueeze(input: _Tensor, dim: _int) -> _Tensor: """out = unsqueeze(input, dim). The tensor with a dimension of length 1 put in at `dim`."""
from rushlight.sampling import use_deterministic_algorithms as use_deterministic_algorithms
from rushlight import utils as utils
from rushlight.ops.reductions import var as var
from rushlight.ops.reductions import var_mean as var_mean
def view_as_complex(input: _Tensor) -> _Tensor: """out = view_as_complex(input). Pairs of real and imaginary part as a complex tensor."""
def view_as_real(input: _Tensor) -> _Tensor: """out = view_as_real(input). A complex tensor as pairs of real and imaginary part."""
from rushlight import viz as viz
from rushlight.ops.shapes import vstack as vstack
from rushlight.ops.shapes import where as where
def xlogy(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input * log(other). input * log(other), and 0 where `input` is 0."""
def zeros(*shape: Any, size: Any = ..., out: _Tensor | None = ..., dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., pin_memory: _bool = ..., memory_format: Any = ...) -> _Tensor: ...
def zeros_like(input: _Tensor, *, dtype: _dtype | None = ..., layout: Any = ..., device: Any = ..., requires_grad: _bool = ..., memory_format: Any = ..., pin_memory: _bool = ...) -> _Tensor: ...
