"""Optimizers that work element by element. One rule runs as a program on arrays, or as ops on tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy import ndarray

from rushlight.base.dtypes import float64
from rushlight.base.errors import NoArray, runtime_error, user_frame
from rushlight.core.node import stamp
from rushlight.core.tensor import Tensor, from_array, writes_of
from rushlight.core.views import assign
from rushlight.core.worlds import TENSORS
from rushlight.creation.factories import zeros_like
from rushlight.loops.tiering import Loop
from rushlight.ops.math.complex import view_as_complex, view_as_real
from rushlight.optim import loops
from rushlight.optim.checks import check_numbers, check_settings
from rushlight.optim.optimizer import Group, Params, PerParameter, State, is_recorded, new_step, no_sparse
from rushlight.optim.program import BLOCK_ELEMENTS, Program, buffers, program, run
from rushlight.optim.rule import check_results, check_rule, evaluate, names_of


class Elementwise(PerParameter):
    """An optimizer that is defined by a rule and the state before the first step.

    `_rule(p, g, *state, /, *counters, *settings)` returns the new p, the new state and the new counters. Its parameters
    have the names in `state` and in the groups. Counters are 0-d state. The counter `step` is raised by 1 before the
    rule runs, and the rule does not return it. State that a parameter does not have is None. An `if` in a rule may only
    test whether a piece of state is None or whether a setting is zero, so that the rule can be recorded. Global names
    in a rule are ops."""

    _elementwise = True
    _rule: Callable
    _sparse = False  # whether the optimizer takes sparse gradients

    def __init__(self, params: Params, defaults: dict[str, Any]):
        check_rule(self, defaults, type(self)._new_state is Elementwise._new_state)
        check_settings(defaults)
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Group) -> State:
        """`step` if the rule counts steps, and zeros for each piece of state that the rule names."""
        arrays, settings = names_of(type(self)._rule)
        steps = {"step": new_step()} if self._counters(settings) else {}
        return steps | {name: zeros_like(p) for name in arrays[2:]}

    def _update_group(self, params: list[Any], group: Group) -> None:
        """Update arrays in place; use ops on tensors if the update is recorded or differentiated."""
        if group.get("differentiable") or is_recorded():
            super()._update_group(params, group)
            return
        try:
            self._update_arrays(params, group)
        except NoArray:  # a gradient is sparse; nothing is written yet
            sparse = [p for p in params if p._grad.is_sparse]
            self._check_sparse(group)
            self._update_arrays([p for p in params if not p._grad.is_sparse], group)
            for p in sparse:
                self._update_rows(p, p._grad.coalesce(), group)

    def _check_sparse(self, group: Group) -> None:
        """RuntimeError if the rule cannot run on some of the rows."""
        if not self._sparse:
            raise no_sparse(self)
        if group.get("weight_decay"):
            raise runtime_error(
                "weight_decay option is not compatible with sparse gradients", "create the embedding with sparse=False"
            )

    def _sparse_rows(self, g: Any, group: Group) -> tuple[Any, ndarray]:
        """(index of the rows of p and its state that a sparse gradient changes, gradient of these rows)."""
        return tuple(g._indices()._array), g._values()._array

    def _update_rows(self, p: Tensor, g: Any, group: Group) -> None:
        """Run the rule on the rows of a parameter and its state that a sparse gradient stores."""
        rule, pieces, counters, values = self._rule_and_values(group)
        at, rows = self._sparse_rows(g, group)
        whole = self._state_of(p, group)
        state = {name: value if name in counters else from_array(value._array[at]) for name, value in whole.items()}
        own = loops.Arrays(p._array[at], state, pieces, counters)
        one, numbers, _, after, _ = prepared(rule, own.kind, own.next_counts() if counters else (), values)
        run_calls(one, own, rows, numbers)
        p._array[at] = own.given[0]
        for name in whole.keys() - counters:
            whole[name]._array[at] = state[name]._array
        for counter, value in zip(own.counters[1:], after):
            counter[()] = value
        stamp(writes_of(p), None)

    def _update_arrays(self, params: list[Tensor], group: Group) -> None:
        """Update parameters in place, by a compiled loop or by calls of NumPy.

        Parameters at the same step share the numbers computed from settings and step. All arrays are checked before the
        first one is written."""
        rule, pieces, counters, values = self._rule_and_values(group)
        frame, kind, seen = user_frame(3), None, None
        where = None if frame is None else (frame.f_code, frame.f_lasti)
        for p, g, own in self._jobs(params, group, pieces, counters):
            counts = own.next_counts() if counters else ()
            if own.kind is not kind or counts != seen:
                kind, seen = own.kind, counts
                one, numbers, vector, after, loop = prepared(rule, kind, counts, values)
            if loop.function is not None and own.first is not None and g.flags.carray and g.dtype is own.dtype:
                if g.size < loops.PARALLEL_FROM_ELEMENTS:
                    loop.function(own.first, g.reshape(-1), *own.rest, vector)
                else:
                    loops.run_on_all_cores(loop.function, own, g, vector)
            else:
                run_calls(one, own, g, numbers)
                loop.pay(g.size)
            for counter, value in zip(own.counters[1:], after):
                counter[()] = value
            stamp(writes_of(p), where)

    def _jobs(
        self, params: list[Any], group: Group, pieces: tuple[str, ...], counters: list[str]
    ) -> list[tuple[Tensor, ndarray, loops.Arrays]]:
        """(parameter, gradient, arrays) of each parameter. Arrays checked in an earlier step are not checked again.

        RuntimeError for a gradient of another shape, ValueError for read-only memory."""
        known, jobs = known_arrays(self), []
        for p in params:
            state, g = self._state_of(p, group), p._grad._array
            own = known.get(p)
            if own is None or p._array is not own.given[0] or not own.fits(state):
                own = known[p] = loops.Arrays(p._array, state, pieces, counters)
            if g.shape != own.shape:
                raise runtime_error(
                    f"The size of tensor a {own.shape} must match the size of tensor b {g.shape}: a gradient has "
                    "another shape than its parameter",
                    "set p.grad to None, or compute it again by backward()",
                )
            jobs.append((p, g, own))
        return jobs

    def _rule_and_values(self, group: Group) -> tuple[Callable, tuple[str, ...], list[str], tuple]:
        """(rule, its state's names, its counters' names, the settings' values)."""
        rule = type(self)._rule
        arrays, settings = names_of(rule)
        counters = self._counters(settings)
        values = [group[name] for name in settings[len(counters) :]]
        if any([v.__class__ not in NUMBERS for v in values]):
            check_numbers(group, settings[len(counters) :])
        return (rule, arrays[2:], counters, tuple([v if v.__class__ in NUMBERS else plain(v) for v in values]))

    def _loop(self, p: Tensor) -> Loop:
        """The loop that the first step of the first group will use, to be compiled in advance."""
        group = self.param_groups[0]
        rule, pieces, counters, values = self._rule_and_values(group)
        own = loops.Arrays(p._array, self._state_of(p, group), pieces, counters)
        return prepared(rule, own.kind, tuple([c.item() + (i == 0) for i, c in enumerate(own.counters)]), values)[-1]

    def _counters(self, settings: tuple[str, ...]) -> list[str]:
        """The names in `settings` that are state: counters come first, and `step` before the others.

        A name without a default is a counter. The groups do not decide this, because a user may store a `step` in a
        group."""
        return [name for name in settings if name not in self.defaults]

    def _update(self, p: Tensor, g: Tensor, state: State, group: Group) -> None:
        rule = type(self)._rule
        arrays, settings = names_of(rule)
        counters = self._counters(settings)
        values = [group[name] for name in settings[len(counters) :]]
        check_numbers(group, settings[len(counters) :])
        if counters:
            assign(state["step"], state["step"] + 1)
        pieces = [p, *(state.get(name) for name in arrays[2:])]
        numbers = [*(state[name].to(float64) for name in counters), *values]
        given = [*as_real([p, g, *pieces[1:]]), *numbers]
        if group.get("differentiable"):  # backward reads the values that are overwritten below
            given = [v.clone() if isinstance(v, Tensor) else v for v in given]
        results = evaluate(rule, TENSORS, given)
        check_results(rule, pieces, results, Tensor)
        for target, result in zip([*pieces, *(state[name] for name in counters[1:])], results):
            if target is not None:
                assign(target, view_as_complex(result) if target.is_complex() else result)


def as_real(tensors: list[Tensor | None]) -> list[Tensor | None]:
    """Complex tensors as pairs of real numbers, real tensors unchanged."""
    return [view_as_real(t) if t is not None and t.is_complex() else t for t in tensors]


@lru_cache(maxsize=16)
def prepared(rule: Callable, kind: tuple[np.dtype, tuple[bool, ...]], counts: tuple, values: tuple) -> tuple:
    """(program, its numbers as 0-d arrays, the same numbers in a single array, new values of the counters, loop)."""
    (dtype, absent), settings = kind, counts + values
    one = program(rule, tuple([not a for a in absent]), tuple(map(bool, settings)))
    numbers, after = one.numbers(*settings)
    real = np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype
    return (one, [np.array(k, real) for k in numbers], np.array(numbers, real), after, loops.loop_of(one, dtype))


def run_calls(one: Program, own: loops.Arrays, g: ndarray, numbers: list[ndarray]) -> None:
    """Run the program by calls of NumPy."""
    p, *state = own.present
    if own.dtype.kind == "c":
        p, g, state = real_parts(p), real_parts(g), [real_parts(a) for a in state]
    if g.size <= BLOCK_ELEMENTS:
        one.update(p, g, *state, *buffers.get(p, one.buffers), *numbers)
    else:
        run(one, [p, g, *state], numbers)


MAX_REMEMBERED_PARAMS = 1 << 14  # with more, the arrays of all parameters are forgotten
KNOWN_ARRAYS: WeakKeyDictionary = WeakKeyDictionary()  # optimizer -> {parameter: checked arrays}


def known_arrays(optimizer: Elementwise) -> dict[Tensor, loops.Arrays]:
    """The checked arrays of an optimizer's parameters. The size is bounded, because parameters come and go."""
    known = KNOWN_ARRAYS.get(optimizer)
    if known is None or len(known) > MAX_REMEMBERED_PARAMS:
        known = KNOWN_ARRAYS[optimizer] = {}
    return known


NUMBERS = frozenset((int, float, bool))


def plain(value: Any) -> Any:
    """A setting as Python numbers. Tensors become numbers, also inside a tuple or list; this is not recorded."""
    if isinstance(value, Tensor):
        return float(value._array.reshape(()))
    return tuple(map(plain, value)) if isinstance(value, (tuple, list)) else value


def real_parts(array: ndarray) -> ndarray:
    """A complex array's memory as real numbers, shape (..., 2)."""
    pairs = np.lib.stride_tricks.as_strided(array, (*array.shape, 1), (*array.strides, array.itemsize))
    return pairs.view(array.real.dtype)
