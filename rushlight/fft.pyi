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

_Number: _TypeAlias = _bool | _int | _float | _complex
_Operand: _TypeAlias = _Tensor | _Number | _np.ndarray

def fft(
    input: _Tensor,
    n: _int | None = ...,
    dim: _int = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def fft2(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def fftfreq(
    n: _int,
    d: _float = ...,
    *,
    out: _Tensor | None = ...,
    dtype: Any = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: _bool = ...,
) -> _Tensor: ...
def fftn(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def fftshift(input: _Tensor, dim: Any = ...) -> _Tensor: ...
def hfft(
    input: _Tensor,
    n: _int | None = ...,
    dim: _int = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def hfft2(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def hfftn(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def ifft(
    input: _Tensor,
    n: _int | None = ...,
    dim: _int = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def ifft2(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def ifftn(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def ifftshift(input: _Tensor, dim: Any = ...) -> _Tensor: ...
def ihfft(
    input: _Tensor,
    n: _int | None = ...,
    dim: _int = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def ihfft2(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def ihfftn(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def irfft(
    input: _Tensor,
    n: _int | None = ...,
    dim: _int = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def irfft2(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def irfftn(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def rfft(
    input: _Tensor,
    n: _int | None = ...,
    dim: _int = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def rfft2(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
def rfftfreq(
    n: _int,
    d: _float = ...,
    *,
    out: _Tensor | None = ...,
    dtype: Any = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: _bool = ...,
) -> _Tensor: ...
def rfftn(
    input: _Tensor,
    s: Any = ...,
    dim: Any = ...,
    norm: _str | None = ...,
    *,
    out: _Tensor | None = ...,
) -> _Tensor: ...
