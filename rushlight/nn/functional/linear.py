"""Linear maps, and lengths and distances."""

from __future__ import annotations

import math
from math import prod

import numpy as np

from rushlight.base.dtypes import FLOATING
from rushlight.base.errors import NoArray, check_kinds, not_a_tensor, runtime_error
from rushlight.core.arguments import check_dtypes, check_same_dtype, promoted, wrap
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.views import filled
from rushlight.ops.linalg.matmul import linear as product
from rushlight.ops.linalg.matmul_api import matmul
from rushlight.ops.math import elementwise as e
from rushlight.ops.op_errors import mismatch
from rushlight.ops.reduce import reduce as r
from rushlight.ops.reduce.reduce_api import norm
from rushlight.ops.reduce.vector_norm import apart, farthest, vector_norm
from rushlight.ops.shape.views import expand, permute, reshape


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """x w^T + b: input (..., in), weight (out, in), bias (out,) -> (..., out). All have one dtype.

    RuntimeError where sizes do not fit.

    >>> rushlight.nn.functional.linear(rushlight.ones(1, 2), rushlight.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 7.]])
    """
    try:
        usual = weight._array.ndim == 2 and (bias is None or bias._array.ndim < 2)
    except NoArray as sparse:
        return filled(out, sparse.instead("linear", input, weight, bias))
    except AttributeError:
        check_kinds(
            "linear", [("input", "Tensor", input), ("weight", "Tensor", weight), ("bias", "Tensor | None", bias)]
        )
        raise
    if usual:
        return product(input, weight, bias, out=out)
    if weight._array.ndim not in (1, 2):
        raise runtime_error(
            f"linear: weight must have 1 or 2 dimensions, but has {weight._array.ndim}",
            "its shape is (out_features, in_features)",
        )
    if bias is None:
        return matmul(input, weight, out=out)  # the weight is a vector
    return e.add(linear(input, weight), bias, out=out)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """out_k = sum over i, j of x1_i w_kij x2_j + b_k: (..., I), (..., J), weight (K, I, J) -> (..., K).

    RuntimeError where sizes do not fit.

    >>> from rushlight.nn import functional as F
    >>> F.bilinear(rushlight.tensor([1., 2.]), rushlight.tensor([3., 4.]), rushlight.ones(1, 2, 2))  # (1 + 2) (3 + 4)
    tensor([21.])
    """
    a, b = input1._array.shape, input2._array.shape
    if a[:-1] != b[:-1]:
        raise runtime_error(f"bilinear(): input batch dimensions do not match: got {list(a)} and {list(b)}")
    if weight._array.ndim != 3 or (a[-1], b[-1]) != weight._array.shape[1:]:
        raise runtime_error(
            f"bilinear(): input sizes {a[-1]} and {b[-1]} do not match weight size {list(weight.shape)}",
            f"make the layer take them (in1_features={a[-1]}, in2_features={b[-1]}): weight has the shape (out, "
            "in1, in2)",
        )
    k, i, j = weight._array.shape
    if bias is not None and not isinstance(bias, Tensor):
        raise not_a_tensor("bilinear", "bias", 3, bias)
    if bias is not None and bias._array.shape != (k,):
        raise runtime_error(
            f"bilinear(): bias size does not match weight size: got {list(bias.shape)} but expected [{k}]"
        )
    for t in (input2, weight, bias):
        if t is not None:
            check_same_dtype(TABLE["linear"], (input1, t))
    n = prod(a[:-1])
    x = matmul(reshape(input1, (n, i)), reshape(permute(weight, (1, 0, 2)), (i, k * j)))
    out = r.sum(e.mul(reshape(x, (n, k, j)), reshape(input2, (n, 1, j))), (2,))
    out = reshape(out, (*a[:-1], k))
    return out if bias is None else e.add(out, bias)


# -- lengths and distances -------------------------------------------------------------------------


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(|x|_p, eps), lengths taken along `dim`.

    >>> rushlight.nn.functional.normalize(rushlight.tensor([[3., 4.]]))
    tensor([[0.6000, 0.8000]])
    """
    length = e.clamp_min(norm(input, p, dim, True), eps)
    return e.div(input, length, out=out)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`; the other dimensions broadcast.

    >>> rushlight.nn.functional.cosine_similarity(rushlight.tensor([1., 0.]), rushlight.tensor([1., 1.]), dim=0)
    tensor(0.7071)
    """
    try:
        shape = np.broadcast_shapes(x1._array.shape, x2._array.shape)
    except ValueError:
        raise runtime_error(mismatch((x1, x2))) from None
    dim = wrap(dim, len(shape))
    if x1.dtype is not x2.dtype:
        x1, x2 = promoted(TABLE["mul"], (x1, x2))
    check_dtypes("cosine_similarity", "f", x1, x2)
    x1, x2 = (expand(x, shape) if x._array.shape != shape else x for x in (x1, x2))
    one, two = (e.div(x, e.clamp_min(norm(x, 2.0, dim, True), eps)) for x in (x1, x2))
    return r.sum(e.mul(one, two), (dim,))


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """|x1 - x2 + eps|_p along the last dimension: (N, D) or (D,) -> (N,) or (), with 1 in its place for `keepdim`.

    >>> rushlight.nn.functional.pairwise_distance(rushlight.tensor([[0., 0.]]), rushlight.tensor([[3., 4.]]))
    tensor([5.0000])
    """
    return norm(e.add(e.sub(x1, x2), eps), p, -1, keepdim)


def pdist(input: Tensor, p: float = 2) -> Tensor:
    """|x_i - x_j|_p for all rows i < j of (N, M): (N (N - 1) / 2,). RuntimeError for other dimensions, or p < 0.

    >>> from rushlight.nn import functional as F
    >>> F.pdist(rushlight.tensor([[0., 0.], [3., 4.], [0., 1.]]))  # of rows 0 and 1, 0 and 2, 1 and 2
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input._array.ndim != 2:
        raise runtime_error(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    if p < 0:
        raise runtime_error("pdist only supports non-negative p values")
    check_dtypes("pdist", "f", input)
    n = input._array.shape[0]
    numbers = np.arange(n)
    pairs = np.flatnonzero(np.less.outer(numbers, numbers))
    if p == 2 and input._array.__class__ is np.ndarray and input.dtype.category == FLOATING:
        return apart(input, from_array(pairs))
    i, j = (from_array(k) for k in divmod(pairs, n))
    between = e.sub(input.index_select(0, i), input.index_select(0, j))
    if p == 0:  # its gradient is 0, while `norm` has none
        return vector_norm(between, 0.0, (1,))
    return farthest(between) if p == math.inf else norm(between, p, 1)
