"""An eager run recorded by a tracer, and its replacement by the program made from it.

The program's last bits differ from eager's, since its loops round differently. If the first calls returned eager's
results, the bits would depend on the number of calls, and resuming a training would change its bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.compile.capture.input_sources import keyed
from rushlight.compile.capture.rng_replay import Draws
from rushlight.compile.capture.trace import Tracer
from rushlight.compile.capture.trace_summary import Outline
from rushlight.compile.run.program import OTHER_LAYOUT, RUN_EAGERLY, Program


class EagerRun:
    """A run of a function: the result, and the memory, gradients and random numbers that changed.

    `outline`: the run's summary, None if no program supports the run. `flat`: the tensors among the arguments. `grads`:
    (source, tensor, its `.grad` before the run) of each tensor. `draws`: the random numbers that the run has drawn.
    """

    def __init__(
        self, result: Any, outline: Outline | None, flat: list[Any], grads: list[tuple], draws: Draws, tracer: Tracer
    ):
        self.result, self.outline, self.flat, self.draws = result, outline, flat, draws
        self.tracer, self.grads = tracer, grads
        # the results that have a graph, for second derivatives
        self.live = [] if outline is None else outline.waiting

    def differs_from(self, program: Program) -> str:
        """The first difference between a program's results and the run's, in words; "" if there is none."""
        assert self.outline is not None
        expected, old = self.outline.expected, self.memory_before()
        with self.draws.again() as drawn:
            wrong = program.differs(expected, self.flat, old) or drawn()
        if not wrong and program.native is None and any(p.joined for p in program.parts):
            wrong = program.joined_differ(expected, self.flat, old, self.draws.again)
        if not wrong:
            program.proof.note()
        return wrong

    def memory_before(self) -> dict:
        """{source: array} before the run: copies of the arrays that the run has written to, and the gradients of the
        leaves.
        """
        old = dict(self.tracer.overwritten)
        for (_, what), _, g in self.grads:
            if g is not None:
                old.setdefault(keyed(("grad", what)), g._array)
        return old

    def replaced_by(self, program: Program, call: tuple) -> Any:
        """Undo the run's changes, and run the program instead. Returns the program's result; the run's, if the program
        does not take these arguments.

        `call`: (function, args, kwargs). For the second derivative of a program that writes to memory or draws random
        numbers, the run's graph takes the place of `call`: to run the function again would repeat the writes."""
        again = call if program.repeatable else self.live
        tracer = self.tracer
        # (array, its elements before the run, its elements after the run)
        memory = [
            (array, tracer.overwritten[source], array.copy("K")) for source, array in tracer.overwritten_arrays.items()
        ]
        grads = [(t, g, t._grad) for _, t, g in self.grads if t._grad is not g]
        put_back(memory, grads, before=True)
        try:
            with self.draws.again():
                result = program.run(self.flat, again)
        except BaseException:
            put_back(memory, grads, before=False)
            raise
        if result is RUN_EAGERLY or result is OTHER_LAYOUT:
            put_back(memory, grads, before=False)
            return self.result
        return result


def put_back(memory: list[tuple], grads: list[tuple], before: bool) -> None:
    """Set arrays and gradients to their values before, or after, the eager run."""
    for array, old, new in memory:
        if array.size:  # an expanded array without elements is read-only
            np.copyto(array, old if before else new)
    for t, old, new in grads:
        t._grad = old if before else new
