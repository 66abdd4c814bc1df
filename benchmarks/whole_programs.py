"""Whole programs, as strangers write them, eager, on rushlight and on torch: each run is a new process, in turns.

    env -u OPENBLAS_CORETYPE -u PYTHONDONTWRITEBYTECODE python benchmarks/whole_programs.py
    python benchmarks/whole_programs.py --only gru --threads 2 --turns 5
    python benchmarks/whole_programs.py --program mine.py --steps 100      # any program that imports torch

Printed for each program and number of threads: the least wall and processor seconds of either engine and the ratio
ours / torch (below 1 rushlight is faster). The clock starts when `import torch` is done and stops at the end of the
program; it includes all that rushlight loads later. A first run of rushlight is not counted: it waits for its loops
(RUSHLIGHT_LOOPS=wait), the following runs load them from disk. `--before FOLDER` runs a second checkout of rushlight in
the same turns."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = HERE / "names"
PROGRAMS = {
    "bigram": [NAMES / "names.py", "--model", "bigram"],
    "mlp": [NAMES / "names.py", "--model", "mlp"],
    "batch_norm": [NAMES / "batch_norm.py"],
    "rnn": [NAMES / "names.py", "--model", "rnn"],
    "gru": [NAMES / "names.py", "--model", "gru"],
    "transformer": [NAMES / "names.py", "--model", "transformer"],
}
RUN = """
import os, runpy, sys
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter
engine, threads, site = sys.argv[1:4]
if engine != "torch":
    sys.path.insert(0, engine)
    from rushlight.compat.hook import install
    install()
elif site:
    sys.path.insert(0, site)
import torch
torch.set_num_threads(int(threads))
def spent():
    both = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in both)
sys.argv = sys.argv[4:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
cpu, wall = spent(), perf_counter()
runpy.run_path(sys.argv[0], run_name="__main__")
print("measured", perf_counter() - wall, spent() - cpu)
"""


def run(engine: str, threads: int, program: list, site: str, **variables: str) -> tuple[float, float]:
    """Wall and processor seconds of a program after its `import torch`. `engine`: "torch" or a folder of rushlight."""
    number = str(threads)
    counts = {"OMP_NUM_THREADS": number, "OPENBLAS_NUM_THREADS": number, "MKL_NUM_THREADS": number}
    command = [sys.executable, "-c", RUN, engine, number, site, *map(str, program)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, env=os.environ | counts | variables, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program} failed on {engine}:\n{done.stderr[-2000:]}")
    _, wall, cpu = done.stdout.splitlines()[-1].split()
    return float(wall), float(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="programs with this text in their name")
    parser.add_argument(
        "--program", type=Path, help="a program instead of the list; further arguments are passed to it"
    )
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--before", help="a second checkout of rushlight")
    parser.add_argument("--site", default="", help="a folder of packages for torch alone, such as torchvision")
    chosen, rest = parser.parse_known_args()
    programs = {chosen.program.stem: [chosen.program.resolve(), *rest]} if chosen.program else PROGRAMS
    engines = ["torch", str(HERE.parent), *([chosen.before] if chosen.before else [])]
    titles = f"{'torch':>14}{'rushlight':>14}" + (f"{'before':>14}" if chosen.before else "")
    print(f"{'s of wall / cpu':20}{titles}{'ratio':>14}" + (f"{'before':>14}" if chosen.before else ""))
    for name, program in programs.items():
        if chosen.only and chosen.only not in name:
            continue
        for engine in engines[1:]:
            run(engine, 1, program, chosen.site, RUSHLIGHT_LOOPS="wait")
        for threads in chosen.threads:
            taken: dict[str, list[tuple[float, float]]] = {engine: [] for engine in engines}
            for _ in range(chosen.turns):
                for engine in engines:
                    taken[engine].append(run(engine, threads, program, chosen.site))
            least = [[min(t[i] for t in taken[engine]) for i in (0, 1)] for engine in engines]
            seconds = "".join(f"{wall:8.2f}{cpu:6.2f}" for wall, cpu in least)
            ratios = "".join(f"{wall / least[0][0]:8.2f}{cpu / least[0][1]:6.2f}" for wall, cpu in least[1:])
            print(f"{name:14}{threads:>2}    {seconds}{ratios}", flush=True)


if __name__ == "__main__":
    main()
