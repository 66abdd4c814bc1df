"""jvp and linearize: the derivative of a function in the direction of tangents, by forward mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.base.pytree import TreeSpec, tree_flatten, tree_map_only, tree_unflatten
from rushlight.core.mode import mode, within
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import zeros_like
from rushlight.func.batching import recorded
from rushlight.func.forward_ad import Level, check_dual, dual
from rushlight.func.transform_inputs import Variables, outputs_of, pulled, same_form, settled, split

JVP = "jvp(f, primals, tangents)"
LINEARIZE = "linearize(f, *primals)"


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """(f(*primals), J t): the value, and the derivative of f in the direction of the tangents, by dual numbers.

    `primals` and `tangents` are tuples of trees of tensors, with the same structure and shapes. `strict`: RuntimeError
    if an output does not depend on the inputs, instead of zeros. `has_aux`: f returns (output, aux), and aux is the
    third result.

    >>> from rushlight.func import jvp
    >>> jvp(rushlight.sin, (rushlight.tensor([0., 1.]),), (rushlight.tensor([1., 2.]),))
    (tensor([0.0000, 0.8415]), tensor([1.0000, 1.0806]))
    """
    if not isinstance(primals, tuple):
        raise runtime_error(
            f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).",
            "(x,) for one argument",
        )
    xs, inputs_form = tree_flatten(primals)
    ts = same_form(
        tangents,
        inputs_form,
        lambda given, wanted: (
            f"{JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {wanted} and tangents with "
            f"structure {given}"
        ),
    )
    if not xs:
        raise runtime_error(f"{JVP}: Expected primals to contain at least one Tensor.")
    for what, parts in (("primals", xs), ("tangents", ts)):
        if not all([isinstance(part, Tensor) for part in parts]):
            raise runtime_error(f"{JVP}: Expected {what} to only contain Tensors.", "torch.tensor(1.0)")
    ys, found, form, aux = on_duals(Level(inference=abs(mode().inference)), func, xs, ts, inputs_form, has_aux, JVP)
    if strict and any(t is None for t in found):
        raise runtime_error(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
            "allowed with strict=True.",
            "strict=False returns zeros",
        )
    value, along = tree_unflatten(ys, form), tree_unflatten(or_zeros(found, ys), form)
    return (value, along, aux) if has_aux else (value, along)


def on_duals(
    level: Level, func: Callable, xs: list[Tensor], ts: list[Tensor], inputs_form: TreeSpec, has_aux: bool, who: str
) -> tuple[list[Tensor], list[Tensor | None], TreeSpec, Any]:
    """Run the function on x + e t. Returns (leaves of the output, their tangents, the output's tree, aux)."""
    with level:
        for x, t in zip(xs, ts):
            check_dual(level, x, t)
        with within(derivative=level):
            made = func(*tree_unflatten([dual(level, x, t) for x, t in zip(xs, ts)], inputs_form))
        made, aux = split(made, has_aux, who)
        ys, form = outputs_of(made, who)
        return list(map(level.below, ys)), [level.tangent(y) for y in ys], form, tree_map_only(Tensor, level.below, aux)


def or_zeros(tangents: Sequence[Tensor | None], ys: Sequence[Tensor]) -> list[Tensor]:
    return [zeros_like(y) if t is None else t for y, t in zip(ys, tangents)]


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """(f(*primals), t -> J t): the value, and the derivative of f at the primals as a linear function; f runs once.

    f runs on dual numbers whose tangents t are variables, so the output's tangents J t are recorded as functions of t.
    Their gradient gives v' J, and the derivative of v' J by v gives J t for any t.

    >>> from rushlight.func import linearize
    >>> y, push = linearize(rushlight.sin, rushlight.tensor([0., 1.]))
    >>> push(rushlight.tensor([1., 2.]))
    tensor([1.0000, 1.0806])
    """
    xs, inputs_form = tree_flatten(primals)
    with Variables() as variables:
        along = [variables.fresh(zeros_like(x)) for x in xs]
        with within(grad=variables.outside):
            level = Level(linear=True, inference=abs(mode().inference))
            ys, found, form, _ = on_duals(level, func, xs, along, inputs_form, False, LINEARIZE)
        tangents = or_zeros(found, ys)
        vs = [variables.fresh(zeros_like(y)) for y in ys]
        rows = pulled(tangents, along, vs, True, True)
        together = variables.reached(tangents)

    def push(*tangents: Any) -> Any:
        ts = same_form(
            tangents,
            inputs_form,
            lambda given, wanted: f"Expected the tangents {given} to have the same argspec as the primals {wanted}",
        )
        for i, (x, t) in enumerate(zip(xs, ts)):
            if x.shape != t.shape:
                raise runtime_error(
                    f"tangent:{i} with shape {t.shape} in flattened pytree doesn't match the shape {x.shape} of "
                    "the corresponding primal."
                )
        create = mode().grad and (together or any([recorded(t) for t in ts]))
        return tree_unflatten(map(settled, pulled(rows, vs, ts, True, create)), form)

    return tree_unflatten(map(settled, ys), form), push
