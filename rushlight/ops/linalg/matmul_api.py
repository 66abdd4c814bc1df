"""Products of matrices with torch's signatures, and transposes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import NoArray, check_kinds, runtime_error, warn_once
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, assign_property, from_array, method
from rushlight.core.views import filled, into, unregistered
from rushlight.ops.composites import composite
from rushlight.ops.linalg.arguments import check_tensor
from rushlight.ops.linalg.matmul import dot, mv
from rushlight.ops.linalg.matmul import mm as product
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.arithmetic import Number, writing
from rushlight.ops.math.arithmetic import times as multiplied
from rushlight.ops.shape.views import permute, transpose
from rushlight.ops.tensor.node_names import called


@composite()
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """out[..., i, j] = sum over k of input[..., i, k] other[..., k, j]; 1-d operands are a row and a column.

    Leading dimensions broadcast. The operands have one dtype. RuntimeError for shapes that do not fit.

    >>> rushlight.matmul(rushlight.ones(2, 3), rushlight.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    try:
        m, n = input._array.ndim, other._array.ndim
    except NoArray as sparse:
        return filled(out, sparse.instead("matmul", input, other))
    except AttributeError:
        check_kinds("matmul", [("input", "Tensor", input), ("other", "Tensor", other)])
        raise
    if m >= 2 and n >= 2:
        r = product(input, other)
    elif m == 0 or n == 0:
        raise runtime_error(
            f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D",
            "use * for a product with a number",
        )
    elif n == 1 and m <= 2:
        r = dot(input, other) if m == 1 else mv(input, other)
    elif m == 1:
        r = unregistered(product(input.unsqueeze(0), other).squeeze(-2))
    else:
        r = unregistered(product(input, other.unsqueeze(1)).squeeze(-1))
    return r if out is None else into(out, r)


@composite()
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """out_ij = sum over k of input_ik mat2_kj, for two matrices. RuntimeError for other dimensions: use `matmul`.

    >>> rushlight.mm(rushlight.ones(2, 3), rushlight.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    try:
        for name, t in (("self", input), ("mat2", mat2)):
            if isinstance(t, Tensor) and t._array.ndim != 2:
                raise runtime_error(
                    f"{name} must be a matrix",
                    "use matmul for other shapes",
                    op="mm",
                    inputs=f"{tuple(input.shape)}, {tuple(mat2.shape)}",
                )
    except NoArray as sparse:
        return filled(out, sparse.instead("mm", input, mat2))
    except AttributeError:
        check_kinds("mm", [("input", "Tensor", input), ("mat2", "Tensor", mat2)])
        raise
    return product(input, mat2, out=out)


@composite()
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """out[b] = input[b] @ mat2[b], for two stacks with the same number of matrices.

    >>> rushlight.bmm(rushlight.ones(5, 2, 3), rushlight.ones(5, 3, 4)).shape
    torch.Size([5, 2, 4])
    """
    try:
        for i, t in enumerate((input, mat2)):
            if t._array.ndim != 3:
                raise runtime_error(
                    f"batch{i + 1} must be a 3D tensor", "use matmul for other shapes", shape=tuple(t.shape)
                )
    except NoArray as sparse:
        return filled(out, sparse.instead("bmm", input, mat2))
    except AttributeError:
        check_kinds("bmm", [("input", "Tensor", input), ("mat2", "Tensor", mat2)])
        raise
    if input._array.shape[0] != mat2._array.shape[0] or input._array.shape[2] != mat2._array.shape[1]:
        raise runtime_error(
            f"Expected size for first two dimensions of batch2 tensor to be: [{input._array.shape[0]}, "
            f"{input._array.shape[2]}] but got: [{mat2._array.shape[0]}, {mat2._array.shape[1]}]."
        )
    r = product(input, mat2)
    return r if out is None else into(out, r)


@composite()
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """out_ij = input_i vec2_j, for two vectors.

    >>> rushlight.outer(rushlight.tensor([1., 2.]), rushlight.tensor([1., 10., 100.]))
    tensor([[  1.,  10., 100.],
            [  2.,  20., 200.]])
    """
    check_tensor(input, "outer", "input")
    check_tensor(vec2, "outer", "vec2", 2)
    if input._array.ndim != 1 or vec2._array.ndim != 1:
        raise runtime_error(
            f"outer: Expected 1-D argument self and vec2, but got {input._array.ndim}-D and {vec2._array.ndim}-D"
        )
    return e.mul(input.unsqueeze(1), vec2, out=out)


composite("ger")(outer)


@composite(factors=("beta", "alpha"))
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2); with beta 0 the input is not read.

    >>> rushlight.addmm(rushlight.ones(1, 1), rushlight.tensor([[1., 2.]]), rushlight.tensor([[3.], [4.]]), beta=10)
    tensor([[21.]])
    """
    return plus_product(input, mat1, mat2, of_matrices, beta, alpha, out, "AddmmBackward0")


@composite(factors=("beta", "alpha"))
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * (mat @ vec); with beta 0 the input is not read.

    >>> rushlight.addmv(rushlight.ones(1), rushlight.tensor([[1., 2.]]), rushlight.tensor([3., 4.]), beta=10)
    tensor([21.])
    """
    return plus_product(input, mat, vec, on_a_vector, beta, alpha, out, "AddmvBackward0")


@composite(factors=("beta", "alpha"))
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2), matrix by matrix; with beta 0 the input is not read.

    >>> rushlight.baddbmm(rushlight.ones(2, 1, 1), rushlight.ones(2, 1, 3), rushlight.ones(2, 3, 1)).flatten()
    tensor([4., 4.])
    """
    return plus_product(input, batch1, batch2, bmm, beta, alpha, out, "BaddbmmBackward0")


def plus_product(
    input: Tensor, x: Tensor, y: Tensor, times: Callable, beta: Number, alpha: Number, out: Tensor | None, name: str
) -> Tensor:
    """beta input + alpha times(x, y); half precision is rounded once."""
    check_summed(input, x)
    r = called(in_single(lambda a, x, y: plus(a, times(x, y), beta, alpha), input, x, y), name)
    return r if out is None else into(out, r)


def check_summed(input: Tensor, factor: Tensor) -> None:
    """RuntimeError unless the addend of a product has the dtype of its factors."""
    if input.dtype is not factor.dtype:
        raise runtime_error(
            f"self and mat2 must have the same dtype, but got {input.dtype.scalar_type} and {factor.dtype.scalar_type}",
            "convert one with .to(dtype)",
        )


def of_matrices(mat1: Tensor, mat2: Tensor) -> Tensor:
    for name, t in (("mat1", mat1), ("mat2", mat2)):
        if t.ndim != 2:
            raise runtime_error(f"{name} must be a matrix, got {t.ndim}-D tensor", "input + mat1 @ mat2")
    return matmul(mat1, mat2)


def on_a_vector(mat: Tensor, vec: Tensor) -> Tensor:
    if (mat.ndim, vec.ndim) != (2, 1):
        raise runtime_error(
            f"vector + matrix @ vector expected, got {mat.ndim}-D @ {vec.ndim}-D", "for other shapes: input + mat @ vec"
        )
    return matmul(mat, vec)


def in_single(f: Callable, *tensors: Tensor) -> Tensor:
    """f(*tensors). If all tensors have the same half-precision dtype, f is computed in float32 and rounded once."""
    dtype = tensors[0].dtype
    if dtype.itemsize != 2 or not dtype.is_floating_point or any([t.dtype is not dtype for t in tensors]):
        return f(*tensors)
    return f(*[t.to(dtypes.float32) for t in tensors]).to(dtype)


def plus(input: Tensor, r: Tensor, beta: Number, alpha: Number) -> Tensor:
    """beta input + alpha r; with beta 0 the input is not read."""
    if r.dtype.category < dtypes.FLOATING:  # integers take integer factors
        whole = bool if r.dtype is dtypes.bool_ else int
        beta, alpha = whole(beta), whole(alpha)  # type: ignore[arg-type]
    r = r if alpha == 1 else multiplied(r, alpha)
    if beta == 0 and not (input.requires_grad and mode().grad):
        return r
    both = e.add(r, input if beta == 1 else multiplied(input, beta) if beta else e.where(NOWHERE, input, 0))
    if both.shape != r.shape:
        raise runtime_error(
            f"input of shape {list(input.shape)} does not expand to the product's {list(r.shape)}",
            "to broadcast both: input + product",
        )
    return both


# the condition of `where` for beta 0, false everywhere: nan in the input is ignored, its gradient is 0; read-only
NOWHERE = from_array(np.broadcast_to(np.False_, ()))


for function in (addmm, addmv, baddbmm):
    method(writing(function), function.__name__ + "_")


# -- transposes as properties ----------------------------------------------------------------------


def t(input: Tensor) -> Tensor:
    """out_ij = input_ji: the transpose of a matrix, as a view. A vector or a 0-d tensor is returned unchanged;
    RuntimeError for more dimensions.

    >>> rushlight.t(rushlight.tensor([[1., 2., 3.]])).shape
    torch.Size([3, 1])
    """
    if input._array.ndim > 2:
        raise runtime_error(
            f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D", "use .mT or permute()"
        )
    return called(transpose(input, 0, int(input._array.ndim == 2)), "TBackward0")


def reversed_dims(self: Tensor) -> Tensor:
    """The dimensions in reverse order."""
    if self._array.ndim != 2:
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
            if self._array.ndim
            else "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases."
        )
    return permute(self, tuple(range(self._array.ndim))[::-1])


def matrix_transpose(self: Tensor, name: str = "mT") -> Tensor:
    """The last two dimensions swapped; a 0-d tensor is returned unchanged."""
    if self._array.ndim == 1:
        raise runtime_error(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor.", "unsqueeze it"
        )
    return transpose(self, -2, -1) if self._array.ndim else self


def conjugate_transpose(self: Tensor, name: str = "mH") -> Tensor:
    """The last two dimensions swapped, and conjugated; a 0-d tensor is conjugated."""
    turned = matrix_transpose(self, name)
    return e.conj(turned) if self.is_complex() else turned


def of_one_matrix(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self._array.ndim > 2:
        raise runtime_error(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self._array.ndim}-D tensor.",
            "for batches of matrices use .mH",
        )
    return conjugate_transpose(self, "H")


composite("t")(t)
assign_property("T", reversed_dims)
assign_property("mT", matrix_transpose)
assign_property("H", of_one_matrix)
assign_property("mH", conjugate_transpose)
