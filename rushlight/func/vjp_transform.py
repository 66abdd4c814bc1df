"""grad, grad_and_value, vjp: derivatives of functions by reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from rushlight.base.errors import runtime_error, value_error
from rushlight.base.pytree import tree_flatten, tree_map_only, tree_unflatten
from rushlight.core.mode import mode, within
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import ones_like
from rushlight.func.batching import recorded
from rushlight.func.transform_inputs import (
    ArgNums,
    Variables,
    all_settled,
    numbers_of,
    outputs_of,
    pulled,
    same_form,
    settled,
    split,
)

GRAD = "grad_and_value(f)(*args)"


A = TypeVar("A")
P = ParamSpec("P")


@overload
def grad(func: Callable[Concatenate[A, P], Tensor]) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(func: Callable, argnums: ArgNums = 0, has_aux: bool = False) -> Callable: ...
def grad(func: Callable, argnums: ArgNums = 0, has_aux: bool = False) -> Callable:
    """f -> f': a function of the same arguments that returns the gradient of f, which returns one number.

    `argnums`: the position of the argument, a tensor or a tree of tensors, by which f is differentiated; a tuple gives
    a tuple of gradients. `has_aux`: f returns (number, aux), and f' returns (gradient, aux).

    RuntimeError unless f returns one floating-point number as a tensor. Transforms nest: grad(grad(f)).

    >>> from rushlight.func import grad
    >>> grad(grad(rushlight.sin))(rushlight.tensor(1.))
    tensor(-0.8415)
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func: Callable, argnums: ArgNums = 0, has_aux: bool = False) -> Callable:
    """Like `grad`, but returns (gradient, value of f), or with `has_aux` (gradient, (value, aux)).

    >>> from rushlight.func import grad_and_value
    >>> grad_and_value(lambda x: (x ** 2).sum())(rushlight.tensor([1., 2.]))
    (tensor([2., 4.]), tensor(5.))
    """

    @wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        chosen = numbers_of(argnums, len(args))
        inside = list(args)
        with Variables() as variables:
            for n in chosen:
                inside[n] = variables.all_fresh(args[n])
            value, aux = split(func(*inside, **kwargs), has_aux, GRAD)
            y = one_number(value)
            xs, form = tree_flatten(tuple([inside[n] for n in chosen]))
            found = pulled([y], xs, [ones_like(y)], False, variables.outside and variables.reached([y]))
        gradients = tree_unflatten(map(settled, found), form)
        gradients = gradients if isinstance(argnums, tuple) else gradients[0]
        return gradients, (settled(value), all_settled(aux)) if has_aux else settled(value)

    return both


def one_number(value: Any) -> Tensor:
    """`value` unchanged. RuntimeError unless it is a real tensor without dimensions."""
    if not isinstance(value, Tensor):
        raise runtime_error(f"{GRAD}: Expected f(*args) to return a Tensor, got {type(value)}")
    if value.dim() != 0:
        raise runtime_error(
            f"{GRAD}: Expected f(*args) to return a scalar Tensor, got tensor with {value.dim()} dims. Maybe you "
            "wanted to use the vjp or jacrev APIs instead?",
            "reduce it: .sum(), .mean()",
            shape=tuple(value.shape),
        )
    if value.is_complex():
        raise runtime_error(
            f"grad can be implicitly created only for real scalar outputs but got {value.dtype}",
            "take .abs() or .real first, or use vjp",
        )
    return value


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """(f(*primals), v -> v' J): the value, and a function from v, structured like the value, to the gradients of
    primals.

    Primals and outputs are trees of tensors. The function returns a tuple with a gradient for each primal, and may be
    called repeatedly. `has_aux`: f returns (output, aux), and aux is the third result.

    >>> from rushlight.func import vjp
    >>> y, pull = vjp(rushlight.sin, rushlight.tensor([0., 1.]))
    >>> pull(rushlight.ones(2))
    (tensor([1.0000, 0.5403]),)
    """
    who = "vjp(f, *primals)"
    with Variables() as variables:
        inside = variables.all_fresh(primals)
        made, aux = split(func(*inside), has_aux, who)
        ys, form = outputs_of(made, who)
        xs, inputs_form = tree_flatten(inside)
        together = variables.reached(ys)  # `pull` uses the grad mode of its own call

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        vs = same_form(
            cotangents,
            form,
            lambda given, wanted: (
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {given}, primal output: {wanted}"
            ),
        )
        create = mode().grad and (together or any([recorded(v) for v in vs])) if create_graph is None else create_graph
        with within(derivative=variables):
            found = pulled(ys, xs, vs, retain_graph, create)
        return tree_unflatten(map(settled, found), inputs_form)

    value = tree_unflatten(map(settled, ys), form)
    return (value, pull, tree_map_only(Tensor, settled, aux)) if has_aux else (value, pull)


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """The function itself. torch replaces in-place ops in the function's graph, with the same results.

    ValueError unless `remove` is 'mutations' or 'mutations_and_views'.

    >>> rushlight.func.functionalize(lambda x: x.clone().add_(1))(rushlight.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise value_error(
            f"functionalize(f, remove=...): received invalid argument for remove= '{remove}'",
            "'mutations' or 'mutations_and_views'",
        )

    @wraps(func)
    def same(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return same
