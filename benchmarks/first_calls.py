"""The first compiled call of each served model (served_models.py) in a new process with an empty cache: seconds of the
eager call, of the first call of the compiled model (which runs it eagerly, compiles it, and compares both), of the
second, and of the first call with a new batch size, 12, after the sizes 1, 8 and 16.

    python benchmarks/first_calls.py
    python benchmarks/first_calls.py lenet bert"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

SEEN, NEW = (8, 16), 12  # batch sizes: those that come before, and the measured one


def seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def measure(name: str) -> str:
    """A row of the table."""
    import numpy as np
    from served_models import MODELS

    import rushlight

    model = MODELS[name].make(rushlight.nn).eval()
    compiled = rushlight.compile(model)
    drawn = lambda batch: [rushlight.from_numpy(a) for a in MODELS[name].draw(np.random.default_rng(0), batch)]
    given = drawn(1)
    with rushlight.no_grad():
        eager = seconds(lambda: model(*given))
        calls = [seconds(lambda: compiled(*given)) for _ in range(2)]
        for batch in SEEN:
            compiled(*drawn(batch))
        new = drawn(NEW)
        calls.append(seconds(lambda: compiled(*new)))
    return f"| {name} | {eager:.3f} | {calls[0]:.2f} | {calls[1]:.4f} | {calls[2]:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(measure(arguments.models[0]))
        return
    from served_models import MODELS

    print(f"| model | eager | first compiled call | second | first of batch {NEW} |\n|---|--:|--:|--:|--:|")
    for name in arguments.models or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "RUSHLIGHT_CACHE": folder}
            env.pop("OPENBLAS_CORETYPE", None)
            command = [sys.executable, __file__, "--one", name]
            made = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        print(made.stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
