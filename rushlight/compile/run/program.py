"""A compiled run: the text, the arrays that the text reads, the side effects (writes, gradients, random numbers)."""

from __future__ import annotations

import linecache
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain
from typing import Any
from weakref import ref

import numpy as np

from rushlight.base.buffer_pool import MIN_ARRAY_BYTES, memory
from rushlight.base.text import define
from rushlight.compile.capture.input_sources import find, keyed, picker
from rushlight.compile.capture.replay import Replay
from rushlight.compile.capture.rng_replay import random_state, restore
from rushlight.compile.export.module_text import module
from rushlight.compile.graph import Graph, Store, homes, is_random, keep_apart
from rushlight.compile.guards.guard_text import still_holds
from rushlight.compile.guards.pytree_signature import rebuilt
from rushlight.compile.lower.memory_plan import Spans, overlap
from rushlight.compile.lower.program_text import Lowering
from rushlight.compile.native.errors import NotNative
from rushlight.compile.passes import optimize
from rushlight.compile.passes.split_backward import read_late, split
from rushlight.compile.report import Item, Stopwatch, Timings, drawing, kind, memory_table
from rushlight.compile.run.forward_backward import CompiledFunctionBackward, Kept, Subsets
from rushlight.compile.run.native_way import Natives, in_its_place, native_of
from rushlight.compile.run.verified_cache import Proof, recorded
from rushlight.compile.run.verify import Checker, Mismatch, beyond_noise, distance
from rushlight.core.node import Output, clock, tick
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor, from_array, writes_of
from rushlight.fast.policy import large_arrays
from rushlight.loops.tiering import at_once

# special results of `run`: the memory layout differs, so another program may fit; or the function must run eagerly
OTHER_LAYOUT, RUN_EAGERLY = object(), object()


class Part:
    """One graph as a generated function: `run(arrays)` returns its results and gradients.

    `later`: the text's functions are made when they are needed, since a native function runs in their place."""

    def __init__(
        self, graph: Graph, title: str, fuse: bool, threads: bool, mark: str = "", like: Any = None, later: bool = False
    ):
        self.mark, self.sources = mark, [v.source for v in graph.inputs]
        self.layouts = [layout(v._array) for v in graph.inputs]
        targets = {s.target for s in graph.steps if isinstance(s, Store)}
        # the inputs that the program writes to
        self.owned = [i for i, v in enumerate(graph.inputs) if v in targets]
        self.shares_written = False  # whether an input that is written shares memory with another reachable tensor
        names = [f"{mark}{LETTER[v.source[0]]}{i}" for i, v in enumerate(graph.inputs)]
        lowering = Lowering(graph, title, names, fuse, threads, mark, like)
        self.parts, self.joined = lowering.parts, bool(lowering.joints.texts)
        # functions that allocate the results
        self.new = [
            partial(memory.take if n * dtype.itemsize >= MIN_ARRAY_BYTES else np.empty, shape, dtype)
            for shape, dtype in lowering.new
            for n in [math.prod(shape)]
        ]
        self.define = partial(defined, lowering.text, lowering.constants, mark)
        if not later:
            self.call, self.bind = self.functions
        self.native_gone: Callable[[], None] = lambda: None  # called when the text runs again
        self.undoes = False  # whether a call that raises an error undoes its side effects
        self.fresh = True  # True until the first run
        self.lowering: Lowering | None = lowering
        self.items, self.leases, self.size = lowering.report, lowering.plan.leases, lowering.plan.size
        self.inputs = [(v.name, kind(v)) for v in graph.inputs]
        self.observed = lowering.watched("seen")
        self.made = [v.name for v in graph.outputs()]
        self._views: tuple | None = None  # the results of `bind`; None if they must be made again
        self.spans: Spans  # the memory that the program writes to, made with the views
        self.state: set[int] = set()  # ids of the arrays that the function reaches without arguments
        self.parameters: list[np.ndarray] = []  # the arrays that `bind` has bound
        self.known: list[np.ndarray | None] = [None] * len(self.sources)
        kinds = [kind for kind, _ in self.sources]
        self.watched = [i for i, kind in enumerate(kinds) if kind in ("state", "grad")]
        self.bound = [i for i, kind in enumerate(kinds) if kind == "state"]
        self.passing = {i for i in self.watched if kinds[i] == "grad" and {*self.owned} <= {*self.watched} - {i}}

    call: Callable
    bind: Callable

    @cached_property
    def functions(self) -> tuple[Callable, Callable]:
        """The functions `run` and `bind` of the text, made when they are first needed."""
        return self.define()

    @cached_property
    def names(self) -> dict[str, Any]:
        """The globals of the text."""
        return self.functions[0].__globals__

    def run(self, arrays: list[np.ndarray]) -> tuple[list, list]:
        """The results and the gradients."""
        if not self.fresh:
            return self.call(self.new, *arrays, *self._views)  # type: ignore[misc]
        large_arrays.settle()  # compiled programs wait for their loops to be compiled
        self.fresh, token = False, at_once.set(True)
        try:
            found = self.call(self.new, *arrays, *self._views)  # type: ignore[misc]
        finally:
            at_once.reset(token)
        return found

    def failed(self, error: Exception) -> bool:
        """Whether a run that raised this error had no side effects: then the function can run eagerly instead.

        Otherwise adds the user's line to the error.
        """
        if isinstance(error, NotNative):
            self.take_back()
            return True
        if self.undoes:
            return True
        at, code = error.__traceback__, getattr(self.call, "__code__", None)
        while at is not None and at.tb_frame.f_code is not code:
            at = at.tb_next
        line = "" if at is None else linecache.getline(code.co_filename, at.tb_lineno).strip()  # type: ignore[union-attr]
        if not line:
            return False
        last = max([i for i, item in enumerate(self.items) if line in item.text.split("; ")], default=-1)
        if last >= 0 and not any(
            op == "store" or op in TABLE and "random" in TABLE[op].options
            for item in self.items[: last + 1]
            for op in item.ops
        ):
            return True
        if last >= 0 and hasattr(error, "add_note"):  # notes exist from Python 3.11 on
            error.add_note(f"in a compiled function, at {'; '.join(self.items[last].places)}")
        return False

    def undo(self) -> None:
        """Make calls that raise an error undo their side effects: for functions that may catch the error."""
        self.call, self.undoes = partial(undone, self.call, self.owned), True

    def take(self, call: Callable, bind: Callable) -> None:
        """Run another function in place of the text."""
        self.call, self.bind, self.fresh, self.undoes, self._views = call, bind, False, True, None

    def take_back(self) -> None:
        """Run the text again. The fast call of the program (fast_call.py) calls the native function no longer."""
        self.native_gone()
        (self.call, self.bind), self.fresh, self.undoes, self._views = self.functions, True, False, None

    def bind_parameters(self, arrays: list[np.ndarray]) -> tuple:
        """`bind`; if the native function refuses the arrays, the text runs from now on."""
        try:
            return self.bind(*arrays)
        except NotNative:
            self.take_back()
            return self.bind(*arrays)

    def trial(self, replay: Replay, arrays: list[np.ndarray], written: list[np.ndarray]) -> tuple[list, list]:
        """`run` with each step compared with eager's. Raises Mismatch. `written`: `arrays`, with copies in place of the
        arrays that the program writes to."""
        low = self.lowering
        assert low is not None
        checker = Checker(low.graph, low.items, [made for _, made in low.probes], low.plan.ends, arrays, replay)
        made = self.under(checker, "check")(self.new, *written, *self.bind(*[written[i] for i in self.bound]))
        checker.leave()
        return made

    def rehearse(self, arrays: list[np.ndarray], apart: bool) -> tuple[list, list]:
        """`run` on other arrays, before the first call, to compile the loops.

        `apart`: run joined statements one by one, as `trial` does. Otherwise the arena is filled with nan bytes first,
        so that a read of unwritten memory shows."""
        if not apart:
            self.names[f"{self.mark}place"](0, (self.size,), "uint8").fill(255)
        call = self.under(lambda *made: None, "rehearsal") if apart else self.call
        return call(self.new, *arrays, *self.bind(*[arrays[i] for i in self.bound]))

    def let_go(self) -> None:
        """Free the traced run, whose arrays were needed for the comparison only."""
        if self.lowering is not None:
            self.lowering.graph.forget()
        self.lowering = None

    def timed(self, watch: Stopwatch) -> Callable:
        """The text as a function that calls the stopwatch after each statement."""
        return watch.around(self.under(watch, "timing"))

    def under(self, observer: Callable, name: str) -> Callable:
        """The text as a function that calls the observer after each statement."""
        names = dict(self.names)
        return partial(define(self.observed, "watched", names, f"program, {name}"), observer)

    def fits(self, arrays: list[np.ndarray]) -> bool:
        """Whether the arrays have the traced layouts. Arguments always do, because their signature contains the
        layout.
        """
        known = self.known
        for i in self.watched:
            if arrays[i] is not known[i]:
                if layout(arrays[i]) != self.layouts[i]:
                    return False
                known[i] = arrays[i]
                if i not in self.passing or self._views is None or self.spans.touch(arrays[i]):
                    self._views = None  # not for a gradient that is new in each call and only read
        if self._views is None:
            watched = {*self.watched}
            self.shares_written = overlap(
                [arrays[i] for i in self.owned if i in watched],
                [arrays[i] for i in self.watched if i not in self.owned],
            )
            if self.shares_written:
                return False
            self.spans = Spans([arrays[i] for i in self.owned if i in watched])
            self._views = self.bind_parameters([arrays[i] for i in self.bound])
            self.state = {id(arrays[i]) for i in self.bound}
            self.parameters = [arrays[i] for i in self.bound]
        return True


def forget_native(program: Callable[[], Program | None]) -> None:
    """The program runs its text from now on."""
    known = program()
    if known is not None:
        known.native, known.native_reason = None, "a parameter shares its memory with NumPy"


LETTER = {"argument": "arg", "state": "p", "number": "n", "grad": "grad", "seed": "g", "saved": "s"}


class Program:
    """A compiled run. `source`: its text. `run(arguments)`: repeats the traced run with other numbers.

    `plan`: how to build the function's result from arrays (compile/guards/pytree_signature.py). `holds()`: whether all
    guards hold."""

    def __init__(
        self,
        graph: Graph,
        plan: Any,
        live: list[int],
        outline: Any,
        title: str,
        options: Mapping[str, Any],
        natives: Natives,
    ):
        self.plan, self.live, self.outline, self.natives = plan, live, outline, natives
        numbers = [v.source[1] for v in graph.inputs if v.source[0] == "number"]
        self.holds = still_holds(outline.before, outline.free)
        # dynamic numbers whose formulas must agree in each run
        self.numbers = [n for n in numbers if len(n.ways) > 1]
        self.shared: dict[int, int] | None = None  # index of a saved array -> the result that shares its memory
        # (index, tensor): arguments that must be these very tensors
        self.identical: list[tuple[int, Tensor]] = []
        self.replay: Replay | None = Replay(graph)
        moves = any(isinstance(s, Store) or is_random(s) for s in graph.steps)
        self.repeatable = not graph.grads and not moves
        run, self.given = recorded(graph), graph.given
        watched = read_late(graph) if live else None
        shown = homes(graph)
        # the function of machine code that runs in place of the text, or the reason why there is none
        self.native, self.native_reason = native_of(graph, live, outline.expected.results, options, natives)
        optimize(graph, options)
        keep_apart(graph, shown)
        how = options.get("fuse", True), options.get("threads", True)
        targets = [s.target for s in graph.steps if isinstance(s, Store)]
        self.written = [v.source for v in targets]
        self.leaves = [(leaf, v is not None) for leaf, v in graph.grads]
        read = {keyed(v.source) for v in graph.inputs if v.source[0] == "grad"}
        undoes = moves and outline.before.catches
        unread = [leaf for leaf, _ in graph.grads if ("grad", keyed(leaf)[1]) not in read]
        self.dropped = [] if undoes else unread  # gradients freed before the run
        self.edges = graph.edges
        self.results = len(graph.results)
        self.make_parts(graph, watched, title, *how)
        self.owned = self.forward.owned
        if undoes:
            self.forward.undo()
        self.run_native()
        self.proof = Proof(run, [p.lowering.text for p in self.parts if p.lowering])
        self.gather = picker(self.forward.sources, "._array")
        self.targets, self.holders = picker(self.written), picker([leaf for leaf, _ in self.leaves])
        self.replaced = picker(self.dropped)
        self.seen: tuple | None = None  # the `views` for which `loose` was computed
        # whether an array that is written may share memory with an argument that owns its memory
        self.loose = True

    def make_parts(self, graph: Graph, watched: set | None, title: str, fuse: bool, threads: bool) -> None:
        """Make `forward`, and `backward` if the caller may run it later."""
        self.backward: Part | None = None
        if self.live:
            graph, late, _ = split(graph, watched)
            part = partial(Part, title=title, fuse=fuse, threads=threads, mark="back_")
            self.apart_from = Subsets(late, part, len(self.live), self.given)
            self.backward = part(late)
        self.given_in = [i for i, v in enumerate(graph.inputs) if v.source[0] == "argument"]
        handed = [*(v for _, v in graph.grads if v is not None), *graph.results[: self.results]]
        like = dict(zip(handed, self.outline.expected.leaves + self.outline.expected.results))
        self.forward = Part(graph, title, fuse, threads, like=like, later=self.native is not None)

    def run_native(self) -> None:
        """Let the native function run in place of the text."""
        if self.native is not None:
            known = {keyed(s) for s in self.forward.sources}
            if all(keyed(s) in known for s in (*self.native.sources, *(v.source for v in self.native.state))):
                self.forward.take(*in_its_place(self.native, self.forward.sources))
                self.forward.native_gone = partial(forget_native, ref(self))
            else:
                self.native, self.native_reason = None, "its text reads other inputs"
                self.forward.take_back()

    def drop_native(self, reason: str) -> None:
        """Run the text after all."""
        self.natives.drop(self.native)
        self.forward.take_back()
        self.native_reason = reason

    @property
    def source(self) -> str:
        """A Python module that does the same without rushlight (compile/export/module_text.py): its function `call`
        takes the arrays."""
        return module(p.parts for p in self.parts)

    @property
    def parts(self) -> list[Part]:
        return [self.forward] if self.backward is None else [self.forward, self.backward]

    @property
    def items(self) -> list[Item]:
        """The statements, forward before backward."""
        return [item for part in self.parts for item in part.items]

    def graph(self) -> str:
        """The statements and the arrays between them, in Graphviz' language."""
        return "\n".join(drawing(p.items, p.inputs, p.made) for p in self.parts)

    def memory(self) -> str:
        """A table of the memory plan."""
        return "\n".join(memory_table(p.leases, p.size) for p in self.parts)

    @contextmanager
    def timing(self) -> Iterator[Timings]:
        """Inside, calls of the compiled function measure the time of each statement. Yields printable `Timings`."""
        found, calls = Timings(), [p.call for p in self.parts]
        watches = [Stopwatch(p.items) for p in self.parts]
        for part, watch in zip(self.parts, watches):
            part.call = part.timed(watch)
        try:
            yield found
        finally:
            for part, call in zip(self.parts, calls):
                part.call = call
            found.calls = max(w.calls for w in watches)
            found.rows = [(1e6 * t / max(found.calls, 1), item) for w in watches for t, item in zip(w.spent, w.items)]

    def run(self, arguments: list[Any], call: tuple | list[Tensor] | None = None) -> Any:
        """Run the program: returns the function's result; sets parameters, gradients and state. Or returns OTHER_LAYOUT
        or RUN_EAGERLY.

        `call`: (function, args, kwargs) of the call, or the results of an eager run in a graph, for second derivatives.
        """
        forward = self.forward
        if (self.identical or self.numbers) and (
            any(arguments[i] is not t for i, t in self.identical) or not all(n.agrees() for n in self.numbers)
        ):
            return OTHER_LAYOUT
        arrays = self.gather(arguments)
        if not forward.fits(arrays):
            return RUN_EAGERLY if forward.shares_written else OTHER_LAYOUT
        if not self.apart(arrays):
            return RUN_EAGERLY
        for t in self.replaced(arguments):  # frees the memory of old gradients
            t._grad = None
        try:
            results, grads = forward.run(arrays)
        except Exception as error:  # a wrong index, a singular matrix: the function may catch the error
            if forward.failed(error):
                return RUN_EAGERLY
            raise
        if self.written:
            self.count_writes(arguments)
        fresh = iter(grads)
        for t, (_, given) in zip(self.holders(arguments), self.leaves):
            t._grad = from_array(next(fresh)) if given else None
        tensors = [from_array(a) for a in results[: self.results]]
        if self.outline.gradients:
            leaves = self.holders(arguments)
            for i, k in self.outline.gradients.items():
                tensors[i] = leaves[k]._grad
        if self.live:
            self.connect(tensors, results[self.results :], arguments, call)
        return rebuilt(self.plan, tensors, arguments)

    def count_writes(self, arguments: list[Any]) -> None:
        """Count a write in each tensor that the program has written to."""
        clock.last_write = tick()
        for t in self.targets(arguments):
            writes = writes_of(t)
            writes.count += 1
            writes.stamp = clock.last_write

    def differs(self, expected: Any, arguments: list[Any], old: dict) -> str:
        """The first difference between the program's results and the traced run's, in words; "" if there is none.

        `old`: source -> copy of the memory that the traced run has overwritten.
        """
        try:
            return self.compared(expected, arguments, old)
        except Mismatch as wrong:
            return str(wrong)

    def let_go(self) -> None:
        """Free the traced run, which was needed for the comparison only."""
        self.replay = None
        if self.native is not None:
            self.native.code.let_go()
        for part in self.parts:
            part.let_go()

    def compared(self, expected: Any, arguments: list[Any], old: dict) -> str:
        """Like `differs`. Compares each step (Mismatch if one is wrong), then results, written memory and gradients."""
        if self.native is not None and self.keeps_native(expected, arguments):
            return ""
        replay = self.replay
        assert replay is not None
        # source -> copy of the memory that the program writes to
        written: dict[Any, np.ndarray] = {}
        inputs = [self.traced_input(v.source, expected, arguments, old) for v in replay.inputs]
        steps = [s for p in self.parts if p.lowering is not None for s in p.lowering.graph.steps]
        replay.begin(inputs, Counter(v.traced for s in steps for v in s.outs if v.traced))

        def trial(part: Part, arrays: list[np.ndarray]) -> tuple[list, list]:
            own = self.owned if part is self.forward else []
            written.update((keyed(part.sources[i]), arrays[i].copy("K")) for i in own)
            return part.trial(replay, arrays, [written.get(keyed(s), a) for s, a in zip(part.sources, arrays)])

        results, grads, wrt = self.once(expected, arguments, old, trial)
        pairs = [("a result", a, b) for a, b in zip(results, expected.results)]
        # taken from the trace: a written gradient may be freed by now
        left = {keyed(v.source): v._array for v in replay.inputs}
        pairs += [("memory it writes to", written[keyed(s)], left[keyed(s)]) for s in self.written]
        pairs += [("a gradient", a, b) for a, b in zip((*grads, *wrt), (*expected.grads, *expected.wrt))]
        wrong = {i: f"{what}: {far}" for i, (what, a, b) in enumerate(pairs) if (far := distance(a, b))}
        if wrong:  # may be rounding noise, as in a gradient that would be 0 in exact arithmetic
            runs = replay.shaken(inputs, self.written)
            wrong = {i: wrong[i] for i in beyond_noise({i: pairs[i][1:] for i in wrong}, runs, replay.halves)}
        return next(iter(wrong.values()), "")

    def keeps_native(self, expected: Any, arguments: list[Any]) -> bool:
        """Whether the native function's numbers are right; otherwise the text runs."""
        try:
            far = self.native_differs(expected, arguments)
        except (Mismatch, NotNative) as error:
            far = str(error)
        if far:
            self.drop_native(far)
        return not far

    def native_differs(self, expected: Any, arguments: list[Any]) -> str:
        """The first difference between the native function's results and the traced run's, beyond rounding. Raises
        Mismatch if a group of steps differs from its kernels."""
        from rushlight.compile.run.native_check import check_groups

        assert self.replay is not None
        arrays = [find(s, arguments)._array for s in self.native.sources]
        results = check_groups(self.native, arrays, [find(v.source, arguments)._array for v in self.native.state])
        wrong = {i: far for i, (a, b) in enumerate(zip(results, expected.results)) if (far := distance(a, b))}
        if wrong:
            inputs = [find(v.source, arguments)._array for v in self.replay.inputs]
            runs = self.replay.shaken(inputs, [])
            pairs = {i: (results[i], expected.results[i]) for i in wrong}
            wrong = {i: wrong[i] for i in beyond_noise(pairs, runs, self.replay.halves)}
        return next(iter(wrong.values()), "")

    def traced_input(self, source: tuple, expected: Any, arguments: list[Any], old: dict) -> np.ndarray:
        """The array that the traced run read from a source: gradients of results are ones."""
        kind, what = source
        if kind == "seed":
            return np.ones_like(expected.results[self.live[what]])
        return old[keyed(source)] if keyed(source) in old else find(source, arguments)._array

    def joined_differ(self, expected: Any, arguments: list[Any], old: dict, again: Callable) -> str:
        """The first difference between joined statements and the same statements run one by one, in words.

        `again()`: a context in which the same random numbers are drawn.
        """

        def run(part: Part, arrays: list[np.ndarray], apart: bool, written: list[np.ndarray]) -> tuple[list, list]:
            own = {i: arrays[i].copy() for i in (self.owned if part is self.forward else ())}
            written += own.values()
            return part.rehearse([own.get(i, a) for i, a in enumerate(arrays)], apart)

        found = []
        for apart in (True, False):
            with again():
                written: list[np.ndarray] = []
                made = self.once(expected, arguments, old, partial(run, apart=apart, written=written))
                found.append([*written, *chain(*made)])
        return next((f"joined statements: {far}" for a, b in zip(*found) if (far := distance(b, a))), "")

    def once(self, expected: Any, arguments: list[Any], old: dict, run: Callable) -> tuple[list, list, list]:
        """(results, `.grad`s, gradients from the backward part) of `run(part, arrays)` on the inputs of the traced
        run."""
        arrays = [old[keyed(s)] if keyed(s) in old else find(s, arguments)._array for s in self.forward.sources]
        results, grads = run(self.forward, arrays)
        if self.backward is None:
            return results, grads, []
        seeds = [np.ones(expected.results[i].shape, expected.results[i].dtype) for i in self.live]
        given = {"seed": seeds, "saved": results[self.results :]}
        arrays = [
            given[kind][what] if kind in given else find((kind, what), arguments)._array
            for kind, what in self.backward.sources
        ]
        return results, grads, run(self.backward, arrays)[0]

    def connect(
        self, tensors: list[Tensor], saved: list[np.ndarray], arguments: list[Any], call: tuple | list[Tensor] | None
    ) -> None:
        """Give the results a node, for the backward that the caller may run."""
        backward = self.backward
        assert backward is not None
        if self.shared is None:  # backward must notice a write to a result that it reads
            self.shared = {
                j: i for i, t in enumerate(tensors) for j, a in enumerate(saved) if np.may_share_memory(t._array, a)
            }
        inputs: list[Tensor | None] = []
        for source in backward.sources:
            what = source[1]
            if source[0] == "saved" and what in self.shared:
                # the result itself refers to the node: a reference cycle
                alias = from_array(saved[what])
                alias._writes = writes_of(tensors[self.shared[what]])
                inputs.append(alias)
            else:
                inputs.append(None if source[0] in ("seed", "saved") else find(source, arguments))
        shapes = [(tensors[i]._array.shape, tensors[i]._array.dtype) for i in self.live]
        node = CompiledFunctionBackward()
        node.edges = tuple(find(source, arguments)._node for source in self.edges)
        node.seq, node.where, node.shape = tick(), None, None
        node.saved, node.call = (self, shapes, saved, Kept(inputs)), (call, arguments)
        if len(self.live) == 1:
            tensors[self.live[0]]._node, node.shape = node, shapes[0][0]
        else:
            for k, i in enumerate(self.live):
                tensors[i]._node = Output(node, k, tick(), shapes[k][0])

    def apart(self, arrays: list[np.ndarray]) -> bool:
        """Whether the arguments share no memory with tensors that the function reaches or arrays that are written."""
        forward, owned = self.forward, self.owned
        if not all([arrays[k].flags.writeable for k in owned]):
            return False
        if self.seen is not forward._views:
            self.loose = any(arrays[k].base is not None or k in self.given_in for k in owned)
            self.seen = forward._views
            self.spans = Spans([a for k, a in enumerate(arrays) if k not in self.given_in])
        for i in self.given_in:
            a = arrays[i]
            if id(a) in forward.state:
                return False
            if i in owned and self.spans.touch(a):
                return False
            for k in owned if self.loose or a.base is not None else ():
                b = arrays[k]
                if k != i and (a is b or (a.base is not None or b.base is not None) and np.may_share_memory(a, b)):
                    return False
        return True


def undone(call: Callable, owned: list[int], new: list, *arrays: np.ndarray) -> tuple[list, list]:
    """`call`; if it raises an error, restores the arrays that it writes to and the state of the generator."""
    state, old = random_state(), [arrays[i].copy("K") for i in owned]
    try:
        return call(new, *arrays)
    except Exception:
        for i, a in zip(owned, old):
            arrays[i][...] = a
        restore(state)
        raise


def layout(a: np.ndarray) -> tuple:
    """The properties of an array that a loop is compiled for."""
    return a.shape, a.dtype, a.flags.c_contiguous or a.strides, a.flags.writeable


def defined(text: str, constants: dict[str, Any], mark: str) -> tuple[Callable, Callable]:
    """The text's functions `run` and `bind`; tracebacks and `inspect` find their lines."""
    names: dict[str, Any] = {"__name__": "rushlight.compile.made", **constants}
    return define(text, f"{mark}run", names, "program"), names.get(f"{mark}bind", lambda *arrays: ())
