"""From the steps of a graph to groups: a step that is not elementwise (the anchor), and the elementwise steps that
follow in registers.

Steps whose inputs are parameters alone are not part of any group: they run when a parameter changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Graph, Store, Value, is_random, is_reshape, is_view, values_in, with_each
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.sizes import Sized, new_value
from rushlight.compile.passes.fuse import is_element
from rushlight.core.table import TABLE
from rushlight.fast.rule_text import TYPES
from rushlight.ops.math import elementwise as E
from rushlight.ops.nn.conv import convolution
from rushlight.ops.nn.normalization import frozen_batch_norm, layer_norm
from rushlight.ops.reduce import reduce
from rushlight.ops.reduce.vector_norm import vector_norm
from rushlight.ops.shape import views

# ops that read rows, whose elements may be computed while they are read
ROWS = (reduce.sum, reduce.nansum, reduce.mean, reduce.prod, reduce.amax, reduce.amin, reduce.logsumexp,
    reduce.var_core, vector_norm, reduce.softmax, reduce.log_softmax, layer_norm)  # fmt: skip


@dataclass(eq=False)
class Group:
    """`anchor`: the first step; None if all steps are elementwise. `steps`: elementwise steps. `out`: the result.
    `before`: elementwise steps that compute the anchor's first argument when the anchor reads it."""

    anchor: Any
    steps: list[Call] = field(default_factory=list)
    out: Any = None
    before: list[Call] = field(default_factory=list)

    def reads(self) -> list[Value]:
        """The values from outside that the elementwise steps read."""
        return outside(self.steps, self.anchor.outs if self.anchor else ())

    def all_steps(self) -> list[Call]:
        return [*self.before, *([] if self.anchor is None else [self.anchor]), *self.steps]


def outside(steps: list[Call], known: Iterable[Value] = ()) -> list[Value]:
    """The values that steps read and do not compute, except known values."""
    made = {v for s in steps for v in s.outs} | set(known)
    return list(dict.fromkeys(v for s in steps for v in values_in(s.args) if v not in made))


@dataclass
class Steady:
    """A value that depends on parameters alone: `function(*arrays)`, where the arrays belong to `given`."""

    function: Callable[..., np.ndarray]
    given: tuple[Value, ...]
    out: Value


class Schedule:
    """`steady`: what runs when a parameter changes; `items`: groups, and views, in order."""

    def __init__(self, graph: Graph):
        self.steady: list[Steady] = []
        self.results = list(graph.results)
        self.known = {v for v in graph.inputs if v.source[0] == "state"}
        self.items: list[Group | Call] = []
        self.home: dict[Value, int] = {}  # value -> number of the item that makes it
        steps = self.folded([copied(s) for s in graph.steps])
        self.uses = counted(steps, self.results)
        for step in steps:
            self.add(step)
        self.items = [item for item in self.items if not isinstance(item, Group) or item.out is not None]

    def is_known(self, v: Value) -> bool:
        return v.kind == "constant" or v in self.known

    def derive(
        self, function: Callable[..., Any], given: tuple[Value, ...], shape: tuple[int, ...], dtype: Any
    ) -> Value:
        """A new value that depends on parameters alone."""
        out = Value(np.broadcast_to(np.zeros((), dtype), shape))
        self.steady.append(Steady(function, given, out))
        self.known.add(out)
        return out

    # -- steps that depend on parameters alone --

    def folded(self, steps: list[Call]) -> list[Call]:
        """The steps that run in each call. A batch norm becomes a product and a sum, or part of the convolution before
        it."""
        uses = counted(steps, self.results)
        made: dict[Value, Call] = {}
        left: list[Call] = []
        for step in steps:
            given = [*values_in(step.args)]
            sized = any([isinstance(v, Sized) for v in (*given, *step.outs)])
            if step.outs and all(self.is_known(v) for v in given) and not sized and not is_random(step):
                self.run_once(step)
            elif step.runs(frozen_batch_norm) and all(self.is_known(v) for v in given[1:]):
                left += self.scaled(step, made.get(step.args[0]), uses)
            else:
                left.append(step)
            made.update((v, left[-1]) for v in (left[-1].outs if left else ()))
        return left

    def run_once(self, step: Call) -> None:
        kernel, args = TABLE[step.op].kernel, step.args
        given = tuple(dict.fromkeys(values_in(args)))
        for i, out in enumerate(step.outs):

            def compute(*arrays: np.ndarray, i: int = i) -> np.ndarray:
                known = dict(zip(given, arrays))
                made = kernel(*with_each(args, known.__getitem__))
                return made[i] if isinstance(made, (tuple, list)) else made

            self.steady.append(Steady(compute, given, out))
            self.known.add(out)

    def scaled(self, step: Call, before: Call | None, uses: dict[Value, int]) -> list[Call]:
        """frozen_batch_norm as x scale + shift. A convolution whose result has no other use gets scaled weights and a
        new bias."""
        x, parts, both = step.args[0], *scale_and_shift(step)
        if before is not None and before.runs(convolution) and uses[x] == 1 and self.is_known(before.args[1]):
            self.fold(before, parts, both)
            before.outs = step.outs
            return []
        shape = (x.shape[1], *(1,) * (len(x.shape) - 2))
        scale, shift = (
            self.derive(lambda *a, i=i: both(*a)[i].astype(x.dtype).reshape(shape), parts, shape, x.dtype)
            for i in (0, 1)
        )
        middle = new_value(x.shape, x.dtype)
        return [Call(E.mul.op.name, (x, scale), (middle,)), Call(E.add.op.name, (middle, shift), step.outs)]

    def fold(self, conv: Call, parts: tuple[Value, ...], both: Callable) -> None:
        """Multiply a convolution's weights by the scale of each filter, and add the shift to its bias."""
        x, weight, bias, *settings = conv.args
        own = () if bias is None else (bias,)

        def kernels(w: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
            return (w * both(*arrays)[0].reshape(-1, *(1,) * (w.ndim - 1))).astype(w.dtype)

        def biases(*arrays: np.ndarray) -> np.ndarray:
            scale, shift = both(*arrays[len(own) :])
            return (shift + (arrays[0] * scale if own else 0)).astype(weight.dtype)

        filters = weight.shape[:1]
        conv.args = (
            x,
            self.derive(kernels, (weight, *parts), weight.shape, weight.dtype),
            self.derive(biases, (*own, *parts), filters, weight.dtype),
            *settings,
        )

    # -- groups --

    def add(self, step: Call) -> None:
        if isinstance(step, Store) or not step.outs or is_random(step):
            raise NotNative(f"{step.op} writes, checks or draws")
        if gives_views(step):
            self.append(step, step.outs)
        elif is_pointwise(step):
            self.add_element(step)
        else:
            self.append(Group(step, out=step.outs[0], before=self.taken_before(step)), step.outs)

    def taken_before(self, step: Call) -> list[Call]:
        """The elementwise steps of a group that computes rows for this step alone. The group leaves the schedule."""
        if not step.runs(*ROWS):
            return []
        x = step.args[0]
        number = self.home.get(x)
        group: Any = None if number is None else self.items[number]
        if not isinstance(group, Group) or group.anchor is not None or self.uses[x] != 1:
            return []
        if not any(v.shape == x.shape for v in group.reads()):
            return []
        self.items[number] = Group(None)  # type: ignore[index]  # numbers of items stay
        return group.steps

    def append(self, item: Group | Call, outs: tuple[Value, ...]) -> None:
        for v in outs:
            self.home[v] = len(self.items)
        self.items.append(item)

    def add_element(self, step: Call) -> None:
        """Add an elementwise step to the group of the operand that is computed last, if that is its only use."""
        made = [v for v in values_in(step.args) if v in self.home]
        last = max(made, key=self.home.__getitem__, default=None)
        if last is not None:
            number = self.home[last]
            group: Any = self.items[number]
            fits = isinstance(group, Group) and group.out is last and last.shape == step.outs[0].shape
            if fits and self.uses[last] == 1 and sum(v is last for v in values_in(step.args)) == 1:
                group.steps.append(step)
                group.out = step.outs[0]
                self.home[group.out] = number
                return
        self.append(Group(None, [step], step.outs[0]), step.outs)


def scale_and_shift(step: Call) -> tuple[tuple[Value, ...], Callable]:
    """The parameters of a frozen_batch_norm, and the function from their arrays to scale = weight / sqrt(var + eps) and
    shift = bias - mu scale, in float64."""
    x, weight, bias, mu, var, eps = step.args

    def both(*arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        given = iter(arrays)
        w, b = (np.float64(default) if v is None else next(given) for v, default in ((weight, 1), (bias, 0)))
        m, v = given
        scale = np.broadcast_to(w / np.sqrt(v.astype(np.float64) + eps), x.shape[1])
        return scale, b - m * scale

    return tuple([v for v in (weight, bias, mu, var) if v is not None]), both


def gives_views(step: Call) -> bool:
    """Whether the results are parts of the argument's memory, or can be."""
    several = views.contiguous, views.unbind, views.split_sizes
    return is_view(step) or is_reshape(step) or any(step.runs(op) for op in several)


def is_pointwise(step: Call) -> bool:
    """Whether registers hold the step's elements: it is elementwise, in a dtype of fused loops."""
    if len(step.outs) != 1 or any(v.dtype not in TYPES for v in (*values_in(step.args), *step.outs)):
        return False
    return step.runs(views.clone) or is_element(step)


def copied(step: Any) -> Any:
    """The step, for changes of its arguments."""
    return step if isinstance(step, Store) else Call(step.op, step.args, step.outs, step.line, shares=step.shares)


def counted(steps: list[Any], results: list[Value]) -> dict[Value, int]:
    """How often each value is read; a result is read once more."""
    uses: dict[Value, int] = {}
    for v in [*results, *(v for s in steps for v in set(values_in(s.args)))]:
        uses[v] = uses.get(v, 0) + 1
    return uses
