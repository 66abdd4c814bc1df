"""The backward part of a program, for a later call: its node, and its variants if only some results have gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rushlight.autograd.graph_errors import overwritten
from rushlight.base.errors import runtime_error
from rushlight.compile.capture.input_sources import find, keyed
from rushlight.compile.capture.trace_summary import entered, unhooked
from rushlight.compile.graph import Graph
from rushlight.compile.guards.pytree_signature import planned
from rushlight.compile.passes.split_backward import outline, without
from rushlight.core.backward import DOUBLE_BACKWARD_LISTENERS, grad
from rushlight.core.engine import reachable
from rushlight.core.mode import mode
from rushlight.core.node import Node, clock, tick
from rushlight.core.tensor import Tensor, from_array, writes_of


class Kept:
    """The saved inputs of a compiled function. The node checks their versions itself, because a backward may read only
    some of them."""

    __slots__ = ("tensors",)

    def __init__(self, tensors: list[Tensor | None]):
        self.tensors = tensors


class Twice:
    """Records whether the user differentiates twice through the nodes of a traced run."""

    def __init__(self) -> None:
        self.first = self.last = 0  # clock ticks at the beginning and the end of the run
        self.seen = False

    def watch(self, began: int) -> None:
        """Called at the end of a traced run. `began`: the clock tick at its beginning."""
        self.first, self.last = began, tick()
        DOUBLE_BACKWARD_LISTENERS.add(self)

    def differentiated(self, nodes: Iterable[Node]) -> None:
        """Called when a recorded backward (create_graph=True) begins at `nodes`."""
        if any([self.first < n.seq < self.last for n in reachable(nodes, self.first)]):
            self.seen = True
            DOUBLE_BACKWARD_LISTENERS.discard(self)


class Subsets:
    """The parts of backward for calls in which only some results have gradients; made on first use."""

    def __init__(self, late: Graph, part: Callable[[Graph], Any], results: int, given: list[set[int] | None]):
        self.late, self.part = outline(late) if results > 1 else Graph(), part
        self.seeds = [seeds for seeds in given if seeds is not None]
        self.known: dict[frozenset[int], tuple[Any, list[bool], list[int]]] = {}

    def of(self, absent: set[int], whole: Any) -> tuple[Any, list[bool], list[int]]:
        """(the part without gradients of the results in `absent`, for each input whether it gets a gradient, the
        positions of the part's inputs among the inputs of `whole`).
        """
        key = frozenset(absent)
        if key not in self.known:
            graph, there = without(self.late, absent, self.seeds)
            part = self.part(graph)
            part.let_go()
            known = {keyed(s): i for i, s in enumerate(whole.sources)}
            self.known[key] = part, there, [known[keyed(s)] for s in part.sources]
        return self.known[key]


class CompiledFunctionBackward(Node):
    """The node of a compiled function's results: its rule runs the program's backward part."""

    __slots__ = ("call",)
    # (how to run the function again: (function, args, kwargs), or the results of its eager run with their graph; the
    # tensors that the function was given)
    call: tuple

    def arrays(self, g: Any) -> list:
        """The gradients of the inputs that require grad."""
        program, shapes, saved, kept = self.saved  # type: ignore[misc]
        came = g if isinstance(g, dict) else {0: g}
        part, there = program.backward, None
        inputs = kept.tensors
        # only some results have a gradient: run the backward part for these
        if len(came) < len(shapes):
            part, there, places = program.apart_from.of({*range(len(shapes))} - came.keys(), part)
            inputs = [inputs[i] for i in places]
        if clock.last_write > self.seq:
            for t in inputs:
                if t is not None and (writes := t._root._writes) is not None and writes.stamp > self.seq:
                    raise overwritten(self, writes, "an input", t._array.shape)
        arrays = [
            np.ascontiguousarray(came[what]).reshape(shapes[what][0])
            if kind == "seed"
            else saved[what]
            if kind == "saved"
            else t._array
            for (kind, what), t in zip(part.sources, inputs)
        ]
        if not part.fits(arrays):
            raise runtime_error("an input of a compiled function has changed its shape or dtype since forward")
        found, left = iter(part.run(arrays)[0]), iter(there or [True] * len(program.given))
        return [next(found) if given is not None and next(left) else None for given in program.given]

    def tensors(self, g: Any) -> list:
        """The gradients, recorded: runs the function again, eagerly. RuntimeError if that would have side effects."""
        given = g if isinstance(g, dict) else {0: g}
        if not mode().grad:  # nothing records this backward, but the caller needs tensors
            found = self.arrays({k: t._array for k, t in given.items()})
            return [None if a is None else from_array(a) for a in found]
        (call, arguments), program = self.call, self.saved[0]  # type: ignore[index]
        ins = [find(source, arguments) for source in program.edges]
        if isinstance(call, list):
            outs = [call[k] for k in given]
            return list(grad(outs, ins, [*given.values()], create_graph=True, allow_unused=True))
        if (
            call is None
            or not program.repeatable
            or not program.holds()
            or any(writes_of(t).stamp > self.seq for t in (*ins, *arguments))
        ):
            raise runtime_error(
                "a compiled function cannot be differentiated twice if it writes to memory or draws random numbers",
                "call the original function if create_graph=True is needed, or compile the whole step",
            )
        function, args, kwargs = call
        outs = []

        def numbered(t: Tensor) -> tuple[int, bool]:
            outs.append(t)
            return 0, False

        hooked = [t._node for t in ins if t._node is not None and t._node.hooks is not None]
        # the engine runs the hooks, and continues below the arguments
        with entered(arguments) as cut, unhooked(hooked):
            planned(function(*args, **kwargs), arguments, program.outline.before.tensors, numbered)
            outs = [outs[program.live[k]] for k in given]
            cut()
            return list(grad(outs, ins, [*given.values()], create_graph=True, allow_unused=True))
