"""Shapes, views, indices, joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as torch
from rushlight.archives.budget import new_tensor
from rushlight.core.tensor import Tensor

from .table import dtype_of, operator

Index = int | None


@operator("slice")
def cut(x: Tensor, dim: int = 0, start: Index = None, end: Index = None, step: int = 1) -> Tensor:
    """x[..., start:end:step, ...] along `dim`."""
    return x[(slice(None),) * (dim % max(x.ndim, 1)) + (slice(start, end, step),)]


operator("select")(lambda x, dim, index: x.select(dim, int(index)))
operator("size")(lambda x, dim=None: list(x.shape) if dim is None else x.shape[dim])
operator("sym_size")(lambda x, dim: x.shape[dim])
operator("sym_numel")(lambda x: x.numel())
operator("sym_stride", "stride")(lambda x, dim=None: list(x.stride()) if dim is None else x.stride(dim))
operator("dim")(lambda x: x.ndim)
operator("view", "_unsafe_view")(
    lambda x, size: x.view(dtype_of(size)) if isinstance(size, torch.dtype) else x.reshape(size)
)
operator("reshape")(lambda x, size: x.reshape(size))
operator("unsafe_split_with_sizes", "split_with_sizes")(lambda x, sizes, dim=0: list(torch.split(x, list(sizes), dim)))
operator("split", "unsafe_split")(lambda x, size, dim=0: list(torch.split(x, size, dim)))
operator("chunk", "unsafe_chunk")(lambda x, count, dim=0: list(torch.chunk(x, count, dim)))
operator("tensor_split")(lambda x, at, dim=0: list(torch.tensor_split(x, at, dim)))
operator("unbind")(lambda x, dim=0: list(torch.unbind(x, dim)))
operator("flip")(lambda x, dims: torch.flip(x, list(dims)))
operator("meshgrid")(lambda tensors, indexing="ij": list(torch.meshgrid(*tensors, indexing=indexing)))
operator("einsum")(lambda equation, tensors, path=None: torch.einsum(equation, *tensors))
operator("unfold")(lambda x, dim, size, step: x.unfold(dim, size, step))


@operator("expand")
def expand(x: Tensor, size: Sequence[int], implicit: bool = False) -> Tensor:
    new_tensor(size)
    return x.expand(size)


@operator("repeat")
def repeat(x: Tensor, repeats: Sequence[int]) -> Tensor:
    new_tensor([*x.shape, *repeats], x._array.itemsize)
    return x.repeat(repeats)


@operator("index")
def index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return x[tuple([slice(None) if i is None else i for i in indices])]


@operator("index_put", "_unsafe_index_put")
def index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    return index_put_(x.clone(), indices, values, accumulate)


@operator("index_put_")
def index_put_(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    if accumulate:
        return x.index_put_(tuple(i for i in indices if i is not None), values, True)
    x[tuple([slice(None) if i is None else i for i in indices])] = values
    return x


@operator("as_strided")
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Tensor:
    return torch.as_strided(x, size, stride, offset or 0)


@operator("as_strided_scatter")
def as_strided_scatter(
    x: Tensor, source: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Tensor:
    return torch.as_strided_scatter(x, source, size, stride, offset or 0)


@operator("slice_scatter")
def slice_scatter(
    x: Tensor, source: Tensor, dim: int = 0, start: Index = None, end: Index = None, step: int = 1
) -> Tensor:
    return torch.slice_scatter(x, source, dim, start, end, step)


@operator("one_hot")
def one_hot(x: Tensor, classes: int = -1) -> Tensor:
    new_tensor([*x.shape, max(classes, 1)], 8)
    return torch.nn.functional.one_hot(x, classes)


@operator("stft")
def stft(x: Tensor, n_fft: int, hop: Any = None, width: Any = None, window: Any = None, *rest: Any) -> Tensor:
    """Two overloads: with `center` and `pad_mode` in front of `normalized`, and without."""
    if len(rest) > 1 and isinstance(rest[1], str):
        center, pad_mode, normalized, onesided, as_complex = (*rest, None, None, None)[:5]
        return torch.stft(x, n_fft, hop, width, window, center, pad_mode, bool(normalized), onesided, as_complex)
    normalized, onesided, as_complex = (*rest, None, None, None)[:3]
    return torch.stft(x, n_fft, hop, width, window, False, "reflect", bool(normalized), onesided, as_complex)


@operator("istft")
def istft(x: Tensor, n_fft: int, *rest: Any) -> Tensor:
    return torch.istft(x, n_fft, *rest)


operator("numpy_T")(lambda x: x.T)
operator("mT", "matrix_H")(lambda x: x.mT)
