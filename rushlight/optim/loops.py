"""The program of an optimizer as a single compiled loop, which reads and writes each element once.

The loop is made from the tape of the program (program.py). No product and sum are fused into one rounding, so the loop
and the program give the same bits. A loop is compiled only after the program has taken as much time as compiling takes.

>>> from rushlight.optim.program import program
>>> def momentum(p, g, buf, /, lr, mu):
...     buf = mu * buf + g
...     return p - lr * buf, buf
>>> print(text(program(momentum, (True, True, True), (True, True)), np.dtype("float32")))
def kernel(p, g, buf, k):
    restrict()
    k0 = k[0]
    k1 = k[1]
    for i in range(p.shape[0]):
        t0 = k0 * buf[i]
        t1 = t0 + g[i]
        t2 = k1 * t1
        t3 = p[i] - t2
        p[i] = t3
        buf[i] = t1
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter, is_
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import type_error, value_error
from rushlight.core.table import TABLE
from rushlight.loops.tiering import Loop
from rushlight.optim.optimizer import State
from rushlight.optim.program import Program, place

PARALLEL_FROM_ELEMENTS = 1 << 17  # a loop runs on all cores from this size on


def text(one: Program, dtype: np.dtype) -> str:
    """The text of the loop; `k` holds the numbers. '' if one of its ops or the dtype is not available in loops."""
    if dtype.kind != "f" or dtype.itemsize < 4:
        return ""
    from rushlight.fast.rule_text import NotFused, Scalar, write_out

    known = {s: Scalar(f"{s.text}[i]", dtype) for s in one.given}

    def scalar(operand: Any) -> Any:
        return known.get(operand) or Scalar(place(operand, {}, one.constants), dtype)

    lines: list[str] = []
    for name, operands, result in one.tape:
        try:
            made = write_out(TABLE[name], tuple(map(scalar, operands)))
        except NotFused:
            return ""
        known[result] = Scalar(f"t{len(lines)}", made.dtype)
        lines.append(f"t{len(lines)} = {made.text}")
    lines += [f"{target.text}[i] = {scalar(value).text}" for target, value in one.wanted.items()]
    arrays = [s.text for s in one.given]
    head = [
        "restrict()",
        *(f"{k} = k[{i}]" for i, k in enumerate(one.constants.values())),
        f"for i in range({arrays[0]}.shape[0]):",
    ]
    return (
        "\n    ".join([f"def kernel({', '.join([*arrays, 'k'])}):", *head, *("    " + line for line in lines)]) + "\n"
    )


@lru_cache(maxsize=256)
def loop_of(one: Program, dtype: np.dtype) -> Loop:
    """One loop for all parameters of this program and dtype. A loop without a text is never compiled."""

    def example() -> tuple:
        return *[np.zeros(0, dtype)] * len(one.given), np.zeros(len(one.constants), dtype)

    return Loop(lambda: text(one, dtype), len(one.tape), example)


array_of = attrgetter("_array")


class Arrays:
    """The arrays of a parameter and its state, checked once.

    `given`: the arrays of the parameter and of the rule's state, None for absent state. `present`: `given` without
    None. `first`, `rest`: the present arrays, flattened for the loop; `first` is None if a loop cannot use them.
    `kind`: (dtype, which arrays are absent)."""

    __slots__ = ("counters", "dtype", "first", "given", "state_arrays", "kind", "rest", "shape", "present")

    def __init__(self, array: ndarray, state: State, pieces: tuple[str, ...], counters: list[str]):
        self.state_arrays = [getattr(value, "_array", None) for value in state.values()]
        if not state.keys() >= set(counters):
            lacking = next(name for name in counters if name not in state)
            hint = f"return {lacking} from _new_state, or give the setting {lacking} a default"
            raise type_error(f"the rule has the counter '{lacking}', and the state of a parameter lacks it", hint)
        self.counters = [state[name]._array for name in counters]
        given = self.given = [array, *[getattr(state.get(name), "_array", None) for name in pieces]]
        self.dtype, self.shape = array.dtype, array.shape
        # False for the gradient, which is always present
        self.kind = kind_of(self.dtype, (False, *[a is None for a in given]))
        present = self.present = [a for a in given if a is not None]
        if not all(a.flags.writeable for a in present):
            raise value_error("the memory of a parameter or its state is read-only", "p.data = p.data.clone()")
        apart = not any(np.may_share_memory(a, b) for i, a in enumerate(present) for b in present[:i])
        alike = all(a.flags.carray and a.dtype is self.dtype and a.shape == self.shape for a in present)
        flat = [a.reshape(-1) for a in present] if apart and alike else [None]
        self.first, self.rest = flat[0], flat[1:]

    def fits(self, state: State) -> bool:
        """Whether these are still the arrays of the state."""
        try:
            return len(state) == len(self.state_arrays) and all(
                map(is_, map(array_of, state.values()), self.state_arrays)
            )
        except AttributeError:  # a value that is not a tensor, as in torch's files
            return False

    def next_counts(self) -> tuple[float, ...]:
        """Add 1 to the first counter, `step`; return the values of all counters."""
        step, *others = self.counters
        value = step.item() + 1.0
        step[()] = value
        return (value, *[other.item() for other in others]) if others else (value,)


@lru_cache(maxsize=256)
def kind_of(dtype: np.dtype, absent: tuple[bool, ...]) -> tuple[np.dtype, tuple[bool, ...]]:
    """(dtype, absent): the same object for equal arguments, so that `is` compares kinds."""
    return dtype, absent


def run_on_all_cores(loop: Callable, own: Arrays, g: ndarray, numbers: ndarray) -> None:
    from rushlight.loops.parallel import in_parts  # a browser has neither threads nor ctypes

    given = (own.first, g.reshape(-1), *own.rest, numbers)
    in_parts(loop, given, (1,) * (len(given) - 1) + (0,))
