"""Norms of vectors and matrices, functions of norms, and distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, type_error, value_error
from rushlight.core.arguments import reduced_dims, wrap
from rushlight.core.tensor import Tensor, from_array, method, numbers
from rushlight.ops.composites import composite, given
from rushlight.ops.linalg.arguments import check_matrix, check_numbers, check_square, check_tensor
from rushlight.ops.linalg.decompose import linalg_eigvalsh, linalg_svdvals
from rushlight.ops.linalg.solve import linalg_inv_ex
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.arithmetic import writing
from rushlight.ops.reduce import reduce as r
from rushlight.ops.reduce import vector_norm as lengths
from rushlight.ops.reduce.reduce_api import check_identity
from rushlight.ops.shape.views import contiguous, permute, to, unsqueeze
from rushlight.ops.tensor.node_names import called

# -- of vectors ------------------------------------------------------------------------------------


@composite("linalg_vector_norm", tensor=False)
def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """(sum |x|^ord)^(1/ord) over `dim` (all if None); ord inf gives the largest |x|, -inf the smallest, 0 the number of
    nonzeros.

    Input: floating-point or complex; result: real. RuntimeError for an empty input with a negative `ord` or inf. The
    gradient at 0 is 0; elements that tie for the largest share it.

    >>> rushlight.linalg.vector_norm(rushlight.tensor([3., 4.]))
    tensor(5.)
    """
    check_tensor(x, "linalg.vector_norm", "x")
    check_numbers(x, "linalg.vector_norm", low=True)
    if isinstance(ord, str):
        raise type_error(
            "linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str",
            "linalg.matrix_norm supports 'fro' and 'nuc'",
        )
    x = in_dtype(x, dtype, "linalg.vector_norm")
    p = float(ord)
    axes = None if dim is None else reduced_dims(dim, x._array.ndim)
    check_identity(x, p, axes)
    return given(out, lengths.norm_of_order(x, p, axes, keepdim))


def in_dtype(x: Tensor, dtype: Any, name: str) -> Tensor:
    """x in `dtype`. RuntimeError for a narrower dtype, and for a real dtype of a complex x or the reverse."""
    if dtype is None:
        return x
    wanted = dtypes.as_dtype(dtype)
    if wanted.category < dtypes.FLOATING:
        raise runtime_error(f"{name}: dtype should be floating point or complex. Got {wanted.scalar_type}")
    if wanted.is_complex != x.dtype.is_complex:
        kind = "complex" if x.dtype.is_complex else "real"
        raise runtime_error(f"{name}: dtype should be {kind} for {kind} inputs. Got {wanted.scalar_type}")
    if wanted.numpy.itemsize < x._array.dtype.itemsize:
        raise runtime_error(
            f"{name}: the dtype of the input ({x.dtype.scalar_type}) should be convertible without narrowing to "
            f"the specified dtype ({wanted.scalar_type})"
        )
    return to(x, wanted)


# -- of matrices -----------------------------------------------------------------------------------


@composite("linalg_matrix_norm", tensor=False)
def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The norm of matrices in the dimensions `dim`: 'fro' sqrt(sum |A_ij|^2), 'nuc' the sum of singular values, 2 the
    largest singular value, -2 the smallest; 1 the largest column sum of |A_ij|, -1 the smallest; inf and -inf the same
    for row sums.

    RuntimeError for any other `ord`.

    >>> rushlight.linalg.matrix_norm(rushlight.tensor([[3., 0.], [0., 4.]]), "nuc")
    tensor(7.)
    """
    name = "linalg.matrix_norm"
    check_matrix(A, name, numbers=False)
    check_numbers(A, name, low=ord in ("fro", 1, -1, math.inf, -math.inf))
    A = in_dtype(A, dtype, name)
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) != 2:
        raise runtime_error(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    rows, columns = (wrap(d, A._array.ndim) for d in dims)
    if rows == columns:
        raise runtime_error(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim, out=out)
    if ord != "nuc" and (isinstance(ord, str) or abs(ord) not in (1, 2, math.inf)):
        raise runtime_error(f"{name}: Order {ord} not supported.")
    if ord == "nuc" or abs(ord) == 2:
        made = of_singular_values(A, ord, rows, columns)
    else:
        made = of_sums(A, ord, rows, columns)
    if keepdim:
        for d in sorted((rows, columns)):
            made = unsqueeze(made, d)
    return given(out, made)


def of_singular_values(A: Tensor, ord: Any, rows: int, columns: int) -> Tensor:
    rest = tuple(d for d in range(A._array.ndim) if d not in (rows, columns))
    values = linalg_svdvals(permute(A, (*rest, rows, columns)))
    if ord == "nuc":
        return r.sum(values, -1)
    return largest(values, -1) if ord > 0 else r.amin(values, -1)


def of_sums(A: Tensor, ord: float, rows: int, columns: int) -> Tensor:
    added, chosen = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = vector_norm(A, 1, added)
    chosen -= chosen > added
    return largest(sums, chosen) if ord > 0 else r.amin(sums, chosen)


def largest(x: Tensor, dim: int) -> Tensor:
    """The maximum of nonnegative numbers; 0 for an empty tensor."""
    return r.amax(x, dim) if x._array.shape[dim] else r.sum(x, dim)


@composite("linalg_norm", tensor=False)
def linalg_norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None, dtype: Any = None
) -> Tensor:
    """|A|, a norm of vectors or matrices: sqrt(sum |A_ij|^2) of all elements if neither `ord` nor `dim` is given.

    With one `dim`, or a vector, `linalg.vector_norm`; with two, or a matrix and an `ord`, `linalg.matrix_norm`.

    >>> rushlight.linalg.norm(rushlight.tensor([[3., 0.], [0., 4.]]), 2)
    tensor(4.)
    """
    check_tensor(A, "linalg.norm")
    if dim is not None:
        count = len(dim) if isinstance(dim, (tuple, list)) else 1
        if count not in (1, 2):
            raise runtime_error(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    elif ord is not None:
        count = A._array.ndim
        if count not in (1, 2):
            raise runtime_error(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {count}D."
            )
    if ord is not None and (isinstance(ord, str) or count == 2):
        pair = (0, 1) if dim is None and A._array.ndim == 2 else tuple(range(A._array.ndim)) if dim is None else dim
        return matrix_norm(A, ord, pair, keepdim, dtype=dtype, out=out)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


@composite("linalg_cond", tensor=False)
def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """|A| |A^-1|, in the norm `p` of `linalg.matrix_norm`; for 2 (None) the largest singular value divided by the
    smallest.

    inf for singular matrices. p = 2 and -2 accept any matrix, other p only square matrices.

    >>> rushlight.linalg.cond(rushlight.tensor([[2., 0.], [0., 1.]]))
    tensor(2.)
    """
    check_matrix(A, "linalg.cond")
    if p is None or p in (2, -2):
        values = linalg_svdvals(A)
        if not values._array.shape[-1]:
            return given(out, r.sum(values, -1))
        first, last = values.select(-1, 0), values.select(-1, -1)
        return given(out, e.div(last, first) if p == -2 else e.div(first, last))
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise runtime_error(f"linalg.cond got an invalid norm type: {p}")
    check_square(A, f"linalg.cond(ord={p})")
    if not A._array.size:
        return given(out, r.sum(linalg_svdvals(A), -1))
    inverse, info = linalg_inv_ex(A)
    made = e.mul(matrix_norm(A, p), matrix_norm(inverse, p))
    return given(out, e.where(info == 0, made, math.inf) if numbers(info).any() else made)


# -- rank ------------------------------------------------------------------------------------------


def tolerances(A: Tensor, atol: Any, rtol: Any) -> tuple[np.ndarray, np.ndarray]:
    """The absolute and the relative threshold below which singular values count as 0."""

    def numbers(value: Any) -> np.ndarray:
        return np.asarray(value._array if isinstance(value, Tensor) else 0.0 if value is None else value, np.float64)

    absolute, relative = numbers(atol), numbers(rtol)
    if rtol is None:  # a given atol replaces the default of rtol
        usual = max(A._array.shape[-2:], default=0) * float(np.finfo(A._array.dtype).eps)
        relative = np.where(absolute > 0, 0.0, usual)
    return absolute, np.asarray(relative)


@composite("linalg_matrix_rank", tensor=False, looks=True)
def matrix_rank(
    A: Tensor,
    *args: Any,
    tol: Any = None,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """rank = number of singular values > max(atol, rtol * the largest), int64; with `hermitian`, the number of such
    absolute eigenvalues.

    rtol is max(m, n) times the dtype's eps by default, and 0 if only `atol` is given; `tol` is another name of atol.

    >>> rushlight.linalg.matrix_rank(rushlight.tensor([[1., 2.], [2., 4.]]))
    tensor(1)
    """
    check_matrix(A, "torch.linalg.matrix_rank", "input")
    if args:  # NumPy's positional form, matrix_rank(A, tol, hermitian)
        tol, hermitian = args[0], args[1] if len(args) > 1 else hermitian
    if tol is not None:
        atol, rtol = tol, 0.0
    if hermitian:
        check_square(A, "linalg.matrix_rank")
    absolute, relative = tolerances(A, atol, rtol)
    x = from_array(A._array)
    sizes = np.abs(linalg_eigvalsh(x)._array) if hermitian else linalg_svdvals(x)._array
    if not sizes.shape[-1]:
        return given(out, from_array(np.zeros(sizes.shape[:-1], np.int64)))
    least = np.maximum(absolute, relative * sizes.max(-1))
    return given(out, from_array(np.asarray((sizes > least[..., None]).sum(-1, np.int64))))


# -- distances -------------------------------------------------------------------------------------


@composite()
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other; the shapes broadcast.

    >>> rushlight.dist(rushlight.tensor([3., 0.]), rushlight.tensor([0., 4.]))
    tensor(5.)
    """
    return called(vector_norm(e.sub(input, other), p), "DistBackward0")


@composite(tensor=False)
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """out[..., i, j] = the p-norm of x1[..., i, :] - x2[..., j, :].

    x1: (..., m, n), x2: (..., k, n) -> (..., m, k); leading dimensions broadcast. A matrix product is used only for
    points that are far apart, for every `compute_mode`, because it would lose the digits of small distances.
    RuntimeError for p < 0.

    >>> rushlight.cdist(rushlight.tensor([[0., 0.]]), rushlight.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    check_points(x1, x2, p)
    euclid = "use_mm_for_euclid_dist"
    if compute_mode not in (None, euclid, f"{euclid}_if_necessary", f"donot_{euclid}"):
        raise value_error(f"{compute_mode} is not a valid value for compute_mode")
    if p == 2:
        return lengths.euclidean(x1, x2)
    between = e.sub(unsqueeze(x1, -2), unsqueeze(x2, -3))
    if p == math.inf:
        return lengths.farthest(between)
    return lengths.vector_norm(between, float(p), (between._array.ndim - 1,))


def check_points(x1: Tensor, x2: Tensor, p: float) -> None:
    for i, t in enumerate((x1, x2)):
        check_tensor(t, "cdist", f"x{i + 1}", i + 1)
        if t.dtype.category != dtypes.FLOATING:
            raise runtime_error(f"cdist only supports floating-point dtypes, X{i + 1} got: {t.dtype.scalar_type}")
        if t._array.ndim < 2:
            raise runtime_error(f"cdist only supports at least 2D tensors, X{i + 1} got: {t._array.ndim}D")
    if x1._array.shape[-1] != x2._array.shape[-1]:
        raise runtime_error(
            f"X1 and X2 must have the same number of columns. X1: {x1._array.shape[-1]} X2: {x2._array.shape[-1]}"
        )
    if p < 0:
        raise runtime_error("cdist only supports non-negative p values")


@composite()
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
    """input, with slices along `dim` scaled down to the p-norm `maxnorm` if their norm is larger.

    >>> rushlight.renorm(rushlight.tensor([[3., 4.], [0., 1.]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    check_tensor(input, "renorm", "input")
    if p <= 0:
        raise runtime_error("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise runtime_error(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    ndim = input._array.ndim
    if ndim < 2:
        raise runtime_error(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    kept = wrap(dim, ndim)
    half = input.dtype in (dtypes.float16, dtypes.bfloat16)  # half precision may not hold a norm
    x = to(input, dtypes.float32) if half else input
    sizes = vector_norm(x, p, tuple(d for d in range(ndim) if d != kept), True)
    factor = e.where(sizes > maxnorm, e.div(maxnorm, e.add(sizes, 1e-7)), 1)
    if not half:
        return given(out, contiguous(e.mul(input, factor)))
    rounded = to(to(factor, input.dtype), dtypes.float32)  # rounded as in torch; the gradient is not rounded
    factor = e.add(factor, e.sub(rounded, factor).detach())
    return given(out, contiguous(to(e.mul(x, factor), input.dtype)))


method(writing(renorm), "renorm_")
