"""Optimizers that work element by element: one rule, run as a program on arrays or as ops on tensors."""
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy import ndarray

from rushlight.autograd.clock import stamp
from rushlight.autograd.views import assign
from rushlight.dtypes import float64
from rushlight.errors import user_frame
from rushlight.ops.complex import view_as_complex, view_as_real
from rushlight.ops.worlds import TENSORS, rebind
from rushlight.optim import loops
from rushlight.optim.optimizer import PerParameter, is_recorded
from rushlight.optim.program import BLOCK, Program, buffers, names_of, program, run
from rushlight.tensor import Tensor, writes_of


class Elementwise(PerParameter):
    """An optimizer that is a rule and the state it starts from.

    `rule(p, g, *state, /, *counters, *settings)` returns what p, the state and the counters become. Its parameters are
    named as in `state` and in the groups. Counters are 0-d state (`step`, which the rule is given already raised, and
    need not return); a piece of state that a parameter does not have is None. It may ask with `if` whether a piece of
    state is None and whether a setting is zero, nothing else: so it can be recorded. Names in it are ops.
    """

    rule: Callable

    def update_group(self, params: list[Tensor], group: dict[str, Any]) -> None:
        """Arrays are updated in place; where the update is recorded or to be differentiated, ops do it."""
        if group.get("differentiable") or is_recorded():
            super().update_group(params, group)
        else:
            self.update_arrays(params, group)

    def update_arrays(self, params: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters in place, by a compiled loop or by calls of NumPy; numbers are computed once for those at
        the same step. All arrays are looked at before the first is written."""
        rule = type(self).rule
        arrays, settings = names_of(rule)
        counters, pieces = self.counters(settings, group), arrays[2:]
        values = tuple([plain(group[name]) for name in settings[len(counters):]])
        frame, known = user_frame(3), None
        where = None if frame is None else (frame.f_code, frame.f_lasti)
        jobs = self.gathered(params, group, pieces)
        for p, g, state, own in jobs:
            counts = raised(state, counters) if counters else ()
            key = own.dtype, counts, own.absent
            if key != known:
                known, (one, numbers, vector, after, loop) = key, prepared(rule, *key, values)
            if loop.function is not None and own.flat is not None and own.takes(g):
                loops.run(loop.function, own, g, vector)
            else:
                run_calls(one, own, g, numbers)
                loop.pay(g.size)
            for name, value in zip(counters[1:], after):
                state[name].array[()] = value
            stamp(writes_of(p), where)

    def gathered(self, params: list[Tensor], group: dict[str, Any], pieces: tuple[str, ...]) -> list[tuple]:
        """(parameter, gradient, state, arrays) of each. What was looked at in the last step is not looked at again."""
        known, jobs = known_arrays(self), []
        for p in params:
            state = self.state_of(p, group)
            given = [p.array, *[state[name].array if name in state else None for name in pieces]]
            own = known.get(p)
            if own is None or not all(map(is_, own.given, given)):
                own = known[p] = loops.Arrays(given)
            jobs.append((p, p._grad.array, state, own))  # type: ignore[union-attr]
        return jobs

    def counters(self, settings: tuple[str, ...], group: dict[str, Any]) -> list[str]:
        """Those of a rule's settings that are state: they stand first, `step` before the others."""
        return [name for name in settings if name not in group]

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        rule = type(self).rule
        arrays, settings = names_of(rule)
        counters = self.counters(settings, group)
        if counters:
            assign(state["step"], state["step"] + 1)
        pieces = [p, *(state.get(name) for name in arrays[2:])]
        numbers = [*(state[name].to(float64) for name in counters), *(group[n] for n in settings if n in group)]
        results = rebind(rule, TENSORS)(*as_real([p, g, *pieces[1:]]), *numbers)
        results = results if isinstance(results, tuple) else (results,)
        if p.is_complex():
            results = tuple(r if r is None else view_as_complex(r) for r in results)
        for target, result in zip([*pieces, *(state[name] for name in counters[1:])], results):
            if target is not None:
                assign(target, result)


def as_real(tensors: list[Tensor | None]) -> list[Tensor | None]:
    """Complex tensors as pairs of real numbers, others as they are."""
    return [view_as_real(t) if t is not None and t.is_complex() else t for t in tensors]


def raised(state: dict[str, Any], counters: list[str]) -> tuple[float, ...]:
    """The counters' values, `step` raised by one."""
    step = state["step"].array
    value = step.item() + 1.0
    step[()] = value
    return (value, *[state[name].array.item() for name in counters[1:]])


@lru_cache(maxsize=16)
def prepared(rule: Callable, dtype: np.dtype, counts: tuple, absent: tuple[bool, ...], values: tuple) -> tuple:
    """The program for arrays and settings of this kind, its numbers in their dtype (as arrays, and together as one),
    what the counters become, and the program's loop."""
    settings = counts + values
    one = program(rule, tuple([not a for a in absent]), tuple(map(bool, settings)))
    numbers, after = one.numbers(*settings)
    real = np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype
    return one, [np.array(k, real) for k in numbers], np.array(numbers, real), after, loops.loop_of(one, dtype)


def run_calls(one: Program, own: loops.Arrays, g: ndarray, numbers: list[ndarray]) -> None:
    """The program by calls of NumPy."""
    there = [a for a in (own.given[0], g, *own.given[1:]) if a is not None]
    if own.dtype.kind == "c":
        there = [real_parts(a) for a in there]
    if g.size <= BLOCK:
        one.update(*there, *buffers.get(there[0], one.buffers), *numbers)
    else:
        run(one, there, numbers)


MOST = 1 << 14                                    # parameters that are remembered of an optimizer
KNOWN: WeakKeyDictionary = WeakKeyDictionary()    # optimizer -> {parameter: its arrays}


def known_arrays(optimizer: Elementwise) -> dict[Tensor, loops.Arrays]:
    """What is known of the arrays of an optimizer's parameters; forgotten now and then, as parameters come and go."""
    known = KNOWN.get(optimizer)
    if known is None or len(known) > MOST:
        known = KNOWN[optimizer] = {}
    return known


def plain(value: Any) -> Any:
    """A setting as Python numbers: a tensor's number, also in a tuple or list. Whoever records does not mind."""
    if isinstance(value, Tensor):
        return float(value.array.reshape(()))
    return tuple(map(plain, value)) if isinstance(value, (tuple, list)) else value


def real_parts(array: ndarray) -> ndarray:
    """A complex array's memory as real numbers, shape (..., 2)."""
    pairs = np.lib.stride_tricks.as_strided(array, (*array.shape, 1), (*array.strides, array.itemsize))
    return pairs.view(array.real.dtype)
