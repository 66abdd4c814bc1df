"""Forward mode: dual numbers x + e t, whose tangents t = dx/de go through a program together with its values.

No table of its own. The gradient that a rule computes, g -> J' g, is linear in g, so its derivative by g, towards t, is
J t (http://j-towns.github.io/2017/06/12/A-new-trick.html). Three short cuts: J of an op that works element by element is
diagonal, and the rule itself gives J t; a view's tangent is the same view of the tangent; an op that is `linear` in an
input, as its entry says, is its own derivative.

An open level is a `Watcher`: it is told of every op after it has run, and hangs the tangents of the results on them.
Levels nest: the numbers of an inner one have parts that are dual numbers of the outer ones, x + e1 t1 + e2 (t2 + e1 t21).
So tangents are computed with only the outer levels watching, from inputs without what belongs to inner ones.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np

from rushlight.autograd.backward import grad
from rushlight.autograd.engine import sum_to_tensor
from rushlight.autograd.grad_mode import Setting, Watcher, current, mode
from rushlight.autograd.node import Hooks, Parts, Start, hooks_of, with_hooks
from rushlight.autograd.views import Region, living_views, released
from rushlight.errors import explain
from rushlight.ops import families
from rushlight.ops.worlds import TENSORS, ruled_inputs
from rushlight.tensor import Tensor, created, from_array, writes_of

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

KEY = "_tangents"                                 # in a tensor's __dict__
Given = Sequence[Tensor | None]


class Tangents(dict):
    """The tangents of one tensor: {level: tangent}. Its node shares them, for rules that name its output."""

    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    def __reduce__(self) -> tuple:
        return Tangents, ()                       # copies have none: levels belong to the running program


class Level(Watcher):
    """An open level: `outer` watches too, and before it; `number` counts the levels around it."""

    records = True                                # backward runs as ops, so that gradients have tangents too

    def __init__(self) -> None:
        self.outer = mode().watch
        around = innermost(self.outer)
        self.number: int = 0 if around is None else around.number + 1
        self.held: WeakSet = WeakSet()            # what to take this level's tangents from, when it is closed
        self.token = current.set(mode().but(watch=self))

    def close(self) -> None:
        """Forget its tangents, wherever they are: perturbations of closed levels do not leak."""
        for tangents in self.held:
            tangents.pop(self, None)
        self.held.clear()
        current.reset(self.token)

    def __enter__(self) -> Level:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- the tangents of a tensor ----------------------------------------------------------------------------------

    def tangent(self, x: Tensor | None) -> Tensor | None:
        """The tangent of x, or None."""
        tangents = None if x is None else x.__dict__.get(KEY)
        return None if tangents is None else tangents.get(self)

    def give(self, x: Tensor, tangent: Tensor) -> None:
        """Let x have this tangent."""
        tangents = tangents_of(x)
        tangents[self] = tangent
        self.held.add(tangents)

    def below(self, x: Any) -> Any:
        """x as the levels around this one see it: without this level's tangent, or those of inner ones."""
        if not isinstance(x, Tensor):
            return type(x)(map(self.below, x)) if type(x) in (list, tuple) else x
        tangents = x.__dict__.get(KEY)
        return without(x, {k: t for k, t in tangents.items() if k.number < self.number}) if tangents else x

    # -- what it is told -------------------------------------------------------------------------------------------

    def ran(self, op: Any, args: tuple, out: Any) -> None:
        if self.outer is not None:
            self.outer.ran(op, args, out)
        if not self.held or isinstance(op, type):
            return
        tangents = [self.tangent(x) for x in differentiated(op, args)]
        if any([t is not None for t in tangents]):
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            remember(op, outs)
            with Seen(self.outer) as m:
                found = derivative(op, self.below(args), self.below(outs), tangents, m.grad)
            self.give_all(outs, found)

    def give_all(self, outs: Sequence, found: Sequence) -> None:
        for x, t in zip(outs, found):
            if t is not None:
                self.give(x, t)

    def applied(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        """A user's Function has run: its `jvp` gives the tangents."""
        if self.outer is not None:
            self.outer.applied(node, args, out, saved)
        tangents = [self.tangent(a) if isinstance(a, Tensor) else None for a in args]
        if any([t is not None for t in tangents]):
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            remember_function(node, outs)
            with Seen(self.outer):
                found = by_jvp(node, self.below(args), self.below(outs), tangents, self.below(saved))
            self.give_all(outs, found)

    def wrote(self, tensor: Tensor, value: Tensor) -> None:
        if self.outer is not None:
            self.outer.wrote(tensor, value)
        if not self.held:
            return
        root, t = tensor.root, self.tangent(value)
        known = self.tangent(root)
        if t is None and known is None:
            return
        with Seen(self.outer):
            self.give(root, written(tensor, self.below(root), t, known))
            for view in living_views(root):
                _, parent, replay, settings, _ = view.viewing  # type: ignore[misc]
                self.give(view, replay(self.tangent(parent), *settings))

    def created(self, tensor: Tensor) -> None:
        if self.outer is not None:
            self.outer.created(tensor)

    def read(self, tensor: Tensor) -> None:
        if self.outer is not None:
            self.outer.read(tensor)


class Seen(Setting):
    """Inside it only this watcher sees what is done; gives the mode as it was."""

    def __init__(self, watch: Watcher | None):
        self.changes = {"watch": watch}

    def __enter__(self) -> Any:
        m = mode()
        super().__enter__()
        return m


def innermost(watch: Any) -> Level | None:
    """The first level among the watchers."""
    while watch is not None and not isinstance(watch, Level):
        watch = getattr(watch, "outer", None)
    return watch


def tangents_of(x: Tensor) -> Tangents:
    return x.__dict__.setdefault(KEY, Tangents())


def without(x: Tensor, tangents: dict) -> Tensor:
    """x itself, its memory and its place in the graph, with these tangents only."""
    alias = from_array(x.array)
    alias.node, alias.viewing = x.node, x.viewing
    alias.writes = writes_of(x) if x.viewing is None else x.writes
    if tangents:
        alias.__dict__[KEY] = Tangents(tangents)
    return alias


def zeros(x: Tensor) -> Tensor:
    return created(from_array(np.zeros(x.array.shape, x.array.dtype)))


def written(x: Tensor, root: Tensor, t: Tensor | None, known: Tensor | None) -> Tensor:
    """The tangent of x's memory after a value with tangent `t` has been written into x."""
    t = zeros(x) if t is None else fitted(t, x)
    if x.viewing is None:
        return t
    whole = zeros(root) if known is None else known.clone()  # type: ignore[attr-defined]
    Region(x).of(whole).copy_(t)  # type: ignore[attr-defined]
    return whole


def fitted(t: Tensor, x: Tensor) -> Tensor:
    """A tangent in x's dtype and shape."""
    t = t if t.array.dtype == x.array.dtype else t.to(x.dtype)  # type: ignore[attr-defined]
    return t if t.array.shape == x.array.shape else t.expand(x.array.shape)  # type: ignore[attr-defined]


# -- from rules to tangents ----------------------------------------------------------------------------------------

def differentiated(op: Any, args: tuple) -> Sequence:
    """The inputs that have an edge in the op's nodes, in that order."""
    if op.inputs == ("tensors",):
        return args[0] if op.rules["tensors"] else ()
    return [args[op.inputs.index(name)] if op.rules[name] else None for name in ruled_inputs(op)]


def derivative(op: Any, args: tuple, outs: list, tangents: Given, record: bool) -> Sequence:
    """The tangent of each output, None where it is constant."""
    found: Sequence = [None] * len(outs)
    linear = op.inputs if op.family is families.view else op.options.get("linear", "").split()
    left = list(tangents)
    for name in linear:
        if name == "tensors":
            moved = tuple([zeros(x) if t is None else t for x, t in zip(args[0], left)])
            return as_list(TENSORS[op.name](moved, *args[1:]))
        i = ruled_inputs(op).index(name)
        if (t := left[i]) is not None:
            at, left[i] = op.inputs.index(name), None
            found = added(found, as_list(TENSORS[op.name](*args[:at], t, *args[at + 1:])))
    if any([t is not None for t in left]):
        diagonal = op.elementwise and not any(x.array.dtype.kind == "c" for x in (*outs, *args) if isinstance(x, Tensor))
        how = diagonally if diagonal else transposed
        found = added(found, how(op, args, outs, left, record))
    return found


def as_list(made: Any) -> list:
    return list(made) if isinstance(made, (tuple, list)) else [made]


def added(found: Sequence, more: Sequence) -> list:
    return [b if a is None else a if b is None else a + b for a, b in zip(found, more)]


def diagonally(op: Any, args: tuple, outs: list, tangents: Given, record: bool) -> list:
    """The tangents of an op that works element by element: each rule with a tangent in place of the gradient."""
    out, total = outs[0], None
    for i, t in enumerate(tangents):
        if t is not None:
            edges = tuple([True if i == j else None for j in range(len(tangents))])
            part = node_like(op, args, outs, edges).tensors(fitted(t, out))[i]
            total = part if total is None else total if part is None else total + part
    return [zeros(out) if total is None else fitted(total, out)]


def transposed(op: Any, args: tuple, outs: list, tangents: Given, record: bool) -> list:
    """The tangents of any op: the derivative of g -> J' g by g, towards the inputs' tangents."""
    node = node_like(op, args, outs, tuple([None if t is None else True for t in tangents]))
    smooth = [i for i, x in enumerate(outs) if x.array.dtype.kind in "fcV" and i != op.options.get("fixed")]
    gs = {i: start(outs[i]) for i in smooth}
    token = current.set(mode().but(grad=True))
    try:
        gradients = node.tensors(Parts(gs) if several(op) else gs[0]) if gs else ()
        pairs = [(sum_to_tensor(h, t.array.shape) if h.array.shape != t.array.shape else h, t)
                 for h, t in zip(gradients, tangents) if h is not None and t is not None]
        pairs = [(h, t) for h, t in pairs if h.node is not None]
        found = grad([h for h, _ in pairs], list(gs.values()), [t for _, t in pairs], create_graph=record,
                     allow_unused=True) if pairs else (None,) * len(gs)
    finally:
        current.reset(token)
    by_place = dict(zip(gs, found))
    return [(zeros(x) if by_place[i] is None else by_place[i]) if i in by_place else None for i, x in enumerate(outs)]


def start(out: Tensor) -> Tensor:
    """The gradient of an output, as a variable."""
    g = zeros(out)
    g.node = Start(None, out.array.shape)
    return g


def several(op: Any) -> bool:
    """Whether the op's rules are given a list of gradients."""
    return bool(op.options.get("list")) or len(op.options.get("outputs", "").split()) > 1


def node_like(op: Any, args: tuple, outs: list, edges: tuple) -> Any:
    """A node as the op's family makes it, outside any graph, with what the rules of these edges need."""
    node = object.__new__(with_hooks(op.node))
    node.extra, node.edges, node.seq, node.where, node.shape = Hooks(), edges, 0, None, outs[0].array.shape
    node.extra.dual = lambda t, i: outs[i]        # rules that name an output see it as it is, with its history
    arrays = [x.array for x in outs]
    if op.family is families.reduction:
        shape, axes = args[0].array.shape, args[1]
        kept = families.kept_shape(shape, tuple(range(len(shape))) if axes is None else axes)
        node.saved = families.facts(op.saves, args[0], arrays[0], shape, axes, kept)
    else:
        node.saved = op.save(args, edges, arrays)
    if several(op):
        node.saved += ([(a.shape, a.dtype) if a.dtype.kind in "fcV" and i != op.options.get("fixed") else None
                        for i, a in enumerate(arrays)],)
    return node


def remember(op: Any, outs: list) -> None:
    """Let the node that the op recorded know its outputs' tangents, if its rules name outputs."""
    if op.saves_out or any(name in op.saves for name in op.options.get("outputs", "").split()):
        keep_tangents(next((x.node.source()[0] for x in outs if x.node is not None), None), outs)


def remember_function(node: Any, outs: list) -> None:
    keep_tangents(node if any(isinstance(x, Tensor) and x.node is not None for x in outs) else None, outs)


def keep_tangents(node: Any, outs: list) -> None:
    if node is not None and not node.leaf and (node.hooks is None or node.hooks.dual is None):
        hooks_of(node).dual = partial(dressed, [tangents_of(x) if isinstance(x, Tensor) else None for x in outs])


def dressed(tangents: list, t: Tensor, i: int) -> Tensor:
    """A saved output with its tangents."""
    if tangents[i]:
        t.__dict__[KEY] = tangents[i]
    return t


def by_jvp(node: Any, args: tuple, outs: list, tangents: list, saved: tuple) -> list:
    """What the `jvp` of a user's Function answers, checked."""
    ctx = node.ctx
    if ctx._materialize:
        tangents = [zeros(a) if t is None and isinstance(a, Tensor) and a.array.dtype.kind in "fcV" else t
                    for a, t in zip(args, tangents)]
    ctx._forward = saved
    try:
        answer = node.function.jvp(ctx, *tangents)
    finally:
        ctx._forward = None
    found = list(answer) if isinstance(answer, tuple) else [answer]
    if len(found) != len(outs):
        raise RuntimeError(explain("Function's jvp returned an invalid number of forward gradients (expected "
                                   f"{len(outs)} but got {len(found)})", "return one tangent, or None, for each output",
                                   op=node.name()))
    for x, t in zip(outs, found):
        if t is not None:
            if not isinstance(t, Tensor):
                raise RuntimeError(explain(f"expected Variable or None (got {type(t).__name__}) for grad output 0.",
                                           op=node.name()))
            check_size(x, t)
    return found


# -- for users -----------------------------------------------------------------------------------------------------

class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual number; `tangent` is None for one that is none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a level and return its number: 0, or one more than that of the level it is opened in."""
    return Level().number


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the innermost level: its tangents are gone. RuntimeError for a level that is not the innermost."""
    last = innermost(mode().watch)
    if last is None:
        raise RuntimeError(explain("Dual level must be a positive number.", "there is no open level to exit"))
    if level is not None and level != last.number:
        raise RuntimeError(explain("Trying to exit a forward AD level that was not the last one that was created. This is "
                                   "not supported.", f"exit level {last.number} first"))
    last.close()


class dual_level(Setting):
    """Inside it dual numbers can be made; when it ends their tangents are gone. Levels may be nested.

    >>> from rushlight.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(rushlight.tensor([1., 2.]), rushlight.tensor([1., 0.]))
    ...     print(fwAD.unpack_dual(x * x).tangent)
    tensor([2., 0.])
    """

    def __enter__(self) -> int:
        self.__dict__.setdefault("levels", []).append(Level())
        return self.levels[-1].number

    def __exit__(self, *exc: object) -> None:
        self.levels.pop().close()


def level_of(number: int | None) -> Level | None:
    """The open level of this number, or the innermost."""
    found = innermost(mode().watch)
    while found is not None and number is not None and found.number != number:
        found = innermost(found.outer)
    return found


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The dual number tensor + e tangent: a new tensor on the same memory, whose results have tangents too.

    RuntimeError outside a level, for shapes that differ and for a tensor that has a tangent of this level already;
    ValueError unless both are floating-point or complex. Differentiable in reverse mode.
    """
    here = level_of(level)
    if here is None:
        raise RuntimeError(explain("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                                   "enter_dual_level() first.", "with forward_ad.dual_level(): ..."))
    for what, x in (("primal", tensor), ("tangent", tangent)):
        if not (x.is_floating_point() or x.is_complex()):
            raise ValueError(explain(f"Expected {what} to be floating point or complex, but got: {x.dtype}",
                                     "convert it first: .to(torch.float32)"))
    check_size(tensor, tangent)
    if here.tangent(tensor) is not None:
        raise RuntimeError(explain("Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
                                   f"level {here.number} is not supported.", "unpack_dual() it first"))
    if here.tangent(tangent) is not None:
        raise RuntimeError(explain("Setting a forward grad that itself has a forward gradient at the same level"
                                   f"{here.number} is not supported.", "unpack_dual() it first"))
    return dual(here, tensor, tangent)


def dual(level: Level, x: Tensor, tangent: Tensor) -> Tensor:
    """The dual number, nobody's view: writes to it leave x's own place in the graph as it is."""
    made = without(x, x.__dict__.get(KEY) or {})
    if x.node is not None:
        made = released(x.view_as(x))  # type: ignore[attr-defined]
        made.writes = writes_of(x)
    made.viewing = None
    level.give(made, fitted(tangent, x))
    return made


def check_size(x: Tensor, tangent: Tensor) -> None:
    if x.array.shape != tangent.array.shape:
        raise RuntimeError(explain(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(x.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}.", "give a tangent of the tensor's shape"))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a dual number; the tangent is None outside a level, and for any other tensor."""
    here = level_of(level)
    if here is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(here.below(tensor), here.tangent(tensor))
