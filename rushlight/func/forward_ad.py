"""Forward mode: dual numbers x + e t. The tangents t = dx/de go through a program together with the values.

An open level is a `Watcher`: after each op it computes the tangents of the outputs and attaches them to the outputs.
Levels nest: the parts of an inner level's dual number are dual numbers of the outer levels, x + e1 t1 + e2 (t2 + e1
t21). So a level computes tangents while only the outer levels watch, from inputs without the tangents of inner
levels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakSet

from rushlight.base.errors import runtime_error, value_error
from rushlight.core import families
from rushlight.core.mode import Inner, current, innermost, mode, within
from rushlight.core.node import hooks_of
from rushlight.core.tensor import TANGENTS, Tensor, from_array, writes_of
from rushlight.core.views import Region, copy_with_node, detached, living_views, register, unregistered
from rushlight.func.batching import Batch, recorded, spread_as, wrap
from rushlight.func.jvp_rules import derivative, differentiated, fitted, lying_as, zeros
from rushlight.ops.grad_mode import Decorator

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class Tangents(dict):
    """The tangents of one tensor: {level: tangent}. The tensor's node shares the dict, for rules that read the
    output."""

    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    def of(self, tangents: dict) -> Tangents:
        """New `Tangents` with these items; each level removes its tangent when the level is closed."""
        made = Tangents(tangents)
        for level in made:
            level.held.add(made)
        return made

    def __reduce__(self) -> tuple:
        # copied and unpickled tensors have no tangents: levels belong to the running program
        return (Tangents, ())


class Level(Inner):
    """An open level of forward mode.

    `outer`: the watcher around the level, called first. `number`: the number of levels around this one. `linear`:
    tangents are recorded as functions of the inputs' tangents, also in `no_grad`. `inference`: the number of
    `inference_mode` blocks around the level; ops inside further blocks have no tangents."""

    records = differentiates = True  # backward runs as ops, so that gradients have tangents, too
    snapshots = True  # the ops that compute tangents may save the inputs

    def __init__(self, linear: bool = False, inference: int = 0) -> None:
        m = mode()
        self.outer, self.linear, self.inference = m.watch, linear, inference
        self.depth = 0 if m.batch is None else m.batch.depth  # depth of the vmap around the level
        around: Level | None = innermost(Level, self.outer)
        self.number: int = 0 if around is None else around.number + 1
        # the `Tangents` that have a tangent of this level: removed by `close`
        self.held: WeakSet = WeakSet()
        self.token = current.set(m.but(watch=self))
        self.modes: tuple = None, None  # the last argument and result of `inside`

    def close(self) -> None:
        """Remove the level's tangents from all tensors, and leave the level."""
        for tangents in self.held:
            tangents.pop(self, None)
        self.held.clear()
        current.reset(self.token)

    def __enter__(self) -> Level:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- the tangents of a tensor ------------------------------------------------------------------

    def tangent(self, x: Tensor | None) -> Tensor | None:
        """The tangent of x, or None. For a batched tensor of a vmap within this level, the batched tangent."""
        if x is not None and self.within(x):
            batch: Any = x._array
            t = self.tangent(batch.value)
            return None if t is None else wrap(t, batch.level)
        tangents = None if x is None else x.__dict__.get(TANGENTS)
        return None if tangents is None else tangents.get(self)

    def within(self, x: Any) -> bool:
        """Whether x is a batched tensor of a vmap within this level: its tangent belongs to the values of all
        samples."""
        return isinstance(x._array, Batch) and x._array.level.depth > self.depth

    def give(self, x: Tensor, tangent: Tensor) -> None:
        """Set the tangent of x at this level."""
        tangents = tangents_of(x)
        tangents[self] = tangent
        self.held.add(tangents)

    def below(self, x: Any) -> Any:
        """x at the outer levels: without the tangents of this level and of inner levels."""
        if isinstance(x, Tensor):
            if x._array.__class__ is Batch and self.within(x):
                batch: Any = x._array
                made = wrap(self.below(batch.value), batch.level)
                made._node = x._node
                return made
            tangents = x.__dict__.get(TANGENTS)
            return without(x, {k: t for k, t in tangents.items() if k.number < self.number}) if tangents else x
        if x.__class__ is tuple or x.__class__ is list:
            return x.__class__([self.below(part) for part in x])
        return x

    def computing(self) -> Computing:
        return Computing(self)

    def inside(self, m: Any) -> Any:
        """The mode for computing tangents of ops that run in mode `m`: only the outer levels watch."""
        known, made = self.modes
        if known is not m:
            made = m.but(watch=self.outer, grad=m.grad or self.linear)
            self.modes = m, made
        return made

    def blind(self) -> bool:
        """Whether `inference_mode` has been entered inside the level: ops then have no tangents."""
        return abs(mode().inference) > self.inference

    # -- events ------------------------------------------------------------------------------------

    def on_op(self, op: Any, args: tuple, out: Any) -> None:
        super().on_op(op, args, out)
        if not self.held or isinstance(op, type) or (self.blind() and op.family is not families.view):
            return
        tangents = [self.tangent(x) for x in differentiated(op, args)]
        if any([t is not None for t in tangents]):
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            remember(op, outs)
            with self.computing() as m:
                found = derivative(op, self.below(args), self.below(outs), tangents, m.grad or self.linear, self.linear)
            self.give_all(outs, found)

    def give_all(self, outs: Sequence, found: Sequence) -> None:
        records = self.linear or mode().grad
        for x, t in zip(outs, found):
            if t is not None and x._array.dtype.kind in "fcV":
                self.give(x, t if records else cut(t))

    def on_function_start(self, node: Any, args: tuple) -> None:
        super().on_function_start(node, args)
        seen = not self.blind()
        node.ctx._tangents[self] = [self.tangent(a) if seen and isinstance(a, Tensor) else None for a in args]

    def on_function(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        """A user's Function has run: its `jvp` computes the tangents, from the inputs' tangents before forward ran."""
        super().on_function(node, args, out, saved)
        tangents = node.ctx._tangents.pop(self)
        if any([t is not None for t in tangents]):
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            remember_function(node, outs)
            with self.computing():
                found = by_jvp(node, self.below(args), self.below(outs), tangents, self.below(saved))
            self.give_all(outs, found)
            for made, t in zip(outs, found):
                if any([made is a for a in args]) and living_views(made._root):  # forward wrote to its input
                    self.give_written(made, t)

    def on_write(self, tensor: Tensor, value: Tensor) -> None:
        super().on_write(tensor, value)
        if not self.held or self.blind():
            return
        self.give_written(tensor, self.tangent(value))

    def give_written(self, tensor: Tensor, t: Tensor | None) -> None:
        """New tangents of the tensor's base and of the views of the base, after a write of a value with tangent `t`
        into the tensor."""
        root = tensor._root
        known = self.tangent(root)
        if t is None and known is None:
            return
        with self.computing():
            self.give(root, written(tensor, self.below(root), t, known))
            with within(grad=True):  # the views of a recorded tangent are recorded, too
                for view in living_views(root):
                    _, parent, replay, settings, _ = view._viewing  # type: ignore[misc]
                    self.give(view, replay(self.tangent(parent), *settings))

    def on_move(self, to: Tensor, tensor: Tensor) -> None:
        super().on_move(to, tensor)
        if TANGENTS in tensor.__dict__:
            to.__dict__[TANGENTS] = tensor.__dict__[TANGENTS]


class Computing:
    """`with level.computing() as m`: the mode in which a level computes tangents; `m` is the mode before."""

    __slots__ = ("level", "token")

    def __init__(self, level: Level):
        self.level = level

    def __enter__(self) -> Any:
        m = mode()
        self.token = current.set(self.level.inside(m))
        return m

    def __exit__(self, *exc: object) -> None:
        current.reset(self.token)


def cut(x: Tensor) -> Tensor:
    """x outside all graphs, including the graphs of a batched tensor's values; its tangents stay."""
    if not recorded(x):
        return x
    made = detached(x)
    if isinstance(x._array, Batch):
        made._array = Batch(cut(x._array.value), x._array.level)
    same_tangents(made, x)
    return made


def same_tangents(alias: Tensor, x: Tensor) -> None:
    """Give `alias` the tangents of x."""
    if TANGENTS in x.__dict__:
        alias.__dict__[TANGENTS] = x.__dict__[TANGENTS]


def tangents_of(x: Tensor) -> Tangents:
    return x.__dict__.setdefault(TANGENTS, Tangents())


def without(x: Tensor, tangents: dict) -> Tensor:
    """A tensor with the memory and the node of x, and with these tangents only."""
    alias = from_array(x._array)
    alias._node = x._node
    if x._viewing is None:
        alias._writes = writes_of(x)
    else:
        alias._viewing, alias._writes = x._viewing, x._writes
        if x._viewing[2] is not None:  # a write to the alias rewrites the base, too
            register(alias, *x._viewing[1:])
    if tangents:
        alias.__dict__[TANGENTS] = Tangents().of(tangents)
    return alias


def written(x: Tensor, root: Tensor, t: Tensor | None, known: Tensor | None) -> Tensor:
    """The tangent of x's memory after a value with tangent `t` has been written into x."""
    t = zeros(x) if t is None else fitted(t, x)
    if x._viewing is None and known is None:
        return t
    whole = zeros(root) if known is None else known
    kept = not mode().grad and recorded(whole)  # in no_grad, a recorded tangent keeps its node
    if x._viewing is None and not kept:
        return t
    if known is not None:
        whole = copied(known) if kept else known.clone()
    whole = spread_as(whole, t)
    whole = lying_as(whole, root)
    Region(x).of(whole).copy_(t)
    return whole


def copied(x: Tensor) -> Tensor:
    """A copy of x with the same node (also of a batched tensor's values), and with copies of x's tangents."""
    made = copy_with_node(x)
    if TANGENTS in x.__dict__:
        made.__dict__[TANGENTS] = Tangents().of({k: copied(t) for k, t in x.__dict__[TANGENTS].items()})
    if isinstance(x._array, Batch):
        made._array = Batch(copied(x._array.value), x._array.level)
    return made


def remember(op: Any, outs: list) -> None:
    """Give the op's node the tangents of its outputs, if the op's rules read outputs."""
    if op.saves_out or any(name in op.saves for name in op.options.get("outputs", "").split()):
        keep_tangents(next((x._node.source()[0] for x in outs if x._node is not None), None), outs)


def remember_function(node: Any, outs: list) -> None:
    keep_tangents(node if any(isinstance(x, Tensor) and x._node is not None for x in outs) else None, outs)


def keep_tangents(node: Any, outs: list) -> None:
    if node is not None and not node.leaf and (node.hooks is None or node.hooks.dual is None):
        hooks_of(node).dual = partial(dressed, [tangents_of(x) if isinstance(x, Tensor) else None for x in outs])


def dressed(tangents: list, t: Tensor, i: int) -> Tensor:
    """A saved output with its tangents."""
    if tangents[i]:
        t.__dict__[TANGENTS] = tangents[i]
    return t


def by_jvp(node: Any, args: tuple, outs: list, tangents: list, saved: tuple) -> list:
    """The tangents that the `jvp` of a user's Function returns, checked."""
    ctx = node.ctx
    if ctx._materialize:
        tangents = [
            zeros(a) if t is None and isinstance(a, Tensor) and a._array.dtype.kind in "fcV" else t
            for a, t in zip(args, tangents)
        ]
    ctx._forward = saved
    try:
        answer = node.function.jvp(ctx, *tangents)
    finally:
        ctx._forward = None
    found = list(answer) if isinstance(answer, tuple) else [answer]
    if len(found) != len(outs):
        raise runtime_error(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got "
            f"{len(found)})",
            "return one tangent, or None, for each output",
            op=node.name(),
        )
    for x, t in zip(outs, found):
        if t is not None:
            if not isinstance(t, Tensor):
                raise runtime_error(
                    f"expected Variable or None (got {type(t).__name__}) for grad output 0.", op=node.name()
                )
            check_size(x, t)
    return found


# -- for users -------------------------------------------------------------------------------------


class UnpackedDualTensor(NamedTuple):
    """x + e t as (primal, tangent): the two parts of a dual number. `tangent` is None for a tensor without a tangent.

    >>> rushlight.autograd.forward_ad.unpack_dual(rushlight.ones(2))
    UnpackedDualTensor(primal=tensor([1., 1.]), tangent=None)
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a level of forward mode. Returns its number: 0, or the number of the level around it plus 1.

    >>> from rushlight.autograd import forward_ad as fwAD
    >>> fwAD.enter_dual_level()
    0
    >>> fwAD.exit_dual_level()
    """
    return Level().number


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the innermost level: its tangents t = dx/de are removed from all dual numbers.

    RuntimeError if `level` is not the innermost level.

    >>> from rushlight.autograd import forward_ad as fwAD
    >>> level = fwAD.enter_dual_level()
    >>> x = fwAD.make_dual(rushlight.ones(1), rushlight.ones(1))
    >>> fwAD.exit_dual_level(level=level)
    >>> fwAD.unpack_dual(x).tangent is None
    True
    """
    last = innermost(Level, mode().watch)
    if last is None:
        raise runtime_error("Dual level must be a positive number.", "no level is open")
    if level is not None and level != last.number:
        raise runtime_error(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported.",
            f"exit level {last.number} first",
        )
    last.close()


class dual_level(Decorator):
    """A level of forward mode: dual numbers can be made inside; at the end their tangents are removed. Levels nest.

    >>> from rushlight.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(rushlight.tensor([1., 2.]), rushlight.tensor([1., 0.]))
    ...     print(fwAD.unpack_dual(x * x).tangent)
    tensor([2., 0.])
    """

    levels: list[Level]

    def __enter__(self) -> int:
        self.__dict__.setdefault("levels", []).append(Level())
        return self.levels[-1].number

    def __exit__(self, *exc: object) -> None:
        self.levels.pop().close()


def level_of(number: int | None) -> Level | None:
    """The open level of this number; for None the innermost level."""
    found: Level | None = innermost(Level, mode().watch)
    while found is not None and number is not None and found.number != number:
        found = innermost(Level, found.outer)
    return found


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """x + e t: the dual number of a tensor and a tangent, on the tensor's memory. Ops on it compute tangents, too.

    RuntimeError outside a level, for shapes that differ, and for a tensor that already has a tangent of this level;
    ValueError unless both are floating-point or complex. Differentiable in reverse mode.

    >>> from rushlight.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(rushlight.tensor(3.), rushlight.tensor(1.))
    ...     print(fwAD.unpack_dual(x ** 2).tangent)  # 2 x
    tensor(6.)
    """
    here = level_of(level)
    if here is None:
        raise runtime_error(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.",
            "with forward_ad.dual_level(): ...",
        )
    check_dual(here, tensor, tangent)
    return dual(here, tensor, tangent)


def check_dual(level: Level, x: Tensor, tangent: Tensor) -> None:
    """RuntimeError or ValueError unless x and the tangent can make a dual number."""
    for what, t in (("primal", x), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise value_error(
                f"Expected {what} to be floating point or complex, but got: {t.dtype}",
                "convert it first: .to(torch.float32)",
            )
    check_size(x, tangent)
    if level.tangent(x) is not None:
        raise runtime_error(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{level.number} is not supported.",
            "unpack_dual() it first",
        )
    if level.tangent(tangent) is not None:
        raise runtime_error(
            f"Setting a forward grad that itself has a forward gradient at the same level{level.number} is not "
            "supported.",
            "unpack_dual() it first",
        )


def dual(level: Level, x: Tensor, tangent: Tensor) -> Tensor:
    """The dual number, not registered as a view of x: a write to it does not change the node of x."""
    made = without(x, x.__dict__.get(TANGENTS) or {})
    if x._node is not None:
        made = unregistered(x.view_as(x))
        made._writes = writes_of(x)
    made._viewing = None
    if not level.blind():
        level.give(made, fitted(tangent, x))
    return made


def check_size(x: Tensor, tangent: Tensor) -> None:
    if x._array.shape != tangent._array.shape:
        raise runtime_error(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this "
            f"is not supported. Tensor is of size {list(x.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}.",
            "pass a tangent of the tensor's shape",
        )


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(x, t) of x + e t. The tangent is None outside a level, and for a tensor without a tangent.

    >>> from rushlight.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     primal, tangent = fwAD.unpack_dual(fwAD.make_dual(rushlight.tensor(3.), rushlight.tensor(1.)).exp())
    >>> primal.equal(tangent)  # exp is its own derivative
    True
    """
    here = level_of(level)
    if here is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(here.below(tensor), here.tangent(tensor))
