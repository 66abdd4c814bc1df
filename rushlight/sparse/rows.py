"""Sparse gradients of embedding tables: they contain only the rows that were looked up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.core.build import build, inner
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.worlds import ARRAYS, TENSORS
from rushlight.ops.index import along_dim
from rushlight.sparse.graph import accumulates_sparse
from rushlight.sparse.tensor import SparseTensor, made

lookup: Any = inner(
    lambda weight, index, /, padding_idx=None: embedding(weight, index),  # type: ignore[name-defined]  # noqa: F821
    weight=lambda g, index, weight_shape, padding_idx: rows_of_gradient(g, index, weight_shape[0], padding_idx),
    linear="weight",
    node="EmbeddingBackward0",
    sparse_gradient=True,
)


class Rows:
    """A gradient of shape (n, columns), in backward: row at[i] += values[i], for `values` (k, columns) and `at` (k,).

    The engine adds `Rows` like arrays; the sum with a dense gradient is a dense array.
    """

    __slots__ = ("at", "shape", "values")

    def __init__(self, at: ndarray, values: ndarray, shape: tuple[int, ...]):
        self.at, self.values, self.shape = at, values, shape

    dtype = property(lambda self: self.values.dtype)
    size = property(lambda self: self.values.size)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray:
        dense = ARRAYS["embedding_grad"](self.values, self.at, self.shape[0])
        return dense if dtype is None else dense.astype(dtype)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Rows):
            return np.asarray(self) + other
        return Rows(np.concatenate((self.at, other.at)), np.concatenate((self.values, other.values)), self.shape)

    def tensor(self, like: Tensor | None = None) -> SparseTensor:
        """The sparse tensor, in the dtype of `like`."""
        values = self.values
        if like is not None:
            values = values.astype(like.dtype.numpy, copy=False)
        return made(from_array(self.at[None]), from_array(values), self.shape)


def rows_of_gradient(g: ndarray, index: ndarray, n: int, padding_idx: int | None) -> Rows:
    """The rows of g with their indices in the table, without the padding row."""
    at, values = index.reshape(-1).astype(np.int64), g.reshape(index.size, g.shape[-1])
    if padding_idx is not None:
        at, values = at[at != padding_idx], values[at != padding_idx]
    return Rows(at, values.copy() if np.may_share_memory(values, g) else values, (n, g.shape[-1]))


def looked_up(weight: Tensor, index: Tensor, padding_idx: int | None) -> Tensor:
    """Rows of a leaf whose gradient is sparse. The gradient is dense with `create_graph`, when compiled, and in
    vmap."""
    if mode().batch is not None:
        return along_dim.embedding(weight, index, padding_idx)
    accumulates_sparse(weight._node)
    return lookup(weight, index, padding_idx)


ARRAYS["rows_of_gradient"], TENSORS["rows_of_gradient"] = rows_of_gradient, along_dim.embedding_grad
build(globals())
