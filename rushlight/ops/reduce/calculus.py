"""Differences, slopes and integrals of samples along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.base import dtypes
from rushlight.base.errors import index_error, runtime_error, type_error
from rushlight.core.arguments import check_dtypes, wrap, wrap_dims
from rushlight.core.tensor import Tensor
from rushlight.ops.composites import composite, given
from rushlight.ops.math.arithmetic import over, times
from rushlight.ops.math.elementwise import logical_xor
from rushlight.ops.reduce.reduce import sum as total
from rushlight.ops.reduce.reduce_api import cumsum
from rushlight.ops.shape.views import cat, clone, narrow, reshape, to


def ends(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """All but the last element, and all but the first."""
    n = x._array.shape[dim]
    return narrow(x, dim, 0, max(n - 1, 0)), narrow(x, dim, min(n, 1), max(n - 1, 0))


@composite()
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """x_(i+1) - x_i along `dim`, repeated n times; `prepend` and `append` are joined to the ends first.

    For bool tensors, whether neighbours differ. RuntimeError for a 0-d tensor, n < 0, and ends of other dimensions.

    >>> rushlight.diff(rushlight.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if not input._array.ndim:
        raise runtime_error("diff expects input to be at least one-dimensional", "x.reshape(1)")
    if n < 0:
        raise runtime_error(f"order must be non-negative but got {n}")
    for end in (prepend, append):
        if end is not None and end._array.ndim != input._array.ndim:
            raise runtime_error(
                "diff expects prepend or append to be the same dimension as input",
                input=tuple(input.shape),
                end=tuple(end.shape),
            )
    dim = wrap(dim, input._array.ndim)
    for end in (prepend, append):
        if end is not None and any(
            m != n for i, (m, n) in enumerate(zip(end._array.shape, input._array.shape)) if i != dim
        ):
            raise runtime_error(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                "differencing dimension",
                input=tuple(input.shape),
                end=tuple(end.shape),
            )
    parts = [t for t in (prepend, input, append) if t is not None]
    made = clone(input) if not n else cat(parts, dim) if len(parts) > 1 else input
    for _ in range(min(n, made._array.shape[dim])):
        first, second = ends(made, dim)
        made = logical_xor(second, first) if made.dtype is dtypes.bool_ else second - first
    return given(out, made)


# -- areas -----------------------------------------------------------------------------------------


@composite(tensor=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """sum over i of (x_(i+1) - x_i) (y_i + y_(i+1)) / 2 along `dim`: the area under y by the trapezoid rule.

    `x`: the sample points, in one dimension or in y's shape; without `x` the distance between samples is `dx` (default
    1). RuntimeError for bool tensors and for another number of points.

    >>> rushlight.trapezoid(rushlight.tensor([1., 2., 3.]))
    tensor(4.)
    """
    if not y._array.ndim:
        raise index_error(f"Dimension specified as {dim} but tensor has no dimensions")
    if not y._array.shape[dim]:
        return to(total(y, dim), y.dtype).detach()
    return areas("trapezoid", y, x, dx, dim)


@composite(tensor=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The areas up to each sample except the first, by the trapezoid rule; arguments as in `trapezoid`.

    >>> rushlight.cumulative_trapezoid(rushlight.tensor([1., 2., 3.]))
    tensor([1.5000, 4.0000])
    """
    if not y._array.ndim:
        raise index_error("slice() cannot be applied to a 0-dim tensor.")
    return areas("cumulative_trapezoid", y, x, dx, dim)


@composite(tensor=False)
def trapz(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """out = sum of (y_i + y_(i + 1)) / 2 (x_(i + 1) - x_i): the old name of `trapezoid`.

    >>> rushlight.trapz(rushlight.tensor([1., 2., 3.]))
    tensor(4.)
    """
    return trapezoid(y, x, dim=dim) if x is not None else trapezoid(y, dx=dx, dim=dim)


def areas(name: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    """The sum of (x_(i+1) - x_i) (y_i + y_(i+1)) / 2, or the running sums, in torch's order of additions."""
    for letter, t in (("y", y), ("x", x)):
        if t is not None and t.dtype is dtypes.bool_:
            raise runtime_error(f"{name}: received a bool input for `{letter}`, but bool is not supported")
    if x is not None and dx is not None:
        raise type_error(f"{name}() takes x or dx, not both")
    dim = wrap(dim, y._array.ndim)
    if x is None or not x._array.ndim:  # a single point has no width
        width = 0 if x is not None else 1 if dx is None else dx
        if name == "trapezoid":
            return times(total(y, dim) - times(y.select(dim, 0) + y.select(dim, -1), 0.5), width)
        first, second = ends(y, dim)
        return cumsum(times(first + second, width / 2), dim)
    if x._array.shape[-1 if x._array.ndim == 1 else dim] != y._array.shape[dim]:
        raise runtime_error(
            f"{name}: There must be one `x` value for each sample point", x=tuple(x.shape), y=tuple(y.shape), dim=dim
        )
    if x._array.ndim == 1:
        x = reshape(x, (-1,) + (1,) * (y._array.ndim - dim - 1))
    left, right = ends(x, dim - y._array.ndim + x._array.ndim)
    first, second = ends(y, dim)
    both = (right - left) * (first + second)
    return over((total if name == "trapezoid" else cumsum)(both, dim), 2)


# -- slopes ----------------------------------------------------------------------------------------


@composite(tensor=False)
def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """dx/dt_d for each dimension d in `dim` (all): central differences inside, one-sided differences at the ends.

    `spacing`: the distance between samples, one number or a number for each dimension; or the coordinates, a tensor for
    each dimension. `edge_order` 1 or 2: the order of the error at the ends. RuntimeError if the spacing does not fit,
    and for dimensions of no more than `edge_order` elements.

    >>> rushlight.gradient(rushlight.tensor([1., 4., 9., 16.]))
    (tensor([3., 4., 6., 7.]),)
    """
    check_dtypes("gradient", "bifc", input)
    dims = range(input._array.ndim) if dim is None else wrap_dims(dim, input._array.ndim)
    spacings = each_spacing(input, spacing, dims, dim is not None)
    if edge_order not in (1, 2):
        raise runtime_error("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in dims:
        if input._array.shape[d] < edge_order + 1:
            raise runtime_error(
                "torch.gradient expected each dimension size to be at least edge_order+1",
                shape=tuple(input.shape),
                edge_order=edge_order,
            )
    x = input if input.dtype.category >= dtypes.FLOATING else to(input, dtypes.get_default_dtype())
    return tuple(slope(x, d, h, edge_order) for d, h in zip(dims, spacings))


def each_spacing(input: Tensor, spacing: Any, dims: Sequence[int], chosen: bool) -> list:
    """The spacing of each dimension: a number or a tensor of coordinates."""
    if not isinstance(spacing, (list, tuple)):
        return [1 if spacing is None else spacing] * len(dims)
    what = "torch.gradient expected spacing to be unspecified, a scalar "
    if len(spacing) != len(dims) and chosen:
        raise runtime_error(
            f"{what}or it's spacing and dim arguments to have the same length, but got a spacing argument of "
            f"length {len(spacing)} and a dim argument of length {len(dims)}."
        )
    if len(spacing) != len(dims):
        raise runtime_error(
            f"{what}or a list of length equal to 'self.dim() = {len(dims)}', since dim argument was not given, "
            f"but got a list of length {len(spacing)}"
        )
    for d, h in zip(dims, spacing):
        if isinstance(h, Tensor) and h._array.ndim and h._array.shape != input._array.shape[d : d + 1]:
            raise runtime_error(
                "torch.gradient expected one coordinate for each element along a dimension",
                dim=d,
                coordinates=tuple(h.shape),
                shape=tuple(input.shape),
            )
    return list(spacing)


def slope(x: Tensor, dim: int, h: Any, order: int) -> Tensor:
    """The gradient along one dimension; h is a number, or the coordinates."""
    n = x._array.shape[dim]
    regular = not isinstance(h, Tensor) or not h._array.ndim
    if not regular:  # distances between neighbours: (n - 1, 1, ...)
        first, second = ends(h, 0)
        h = reshape(second - first, (-1,) + (1,) * (x._array.ndim - dim - 1))

    def at(i: int, count: int = 1) -> Any:
        return narrow(x, dim, i, count)

    def gap(i: int, count: int = 1) -> Any:
        return h if regular else narrow(h, 0, i, count)

    inside = (
        divided(at(2, n - 2) - at(0, n - 2), 2 * h)
        if regular
        else weighted(at(0, n - 2), at(1, n - 2), at(2, n - 2), gap(0, n - 2), gap(1, n - 2))
    )
    if order == 1:
        head = divided(at(1) - at(0), gap(0))
        tail = divided(at(n - 1) - at(n - 2), gap(n - 2))
    else:
        head = one_sided(at(0), at(1), at(2), gap(0), gap(1))
        tail = one_sided(at(n - 1), at(n - 2), at(n - 3), -gap(n - 2), -gap(n - 3))
    return cat([head, inside, tail], dim)


def divided(x: Tensor, h: Any) -> Tensor:
    return x / h if isinstance(h, Tensor) else over(x, h)


def weighted(before: Any, here: Any, after: Any, left: Any, right: Any) -> Any:
    """The slope at the middle of three points: the slope of the parabola through them."""
    both = left + right
    return -right / (left * both) * before + (right - left) / (left * right) * here + left / (right * both) * after


def one_sided(here: Any, next: Any, last: Any, near: Any, far: Any) -> Any:
    """The slope at the first of three points: the slope of the parabola through them."""
    both = near + far
    parts = ((-(near + both) / (near * both), here), (both / (near * far), next), (-near / (far * both), last))
    first, second, third = (factor * x if isinstance(factor, Tensor) else times(x, factor) for factor, x in parts)
    return first + second + third
