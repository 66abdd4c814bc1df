"""Embedding tables: row lookup, bags of rows, and one-hot vectors."""

from __future__ import annotations

import numpy as np

from rushlight.base.errors import not_implemented_error, runtime_error, value_error
from rushlight.base.intp import as_intp
from rushlight.core.arguments import check_dtypes
from rushlight.core.mode import mode as grad_mode
from rushlight.core.tensor import Tensor, created, from_array, holder, noticed
from rushlight.creation.factories import room
from rushlight.kernels.ufunc_at import all_below
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.index import along_dim as places
from rushlight.ops.linalg.matmul_api import in_single
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce import reduce as r
from rushlight.ops.reduce.reduce_api import norm
from rushlight.ops.shape.views import reshape, unsqueeze


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """out[...] = weight[input[...]]: the rows of a table, looked up by integers. input (*), weight (n, d) -> (*, d).

    `padding_idx`: a row that gets no gradient. `max_norm`: longer rows that are looked up are first scaled down to this
    norm, in place. `scale_grad_by_freq`: divide a row's gradient by the number of its look-ups. `sparse`: the gradient
    of a leaf is a sparse tensor with the rows that were looked up. IndexError for a row that does not exist.

    >>> rushlight.nn.functional.embedding(rushlight.tensor([1, 0]), rushlight.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if weight._array.ndim != 2:
        raise runtime_error("'weight' must be 2-D", "its shape is (rows, columns)", shape=tuple(weight.shape))
    if input._array.dtype.kind not in "iu":
        raise runtime_error(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
            f"got torch.{input.dtype.scalar_type}Tensor instead",
            "convert with .long()",
        )
    padding_idx = padding_row(padding_idx, weight)
    if max_norm is not None:
        shorten(weight, input, max_norm, norm_type)
    if sparse and weight._node is not None and weight._node.leaf:
        if scale_grad_by_freq:
            raise runtime_error("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        from rushlight.sparse.rows import looked_up  # loaded with the first sparse gradient

        return looked_up(weight, input, padding_idx)
    rows = places.embedding(weight, input, padding_idx)
    if scale_grad_by_freq and rows._node is not None:
        noticed(input)
        _, where, often = np.unique(input._array, return_inverse=True, return_counts=True)
        share = (1 / often[where]).reshape((*input._array.shape, 1)).astype(rows._array.dtype)
        return places.with_scaled_gradient(rows, from_array(share))
    return rows


def padding_row(padding_idx: int | None, weight: Tensor) -> int | None:
    """The padding row counted from the front. AssertionError for a row that does not exist."""
    if padding_idx is None:
        return None
    n = weight._array.shape[0]
    if not -n <= padding_idx < n:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % n


def shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale rows that are looked up and longer than `max_norm` down to this norm, in place."""
    noticed(input)
    with no_grad():
        rows = from_array(np.unique(input._array))
        found = weight.detach().index_select(0, rows)
        length = norm(found, norm_type, 1, True)
        scale = e.where(e.gt(length, max_norm), max_norm / e.add(length, 1e-7), 1.0)
        # detached: the tangents of the rows do not change
        weight.detach().index_copy_(0, rows, e.mul(found, scale))


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """out[b] = sum, mean or max of the weight's rows that bag b names.

    input (B, N), or (N,) with the `offsets` (B,) at which bags begin; weight (n, d) -> (B, d). `per_sample_weights` (as
    input): factors of the rows, with mode 'sum' only. Rows of `padding_idx` do not count; an empty bag gives 0.
    `max_norm`, `scale_grad_by_freq` and `sparse` as in `embedding`. RuntimeError for rows that do not exist, ValueError
    for another mode.

    >>> from rushlight.nn import functional as F
    >>> rows = rushlight.tensor([[1.], [10.], [100.]])
    >>> F.embedding_bag(rushlight.tensor([0, 2, 1]), rows, rushlight.tensor([0, 2]), mode="sum")  # rows 0 and 2, then 1
    tensor([[101.],
            [ 10.]])
    """
    check_dtypes("embedding_bag", "f", weight)
    if mode not in ("sum", "mean", "max"):
        raise value_error(f"mode has to be one of sum, mean or max, got {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise not_implemented_error(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise value_error(
            "max mode does not support "
            + ("scaling the gradient by the frequency" if scale_grad_by_freq else "sparse weights")
        )
    check_bags(input, weight, per_sample_weights, padding_idx)
    padding_idx = padding_row(padding_idx, weight)
    weighted = per_sample_weights is not None or scale_grad_by_freq or sparse
    if mode != "max" and max_norm is None and not weighted:

        def means(weight: Tensor) -> Tensor:
            return summed(input, weight, offsets, include_last_offset, padding_idx, mode)

        return in_single(means, weight) if mode == "mean" else means(weight)
    if input._array.ndim == 2 and input._array.size and offsets is None and padding_idx is None:
        rows = embedding(input, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
        return of_one_size(rows, per_sample_weights, mode)
    flat, sizes = bags(input, offsets, include_last_offset)
    count = len(sizes)
    bag = np.arange(count).repeat(as_intp(sizes))
    kept = np.flatnonzero(flat != padding_idx) if padding_idx is not None else np.arange(flat.size)
    rows = embedding(from_array(flat[kept]), weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        factors = reshape(per_sample_weights, (-1, 1)).index_select(0, from_array(kept))
        rows = e.mul(rows, factors)
    return pooled(rows, bag[kept], count, mode)


def summed(
    input: Tensor, weight: Tensor, offsets: Tensor | None, include_last: bool, padding_idx: int | None, mode: str
) -> Tensor:
    """The sums or means of bags, by one op."""
    if input._array.ndim == 2 and input._array.size and offsets is None and padding_idx is None:
        b, n = input._array.shape
        land = created(from_array(np.repeat(np.arange(b), n)))
        total = places.rows_summed(weight, reshape(input, (-1,)), land, b)
        return total if mode == "sum" else e.div(total, n)
    flat, sizes = bags(input, offsets, include_last)
    count = len(sizes)
    bag = np.arange(count).repeat(as_intp(sizes))
    if padding_idx is not None:
        kept = flat != padding_idx
        flat, bag = flat[kept], bag[kept]
    total = places.rows_summed(weight, from_array(flat), from_array(bag), count)
    return total if mode == "sum" else e.div(total, bag_sizes(bag, count, weight))


def check_bags(input: Tensor, weight: Tensor, factors: Tensor | None, padding_idx: int | None) -> None:
    """torch's errors for rows that do not exist, and for factors of another shape or dtype."""
    if weight._array.ndim != 2:
        raise runtime_error("weight has to be a 2D Tensor", op="embedding_bag", shape=tuple(weight.shape))
    n, at = len(weight._array), input._array
    if padding_idx is not None and not -n <= padding_idx < n:
        raise runtime_error(
            "padding_idx must be within the number of embeddings", op="embedding_bag", padding_idx=padding_idx, rows=n
        )
    if factors is not None and factors._array.shape != at.shape:
        raise value_error(
            f"embedding_bag: If per_sample_weights ({list(factors.shape)}) is not None, then it must have the "
            f"same shape as the input ({list(input.shape)})"
        )
    if factors is not None and factors._array.dtype != weight._array.dtype:
        raise runtime_error(
            f"expected per_sample_weights to have the same type as the weight, but got {factors.dtype} and "
            f"{weight.dtype}",
            "convert one: .to(weight.dtype)",
        )
    if at.__class__ is np.ndarray and at.size and at.dtype.kind in "iu" and not all_below(at, n):
        raise runtime_error(
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
            f"{at.min() if at.min() < 0 else at.max()}",
            rows=n,
        )


def of_one_size(rows: Tensor, factors: Tensor | None, mode: str) -> Tensor:
    """The bags of rows (B, N, D) with factors (B, N), without a read of numbers, so that programs can be compiled."""
    if factors is not None:
        rows = e.mul(rows, unsqueeze(factors, -1))
    return r.sum(rows, 1) if mode == "sum" else r.mean(rows, 1) if mode == "mean" else rows.max(1).values


def bags(input: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[np.ndarray, np.ndarray]:
    """(rows of all bags in order, number of rows of each bag)."""
    noticed(input)
    if input._array.ndim == 2:
        if offsets is not None:
            raise value_error(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
                f"length sequences. However, found offsets of type {type(offsets)}"
            )
        b, n = input._array.shape
        return input._array.reshape(-1), np.full(b, n)
    if input._array.ndim != 1:
        raise value_error(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input._array.ndim}")
    size = input._array.size
    given = checked_offsets(offsets, size, include_last)
    starts = given if include_last or not given.size else np.concatenate((given, (size,)))
    sizes = starts[1:] - starts[:-1]
    if given.size and np.minimum.reduce(sizes, initial=0) < 0:
        raise runtime_error("offsets must not decrease: each is the start of a bag", offsets=given.tolist())
    return input._array[: starts[-1] if given.size else 0], sizes


def checked_offsets(offsets: Tensor | None, size: int, include_last: bool) -> np.ndarray:
    """The offsets at which the bags begin among `size` rows. ValueError or RuntimeError for invalid offsets."""
    if offsets is None or offsets._array.ndim != 1:
        raise value_error(
            "offsets has to be a 1D Tensor but got "
            + ("None" if offsets is None else f"{offsets._array.ndim} dimensions")
        )
    given = offsets._array
    if given.dtype.kind not in "iu":
        raise runtime_error(
            "Expected tensor for argument #1 'offsets' to have one of the following scalar types: Long, Int; but "
            f"got torch.{offsets.dtype.scalar_type}Tensor instead"
        )
    if include_last and not given.size:
        raise runtime_error("include_last_offset: number of offsets should be at least 1")
    if given.size and given[0] != 0:
        raise runtime_error(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {given[0]}"
        )
    if given.size and given[-1] > size:
        raise runtime_error(
            f"offsets[-1] can not be greater than input's length {size} but got offsets[-1] of {given[-1]}"
        )
    return given


def pooled(rows: Tensor, bag: np.ndarray, count: int, mode: str) -> Tensor:
    """The rows of each bag added up, averaged, or their largest elements; 0 for an empty bag."""
    width = rows._array.shape[1]
    blank = from_array(np.zeros((count, width), rows._array.dtype))
    if mode == "max":
        if bag.size == 0:
            return blank.index_add(0, from_array(bag), rows)  # zeros, but part of the graph like other bags
        counts = np.bincount(bag, minlength=count)
        filled = np.flatnonzero(counts)
        begins = (np.cumsum(counts) - counts)[filled]
        best = np.repeat(np.maximum.reduceat(rows._array, begins, 0), counts[filled], 0)
        places = np.where(rows._array == best, np.arange(len(bag))[:, None], len(bag))
        first = np.full((count, width), len(bag))
        first[filled] = np.minimum.reduceat(places, begins, 0)
        taken = rows.gather(0, from_array(np.minimum(first, len(bag) - 1)))
        return e.where(from_array(first < len(bag)), taken, 0.0)
    total = blank.index_add(0, from_array(bag), rows)
    if mode == "sum":
        return total
    return e.div(total, bag_sizes(bag, count, rows))


def bag_sizes(bag: np.ndarray, count: int, like: Tensor) -> Tensor:
    """The number of rows of each bag, at least 1, in a column (count, 1) of the dtype of `like`."""
    sizes = np.maximum(np.bincount(bag, minlength=count), 1)[:, None]
    return from_array(sizes.astype(like._array.dtype))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """out[..., c] = 1 where c is the class, else 0: (*) int64 -> (*, num_classes). num_classes=-1: the largest class +
    1.

    RuntimeError for classes below 0 or beyond, or of another dtype.

    >>> rushlight.nn.functional.one_hot(rushlight.tensor([2, 0]), 3)
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    t = tensor._array
    if t.dtype != np.int64:
        raise runtime_error(
            "one_hot is only applicable to index tensor of type LongTensor.", "convert with .long()", dtype=tensor.dtype
        )
    num_classes = class_count(tensor, num_classes)
    if t.__class__ is np.ndarray and grad_mode().watch is None:  # takes a third of the time
        made = room(np.zeros, (*t.shape, num_classes), np.int64)
        made.reshape(-1, num_classes or 1)[np.arange(t.size), t.reshape(-1)] = 1
        return from_array(made)
    zeros = created(from_array(np.broadcast_to(np.zeros((), np.int64), (*t.shape, num_classes))))
    return places.scatter(
        zeros.to(tensor.device), -1, unsqueeze(tensor, -1), created(from_array(np.ones((), np.int64)))
    )


def class_count(tensor: Tensor, num_classes: int) -> int:
    """`num_classes`, or one more than the largest class for -1. RuntimeError for classes below 0 or beyond."""
    t = tensor._array
    if t.size == 0 and num_classes <= 0:
        raise runtime_error("Can not infer total number of classes from empty tensor.")
    # in vmap, `holder` has the classes of all samples
    known = t if num_classes == -1 or tensor.is_meta else holder(tensor)._array
    checked = t.size and not (tensor.is_meta and num_classes != -1)
    if checked and known.min() < 0:
        raise runtime_error("Class values must be non-negative.")
    if num_classes == -1:
        noticed(tensor)
        return int(t.max()) + 1
    if checked and known.max() >= num_classes:
        noticed(tensor)
        raise runtime_error(
            "Class values must be smaller than num_classes.",
            "class numbers are 0 to num_classes - 1; use more classes",
            largest=known.max(),
            num_classes=num_classes,
        )
    return num_classes
