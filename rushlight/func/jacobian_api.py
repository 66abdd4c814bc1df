"""Derivatives of functions: Jacobians, Hessians, and their products with vectors.

For y = f(x): J[i, j] = d y_i / d x_j; vjp gives v' J, jvp gives J v. For f that returns one number: H[i, j] = d^2 y / d
x_i d x_j; vhp gives v' H, hvp gives H v. Inputs, outputs and results are tensors or tuples of tensors. Without
`create_graph` the results are outside the graph. `strict`: RuntimeError if an output does not depend on an input,
instead of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.errors import not_implemented_error, runtime_error, type_error
from rushlight.core.backward import grad
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.creation.factories import ones_like, zeros_like
from rushlight.func import vjp_transform
from rushlight.func.jacobians import along_basis, jacfwd
from rushlight.ops.grad_mode import enable_grad
from rushlight.ops.shape.views import reshape, stack

Tensors = tuple[Tensor, ...]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(f(x), v' J): the gradient of the outputs weighted by `v`, which is optional if the output is one number.

    RuntimeError if `v` does not fit the outputs.

    >>> x, v = rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, 1.0])
    >>> rushlight.autograd.functional.vjp(lambda x: x * x, x, v)
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    xs, ys, tuples = run(func, inputs, create_graph, "vjp")
    products = derivative(ys, xs, fitting(v, ys, "vjp"), create_graph, strict, "vjp")
    return packed(ys, tuples[1], create_graph), packed(products, tuples[0], create_graph)


def jvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(f(x), J v): how fast the outputs change when the inputs move along `v`.

    >>> x, v = rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, 0.0])
    >>> rushlight.autograd.functional.jvp(lambda x: x * x, x, v)
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    xs, ys, tuples = run(func, inputs, create_graph, "jvp")
    along = pushed(ys, xs, fitting(v, xs, "jvp"), create_graph, strict, "jvp")
    return packed(ys, tuples[1], create_graph), packed(along, tuples[1], create_graph)


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """J[i, j] = d y_i / d x_j: for an output and an input a tensor of shape output.shape + input.shape.

    A tuple of inputs gives a tuple of Jacobians; a tuple of outputs, a tuple with one such result per output.
    `vectorize`: all rows at once, by `func.vmap`; with `strategy="forward-mode"`, all columns. AssertionError for
    another strategy, NotImplementedError or RuntimeError for incompatible arguments.

    >>> rushlight.autograd.functional.jacobian(lambda x: x * x, rushlight.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_strategy(strategy, vectorize, create_graph, strict)
    if strategy == "forward-mode":
        return forward(func, inputs)
    xs, ys, tuples = run(func, inputs, create_graph, "jacobian")
    with enable_grad():
        table = [rows_of(y, xs, create_graph, strict, vectorize) for y in ys]
    found = tuple([packed(row, tuples[0], create_graph) for row in table])
    return found if tuples[1] else found[0]


def check_strategy(strategy: str, vectorize: bool, create_graph: bool, strict: bool) -> None:
    """Raise the errors of `jacobian` for incompatible arguments."""
    name = "torch.autograd.functional.jacobian: "
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    forward = strategy == "forward-mode"
    if forward and create_graph:
        raise not_implemented_error(
            f'{name}`create_graph=True` and `strategy="forward-mode"` are not supported together (yet).',
            'strategy="reverse-mode", or func.jacfwd',
        )
    if forward and strict:
        raise runtime_error(
            f'{name}`strict=True` and `strategy="forward-mode"` are not supported together (yet).', "set strict=False"
        )
    if forward and not vectorize:
        raise not_implemented_error(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`.",
            "set vectorize=True",
        )
    if vectorize and strict:
        raise runtime_error(
            f"{name}`strict=True` and `vectorized=True` are not supported together.",
            "set strict=False or vectorize=False",
        )


def forward(func: Callable, inputs: Any) -> Any:
    """The Jacobian by `func.jacfwd`, which ignores grad mode."""
    xs = as_tuple(inputs, "inputs given to", "jacobian")

    def checked(*xs: Tensor) -> Any:
        outputs = func(*xs)
        as_tuple(outputs, "outputs of the user-provided function given to", "jacobian")
        return outputs

    found = jacfwd(checked, tuple(range(len(xs))))(*xs)
    several = isinstance(found[0], tuple)  # several outputs: each has a tuple of inputs
    table = [packed(row, isinstance(inputs, tuple), True) for row in (found if several else (found,))]
    return tuple(table) if several else table[0]


def rows_of(y: Tensor, xs: Tensors, create_graph: bool, strict: bool, vectorize: bool) -> Tensors:
    """The derivatives of each element of y by each input, of shape y.shape + x.shape."""
    if vectorize and y.numel():
        found = along_basis(lambda v: derivative((y,), xs, (v,), create_graph, False, "jacobian"), [y], None)
        return tuple([J.reshape((*y.shape, *x.shape)) for J, x in zip(found, xs)])
    rows = []
    for seed in np.eye(y.numel(), dtype=y._array.dtype):
        seeds = (created(from_array(seed.reshape(y._array.shape))),)
        rows.append(derivative((y,), xs, seeds, create_graph, strict, "jacobian"))
    if not rows:
        return tuple([created(from_array(np.zeros(y._array.shape + x._array.shape, x._array.dtype))) for x in xs])
    return tuple([reshape(stack(column, 0), (*y._array.shape, *x._array.shape)) for column, x in zip(zip(*rows), xs)])


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """H[i, j] = d^2 y / d x_i d x_j, of shape input.shape + input.shape; tuples of tuples for a tuple of inputs.

    RuntimeError unless `func` returns one number. `vectorize` and `outer_jacobian_strategy` as in `jacobian`, for the
    derivative of the gradient.

    >>> rushlight.autograd.functional.hessian(lambda x: (x ** 3).sum(), rushlight.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """

    def number(*xs: Tensor) -> Tensor:
        return one_number(func(*xs), "hessian").reshape(())

    def gradient(*xs: Tensor) -> Any:
        # the gradient of dual numbers, also inside no_grad
        if outer_jacobian_strategy == "forward-mode":
            found = vjp_transform.grad(number, tuple(range(len(xs))))(*xs)
            return found if isinstance(inputs, tuple) else found[0]
        y = one_number(func(*xs), "hessian")
        found = derivative((y,), xs, (ones_like(y),), True, strict, "hessian")
        if strict:
            check_curved(found, "hessian")
        return found if isinstance(inputs, tuple) else found[0]

    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(f(x), v' H), for `v` like the inputs.

    >>> x, v = rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, 1.0])
    >>> rushlight.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, v)
    (tensor(9.), tensor([ 6., 12.]))
    """
    xs, ys, tuples, vs, gradients = gradients_of(func, inputs, v, create_graph, strict, "vhp")
    products = derivative(gradients, xs, vs, create_graph, strict, "vhp")
    return packed(ys, tuples[1], create_graph), packed(products, tuples[0], create_graph)


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(f(x), H v), H[i, j] = d^2 f / d x_i d x_j. Equals `vhp`, because H is symmetric, except at kinks of f.

    >>> x, v = rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, 1.0])
    >>> rushlight.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, v)
    (tensor(9.), tensor([ 6., 12.]))
    """
    xs, ys, tuples, vs, gradients = gradients_of(func, inputs, v, create_graph, strict, "hvp")
    along = pushed(gradients, xs, vs, create_graph, strict, "hvp")
    return packed(ys, tuples[1], create_graph), packed(along, tuples[0], create_graph)


# -- shared helpers --------------------------------------------------------------------------------


def gradients_of(func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool, who: str) -> tuple:
    """(inputs, outputs, (whether inputs, outputs were tuples), `v` as a tuple, recorded gradients)."""
    xs, ys, tuples = run(func, inputs, create_graph, who)
    y = one_number(ys[0] if len(ys) == 1 else ys, who)
    vs = fitting(v, xs, who)
    with enable_grad():
        gradients = derivative((y,), xs, (ones_like(y),), True, strict, who)
    if strict:
        check_curved(gradients, who)
    return xs, ys, tuples, vs, gradients


def run(func: Callable, inputs: Any, create_graph: bool, name: str) -> tuple[Tensors, Tensors, tuple[bool, bool]]:
    """(inputs that require grad, outputs, (whether the inputs, whether the outputs were a tuple))."""
    given = as_tuple(inputs, "inputs given to", name)
    with enable_grad():
        xs = tuple([x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given])
        outputs = func(*xs)
    ys = as_tuple(outputs, "outputs of the user-provided function given to", name)
    return xs, ys, (isinstance(inputs, tuple), isinstance(outputs, tuple))


def as_tuple(value: Any, what: str, name: str) -> Tensors:
    found = value if isinstance(value, tuple) else (value,)
    for part in found:
        if not isinstance(part, Tensor):
            raise type_error(
                f"The {what} {name} must be either a Tensor or a tuple of Tensors but the given value has type "
                f"{type(part).__name__}"
            )
    return found


def packed(values: Tensors, several: bool, create_graph: bool) -> Any:
    """`values` as a tuple if `several`, else its one tensor; outside the graph unless `create_graph`."""
    found = values if create_graph else tuple([t.detach() for t in values])
    return found if several else found[0]


def fitting(v: Any, to: Tensors, name: str) -> Tensors:
    """The vectors `v` as a tuple, checked to have the shapes of the tensors `to`."""
    if v is None:
        if len(to) != 1 or to[0].numel() != 1:
            raise runtime_error(
                f"{name}: the vector v can only be None if it would have one element",
                "pass v with the same shapes",
                shapes=[tuple(t.shape) for t in to],
            )
        return (ones_like(to[0]),)
    vs = as_tuple(v, "v given to", name)
    if [t.shape for t in vs] != [t.shape for t in to]:
        raise runtime_error(
            f"{name}: v has shapes {[tuple(t.shape) for t in vs]}, but needs {[tuple(t.shape) for t in to]}",
            "pass one vector for each, of the same shape",
        )
    return vs


def one_number(y: Any, name: str) -> Tensor:
    if not isinstance(y, Tensor) or y.numel() != 1:
        shown = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise runtime_error(
            f"The function given to {name} should return a single element Tensor, not {shown}", "reduce it: .sum()"
        )
    return y


def derivative(ys: Tensors, xs: Tensors, vs: Tensors, create_graph: bool, strict: bool, name: str) -> Tensors:
    """v' J for each input. Zeros for an input that no output depends on; with `strict` RuntimeError."""
    chosen = [i for i, y in enumerate(ys) if y.requires_grad]
    if not chosen:
        grads: Any = (None,) * len(xs)
    else:
        grads = grad([ys[i] for i in chosen], xs, [vs[i] for i in chosen], True, create_graph, allow_unused=True)
    if strict:
        check_depends(ys, chosen, grads, name)
    return tuple([zeros_like(x) if g is None else g for x, g in zip(xs, grads)])


def pushed(ys: Tensors, xs: Tensors, vs: Tensors, create_graph: bool, strict: bool, name: str) -> Tensors:
    """J v, as the derivative of w' J by w: w' J is linear in w. http://j-towns.github.io/2017/06/12/A-new-trick.html"""
    with enable_grad():
        weights = tuple([zeros_like(y).requires_grad_() for y in ys])
        products = derivative(ys, xs, weights, True, strict, name)
    return derivative(products, weights, vs, create_graph, False, name)


def check_depends(ys: Tensors, chosen: list[int], grads: Any, name: str) -> None:
    """RuntimeError for an output without a gradient, and for an input that no output depends on."""
    zeros, depends = "strict=False returns zeros", [g is not None for g in grads]
    if len(chosen) < len(ys):
        which = next(i for i in range(len(ys)) if i not in chosen)
        raise runtime_error(
            f"Output {which} of the user-provided function does not require gradients. The outputs must be "
            "computed in a differentiable manner from the input when running in strict mode.",
            zeros,
            op=name,
        )
    if not all(depends):
        raise runtime_error(
            f"Output 0 of the user-provided function is independent of input {depends.index(False)}. This is not "
            "allowed in strict mode.",
            zeros,
            op=name,
        )


def check_curved(gradients: Tensors, name: str) -> None:
    """RuntimeError for a constant gradient: strict mode requires a second derivative that depends on the input."""
    if (flat := next((i for i, g in enumerate(gradients) if not g.requires_grad), None)) is not None:
        raise runtime_error(
            "While computing the hessian, found that the jacobian of the user-provided function with respect to "
            f"input {flat} is independent of the input. This is not allowed in strict mode.",
            "strict=False returns zeros",
            op=name,
        )
