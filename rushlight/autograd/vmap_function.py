"""A user's `autograd.Function` inside vmap: runs by the Function's own rule, `vmap`, or by a rule made from its
methods.

The call is recorded between batched tensors as usual. Between the values it must be one op, too, with the user's
derivatives instead of the derivatives of the ops in its forward; so a generated rule is another Function, whose
forward, backward and jvp run the user's methods at a level of vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from rushlight.autograd.function import Context, Function
from rushlight.base.errors import runtime_error
from rushlight.base.pytree import _broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_map, tree_unflatten
from rushlight.core.mode import current, mode
from rushlight.core.tensor import Tensor
from rushlight.func.batching import Batch, Level, Part, innermost, wrap
from rushlight.func.batching_families import VmapInfo, front

MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


def forward_of(level: Level, cls: type[Function], args: Sequence) -> Callable | None:
    """The function to run in place of forward; None if no argument is batched. RuntimeError without a rule."""
    if not any(isinstance(t, Tensor) and isinstance(t._array, Batch) for t in tree_leaves(args)):
        return None
    own = cls.vmap is not Function.vmap
    if cls.setup_context is None:
        raise runtime_error(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it "
            f"must override the setup_context staticmethod. {MORE}"
        )
    if own and cls.generate_vmap_rule:
        raise runtime_error(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overriden "
            "vmap staticmethod. Please set generate_vmap_rule=False or delete the overriden vmap staticmethod to "
            f"avoid ambiguity. {MORE}"
        )
    if not own and not cls.generate_vmap_rule:
        raise runtime_error(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and "
            f"implement the vmap staticmethod or set generate_vmap_rule=True. {MORE}"
        )
    return partial(on_values, cls, by_rule if own else generated)


def on_values(cls: type[Function], rule: Callable, *args: Any) -> Any:
    """Run the rule on the values of batched arguments, in the mode around the level; wraps the outputs.

    A value that the rule returns unchanged becomes the argument itself again.
    """
    level = innermost(tree_leaves(args))
    parts = tree_map(lambda a: Part(a, level) if isinstance(a, Tensor) else a, args)
    dims = tree_map(lambda p: 0 if isinstance(p, Part) and p.mapped else None, parts)
    values = tree_map(lambda p: p.value if isinstance(p, Part) else p, parts)
    token = current.set(level.around(mode()))
    try:
        made, places = rule(cls, level, dims, values)
        flat, tree = tree_flatten(made)
        whole = [front(t, d, level) for t, d in zip(flat, places_of(cls, places, tree))]
    finally:
        current.reset(token)
    given = {id(value): a for value, a in zip(values, args) if value is not a}
    return tree_unflatten([given[id(t)] if id(t) in given else sample_of(level, t, 0) for t in whole], tree)


def by_rule(cls: type[Function], level: Level, dims: tuple, values: tuple) -> tuple:
    """cls.vmap(info, in_dims, *values) -> (outputs, out_dims)."""
    answer = cls.vmap(VmapInfo(level.size, level.randomness), dims, *values)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise runtime_error(
            f"{cls.__name__}.vmap: expected the vmap staticmethod to have two returns, the outputs and their "
            f"out_dims, got {type(answer).__name__}",
            "return outputs, out_dims",
        )
    return answer


def places_of(cls: type[Function], dims: Any, tree: Any) -> list:
    """The dimension of the samples in each output, from `out_dims`."""
    found = _broadcast_to_and_flatten(dims, tree)
    if found is None:
        raise runtime_error(
            f"{cls.__name__}.vmap returned an incompatible pair: the out_dims {dims} do not fit the outputs {tree}"
        )
    return found


# -- the generated rule ----------------------------------------------------------------------------


def generated(cls: type[Function], level: Level, dims: tuple, values: tuple) -> tuple:
    return Samples(cls, level, dims).function().apply(*values), 0


class Samples:
    """One call of a Function: this class has the methods of a Function that handles all samples at once.

    Each method runs the user's method at a new level of vmap. `dims`: for each argument 0 if it is mapped, else
    None."""

    shapes: list  # the shapes of one sample's arguments, None for arguments that are not tensors
    mapped: Sequence[bool] = ()  # for each tensor saved for backward, whether it has all samples
    mapped_forward: Sequence[bool] | None = None  # the same for the tensors saved for jvp

    def __init__(self, cls: type[Function], level: Level, dims: tuple):
        self.cls, self.size, self.randomness, self.dims = cls, level.size, level.randomness, dims

    def function(self) -> type[Function]:
        methods = {name: staticmethod(getattr(self, name)) for name in ("forward", "setup_context", "backward", "jvp")}
        facts = {"generate_vmap_rule": True, "__module__": self.cls.__module__}
        return type(self.cls.__name__, (Function,), facts | methods)

    def level(self) -> Level:
        return Level(self.size, self.randomness, self.cls.__name__)

    def forward(self, *values: Any) -> Any:
        with self.level() as level:
            made = self.cls.forward(*tree_map(partial(sample_of, level), values, self.dims))
            return tree_map(partial(all_samples, level), made)

    def setup_context(self, ctx: Context, inputs: tuple, output: Any) -> None:
        with self.level() as level:
            given = tree_map(partial(sample_of, level), inputs, self.dims)
            known = {id(value): t for value, t in zip(inputs, given) if isinstance(value, Tensor)}
            outs = tree_map(lambda t: known[id(t)] if id(t) in known else sample_of(level, t, 0), output)
            self.shapes = [t.shape if isinstance(t, Tensor) else None for t in given]
            self.cls.setup_context(SampleContext(ctx, level, self), given, outs)  # type: ignore[misc]

    def backward(self, ctx: Any, *gs: Tensor | None) -> tuple:
        with self.level() as level:
            answer = self.cls.backward(SampleContext(ctx, level, self), *[sample_of(level, g, 0) for g in gs])
            answer = answer if isinstance(answer, tuple) else (answer,)
            return (*[gradient(level, *one) for one in zip(answer, self.dims, self.shapes)], *answer[len(self.dims) :])

    def jvp(self, ctx: Any, *tangents: Tensor | None) -> Any:
        with self.level() as level:
            answer = self.cls.jvp(SampleContext(ctx, level, self), *map(partial(sample_of, level), tangents, self.dims))
            return tree_map(partial(all_samples, level), answer)


def sample_of(level: Level, value: Any, dim: Any) -> Any:
    """A tensor of all samples (dim = 0) as a batched tensor; any other value unchanged."""
    return wrap(value, level) if dim == 0 and isinstance(value, Tensor) else value


def all_samples(level: Level, t: Any) -> Any:
    """The tensor of all samples of t; a tensor that all samples share is expanded."""
    return Part(t, level).whole() if isinstance(t, Tensor) else t


def gradient(level: Level, g: Any, dim: Any, shape: tuple | None) -> Any:
    """The gradient of an argument from the batched gradient g: summed over the samples if they share the argument."""
    if not isinstance(g, Tensor) or shape is None:
        return g
    if g.shape != shape:  # a broadcast gradient is allowed, and summed
        g = g.sum_to_size(shape)
    return all_samples(level, g) if dim == 0 else all_samples(level, g).sum(0)


class SampleContext:
    """The `ctx` that the user's methods get at a level: wraps the ctx of all samples, with batched tensors in place of
    tensors of all samples."""

    def __init__(self, ctx: Any, level: Level, samples: Samples):
        self.__dict__.update(_ctx=ctx, _level=level, _samples=samples)

    def __getattr__(self, name: str) -> Any:
        return self._in(getattr(self._ctx, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, self._out(value))

    def _out(self, t: Any) -> Any:
        """A batched tensor as `Kept`, which outlives the level; any other value unchanged."""
        if isinstance(t, Kept):  # a value from a vmap inside this one
            return t._replace(value=self._out(t.value))
        part = Part(t, self._level) if isinstance(t, Tensor) else None
        return t if part is None or not part.mapped else Kept(part.value, self._samples)

    def _in(self, kept: Any) -> Any:
        """The inverse of `_out`: a `Kept` of this call as a batched tensor."""
        if not isinstance(kept, Kept):
            return kept
        if kept.of is self._samples:
            return wrap(kept.value, self._level)
        return kept._replace(value=self._in(kept.value))

    def _values(self, tensors: Sequence) -> list:
        return [kept.value if isinstance(kept := self._out(t), Kept) else t for t in tensors]

    def _mapped(self, tensors: Sequence) -> list[bool]:
        return [isinstance(self._out(t), Kept) for t in tensors]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self._samples.mapped = self._mapped(tensors)
        self._ctx.save_for_backward(*self._values(tensors))

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        self._samples.mapped_forward = self._mapped(tensors)
        self._ctx.save_for_forward(*self._values(tensors))

    def mark_dirty(self, *tensors: Tensor) -> None:
        self._ctx.mark_dirty(*self._values(tensors))

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        self._ctx.mark_non_differentiable(*self._values(tensors))

    @property
    def saved_tensors(self) -> tuple:
        forward = self._ctx._forward is not None and self._samples.mapped_forward is not None
        mapped = self._samples.mapped_forward if forward else self._samples.mapped
        return tuple([wrap(t, self._level) if m else t for t, m in zip(self._ctx.saved_tensors, mapped)])


class Kept(NamedTuple):
    """The tensor of all samples from a level that has ended. `of`: the call to which it belongs."""

    value: Any
    of: Samples
