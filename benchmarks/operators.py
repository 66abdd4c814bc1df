"""The survey of operators: the calls of operators.txt on rushlight and on torch, in turns.

    env -u OPENBLAS_CORETYPE python benchmarks/operators.py                     # prints the table
    python benchmarks/operators.py --only pool --size S --mode forward          # a few of them
    python benchmarks/operators.py --threads 1 2 --json FILE --page FILE.md     # all, and a page
    python benchmarks/operators.py --against main --processes 3                 # two commits

Sizes: S, a few dozen numbers; M, 64 thousand; L, 1 to 2 million. Modes: `forward`, under `no_grad`; `backward`, forward
and backward. Times are microseconds, the least of many short blocks in which the engines take turns. A ratio is torch's
time / ours: above 1, rushlight is faster. With `--against`, a ratio is the other commit's time / ours.

Before a call is timed, it is warmed up, and the accounts of loops (fast/policy.py) are settled: the figures are those
of a program that has run for a while. With one thread the processor's time is measured, which other programs on the
machine hardly change; with more, the time on the wall."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import exp, inf, log
from pathlib import Path
from textwrap import wrap
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

CALLS = Path(__file__).with_suffix(".txt")
ROOT = Path(__file__).parents[1]
SIZES, MODES = ("S", "M", "L"), ("forward", "backward")
FORWARD_ONLY = " !"  # the end of a call that is not differentiated
BLOCK_SECONDS = 4e-4  # of a block of calls
WARM_SECONDS = {"S": 0.05, "M": 0.25, "L": 0.25}
WARM_CALLS = 5
# With several threads: the wait before a block, since OpenMP's threads spin for about 1 ms after their work and would
# take a core from the other engine; and the length of a block, in which threads stay awake
SPIN_SECONDS, LONG_BLOCK_SECONDS = 4e-3, 8e-3
OUTLIER = 0.5  # ratio below which a call is measured again
SLOWER = 0.95  # ratio below which `--against` lists a call

# Shapes by size: rows, columns; batch, channels, height and width of images; steps and features of sequences; side of
# square matrices
SHAPES = {
    "S": ((4, 8), (1, 4, 8, 8), (1, 4, 8), 6),
    "M": ((256, 256), (4, 16, 32, 32), (4, 32, 64), 64),
    "L": ((1024, 2048), (8, 32, 64, 64), (16, 128, 128), 384),
}


def families() -> dict[str, list[str]]:
    """family -> its calls."""
    found: dict[str, list[str]] = {}
    for line in CALLS.read_text().splitlines():
        if line.startswith("# "):
            calls = found.setdefault(line[2:], [])
        elif line:
            calls.append(line)
    return found


# -- one process: rushlight of one commit, and torch -----------------------------------------------


def operands(lib: Any, size: str) -> dict[str, Any]:
    """The names in the calls."""
    (rows, columns), image, (batch, steps, features), side = SHAPES[size]
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.standard_normal(shape, dtype=np.float32)
    channels, spd = image[1], normal(side, side)
    leaves = {
        **{name: normal(rows, columns) for name in "xy"},
        "p": np.abs(normal(rows, columns)) + np.float32(0.5),
        "h": rng.uniform(-0.9, 0.9, (rows, columns)),
        "u": rng.uniform(0.01, 0.99, (rows, columns)),
        "row": normal(columns),
        "bias_row": normal(columns),
        "col": normal(rows, 1),
        "a": normal(side, side),
        "a_small": normal(min(side, 24), min(side, 24)),
        "flat_few": normal(min(rows * 4, 1024)),
        "spd": spd @ spd.T + side * np.eye(side, dtype=np.float32),
        "weight": normal(32, columns),
        "bias_out": normal(32),
        "batch": normal(rows // 4, min(side, 24), min(side, 24)),
        "image": normal(*image),
        "line": normal(image[0], channels, image[2] * image[3]),
        "filters": normal(channels, channels, 3, 3),
        "filters1": normal(channels, channels, 3),
        "one_tap": normal(channels, channels, 1, 1),
        "depthwise": normal(channels, 1, 3, 3),
        "weight_c": normal(channels),
        "bias_c": normal(channels),
        "pixels": normal(image[0], 4 * (channels // 4), *image[2:]),
        "table": normal(columns, 16),
        "slope": np.full(1, 0.25),
        "heads": normal(batch, 4, steps, features // 4),
        "sequence": normal(batch, steps, features),
        "grid": rng.uniform(-1, 1, (image[0], image[2], image[3], 2)),
        "theta": normal(image[0], 2, 3),
    }
    fixed = {
        "b": rng.random((rows, columns)) > 0.5,
        "c": rng.random((rows, columns)) > 0.5,
        "i": rng.integers(0, min(rows, columns), (rows, columns)),
        "j": rng.integers(0, rows, rows),
        "k": rng.integers(0, columns, columns),
        "k_of_rows": rng.integers(0, columns, rows),
        "t": normal(rows, columns),
        "v": rng.uniform(0, 1, (rows, columns)).astype(np.float32),
        "signs": np.sign(normal(rows, columns)),
        "mean_c": np.zeros(channels, np.float32),
        "var_c": np.ones(channels, np.float32),
        "sorted_row": np.sort(normal(columns)),
        "few": normal(2, 3),
    }
    names = {"F": lib.nn.functional, "linalg": lib.linalg, "numbers": normal(rows, columns)}
    for name, array in leaves.items():
        names[name] = lib.tensor(array.astype(np.float32), requires_grad=True)
    for name, array in fixed.items():
        names[name] = lib.tensor(array)
    return names | modules(lib, features)


def modules(lib: Any, features: int) -> dict[str, Any]:
    """The layers in the calls, with the same weights in both engines."""
    nn = lib.nn
    made = {
        "attention": nn.MultiheadAttention(features, 4, batch_first=True),
        "encoder": nn.TransformerEncoderLayer(features, 4, 2 * features, dropout=0.0, batch_first=True),
        "lstm": nn.LSTM(features, features, batch_first=True),
        "gru": nn.GRU(features, features, batch_first=True),
        "rnn": nn.RNN(features, features, batch_first=True),
        "lstm_cell": nn.LSTMCell(features, features),
        "gru_cell": nn.GRUCell(features, features),
    }
    rng = np.random.default_rng(1)
    with lib.no_grad():
        for layer in made.values():
            for parameter in layer.parameters():
                shape = tuple(parameter.shape)
                values = rng.uniform(-0.2, 0.2, shape).astype(np.float32)
                parameter.copy_(lib.tensor(values))
    return made


class Engine:
    """The calls of one library, ready to run."""

    def __init__(self, lib: Any):
        self.lib, self.names = lib, {}

    def work(self, text: str, size: str, mode: str) -> Callable | None:
        """The function to time; None if the call has no gradient."""
        if size not in self.names:
            self.names[size] = operands(self.lib, size)
        call, names = text.removesuffix(FORWARD_ONLY), self.names[size]
        define = f"def run(): {call}" if " = " in call else f"run = lambda: {call}"
        code = compile(call if " = " in call else define, text, "exec")
        words = {*code.co_names, *(n for c in code.co_consts for n in getattr(c, "co_names", ()))}
        known = {n: getattr(self.lib, n) for n in words if n not in names and hasattr(self.lib, n)}
        scope = {**known, **names}
        exec(define, scope)
        run = scope["run"]
        if mode == "forward":
            return run
        if text.endswith(FORWARD_ONLY):
            return None
        made = run()
        if not getattr(made, "requires_grad", False):
            return None
        gradient = self.lib.ones_like(made.detach())
        used = [t for n, t in names.items() if n in words and hasattr(t, "requires_grad")]

        def both() -> None:
            for t in used:
                t.grad = None
            run().backward(gradient)

        return both


def seconds_of(work: Callable, calls: int, clock: Callable[[], float]) -> float:
    """The time of one call, by a block of calls."""
    repeated = [None] * calls
    start = clock()
    for _ in repeated:
        work()
    return (clock() - start) / calls


def measured(engines: dict[str, Engine], task: dict[str, Any], clock: Callable[[], float]) -> dict[str, Any]:
    """engine -> the least time of the call, in microseconds; "error" of the engine that fails."""
    size, mode = task["size"], task["mode"]
    with ExitStack() as stack:
        if mode == "forward":
            for engine in engines.values():
                stack.enter_context(engine.lib.no_grad())
        works, calls = {}, {}
        for name, engine in engines.items():
            try:
                work = engine.work(task["call"], size, mode)
                if work is None:
                    return {}
                start = clock()
                for k in range(10000):
                    work()
                    if k >= WARM_CALLS and clock() - start > WARM_SECONDS[size]:
                        break
            except Exception as error:
                return {"error": f"{name}: {error.__class__.__name__}: {str(error)[:200]}"}
            works[name] = work
            one = min(seconds_of(work, 1, clock) for _ in range(3))
            block = LONG_BLOCK_SECONDS if clock is perf_counter else BLOCK_SECONDS
            calls[name] = max(1, round(block / max(one, 1e-8)))
        best, start = dict.fromkeys(works, inf), clock()
        while clock() - start < task["seconds"]:
            for name, work in works.items():
                if clock is perf_counter:
                    sleep(SPIN_SECONDS)
                best[name] = min(best[name], seconds_of(work, calls[name], clock))
    return {name: 1e6 * seconds for name, seconds in best.items()}


def serve(threads: int) -> None:
    """Answer tasks from the standard input, a line of JSON each."""
    import torch

    import rushlight

    torch.set_num_threads(threads)
    rushlight.set_num_threads(threads)
    try:
        rushlight.fast.settle()
        # loops with accounts of their own are built when first asked for
        from rushlight.loops.tiering import at_once

        at_once.set(True)
    except (ImportError, AttributeError):  # a commit without the page of policies
        pass
    engines = {"rushlight": Engine(rushlight), "torch": Engine(torch)}
    clock = process_time if threads == 1 else perf_counter
    for line in sys.stdin:
        print(json.dumps(measured(engines, json.loads(line), clock)), flush=True)


# -- the survey ------------------------------------------------------------------------------------


class Worker:
    """A process with the rushlight of one folder."""

    def __init__(self, folder: Path, threads: int):
        environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment[name] = str(threads)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "--serve", str(threads)],
            env={**environment, "PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, task: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or '{"error": "the process has ended"}')

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


Workers = dict[str, list[Worker]]  # the processes of each side: `ours` and `other`


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", tree, commit], check=True, capture_output=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)


def least(workers: Workers, task: dict[str, Any], rounds: int) -> dict[str, Any]:
    """The least times of `ours`, `torch` and, with two commits, `other`, over rounds and processes."""
    best: dict[str, Any] = {}
    for name, worker in rounds * in_turns(workers):
        found = worker.ask(task)
        if "rushlight" not in found:
            return found
        for engine, value in ((name, found["rushlight"]), ("torch", found["torch"])):
            best[engine] = min(best.get(engine, inf), value)
    return best


def in_turns(workers: Workers) -> list[tuple[str, Worker]]:
    """The first process of each side, the second of each side, and so on."""
    return [(name, pool[k]) for k in range(len(workers["ours"])) for name, pool in workers.items()]


def ratio_of(times: dict[str, float]) -> float:
    """torch's time, or the other commit's, by ours."""
    return (times["other"] if "other" in times else times["torch"]) / times["ours"]


def survey(workers: Workers, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row of the survey for each call, size and mode; outliers are measured twice."""
    limit = OUTLIER if len(workers) == 1 else SLOWER
    for family, calls in families().items():
        for call in calls:
            if chosen.only and chosen.only not in f"{family}: {call}":
                continue
            for size in chosen.size:
                for mode in chosen.mode:
                    task = {"call": call, "size": size, "mode": mode, "seconds": chosen.seconds}
                    times = least(workers, task, chosen.rounds)
                    if times and "error" not in times and ratio_of(times) < limit:
                        again = least(workers, task, 2 * chosen.rounds)
                        times = {name: min(value, again[name]) for name, value in times.items()}
                    if times:
                        yield {"family": family, **task, **times}


def geometric_mean(values: list[float]) -> float:
    return exp(sum(map(log, values)) / len(values)) if values else float("nan")


def columns_of(rows: list[dict[str, Any]]) -> list[tuple[int, str, str]]:
    """Threads, mode and size of the table's columns."""
    found = {(row["threads"], row["mode"], row["size"]) for row in rows}
    return sorted(found, key=lambda c: (c[0], MODES.index(c[1]), SIZES.index(c[2])))


def table(rows: list[dict[str, Any]], keys: list[str]) -> list[str]:
    """A row of Markdown for each family (`family`) or call, a column for threads, mode and size: the geometric mean of
    ratios; for one call, its time in microseconds, too."""
    columns = columns_of(rows)
    heads = [f"{size} {mode}, {threads} thr." for threads, mode, size in columns]
    lines = ["| " + " | ".join([" / ".join(keys), *heads]) + " |"]
    lines += ["|---|" + "--:|" * len(columns)]
    groups: dict[str, list[dict[str, Any]]] = {"all": rows} if keys == ["family"] else {}
    for row in rows:
        groups.setdefault(row[keys[0]], []).append(row)
    for name, members in groups.items():
        cells = []
        for column in columns:
            of = [row for row in members if (row["threads"], row["mode"], row["size"]) == column]
            text = f"{geometric_mean([ratio_of(row) for row in of]):.2f}" if of else ""
            if of and keys != ["family"]:
                text += f" ({of[0]['ours']:.3g})"
            cells.append(text)
        shown = name if keys == ["family"] else f"`{name.removesuffix(FORWARD_ONLY)}`"
        lines.append(f"| {shown.replace('|', chr(92) + '|')} | {' | '.join(cells)} |")
    return lines


def page(rows: list[dict[str, Any]], title: str) -> str:
    """The survey in Markdown."""
    lines = [
        "# The survey of operators",
        "",
        "Written by `benchmarks/operators.py`, which says what S, M, L, forward and backward mean. The",
        "calls: `operators.txt`. A figure is a ratio of times, above 1 rushlight is faster; in brackets,",
        "rushlight's microseconds. The first table has geometric means.",
        "",
        *wrap(f"Measured: {title}.", 100),
        "",
        *table(rows, ["family"]),
        "",
        "## Each call",
        "",
        *table(rows, ["call"]),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--only", help="calls with this text in 'family: call'")
    parser.add_argument("--size", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--mode", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--against", help="a commit to compare with, instead of torch")
    parser.add_argument("--seconds", type=float, default=0.05, help="of a call in a round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--processes", type=int, default=1, help="of each side: times differ between processes")
    parser.add_argument("--json", type=Path, help="write all rows here")
    parser.add_argument("--page", type=Path, help="write the page here")
    parser.add_argument("--title", default="", help="what the page says was measured")
    chosen = parser.parse_args()
    if chosen.serve:
        return serve(chosen.serve)
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folders = {"ours": ROOT}
        if chosen.against:
            folders["other"] = stack.enter_context(checkout(chosen.against))
        for threads in chosen.threads:
            workers = {
                name: [Worker(folder, threads) for _ in range(chosen.processes)] for name, folder in folders.items()
            }
            for row in survey(workers, chosen):
                if "error" in row:
                    print(f"{row['call']:60} {row['size']} {row['error']}", flush=True)
                    continue
                rows.append({**row, "threads": threads})
                where = f"{row['size']} {row['mode']:8} {threads}"
                print(f"{row['call']:60} {where} {ratio_of(row):6.2f} {row['ours']:11.2f} us", flush=True)
            for _, worker in in_turns(workers):
                worker.close()
    print("", *table(rows, ["family"]), sep="\n")
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=0))
    if chosen.page:
        chosen.page.write_text(page(rows, chosen.title))


if __name__ == "__main__":
    main()
