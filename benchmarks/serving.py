"""Latency of served models: twelve models, batches of 1, 8 and 64, no gradients, median milliseconds of a call.

    python benchmarks/serving.py --batch 1 --models mlp lstm
    python benchmarks/serving.py --threads 1 2 --engines rushlight.compile onnxruntime --calls 1000

Engines: rushlight and torch, eager and compiled (`compile` of the module), rushlight compiled with int8 weights of linear
layers, and onnxruntime where `onnxruntime` and `onnx` are installed. All engines have torch's weights, take turns in blocks of at most 20 calls in one process, and
their outputs must agree to 1 in 10,000 of the largest output (with int8 weights: 1 in 10). Every call gets another input. Each model has a process
of its own for each number of threads. An engine that fails has `error` in the table, one with other outputs `wrong`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from served_models import MODELS, Arrays, pair

import rushlight

INPUTS, INPUT_BYTES = 50, 2**27  # inputs of a model: at most this number and this memory, at least CHECKED
CHECKED = 4
BLOCK, BLOCK_SECONDS, WARM_SECONDS, MIN_ROUNDS = 20, 0.05, 1.0, 5
REST_SECONDS = 0.02  # between two engines with several threads: waiting threads of the engine before spin for a while
TOLERANCE, INT8_TOLERANCE = 1e-4, 0.1
Seconds = dict[str, list[float]]
Cells = dict[str, "float | str"]


class Pair(NamedTuple):
    """A model in both libraries, and a folder for files."""

    theirs: Any
    ours: Any
    folder: Path


@dataclass
class Engine:
    """`call(prepare(arrays))` gives the outputs. `tolerance`: of their difference, relative to the largest output."""

    call: Callable[[Any], Any]
    prepare: Callable[[Arrays], Any]
    tolerance: float = TOLERANCE


def of_module(module: Any, prepare: Callable[[np.ndarray], Any]) -> Engine:
    """A module, called with one tensor for each input."""
    return Engine(lambda inputs: module(*inputs), lambda arrays: tuple(map(prepare, arrays)))


def our_eager(models: Pair, example: Arrays) -> Engine:
    return of_module(models.ours, rushlight.from_numpy)


def our_compiled(models: Pair, example: Arrays) -> Engine:
    return of_module(rushlight.compile(models.ours), rushlight.from_numpy)


def our_int8(models: Pair, example: Arrays) -> Engine:
    """Linear layers with int8 weights, compiled. An LSTM with int8 weights is no part of compiled functions yet."""
    layers = {rushlight.nn.Linear}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = rushlight.compile(rushlight.ao.quantization.quantize_dynamic(models.ours, layers))
    return Engine(
        lambda inputs: module(*inputs), lambda arrays: tuple(map(rushlight.from_numpy, arrays)), INT8_TOLERANCE
    )


def their_eager(models: Pair, example: Arrays) -> Engine:
    return of_module(models.theirs, torch.from_numpy)


def their_compiled(models: Pair, example: Arrays) -> Engine:
    torch.compiler.reset()  # otherwise the second size of the batch makes torch compile for all sizes
    return of_module(torch.compile(models.theirs), torch.from_numpy)


def onnx_file(models: Pair, example: Arrays) -> Path:
    """The model as an ONNX file for the shapes of `example`."""
    path = models.folder / "model.onnx"
    torch.backends.mha.set_fastpath_enabled(False)  # ONNX has no operator for the fused layer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(models.theirs, tuple(map(torch.from_numpy, example)), str(path), dynamo=False)
    torch.backends.mha.set_fastpath_enabled(True)
    return path


def onnx_session(path: Path) -> Engine:
    """onnxruntime with torch's number of threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    return Engine(lambda feed: session.run(None, feed), lambda arrays: dict(zip(names, arrays, strict=True)))


def onnx(models: Pair, example: Arrays) -> Engine:
    return onnx_session(onnx_file(models, example))


ENGINES: dict[str, Callable[[Pair, Arrays], Engine]] = {
    "rushlight": our_eager,
    "rushlight.compile": our_compiled,
    "rushlight.int8": our_int8,
    "torch": their_eager,
    "torch.compile": their_compiled,
}
if find_spec("onnxruntime") and find_spec("onnx"):
    ENGINES["onnxruntime"] = onnx
OURS, RIVAL = "rushlight.compile", "onnxruntime"


def outputs(found: Any) -> list[np.ndarray]:
    """All outputs as arrays."""
    return [np.asarray(value) for value in (found if isinstance(found, (tuple, list)) else [found])]


def distance(found: Any, expected: list[np.ndarray]) -> float:
    """The largest difference, relative to the largest element of each output; infinite for other shapes."""
    arrays = outputs(found)
    if [a.shape for a in arrays] != [b.shape for b in expected]:
        return float("inf")
    relative = [np.abs(a.astype(np.float64) - b).max() / np.abs(b).max() for a, b in zip(arrays, expected)]
    return float(np.nan_to_num(max(relative), nan=np.inf))


def draw(name: str, batch: int) -> list[Arrays]:
    """Inputs, each drawn by itself."""
    rng = np.random.default_rng(0)
    found = [MODELS[name].draw(rng, batch)]
    size = sum(array.nbytes for array in found[0])
    count = max(CHECKED, min(INPUTS, INPUT_BYTES // size))
    return found + [MODELS[name].draw(rng, batch) for _ in range(count - 1)]


class Turns:
    """The calls of one engine: `block()` returns the seconds of each call of a block."""

    def __init__(self, engine: Engine, arrays: list[Arrays]):
        self.engine, self.inputs, self.next, self.size = engine, [engine.prepare(a) for a in arrays], 0, 1

    def call(self) -> float:
        """The seconds of a call with the next input."""
        given = self.inputs[self.next]
        self.next = (self.next + 1) % len(self.inputs)
        began = time.perf_counter()
        self.engine.call(given)
        return time.perf_counter() - began

    def warm(self) -> None:
        """Calls until nothing more is compiled; chooses the size of a block."""
        self.call()  # compiles; may take minutes
        began, seconds = time.perf_counter(), []
        while time.perf_counter() - began < WARM_SECONDS or len(seconds) < 5:
            seconds.append(self.call())
        self.size = int(np.clip(BLOCK_SECONDS / np.median(seconds[-5:]), 1, BLOCK))

    def block(self) -> list[float]:
        for _ in range(min(2, self.size - 1)):  # the engine before has emptied the caches
            self.call()
        return [self.call() for _ in range(self.size)]

    def correct(self, expected: list[list[np.ndarray]]) -> bool:
        """Whether the first outputs agree with the expected ones."""
        worst = max(distance(self.engine.call(given), found) for given, found in zip(self.inputs, expected))
        return worst <= self.engine.tolerance


def prepared(names: list[str], models: Pair, arrays: list[Arrays]) -> tuple[dict[str, Turns], Cells]:
    """The warm engines, and `error` for each one that raised."""
    turns: dict[str, Turns] = {}
    failed: Cells = {}
    for engine in names:
        try:
            turns[engine] = Turns(ENGINES[engine](models, arrays[0]), arrays)
            turns[engine].warm()
        except Exception:
            traceback.print_exc()
            turns.pop(engine, None)
            failed[engine] = "error"
    return turns, failed


def measure(name: str, batch: int, names: list[str], enough: tuple[int | None, float], quantile: float) -> Cells:
    """engine -> seconds of a call. `enough`: the calls of each engine, or, if None, the mean seconds of each engine."""
    arrays = draw(name, batch)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad(), rushlight.no_grad():
        models = Pair(*pair(name), Path(folder))
        expected = [outputs(models.theirs(*map(torch.from_numpy, given))) for given in arrays[:CHECKED]]
        turns, cells = prepared(names, models, arrays)
        rushlight.fast.settle()
        seconds = in_turns(turns, *enough)
        for engine, found in seconds.items():
            correct = turns[engine].correct(expected)
            cells[engine] = float(np.quantile(found, quantile)) if correct else "wrong"
    return cells


def in_turns(turns: dict[str, Turns], calls: int | None, seconds: float) -> Seconds:
    """The seconds of each call of each engine."""
    found: Seconds = {engine: [] for engine in turns}
    rounds, began = 0, time.perf_counter()
    while turns:
        for engine, turn in turns.items():
            if torch.get_num_threads() > 1:
                time.sleep(REST_SECONDS)
            found[engine] += turn.block()
        rounds += 1
        least = min(map(len, found.values()))
        spent = time.perf_counter() - began
        if least >= calls if calls else spent > seconds * len(turns) and rounds >= MIN_ROUNDS:
            break
    return found


def in_process(name: str, threads: int, arguments: argparse.Namespace) -> dict[int, Cells]:
    """batch -> engine -> seconds, of a process of its own."""
    env = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    env |= {key: str(threads) for key in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    env["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no processes beside the measurement
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seconds.json"
        command = [sys.executable, __file__, *sys.argv[1:], "--one", name, str(threads), str(path)]
        done = subprocess.run(command, env=env, stdout=sys.stderr)
        written = json.loads(path.read_text()) if done.returncode == 0 else {}
    return {batch: written.get(str(batch), dict.fromkeys(arguments.engines, "error")) for batch in arguments.batch}


def one(name: str, threads: int, path: Path, arguments: argparse.Namespace) -> None:
    """Measure one model in this process."""
    torch.set_num_threads(threads)
    rushlight.set_num_threads(threads)
    enough = arguments.calls, arguments.seconds
    found = {b: measure(name, b, arguments.engines, enough, arguments.quantile) for b in arguments.batch}
    path.write_text(json.dumps(found))


def ratio(cells: Cells, over: str, under: str) -> float | None:
    """The seconds of one engine over the seconds of another; None if one of the figures is missing."""
    above, below = cells.get(over), cells.get(under)
    return above / below if isinstance(above, float) and isinstance(below, float) else None


def table(rows: dict[str, Cells], engines: list[str]) -> str:
    """Markdown: milliseconds, and the seconds of RIVAL over the seconds of OURS."""
    compared = {OURS, RIVAL} <= {*engines}
    head = ["model", *engines, *[f"{RIVAL} / {OURS}"] * compared]
    lines = [f"| {' | '.join(head)} |", f"|---|{'--:|' * (len(head) - 1)}"]
    for name, cells in rows.items():
        shown = [cell if isinstance(cell, str) else f"{cell * 1e3:.3f}" for cell in map(cells.__getitem__, engines)]
        factor = ratio(cells, RIVAL, OURS)
        shown += [f"{factor:.2f}" if factor else "-"] * compared
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def summary(rows: dict[str, Cells], engines: list[str]) -> str:
    """The median and the minimum of the ratio, and the number of models in which OURS is ahead."""
    found = []
    factors = {name: factor for name, cells in rows.items() if (factor := ratio(cells, RIVAL, OURS))}
    if factors:
        least = min(factors, key=factors.__getitem__)
        median = np.median([*factors.values()])
        found.append(f"{RIVAL} / {OURS}: median {median:.2f}, minimum {factors[least]:.2f} ({least})")
    for engine in engines:
        pairs = [factor for cells in rows.values() if (factor := ratio(cells, engine, OURS))]
        if engine != OURS and pairs:
            found.append(f"{OURS} is ahead of {engine} in {sum(f > 1 for f in pairs)} of {len(pairs)}")
    return "; ".join(found)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=[*ENGINES])
    parser.add_argument("--calls", type=int, help="of each engine, instead of --seconds")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each engine, on average")
    parser.add_argument(
        "--quantile", type=float, default=0.5, help="of the seconds of a call: 0.99 instead of the median"
    )
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    arguments = parsed()
    if arguments.one:
        name, threads, path = arguments.one
        one(name, int(threads), Path(path), arguments)
        return
    everything: dict[str, Cells] = {}
    for threads in arguments.threads:
        found = {}
        for name in arguments.models:
            print(f"{name}, {threads} threads", file=sys.stderr, flush=True)
            found[name] = in_process(name, threads, arguments)
        for batch in arguments.batch:
            rows = {name: found[name][batch] for name in found}
            everything |= {f"{name}, batch {batch}, threads {threads}": cells for name, cells in rows.items()}
            print(f"Batch {batch}, threads {threads}, ms:\n\n{table(rows, arguments.engines)}\n", flush=True)
            print(f"{summary(rows, arguments.engines)}\n", flush=True)
    if len(arguments.threads) * len(arguments.batch) > 1:
        print(f"All tables: {summary(everything, arguments.engines)}")


if __name__ == "__main__":
    main()
