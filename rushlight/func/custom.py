"""A user's `autograd.Function` inside vmap: by the rule that it brings, or by one made from its forward and backward.

Its forward runs once for all samples. Between the samples it is recorded as always; between the values it must be recorded
too, as one op with the gradient that the user wrote, not as what its forward is made of.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from rushlight.autograd.function import Function
from rushlight.autograd.grad_mode import within
from rushlight.errors import explain
from rushlight.func.batching import Batch, Level, Part, innermost, wrap
from rushlight.func.reverse import vjp
from rushlight.ops.worlds import TENSORS
from rushlight.tensor import Tensor
from rushlight.utils.pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_unflatten

MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a Function's own rule is told."""

    batch_size: int
    randomness: str


def forward_of(level: Level, cls: type[Function], args: Sequence) -> Callable | None:
    """What to run in the place of forward; None where no argument is batched. RuntimeError if there is no rule."""
    if not any(isinstance(t, Tensor) and isinstance(t.array, Batch) for t in tree_leaves(args)):
        return None
    own = cls.vmap is not Function.vmap
    if cls.setup_context is None:
        raise RuntimeError(explain("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
                                   f"jacrev, ...), it must override the setup_context staticmethod. {MORE}"))
    if own and cls.generate_vmap_rule:
        raise RuntimeError(explain(f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an "
                                   "overriden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
                                   f"overriden vmap staticmethod to avoid ambiguity. {MORE}"))
    if not own and not cls.generate_vmap_rule:
        raise RuntimeError(explain(f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
                                   f"override and implement the vmap staticmethod or set generate_vmap_rule=True. {MORE}"))
    return partial(by_rule if own else generated, cls)


def values_of(args: Sequence) -> tuple[Level, list, list, TreeSpec]:
    """The level, the values of all leaves of the arguments, which of them have the batch in front, and the tree."""
    flat, tree = tree_flatten(tuple(args))
    level = innermost(flat)
    parts = [Part(a, level) if isinstance(a, Tensor) else a for a in flat]
    return (level, [p.value if isinstance(p, Part) else p for p in parts],
            [p.mapped if isinstance(p, Part) else False for p in parts], tree)


def by_rule(cls: type[Function], *args: Any) -> Any:
    """cls.vmap(info, in_dims, *values) -> (outputs, out_dims)."""
    level, values, mapped, inputs = values_of(args)
    with within(batch=level.outer):
        answer = cls.vmap(VmapInfo(level.size, level.randomness),
                          tree_unflatten([0 if m else None for m in mapped], inputs), *tree_unflatten(values, inputs))
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise RuntimeError(explain(f"{cls.__name__}.vmap: expected the vmap staticmethod to have two returns, the outputs "
                                   f"and their out_dims, got {type(answer).__name__}", "return outputs, out_dims"))
    made, dims = answer
    flat, tree = tree_flatten(made)
    found = _broadcast_to_and_flatten(dims, tree)
    if found is None:
        raise RuntimeError(explain(f"{cls.__name__}.vmap returned an incompatible pair: the out_dims {dims} do not "
                                   f"fit the outputs {tree}"))
    return tree_unflatten([t if d is None or not isinstance(t, Tensor) else wrap(TENSORS["movedim"](t, d, 0), level)
                           for t, d in zip(flat, found)], tree)


def generated(cls: type[Function], *args: Any) -> Any:
    level, values, mapped, inputs = values_of(args)
    with within(batch=level.outer):
        made = batched(cls, level.size, level.randomness, mapped, inputs).apply(*values)
    flat, tree = tree_flatten(made)
    return tree_unflatten([wrap(t, level) for t in flat], tree)


def batched(cls: type[Function], size: int, randomness: str, mapped: list[bool], inputs: TreeSpec) -> type[Function]:
    """The Function of all samples, of the arguments' leaves: its forward and backward are cls's, each mapped."""
    def flat_forward(*values: Any) -> Any:
        return cls.forward(*tree_unflatten(values, inputs))

    def forward(*values: Any) -> Any:
        return over(flat_forward, size, randomness, mapped, values)

    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        ctx.save_for_backward(*[v if isinstance(v, Tensor) else None for v in inputs])
        ctx.others = [None if isinstance(v, Tensor) else v for v in inputs]

    def backward(ctx: Any, *gs: Any) -> tuple:
        values = [o if t is None else t for t, o in zip(ctx.saved_tensors, ctx.others)]
        smooth = [i for i, v in enumerate(values) if isinstance(v, Tensor) and (v.is_floating_point() or v.is_complex())]

        def pull(*both: Any) -> Any:
            whole = list(both[:len(values)])

            def outputs(*xs: Tensor) -> Any:
                for i, x in zip(smooth, xs):
                    whole[i] = x
                return cls.apply(*tree_unflatten(whole, inputs))
            primals = [both[i] for i in smooth]
            given = both[len(values):]
            return vjp(outputs, *primals)[1](given if len(given) > 1 else given[0])
        grads = iter(over(pull, size, randomness, [*mapped, *[True] * len(gs)], (*values, *gs)))
        found = [next(grads) if i in smooth else None for i in range(len(values))]
        return tuple(g if g is None or m else g.sum(0) for g, m in zip(found, mapped))
    return type(cls.__name__, (Function,), {
        "generate_vmap_rule": True, "forward": staticmethod(forward), "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward), "__module__": cls.__module__})


def over(function: Callable, size: int, randomness: str, mapped: Sequence[bool], values: Sequence) -> Any:
    """The function at a fresh level; its results with the batch in front."""
    with Level(size, randomness, function.__name__) as level:
        made = function(*[wrap(v, level) if m else v for v, m in zip(values, mapped)])
        flat, tree = tree_flatten(made)
        return tree_unflatten([Part(t, level).whole() for t in flat], tree)


Level.forward_of = forward_of  # type: ignore[attr-defined]
