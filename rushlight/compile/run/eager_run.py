"""An eager run that a tracer has watched, and its replacement by the program that was made from it.

The program's last bits differ from eager's: its loops round in another way. If the first calls
returned eager's results, the bits would depend on how often the function was called, and a training
that is stopped and resumed would not be the same to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.compile.capture.rng_replay import Draws
from rushlight.compile.capture.trace import Tracer
from rushlight.compile.run.program import OTHER_LAYOUT, RUN_EAGERLY, Program
from rushlight.core.tensor import Tensor


class EagerRun:
    """A run of a function: its result, and what it has changed.

    `live`: the results with a graph. `flat`: the tensors among the arguments. `grads`: (source,
    tensor, its `.grad` before the run) of each tensor. `draws`: the random numbers that the run has
    drawn."""

    def __init__(
        self,
        result: Any,
        live: list[Tensor],
        flat: list[Any],
        grads: list,
        draws: Draws,
        tracer: Tracer,
    ):
        self.result, self.live, self.flat, self.draws = result, live, flat, draws
        self.grads = [(t, g, t._grad) for _, t, g in grads if t._grad is not g]
        # (array, its elements before the run, its elements after the run)
        self.memory = [
            (array, tracer.overwritten[source], array.copy("K"))
            for source, array in tracer.overwritten_arrays.items()
        ]

    def replaced_by(self, program: Program, call: tuple) -> Any:
        """Undo the run's changes, and run the program instead. Returns the program's result; the
        run's, if the program does not take these arguments.

        `call`: (function, args, kwargs). For the second derivative of a program that writes to
        memory or draws random numbers, the run's graph takes its place: to run the function again
        would repeat the writes."""
        again = call if program.repeatable else self.live
        self.put_back(before=True)
        try:
            with self.draws.again():
                result = program.run(self.flat, again)
        except BaseException:
            self.put_back(before=False)
            raise
        if result is RUN_EAGERLY or result is OTHER_LAYOUT:
            self.put_back(before=False)
            return self.result
        return result

    def put_back(self, before: bool) -> None:
        """Set the memory and the gradients to what they were before, or after, the eager run."""
        for array, old, new in self.memory:
            np.copyto(array, old if before else new)
        for t, old, new in self.grads:
            t._grad = old if before else new
