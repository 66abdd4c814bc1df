"""The process of background.py: compiles loops for another process, into the cache folder."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from rushlight.base.threads import process_cores

LOW_PRIORITY = 19  # the niceness of the process
# the niceness on a single core, which gives the process a quarter of the time. With LOW_PRIORITY, no loop was ready
# within 60 s.
SHARED_PRIORITY = 5
AUTOGROUP = Path("/proc/self/autogroup")


def main() -> None:
    """Read jobs (recipe, signature) from standard input, and write a line for each finished job.

    Ends when the input ends. A loop that fails is left to the other process, which shows the error.
    """
    answers = os.dup(1)
    os.dup2(2, 1)  # only answers go to the original standard output
    lower_priority()
    from rushlight.loops.background import background

    background.wait()
    while True:
        try:
            recipe, signature = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            made(*recipe).compile(signature)
        except Exception as error:
            print(error, file=sys.stderr)
        os.write(answers, b"\n")


def lower_priority() -> None:
    """Yield to all other processes.

    Linux may share processor time between sessions first (autogroup). There `nice` counts within the session only,
    which this process has to itself, so the session's own priority is lowered, too. Otherwise BLAS with several threads
    waits for this process: a step of 0.04 s took up to 3.7 s (benchmarks/first_steps.md)."""
    priority = LOW_PRIORITY if process_cores() > 1 else SHARED_PRIORITY
    if hasattr(os, "nice"):
        os.nice(priority)
    with suppress(OSError):
        AUTOGROUP.write_text(str(priority))


def made(text: str, exact: bool, callees: dict[str, tuple]) -> Any:
    """The loop of a recipe."""
    from rushlight.loops.cache import compiled, of

    return of(compiled(text, exact, {name: made(*recipe).function for name, recipe in callees.items()}))
