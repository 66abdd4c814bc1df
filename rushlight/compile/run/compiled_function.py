"""`Compiled`, the result of `rushlight.compile`: a function that is traced, compiled and guarded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import update_wrapper
from threading import Lock
from types import MethodType
from typing import Any
from weakref import WeakSet, ref

from rushlight.base.buffer_pool import give_back
from rushlight.base.dtypes import get_default_dtype
from rushlight.base.errors import NoArray, warn
from rushlight.compile.capture.graph_breaks import Pieces
from rushlight.compile.capture.input_sources import find
from rushlight.compile.capture.mutation_probe import Probe
from rushlight.compile.capture.rng_replay import Draws
from rushlight.compile.capture.trace import Tracer, traced
from rushlight.compile.capture.trace_summary import Outline, entered, everyone, known_arrays
from rushlight.compile.graph import is_random
from rushlight.compile.guards.guard_predicates import equal
from rushlight.compile.guards.guard_set import Snapshot
from rushlight.compile.guards.pytree_signature import contents, signature
from rushlight.compile.report import Break
from rushlight.compile.run.eager_run import EagerRun
from rushlight.compile.run.fast_call import MISSED, entry
from rushlight.compile.run.forward_backward import Twice
from rushlight.compile.run.native_way import Natives
from rushlight.compile.run.program import OTHER_LAYOUT, RUN_EAGERLY, Program
from rushlight.core.mode import mode

# A kind of arguments: their shapes, dtypes and Python values (`signature` in guards/pytree_signature.py).
MAX_PROGRAMS = 8  # limit per kind of arguments, like torch's limit of recompilations
MAX_KINDS = 128
MAX_TRACES = 24  # limit of traced runs without a program, per kind of arguments
MAX_CHANGING_TRACES = 3  # the same limit, if each run changed Python state
COUNTER_VALUES = 4  # a Python number with this many values so far is a counter: its uses stay Python if no op needs it
UNREPEATED_VALUES = 8  # a float that has had this many values is not expected to repeat one of them
# a piece with fewer ops on fewer elements is faster uncompiled
MIN_STEPS, MIN_ELEMENTS = 4, 1 << 12
# After this many programs that were made from a single traced run, and not confirmed by the next run, the function runs
# eagerly until two runs agree.
MAX_UNCONFIRMED = 8
# after a traced run that made more bytes than this, unused buffers go back to the system
RELEASE_BYTES = 1 << 25

EVERYONE: WeakSet = WeakSet()  # all compiled functions, for `compiler.reset()`
STANCE = ["default"]  # set by `compiler.set_stance`


class CannotCompile(RuntimeError):
    """Raised with `fullgraph=True` if the function cannot be one program. A RuntimeError.

    >>> f = rushlight.compile(lambda x: x + x.sum().item(), fullgraph=True)
    >>> try:
    ...     _ = f(rushlight.ones(2)), f(rushlight.ones(2))
    ... except rushlight.compiler.CannotCompile:
    ...     print("it looks at a number")
    it looks at a number
    """


class Compiled:
    """Runs `function`: first eagerly while a tracer watches; then, for arguments of the same kind, as a program.

    A program is kept only if two traced runs in a row did the same. After each of these two runs the program of that
    run computes the results again, so the first call returns the same bits as the hundredth. A function that a program
    cannot reproduce (Python reads numbers, Python state changes in each call) is divided into pieces, or else stays
    eager."""

    def __init__(self, function: Callable, fullgraph: bool = False, options: Mapping[str, Any] | None = None):
        self.function, self.fullgraph, self.options = function, fullgraph, dict(options or {})
        self.programs: dict[Any, list[Program]] = {}
        self.last: dict[Any, Outline] = {}
        # kind of arguments without a program -> the number of traced runs
        self.tries: dict[Any, int] = {}
        self.given_up = ""  # the reason why the whole function will have no program; "" while it may have one
        self.pieces: Pieces | None = None  # the function divided at graph breaks: runs once `given_up` is set
        # the values so far of each Python number among the arguments
        self.numbers: dict[Any, set] = {}
        # Python state that each run changes: the next call looks for the statement (compile/capture/mutation_probe.py)
        self.probing = ""
        # the function that this is a piece of
        self.part_of: Callable[[], Compiled | None] = lambda: None
        self.breaks: list[Break] = []  # the graph breaks of the last traced run
        self.steps = 0  # the number of ops of the last traced run
        self.unsteady = ""  # the difference between the last traced run and the run before
        # kinds of arguments whose first program gave other numbers than eager
        self.doubts: set = set()
        self.twice = Twice()
        # kind of arguments -> the program of the last run alone, until the next run confirms it
        self.early: dict[Any, Program] = {}
        self.unconfirmed = 0  # such programs since two runs last agreed
        self.natives = Natives()
        self.lock = Lock()
        # program -> its fast call (compile/run/fast_call.py)
        self.entries: dict[Program, tuple[Any, Callable[[tuple], Any] | None]] = {}
        self.enter: Callable[[tuple], Any] | None = None  # the fast call of the program that ran last
        if hasattr(function, "__code__"):
            update_wrapper(self, function)
        EVERYONE.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        enter = self.enter
        if enter is not None and not kwargs:
            result = enter(args)
            if result is not MISSED:
                return result
        return self.long_way(args, kwargs)

    def long_way(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call with any arguments; sets `enter`, the fast call for arguments like these."""
        m = mode()
        if m.watch is not None or m.batch is not None or STANCE[0] == "force_eager":
            return self.function(*args, **kwargs)
        if self.given_up or not self.lock.acquire(blocking=False):
            return (self.pieces or self.function)(*args, **kwargs)
        try:
            flat: list[Any] = []
            others: list[Any] = []
            try:
                kind = (
                    signature(args, flat, others),
                    signature(kwargs, flat, others),
                    m.grad,
                    m.inference,
                    m.checks,
                    get_default_dtype(),
                    lower_precision(),
                )
            except NoArray:  # programs support no sparse tensors and no users' subclasses of Tensor
                return self.function(*args, **kwargs)
            for program in self.programs.get(kind, ()):
                if program.holds():
                    # before the program changes the arguments
                    way = None if kwargs else self.way_to(program, args)
                    result = program.run(flat, (self.function, args, kwargs))
                    if result is RUN_EAGERLY:
                        return self.function(*args, **kwargs)
                    if result is not OTHER_LAYOUT:
                        self.enter = way
                        return result
            if "recompile" in STANCE[0] and kind not in self.last:
                return self.refused(args, kwargs)
            return self.probed(others, args, kwargs) if self.probing else self.watched(kind, flat, others, args, kwargs)
        finally:
            self.lock.release()

    def refused(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call without a program under a stance that forbids compiling. RuntimeError under `fail_on_recompile`."""
        if STANCE[0] == "fail_on_recompile":
            raise RuntimeError(f"Detected recompile when torch.compile stance is 'fail_on_recompile': {self.name}")
        return self.function(*args, **kwargs)

    def way_to(self, program: Program, args: tuple) -> Callable[[tuple], Any] | None:
        """The fast call of a program, made again when the program's native function is gone."""
        how, known = self.entries.get(program, (None, None))
        if program not in self.entries or how is not program.native:
            known = entry(program, args, self.lock, lower_precision)
            self.entries[program] = program.native, known
        return known

    def forget(self) -> None:
        """Drop all programs; the next calls are traced again."""
        with self.lock:
            self.programs.clear()
            self.entries.clear()
            self.last.clear()
            self.early.clear()
            self.tries.clear()
            self.natives = Natives()
            self.given_up, self.enter, self.pieces, self.probing = "", None, None, ""

    def watched(self, kind: Any, flat: list[Any], others: list[Any], args: tuple, kwargs: dict) -> Any:
        """Run the function eagerly under a tracer, and make a program if this run and the last run did the same."""
        before = Snapshot(self.function, others)
        last = self.last.pop(kind, None) or self.known_outline(kind)
        try:
            tracer = Tracer(known_arrays(flat, before), before.apart)
        except NoArray:
            self.give_up("uses sparse tensors, which are no part of programs")
            return self.function(*args, **kwargs)
        draws = Draws()
        grads = [(source, find(source, flat), find(source, flat)._grad) for source in everyone(flat, before)]
        given = [*contents((args, kwargs))]
        with entered(flat) as cut, draws:
            nodes = [(t, t._node, t._array) for t in (*flat, *before.tensors.values())]
            default = get_default_dtype()
            result = traced(self.function, args, kwargs, tracer)
            self.breaks, self.steps = list(dict.fromkeys(tracer.breaks)), len(tracer.steps)
            problem = (
                tracer.problem
                or obstacle(tracer, before, draws, given, (args, kwargs))
                or changed(tracer, nodes, default)
            )
            outline = None
            if problem is None:
                cut()
                outline, problem = self.outlined(kind, tracer, result, flat, grads, before, others)
                if self.probing:
                    return result
        run = EagerRun(result, outline, flat, grads, draws, tracer)
        result = self.in_its_place(run, kind, last, problem, (self.function, args, kwargs))
        if outline is not None and outline.live:
            self.twice.watch(tracer.began)
        if not self.given_up:
            self.count(args, kwargs)
        return result

    def outlined(
        self, kind: Any, tracer: Tracer, result: Any, flat: list, grads: list, before: Snapshot, others: list
    ) -> tuple[Outline | None, str | None]:
        """(the outline of a run, None), or (None, the reason why no program supports the run).

        Sets `probing` if the run has put tensors into lists or dicts: the next call looks for the statement.
        """
        try:
            return Outline(tracer, result, flat, grads, before, Snapshot(self.function, others)), None
        except Exception as error:  # results or state that cannot be recreated
            if debugging() and not isinstance(error, (TypeError, NoArray)):
                raise
            problem = str(error).partition("\n")[0]
        if before.placed and self.tries.setdefault(kind, 0) < MAX_CHANGING_TRACES:
            self.tries[kind] += 1
            self.probing = problem
        return None, problem

    def in_its_place(self, run: EagerRun, kind: Any, last: Outline | None, problem: str | None, call: tuple) -> Any:
        """The result of the program made from the run; the run's own result if there is no program."""
        try:
            program = self.consider(kind, run, last, problem)
            return run.result if program is None else run.replaced_by(program, call)
        except Exception as error:
            if isinstance(error, CannotCompile) or debugging():
                raise
            self.give_up(f"meets a limit of the compiler: {type(error).__name__}: {error}")
            return run.result

    def known_outline(self, kind: Any) -> Outline | None:
        """The outline of a program for these arguments, preferably of one whose guards hold."""
        programs = sorted(self.programs.get(kind, ()), key=lambda p: not p.holds())
        return programs[0].outline if programs else None

    def count(self, args: tuple, kwargs: dict) -> None:
        """Divide the function if a Python number among its arguments changes in each call.

        An integer divides it only if no op depends on the integer. A float (a weight, a noise level) does also if ops
        depend on it, because a program for one value of the float would hardly be used again."""
        for key, value in (*enumerate(args), *kwargs.items()):
            if type(value) in (int, float) and not self.given_up:
                seen = self.numbers.setdefault(key, set())
                seen.add(value)
                why = f"is called with a number that changes: {value}"
                if len(seen) == COUNTER_VALUES:
                    self.divide(why, (), (), [key])
                elif len(seen) == UNREPEATED_VALUES and type(value) is float:
                    self.give_up(why, (), [key], False)

    def probed(self, others: list[Any], args: tuple, kwargs: dict) -> Any:
        """Run the function eagerly with a probe, and divide it at the statements that change Python state."""
        probe = Probe(self.function, others)
        why, self.probing = self.probing, ""
        result = probe.run(args, kwargs)
        if not self.divide(why, (), probe.places) and probe.places:
            self.give_up(why)
        return result

    def consider(self, kind: Any, run: EagerRun, last: Outline | None, problem: str | None) -> Program | None:
        """After a traced run: make a program, or wait for the next run, or give up. Returns the program of this run, if
        there is one that computes the same results.
        """
        tries = self.tries[kind] = self.tries.get(kind, 0) + 1
        outline, mixed, early = run.outline, run.draws.mixed, self.early.pop(kind, None)
        if outline is None:
            self.give_up(problem or "cannot be compiled", run.tracer.stops)
            return None
        if self.part_of() is not None and little(run.tracer.steps):
            self.give_up("is less work than the check whether a program may run")
            return None
        if last is not None:
            problem = self.unsteady = outline.unsteady(last) or mixed
            if not problem:
                return self.keep(kind, run, outline, last, early)
        program = None
        if not outline.leaves_tensors and not mixed and self.unconfirmed < MAX_UNCONFIRMED:
            self.unconfirmed += 1
            program, wrong = self.made(run, outline)
            if wrong:
                self.doubts.add(kind)
                program = None
            elif program is not None:
                self.early[kind] = program
        outline.let_go()
        self.last[kind] = outline
        if tries == MAX_CHANGING_TRACES and outline.moved:
            self.probing = problem or outline.moved
        elif tries >= MAX_TRACES or len(self.tries) + len(self.programs) > MAX_KINDS:
            self.give_up(problem or "is called in another way each time: other shapes, dtypes or Python values")
        return program

    def keep(self, kind: Any, run: EagerRun, outline: Outline, last: Outline, early: Program | None) -> Program | None:
        """Make a program from two traced runs that did the same, and verify it against the last run."""
        self.unconfirmed = 0
        programs, fixed = self.programs.setdefault(kind, []), outline.fixed(last)
        for general in [p for p in programs if p.outline is last and len(p.identical) > len(fixed) and p.holds()]:
            # the program was made for these tensor objects only, but the trace holds for others, too
            general.identical = fixed
            self.entries.pop(general, None)
            return general
        if len(programs) >= MAX_PROGRAMS:
            change = programs[-1].outline.before.difference(outline.before)
            self.give_up("is called with Python values that change: " + change)
            return None
        same = outline.bytes == last.bytes  # if not, the changed numbers become inputs
        program: Program | None
        if early is not None and same and early.holds() and self.may_keep(early):
            program, wrong = early, ""
        else:
            program, wrong = self.made(run, outline)
        if program is None:
            self.give_up("is differentiated twice, and writes to memory or draws random numbers")
            return None
        # one mismatch is allowed: eager may have just switched from NumPy to a loop
        if wrong and kind not in self.doubts:
            outline.let_go()
            self.doubts.add(kind)
            self.last[kind] = outline
            return None
        if wrong:
            self.give_up(f"gave other numbers as a program than as it is ({wrong}); please report this")
            return None
        outline.let_go()
        program.identical = fixed
        programs.append(program)
        self.tries.pop(kind, None)
        return program

    def may_keep(self, program: Program) -> bool:
        """Whether the program supports the caller's use: not if the results are differentiated twice, and the program
        writes to memory or draws random numbers.
        """
        return not (self.twice.seen and program.live and not program.repeatable)

    def made(self, run: EagerRun, outline: Outline) -> tuple[Program | None, str]:
        """(a program of a traced run, the difference between its results and the run's). No program if the run's
        results are differentiated twice, and the program does not support that.
        """
        much = sum(v._array.nbytes for s in outline.graph.steps for v in s.outs) >= RELEASE_BYTES
        if much:  # free the memory of the traced runs before the program allocates
            give_back()
        title = f"Made by rushlight.compile from {self.name}."
        program = Program(outline.graph, outline.plan, outline.live, outline, title, self.options, self.natives)
        if not self.may_keep(program):
            return None, ""
        wrong = "" if program.native is None and program.proof.there() else run.differs_from(program)
        program.let_go()
        if much:
            give_back()
        return program, wrong

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind as a method of a class: the instance is the first argument."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """Pickle a decorated function by its name, others by function and options. Programs are not pickled."""
        f = self.function
        named = getattr(sys.modules.get(getattr(f, "__module__", "")), getattr(f, "__qualname__", ""), None)
        return f.__qualname__ if named is self else (Compiled, (f, self.fullgraph, self.options))

    def __deepcopy__(self, memo: dict) -> Compiled:
        return Compiled(deepcopy(self.function, memo), self.fullgraph, self.options)

    def __getattr__(self, name: str) -> Any:
        """Attributes of the compiled object: a module's parameters, modes, state."""
        if name.startswith("__") or "function" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.function, name)

    @property
    def name(self) -> str:
        """The function's name in messages."""
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    def divide(
        self, why: str, stops: Iterable, places: Iterable = (), counters: Iterable = (), plain: bool = True
    ) -> bool:
        """Divide the function into compiled pieces between its graph breaks `stops`. False if that is impossible."""

        def piece(function: Callable) -> Compiled:
            made = Compiled(function, options=self.options)
            made.part_of = ref(self)
            return made

        pieces = Pieces(self.function, stops, piece, places, counters, plain)
        if self.fullgraph or pieces.function is None:
            return False
        self.stop(why)
        self.pieces = pieces
        return True

    def stop(self, why: str) -> None:
        """Stop making a program of the whole function."""
        self.given_up, self.enter = why, None
        self.last.clear()
        self.early.clear()
        self.programs.clear()
        self.entries.clear()

    def parts(self) -> list[Compiled]:
        """All functions that may have programs: this function, or the pieces of a divided function."""
        return [part for part in self.whole() if part.pieces is None]

    def whole(self) -> Iterator[Compiled]:
        """The function, its pieces, the pieces' pieces."""
        yield self
        for part in self.pieces.parts if self.pieces is not None else ():
            yield from part.whole()

    def never_compiled(self) -> bool:
        """Whether neither the function nor any piece of it will have a program."""
        if not self.given_up or self.pieces is None:
            return bool(self.given_up)
        inside_known = len(self.pieces.inside) >= min(self.pieces.entered, 1)
        return inside_known and all([p.never_compiled() for p in self.pieces.parts])

    def give_up(self, why: str, stops: Iterable = (), counters: Iterable = (), plain: bool = True) -> None:
        """Run eagerly from now on, if possible with compiled pieces; else warn once."""
        if not self.divide(why, stops, (), counters, plain):
            self.stop(why)
            self.tell()

    def tell(self) -> None:
        """Warn that the function runs eagerly, and why. A piece warns only if no piece of the whole has a program."""
        whole = self.part_of()
        if whole is not None:
            return whole.tell() if whole.never_compiled() else None
        text = f"rushlight.compile: {self.name} runs as it is, not compiled: it {self.given_up}"
        if self.fullgraph:
            raise CannotCompile(text)
        warn(text)


def obstacle(tracer: Tracer, before: Snapshot, draws: Draws, given: list, now: Any) -> str | None:
    """A reason besides graph breaks why the run cannot be a program, or None.

    `given`: the contents of the arguments before the run; `now`: the arguments after it.
    """
    left = [*contents(now)]
    if len(left) != len(given) or not all([equal(a, b) for a, b in zip(given, left)]):
        return "changes a list, a dict or an object that it is given"
    if not before.complete:
        return "reaches more Python objects than can be watched"
    if before.unguarded:
        return f"can reach a {before.unguarded}, whose changes cannot be noticed"
    if draws.own and not any(map(is_random, tracer.steps)):
        return "draws random numbers"
    return None


def changed(tracer: Tracer, nodes: list[tuple], default: Any) -> str | None:
    """A change made by the run that no program supports, or None.

    `nodes`: (tensor, node, array) of each tensor before the run. `default`: the default dtype before the run."""
    for t, node, _ in nodes:
        if t._node is not node and (node is None or t._node is None or not node.leaf):
            return "changes the history of a tensor that it has not made"
    if left := [t for t, _, array in nodes if t._array is not array]:
        return tracer.left(left)
    return "changes the default dtype" if get_default_dtype() is not default else None


def little(steps: list) -> bool:
    """Whether a piece is too small to compile."""
    return len(steps) < MIN_STEPS and sum([v.size for s in steps for v in s.outs]) < MIN_ELEMENTS


def debugging() -> bool:
    """Whether errors of the compiler itself are raised, instead of falling back to an eager run."""
    return bool(os.environ.get("RUSHLIGHT_DEBUG"))


def lower_precision() -> Any:
    """The dtype of an `autocast` around the call, or None."""
    gates = sys.modules.get("rushlight.amp.autocast_policy")
    return None if gates is None else gates.current.get()


def forget_all() -> None:
    """Drop the programs of every compiled function."""
    for compiled in list(EVERYONE):
        compiled.forget()
