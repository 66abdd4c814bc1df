"""A user's `autograd.Function` inside vmap: by the rule that it brings, or by one made from its own methods.

Between the samples it is recorded as always. Between the values it is one op too, with the derivatives that the user wrote,
not with those of what its forward is made of: another Function, whose forward, backward and jvp run the user's at a level.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from rushlight.autograd.function import Context, Function
from rushlight.autograd.grad_mode import current, mode
from rushlight.errors import explain
from rushlight.func.batching import Batch, Level, Part, innermost, wrap
from rushlight.ops.worlds import TENSORS
from rushlight.tensor import Tensor
from rushlight.utils.pytree import _broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_map, tree_unflatten

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
    return partial(on_values, cls, by_rule if own else generated)


def on_values(cls: type[Function], rule: Callable, *args: Any) -> Any:
    """The Function of batched arguments, by the rule: in the mode around the level, whose watchers see what it does. An
    argument that comes back is itself."""
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


def front(t: Any, dim: int | None, level: Level) -> Any:
    """An output with the samples in front. One that they share is repeated: its history in the graphs around the vmap is
    not that of this call."""
    if not isinstance(t, Tensor):
        return t
    return t.expand((level.size, *t.shape)) if dim is None else TENSORS["movedim"](t, dim, 0) if dim else t


def by_rule(cls: type[Function], level: Level, dims: tuple, values: tuple) -> tuple:
    """cls.vmap(info, in_dims, *values) -> (outputs, out_dims)."""
    answer = cls.vmap(VmapInfo(level.size, level.randomness), dims, *values)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise RuntimeError(explain(f"{cls.__name__}.vmap: expected the vmap staticmethod to have two returns, the outputs "
                                   f"and their out_dims, got {type(answer).__name__}", "return outputs, out_dims"))
    return answer


def places_of(cls: type[Function], dims: Any, tree: Any) -> list:
    """The dimension of the samples in each output."""
    found = _broadcast_to_and_flatten(dims, tree)
    if found is None:
        raise RuntimeError(explain(f"{cls.__name__}.vmap returned an incompatible pair: the out_dims {dims} do not "
                                   f"fit the outputs {tree}"))
    return found


# -- the rule that is made -------------------------------------------------------------------------------------------------

def generated(cls: type[Function], level: Level, dims: tuple, values: tuple) -> tuple:
    return Samples(cls, level, dims).function().apply(*values), 0


class Samples:
    """One call of a Function, and where the samples lie in its arguments (`dims`): its methods are those of the Function of
    all samples. Each runs the user's at a fresh level, as `forward` does."""

    shapes: list                                  # of one sample's arguments, None for what is no tensor
    mapped: Sequence[bool] = ()                   # which of the tensors saved for backward have all samples,
    mapped_forward: Sequence[bool] | None = None  # and of those for jvp

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
            return (*[gradient(level, *one) for one in zip(answer, self.dims, self.shapes)], *answer[len(self.dims):])

    def jvp(self, ctx: Any, *tangents: Tensor | None) -> Any:
        with self.level() as level:
            answer = self.cls.jvp(SampleContext(ctx, level, self), *map(partial(sample_of, level), tangents, self.dims))
            return tree_map(partial(all_samples, level), answer)


def sample_of(level: Level, value: Any, dim: Any) -> Any:
    """A value, as one of the level if it has all samples."""
    return wrap(value, level) if dim == 0 and isinstance(value, Tensor) else value


def all_samples(level: Level, t: Any) -> Any:
    """The reverse; what is the same for all samples is repeated."""
    return Part(t, level).whole() if isinstance(t, Tensor) else t


def gradient(level: Level, g: Any, dim: Any, shape: tuple | None) -> Any:
    """The gradient of an argument, from that of a sample: theirs are added where the samples share the argument."""
    if not isinstance(g, Tensor) or shape is None:
        return g
    if g.shape != shape:                          # a larger one is allowed, and added up
        g = g.sum_to_size(shape)  # type: ignore[attr-defined]
    return all_samples(level, g) if dim == 0 else all_samples(level, g).sum(0)


class SampleContext:
    """The `ctx` of the Function of all samples as its author sees it at a level, with the tensors of one sample."""

    def __init__(self, ctx: Any, level: Level, samples: Samples):
        self.__dict__.update(_ctx=ctx, _level=level, _samples=samples)

    def __getattr__(self, name: str) -> Any:
        return self._in(getattr(self._ctx, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, self._out(value))

    def _out(self, t: Any) -> Any:
        """What outlives the level in the place of a tensor of it."""
        if isinstance(t, Kept):                   # of a Function inside this one
            return t._replace(value=self._out(t.value))
        part = Part(t, self._level) if isinstance(t, Tensor) else None
        return t if part is None or not part.mapped else Kept(part.value, self._samples)

    def _in(self, kept: Any) -> Any:
        """The reverse."""
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
    """All samples of a tensor whose level has ended, and of which call that was."""

    value: Any
    of: Samples


Level.forward_of = forward_of  # type: ignore[attr-defined]
