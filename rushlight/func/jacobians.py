"""Jacobians and Hessians: `vjp` for each output, or `jvp` for each input, all in one call of `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from rushlight.base.errors import runtime_error, value_error
from rushlight.base.pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import eye, ones_like
from rushlight.func.jvp_transform import jvp
from rushlight.func.transform_inputs import ArgNums, numbers_of, settled
from rushlight.func.vjp_transform import vjp
from rushlight.func.vmap_transform import vmap
from rushlight.ops.shape.views import stack


def jacrev(
    func: Callable,
    argnums: ArgNums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """f -> J, J[i, j] = d f_i / d x_j, by reverse mode: a row per element of the output. Fast if outputs are few.

    For an output and an input, J has shape output.shape + input.shape. A tree of outputs gives a tree of Jacobians; a
    tree of inputs, or a tuple `argnums`, gives for each output a tree of Jacobians. `has_aux`: f returns (output, aux).
    `chunk_size`: the number of rows computed at a time; default: all.

    >>> from rushlight.func import jacrev
    >>> jacrev(lambda x: x * x)(rushlight.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise value_error("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call, given = of_chosen(func, args, kwargs, argnums)
        check_real("jacrev", "inputs", tree_flatten(given)[0])
        made, pull, *aux = vjp(call, *given, has_aux=has_aux)
        ys, form = tree_flatten(made)
        check_real("jacrev", "outputs", ys)
        rows = along_basis(lambda *parts: pull(tree_unflatten(parts, form)), ys, chunk_size)
        by_input, inputs_form = tree_flatten(rows)  # each (elements of all outputs, *input.shape)
        table = [[part.reshape((*y.shape, *part.shape[1:])) for part, y in zip(apart(J, ys), ys)] for J in by_input]
        found = together([list(row) for row in zip(*table)], form, inputs_form, argnums)
        return (found, aux[0]) if has_aux else found

    return jacobian


def jacfwd(func: Callable, argnums: ArgNums = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable:
    """f -> J, J[i, j] = d f_i / d x_j, by forward mode: a column per element of the input. Fast if inputs are few.

    The results have the same structure as `jacrev`'s. f runs once, inside `vmap`: all samples share the arguments, and
    each sample has one unit vector as the tangent. `randomness`: as in `vmap`.

    >>> from rushlight.func import jacfwd
    >>> jacfwd(lambda x: x * x)(rushlight.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call, given = of_chosen(func, args, kwargs, argnums)
        aux: list = []  # the leaves of aux, and its tree

        def push(*tangents: Tensor) -> Any:
            value, along, *more = jvp(call, given, tree_unflatten(tangents, inputs_form), has_aux=has_aux)
            check_real("jacfwd", "outputs", tree_flatten(value)[0])
            aux[:] = tree_flatten(more)
            return along, [t for t in aux[0] if isinstance(t, Tensor)]

        xs, inputs_form = tree_flatten(given)
        check_real("jacfwd", "inputs", xs)
        columns, tensors = along_basis(push, xs, None, randomness)
        by_output, form = tree_flatten(columns)  # each (elements of all inputs, *output.shape)
        table = [
            [part.movedim(0, -1).reshape((*part.shape[1:], *x.shape)) for part, x in zip(apart(J, xs), xs)]
            for J in by_output
        ]
        found = together(table, form, inputs_form, argnums)
        if not has_aux:
            return found
        first = iter([settled(t[0]) for t in tensors])  # aux is the same for each unit vector
        return found, tree_unflatten([next(first) if isinstance(t, Tensor) else t for t in aux[0]], aux[1])[0]

    return jacobian


def hessian(func: Callable, argnums: ArgNums = 0) -> Callable:
    """f -> H, H[i, j] = d^2 f / d x_i d x_j, by forward over reverse mode: jacfwd(jacrev(f)).

    >>> from rushlight.func import hessian
    >>> hessian(lambda x: (x ** 3).sum())(rushlight.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def of_chosen(func: Callable, args: tuple, kwargs: dict, argnums: ArgNums) -> tuple[Callable, tuple]:
    """(a function of the arguments `argnums` only, these arguments)."""
    chosen = numbers_of(argnums, len(args))

    def call(*xs: Any) -> Any:
        inside = list(args)
        for n, x in zip(chosen, xs):
            inside[n] = x
        return func(*inside, **kwargs)

    return call, tuple([args[n] for n in chosen])


def along_basis(function: Callable, like: Sequence[Tensor], chunk_size: int | None, randomness: str = "error") -> Any:
    """The results of a linear function for every unit vector of the tensors `like` together, stacked in dimension 0."""
    total = sum([t.numel() for t in like])
    if total == 1 and len(like) == 1:  # one unit vector: vmap would only add overhead
        return tree_map(lambda row: row.unsqueeze(0), function(ones_like(like[0])))
    unit = eye(total, dtype=like[0].dtype) if len({t.dtype for t in like}) == 1 else eye(total)
    basis = [part.reshape(total, *t.shape).to(t.dtype) for part, t in zip(apart(unit, like, 1), like)]
    # a loop without vmap, which also works for ops without a batching rule
    if chunk_size == 1 and total:
        rows = [tree_flatten(function(*row)) for row in zip(*basis)]
        return tree_unflatten(map(stack, zip(*[parts for parts, _ in rows])), rows[0][1])
    return vmap(function, randomness=randomness, chunk_size=chunk_size)(*basis)


def check_real(name: str, what: str, parts: Sequence) -> None:
    """RuntimeError for complex tensors, whose Jacobian is ambiguous."""
    for i, part in enumerate(parts):
        if isinstance(part, Tensor) and part.is_complex():
            raise runtime_error(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}",
                "torch.view_as_real() has both parts",
            )


def apart(J: Tensor, like: Sequence[Tensor], dim: int = 0) -> Sequence[Tensor]:
    """Split a dimension that runs over the elements of all tensors `like` into a part for each tensor."""
    return J.split([t.numel() for t in like], dim) if len(like) > 1 else (J,)


def together(table: list[list[Tensor]], form: TreeSpec, inputs_form: TreeSpec, argnums: ArgNums) -> Any:
    """The blocks of a Jacobian, table[output][input], as a tree of outputs of trees of inputs."""
    rows = [tree_unflatten(row, inputs_form) for row in table]
    return tree_unflatten([row if isinstance(argnums, tuple) else row[0] for row in rows], form)
