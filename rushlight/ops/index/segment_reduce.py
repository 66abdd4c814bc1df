"""Reductions of consecutive rows: each segment of rows becomes one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.base.intp import as_intp
from rushlight.base.public_function import MORE
from rushlight.core.tensor import Tensor, created, from_array, noticed
from rushlight.ops.composites import composite
from rushlight.ops.index.masks import where
from rushlight.ops.index.take_put import index_reduce
from rushlight.ops.linalg.matmul_api import in_single
from rushlight.ops.shape import views as s

# results of empty segments
NOTHING = {"sum": 0.0, "mean": float("nan"), "max": -float("inf"), "min": float("inf"), "prod": 1.0}


@composite(tensor=False, looks=True)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Reduce each segment of the data along `axis`. `lengths` gives the length of each segment; alternatively `offsets`
    gives the start of each segment and the end of the last one.

    `reduce`: "sum", "mean", "max" ("amax"), "min" ("amin") or "prod", beginning with `initial`. Dimensions before
    `axis` have lengths (or offsets) of their own. Elements that tie share the gradient. RuntimeError for lengths that
    do not add up.

    >>> rushlight.segment_reduce(rushlight.tensor([1., 2., 3.]), "sum", lengths=rushlight.tensor([2, 0, 1]))
    tensor([3., 0., 3.])
    """
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in NOTHING:
        raise runtime_error(
            f"Unsupported reduction given to segment_reduce: {reduce!r}", "one of " + ", ".join(NOTHING)
        )
    if not data.dtype.is_floating_point:
        raise not_implemented_error(
            f'"_segment_reduce_cpu" not implemented for {data.dtype}', "convert it: data.float()"
        )
    begins, sizes = segments(data, lengths, indices, offsets, axis, unsafe)
    outer, rest = data._array.shape[:axis], data._array.shape[axis + 1 :]
    rows = s.reshape(data, (-1, *rest)) if axis else data
    # segment k begins at row begins[k]; `rows` lists all rows in order, `of` the segment of each row
    of = np.repeat(np.arange(sizes.size), as_intp(sizes))
    taken = np.arange(of.size) + np.repeat(begins - (np.cumsum(sizes) - sizes), as_intp(sizes))
    if of.size != rows._array.shape[0] or (taken != np.arange(of.size)).any():
        rows = rows.index_select(0, created(from_array(taken)))
    places, lengths_of = created(from_array(of)), sizes.reshape(-1, *[1] * len(rest))
    made = in_single(lambda rows: reduced(rows, places, lengths_of, reduce, initial), rows)
    return s.reshape(made, (*outer, -1, *rest) if sizes.size else (*outer, 0, *rest)) if axis else made


def reduced(rows: Tensor, of: Tensor, sizes: np.ndarray, reduce: str, initial: Any) -> Tensor:
    """The reduction of each segment. rows (n, ...): row i belongs to segment of[i]; sizes (segments, 1, ...)."""
    nothing = NOTHING[reduce] if initial is None else initial
    first = NOTHING[reduce] if reduce in ("max", "min") else 0 if reduce == "mean" and initial is None else nothing
    begun = created(from_array(np.full((sizes.shape[0], *rows._array.shape[1:]), first, rows._array.dtype)))
    if reduce == "prod":
        return index_reduce(begun, 0, of, rows, "prod")
    if reduce in ("sum", "mean"):
        total = begun.index_add(0, of, rows)
        if reduce == "sum":
            return total
        mean = total / created(from_array(np.maximum(sizes, 1).astype(rows._array.dtype)))
        return where(created(from_array(sizes == 0)), nothing, mean)
    found = index_reduce(begun, 0, of, rows, "a" + reduce, include_self=False)
    if initial is None:
        return found
    return where(found < initial if reduce == "max" else found > initial, initial, found)


def segments(
    data: Tensor, lengths: Tensor | None, indices: Tensor | None, offsets: Tensor | None, axis: int, unsafe: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The start and length of each segment, among all rows before and along `axis`."""
    if indices is not None:
        raise runtime_error("segment_reduce(): indices based reduction is not supported yet.", "lengths=")
    given = lengths if lengths is not None else offsets
    if given is None:
        raise runtime_error("segment_reduce(): Either lengths or offsets must be defined.", "pass lengths=")
    noticed(given)  # report the read of values to a watcher
    numbers = np.asarray(given._array)
    if axis != numbers.ndim - 1 or numbers.dtype.kind != "i" or numbers.shape[:-1] != data._array.shape[:axis]:
        raise runtime_error(
            f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.",
            f"whole numbers of shape {(*data._array.shape[:axis], 'segments')}",
        )
    n = data._array.shape[axis]
    if lengths is None:
        begins, sizes = numbers[..., :-1], np.diff(numbers)
    else:
        begins, sizes = np.cumsum(numbers, -1) - numbers, numbers
        if not unsafe and (numbers.sum(-1) != n).any():
            raise runtime_error(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) "
                f"when !unsafe.: they sum to {numbers.sum(-1)}, not {n}"
            )
    if (sizes < 0).any():
        raise runtime_error("lengths contains negative value!")
    if sizes.size and (begins.min() < 0 or (begins + sizes).max() > n):
        raise runtime_error(f"segment_reduce(): segments outside of the {n} rows")
    before = n * np.arange(int(np.prod(numbers.shape[:-1]))).reshape(*numbers.shape[:-1], 1)
    return (begins + before).ravel(), sizes.ravel()


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """The start of each row's elements, and the end of the last row: `input` has the sorted row indices.

    >>> rushlight._convert_indices_from_coo_to_csr(rushlight.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    ends = np.searchsorted(np.asarray(input), np.arange(size + 1))
    return created(from_array(ends.astype(np.int32 if out_int32 else np.int64)))


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Rows and columns (2, n) of the elements, from the start of each row; with `transpose`, columns and rows.

    >>> rushlight._convert_indices_from_csr_to_coo(rushlight.tensor([0, 2, 2, 3]), rushlight.tensor([0, 1, 2]))
    tensor([[0, 0, 2],
            [0, 1, 2]])
    """
    begins, columns = np.asarray(crow_indices), np.asarray(col_indices)
    if begins.ndim != 1:
        raise not_implemented_error("_convert_indices_from_csr_to_coo: batches of matrices")
    rows = np.repeat(np.arange(begins.size - 1), as_intp(np.diff(begins)))
    pair = (columns, rows) if transpose else (rows, columns)
    return created(from_array(np.stack(pair).astype(np.int32 if out_int32 else np.int64)))


MORE.update(
    _segment_reduce=segment_reduce,
    _convert_indices_from_coo_to_csr=_convert_indices_from_coo_to_csr,
    _convert_indices_from_csr_to_coo=_convert_indices_from_csr_to_coo,
)
