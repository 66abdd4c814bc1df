"""Products of vectors and matrices beyond matmul, with torch's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, warn_once
from rushlight.core.arguments import check_dtypes, check_same_dtype, wrap
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor, method
from rushlight.creation.factories import eye, ones_like
from rushlight.ops.composites import composite, given
from rushlight.ops.linalg.arguments import check_square, check_tensor, with_names
from rushlight.ops.linalg.matmul import dot
from rushlight.ops.linalg.matmul_api import bmm, check_summed, matmul, outer, plus
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.arithmetic import Number, writing
from rushlight.ops.math.complex import conj
from rushlight.ops.math.rare_functions import crossed
from rushlight.ops.reduce.reduce import sum as total
from rushlight.ops.shape.views import cat, diagonal, overwrite, permute, reshape, to, unsqueeze
from rushlight.ops.tensor.node_names import called

composite("linalg_matmul")(matmul)


@composite()
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """out = sum over i of conj(input_i) other_i, for two vectors of one length.

    >>> rushlight.vdot(rushlight.tensor([1j, 2]), rushlight.tensor([1j, 1]))
    tensor(3.+0.j)
    """
    check_tensor(input, "vdot", "input")
    return given(out, dot(conj(input), other))


@composite("linalg_vecdot")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """out = sum over `dim` of conj(x) y; x and y broadcast.

    >>> rushlight.linalg.vecdot(rushlight.ones(2, 3), rushlight.ones(3))
    tensor([3., 3.])
    """
    check_tensor(x, "linalg.vecdot", "x")
    check_dtypes("linalg.vecdot", "fc", x)
    check_same_dtype(TABLE["dot"], (x, y))
    return given(out, total(e.mul(conj(x), y), dim))


@composite()
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """out[i, j] = sum over k of input[i, k] other[j, k], where i and j are multi-indices of all dimensions but the
    last.

    A 0-d operand multiplies. RuntimeError if the last dimensions differ.

    >>> rushlight.inner(rushlight.tensor([1., 2.]), rushlight.tensor([3., 4.]))
    tensor(11.)
    """
    check_tensor(input, "inner", "input")
    check_tensor(other, "inner", "other", 2)
    if input._array.ndim == 0 or other._array.ndim == 0:
        return given(out, e.mul(input, other))
    check_dtypes("inner", "uifc", input, other)
    if input._array.shape[-1] != other._array.shape[-1]:
        raise runtime_error(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
            f"{list(other.shape)}"
        )
    return given(out, tensordot(input, other, ([-1], [-1])))


@composite(tensor=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """The sum of products over pairs of dimensions: the last `dims` of a and the first of b, or two lists of
    dimensions.

    RuntimeError if two summed dimensions have different sizes; a dimension of size 1 broadcasts.

    >>> rushlight.tensordot(rushlight.ones(2, 3, 4), rushlight.ones(3, 4, 5), 2).shape
    torch.Size([2, 5])
    """
    in_a, in_b = contracted(a, b, dims)
    m, n = a._array.ndim, b._array.ndim
    for i, j in zip(in_a, in_b):
        if a._array.shape[i] == 1:
            b = total(b, (j,), True, dtype=b.dtype)
        elif b._array.shape[j] == 1:
            a = total(a, (i,), True, dtype=a.dtype)
        elif a._array.shape[i] != b._array.shape[j]:
            raise runtime_error(
                f"contracted dimensions need to match, but first has size {a._array.shape[i]} in dim {i} and "
                f"second has size {b._array.shape[j]} in dim {j}"
            )
    kept_a, kept_b = (
        [d for d in range(k) if d not in used] for k, used in ((m, {d % m for d in in_a}), (n, {d % n for d in in_b}))
    )
    shape = [a._array.shape[d] for d in kept_a] + [b._array.shape[d] for d in kept_b]
    middle = prod(a._array.shape[d] for d in in_a)
    left = reshape(permute(a, (*kept_a, *in_a)), (prod(a._array.shape[d] for d in kept_a), middle))
    right = reshape(permute(b, (*in_b, *kept_b)), (middle, prod(b._array.shape[d] for d in kept_b)))
    if prod(shape) == 1:  # `dot`, which autocast does not convert; for bool a sum of products
        left, right = reshape(left, (-1,)), reshape(right, (-1,))
        one = total(e.mul(left, right), dtype=left.dtype) if left.dtype is dtypes.bool_ else dot(left, right)
        return given(out, reshape(one, tuple(shape)))
    return given(out, reshape(matmul(left, right), tuple(shape)))


def contracted(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    """The dimensions that tensordot sums over, of both operands."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise runtime_error(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise runtime_error("tensordot expects dims < ndim_a or ndim_b, but got dims=" + str(dims))
        return list(range(-dims, 0)), list(range(dims))
    in_a, in_b = (list(d) if isinstance(d, Sequence) else [d] for d in dims)
    if len(in_a) != len(in_b):
        raise runtime_error("both dimension lists should have same length")
    return [wrap(d, a._array.ndim) for d in in_a], [wrap(d, b._array.ndim) for d in in_b]


@composite()
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: each element of input, times the whole of other.

    >>> rushlight.kron(rushlight.tensor([1, 10]), rushlight.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    check_tensor(input, "kron", "input")
    check_tensor(other, "kron", "other", 2)
    n = max(input._array.ndim, other._array.ndim)
    a, b = ([1] * (n - t._array.ndim) + list(t._array.shape) for t in (input, other))
    left = reshape(input, tuple(size for k in a for size in (k, 1)))
    right = reshape(other, tuple(size for k in b for size in (1, k)))
    return given(out, reshape(e.mul(left, right), tuple(i * j for i, j in zip(a, b))))


@composite()
def trace(input: Tensor) -> Tensor:
    """out = sum over i of input_ii, for a matrix.

    >>> rushlight.trace(rushlight.tensor([[1., 2.], [3., 4.]]))
    tensor(5.)
    """
    if input._array.ndim != 2:
        raise runtime_error(
            f"trace: expected a matrix, but got tensor with dim {input._array.ndim}",
            "for stacks of matrices: x.diagonal(dim1=-2, dim2=-1).sum(-1)",
        )
    check_dtypes("trace", "uifc", input)
    return called(total(diagonal(input)), "TraceBackward0")


@composite(factors=("beta", "alpha"))
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * sum over b of batch1[b] @ batch2[b]; with beta 0 the input is not read.

    >>> rushlight.addbmm(rushlight.zeros(2, 2), rushlight.ones(3, 2, 4), rushlight.ones(3, 4, 2))
    tensor([[12., 12.],
            [12., 12.]])
    """
    if batch1._array.ndim == batch2._array.ndim == 3 and len(batch1._array) != len(batch2._array):
        raise runtime_error(
            f"batch1 and batch2 must have same number of batches, got {len(batch1._array)} and {len(batch2._array)}"
        )
    check_summed(input, batch1)
    products = bmm(batch1, batch2)
    r = plus(input, total(products, (0,), dtype=products.dtype), beta, alpha)
    return given(out, called(r, "AddbmmBackward0"))


@composite(factors=("beta", "alpha"))
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * (vec1_i vec2_j); with beta 0 the input is not read.

    >>> rushlight.addr(rushlight.zeros(2, 2), rushlight.tensor([1., 2.]), rushlight.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    for i, v in enumerate((vec1, vec2)):
        if v._array.ndim != 1:
            raise runtime_error(f"addr: Expected 1-D argument vec{i + 1}, but got {v._array.ndim}-D")
    made = outer(vec1, vec2)
    made = to(made, dtypes.promote_types(made.dtype, input.dtype))  # the dtype of a number counts, too
    return given(out, called(plus(input, made, beta, alpha), "AddrBackward0"))


for function in (addbmm, addr):
    method(writing(function), function.__name__ + "_")


# -- chains ----------------------------------------------------------------------------------------


@composite("linalg_multi_dot", tensor=False)
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """tensors[0] @ tensors[1] @ ..., in the order that takes the fewest multiplications.

    The first and the last may be vectors, a row and a column. The order is found by dynamic programming over all ways
    to set brackets (Cormen et al., Introduction to Algorithms, 15.2).

    >>> rushlight.linalg.multi_dot([rushlight.ones(2, 3), rushlight.ones(3, 4), rushlight.ones(4)])
    tensor([12., 12.])
    """
    n = len(tensors)
    if n < 2:
        raise runtime_error(f"multi_dot(): expected at least 2 tensors but got {n}")
    for i, t in enumerate(tensors):
        check_tensor(t, "linalg.multi_dot", "tensors")
        if t._array.ndim != 2 and not (t._array.ndim == 1 and i in (0, n - 1)):
            allowed = "1D or 2D" if i in (0, n - 1) else "2D"
            raise runtime_error(f"multi_dot(): tensor {i} must be {allowed} but got {t._array.ndim}D")
    for i, (a, b) in enumerate(zip(tensors, tensors[1:])):
        if a._array.shape[-1] != b._array.shape[0]:
            raise runtime_error(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be "
                "multiplied"
            )
    sizes = [1 if tensors[0]._array.ndim == 1 else tensors[0]._array.shape[0], *[t._array.shape[-1] for t in tensors]]
    if tensors[-1]._array.ndim == 1:
        sizes[-2:] = [tensors[-1]._array.shape[0], 1]
    return given(out, multiplied(tensors, splits(sizes), 0, n - 1))


def splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """{(first, last): the best k after which to split matrices first ... last}; matrix i is sizes[i] x sizes[i + 1]."""
    n = len(sizes) - 1
    cost, best = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], best[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return best


def multiplied(tensors: Sequence[Tensor], best: dict, i: int, j: int) -> Tensor:
    """The product of the chain from i to j; the recursion is at most as deep as the chain is long."""
    if i == j:
        return tensors[i]
    k = best[i, j]
    return matmul(multiplied(tensors, best, i, k), multiplied(tensors, best, k + 1, j))


@composite(tensor=False)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """matrices[0] @ matrices[1] @ ..., in the order that takes the fewest multiplications: linalg.multi_dot.

    >>> rushlight.chain_matmul(rushlight.ones(2, 3), rushlight.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters."
    )
    for t in matrices:
        if t._array.ndim != 2:
            raise runtime_error(f"Tensor dimension is {t._array.ndim}, expected 2 instead.")
    return given(out, matrices[0]) if len(matrices) == 1 else multi_dot(matrices, out=out)


# -- cross products and powers ----------------------------------------------------------------------


@composite("linalg_cross", tensor=False)
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """input x other = (a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0), along `dim` of size 3; the other dimensions
    broadcast.

    >>> rushlight.linalg.cross(rushlight.tensor([1., 0., 0.]), rushlight.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    if input._array.ndim != other._array.ndim:
        raise runtime_error(
            "linalg.cross: inputs must have the same number of dimensions.",
            shapes=(tuple(input.shape), tuple(other.shape)),
        )
    d = wrap(dim, input._array.ndim)
    sizes = input._array.shape[d], other._array.shape[d]
    if sizes != (3, 3):
        raise runtime_error(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    return given(out, crossed(input, other, input._array.ndim - 1 - d))


@composite()
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """input x other = (a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0), along `dim`, by default the first dimension of
    size 3.

    >>> rushlight.cross(rushlight.tensor([[1., 0., 0.]]), rushlight.tensor([[0., 1., 0.]]), 1)
    tensor([[0., 0., 1.]])
    """
    if dim is None:
        if 3 not in input._array.shape:
            raise runtime_error("no dimension of size 3 in input", shape=tuple(input.shape))
        dim = input._array.shape.index(3)
    return linalg_cross(input, other, dim=dim, out=out)


@composite("linalg_matrix_power", tensor=False)
def matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """A @ A @ ... @ A, n times, by repeated squaring; for negative n, powers of the inverse; the identity for 0.

    RuntimeError unless the matrices are square; LinAlgError for a singular matrix and a negative n.

    >>> rushlight.linalg.matrix_power(rushlight.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    check_square(A, "linalg.matrix_power", numbers=False)
    n = index(n)
    if n < 0:
        A, n = A.inverse(), -n
    if n == 0:
        return given(out, overwrite(A, eye(A._array.shape[-1], dtype=A.dtype)))
    result: Tensor | None = None
    while True:
        n, odd = divmod(n, 2)
        if odd:
            result = A if result is None else matmul(result, A)
        if not n:
            return given(out, result.clone() if result is A else result)
        A = matmul(A, A)


composite("matrix_power")(with_names(matrix_power, "matrix_power", A="input"))


@composite("linalg_vander", tensor=False)
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """out[..., i, j] = x[..., i]^j for j < N: Vandermonde's matrix; N is the length of x by default.

    >>> rushlight.linalg.vander(rushlight.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    check_tensor(x, "linalg.vander", "x")
    x = unsqueeze(x, 0) if x._array.ndim == 0 else x
    count = x._array.shape[-1] if N is None else N
    if count <= 1:
        raise runtime_error("N must be greater than 1.")
    check_dtypes("linalg.vander", "uifc", x)
    return powers(x, count)


def powers(x: Tensor, count: int) -> Tensor:
    """x^0 to x^(count - 1) along a new last dimension, by repeated multiplication as in torch; `pow` would be much
    slower.
    """
    column = unsqueeze(x, -1)
    repeated = column.expand(*x.shape, count - 1).cumprod(-1)
    return cat((ones_like(column), repeated), -1)


@composite(tensor=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """out[i, j] = x_i^(N - 1 - j): Vandermonde's matrix of a vector; the powers rise if `increasing`.

    >>> rushlight.vander(rushlight.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    if x._array.ndim != 1:
        raise runtime_error("x must be a one-dimensional tensor.", shape=tuple(x.shape))
    count = x._array.shape[0] if N is None else N
    if count < 0:
        raise runtime_error("N must be non-negative.", N=N)
    if x.dtype.category < dtypes.FLOATING:
        x = x.long()
    out = powers(x, count) if count else unsqueeze(x, -1).expand(x._array.shape[0], 0).clone()
    return out if increasing else out.flip(-1)
