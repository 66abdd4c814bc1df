"""Each way that a rank can fail, many times: the others end in time, and no process is left.

    python benchmarks/distributed_faults.py [--times 20] [--at-once 4]

Two ranks each, without a launcher, or under `rushlight launch` with `launched`."""

from __future__ import annotations

import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 20.0  # seconds of a case, with its start, on a busy machine
START = """
import os, signal, sys, time, threading
from datetime import timedelta
import rushlight as torch
import rushlight.distributed as dist
"""
BEGUN = "dist.init_process_group(timeout=timedelta(seconds={0}))\ndist.barrier()\n"
OTHER = "if dist.get_rank() == 1: {0}\n"
CASES = {
    "an exception": BEGUN.format(60) + OTHER.format("raise ValueError('on purpose')"),
    "killed": BEGUN.format(60) + OTHER.format("os.kill(os.getpid(), signal.SIGKILL)"),
    "exit": BEGUN.format(60) + OTHER.format("sys.exit(3)"),
    "killed at any time": "if os.environ['RANK'] == '1':\n"
    "    threading.Timer(AFTER, os.kill, (os.getpid(), 9)).start()\n" + BEGUN.format(8),
    "a collective that is not reached": BEGUN.format(1) + OTHER.format("time.sleep(4); sys.exit(3)"),
    "other shapes": BEGUN.format(60) + OTHER.format("dist.all_reduce(torch.ones(3))"),
    "a rank that does not come": "if os.environ['RANK'] == '1': sys.exit(3)\n" + BEGUN.format(1),
}
LAUNCHED = ("an exception", "killed", "exit", "other shapes")
LOOP = "while True: dist.all_reduce(torch.ones(1000))\n"


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


def alone(file: str) -> list[list[str]]:
    return [[sys.executable, file]] * 2


def run(folder: Path, name: str, launched: bool, number: int) -> str:
    """What has become of one case: 'ended in time', or what was wrong."""
    file = folder / f"{number}.py"
    after = f"{random.random() * 0.6:.3f}"
    file.write_text(START + CASES[name].replace("AFTER", after) + LOOP)
    port = str(random.randint(20000, 30000))
    if launched:
        start = ["-m", "rushlight", "launch", "--nproc-per-node=2", f"--master-port={port}"]
        commands = [[sys.executable, *start, str(file)]]
    else:
        commands = alone(str(file))
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    began = time.monotonic()
    started = [
        subprocess.Popen(
            command, env=environment(**variables, RANK=str(rank)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for rank, command in enumerate(commands)
    ]
    found = "ended in time"
    for process in started:
        try:
            status = process.wait(max(0.1, LIMIT - (time.monotonic() - began)))
            if status == 0:
                found = "ended as if all was well"
        except subprocess.TimeoutExpired:
            found = "HANGS"
    for process in started:
        process.kill()
        text = process.communicate()[0].decode()
        if found != "ended in time":
            print(f"--- {name}, {after}: {found}\n{text[-1500:]}", flush=True)
    end = time.monotonic() + 5
    while left(file) and time.monotonic() < end:
        time.sleep(0.05)
    return "LEAVES A PROCESS" if left(file) else found


def left(file: Path) -> bool:
    """Whether a process of this program still runs."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(file).encode() in command.read_bytes():
                return True
        except OSError:
            continue
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=4)
    arguments = parser.parse_args()
    cases = [(name, False) for name in CASES] + [(name, True) for name in LAUNCHED]
    jobs = [case for case in cases for _ in range(arguments.times)]
    had = set(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.at_once) as pool:
        results = list(pool.map(lambda job: run(Path(folder), *job[1], job[0]), enumerate(jobs)))
    counts: dict = collections.defaultdict(collections.Counter)
    for (name, launched), result in zip(jobs, results):
        counts[name + (", launched" if launched else "")][result] += 1
    for name, found in counts.items():
        print(f"{name:45} {dict(found)}")
    memory = [name for name in set(os.listdir("/dev/shm")) - had if "mpich" in name]
    print("names left in /dev/shm:", memory)
    return int(set(results) != {"ended in time"} or bool(memory))


if __name__ == "__main__":
    sys.exit(main())
