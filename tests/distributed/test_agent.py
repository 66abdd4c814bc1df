"""`rushlight launch`: torchrun's way to start programs."""

import glob
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.ranks import ROOT, free_port, needs_mpi

pytestmark = needs_mpi
VARIABLES = {
    **{k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_PORT")},
    "PYTHONPATH": str(ROOT),
}
PROGRAM = r"""
import os, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
local = os.environ["LOCAL_RANK"]
sys.stdout.write(f"{local} {dist.get_rank()} {dist.get_world_size()} {x.item()} {sys.argv[1:]}\n")
"""


def command(*arguments, start=("-m", "rushlight", "launch")):
    return [sys.executable, *start, *map(str, arguments)]


def run(*arguments, seconds=40, **more):
    return subprocess.run(command(*arguments, **more), env=VARIABLES, capture_output=True, text=True, timeout=seconds)


@pytest.fixture
def script(tmp_path):
    def write(text):
        (tmp_path / "program.py").write_text(text)
        return tmp_path / "program.py"

    return write


RUN = ("-m", "rushlight", "run", "-m")


@pytest.mark.parametrize(
    "start",
    [
        ("-m", "rushlight", "launch"),
        ("-m", "rushlight.distributed.run"),
        (*RUN, "torch.distributed.run"),
        (*RUN, "torch.distributed.launch", "--use_env"),
    ],
)
def test_on_one_machine(script, start):
    done = run("--standalone", "--nproc-per-node", 3, script(PROGRAM), "--lr", "0.1", start=start)
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines == [f"{i} {i} 3 3.0 ['--lr', '0.1']" for i in range(3)]


def test_the_older_launcher_gives_ranks_as_arguments(script):
    start = (*RUN, "torch.distributed.launch")
    done = run("--nproc_per_node", 2, "--standalone", script(PROGRAM), "--lr", "0.1", start=start)
    lines = sorted(done.stdout.splitlines())
    assert lines == [f"{i} {i} 2 2.0 ['--local-rank={i}', '--lr', '0.1']" for i in range(2)]


def test_a_module_with_its_name_in_a_package(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "program.py").write_text(PROGRAM)
    start = (*RUN, "torch.distributed.run")
    arguments = ("--standalone", "--nproc-per-node", 2, "-m", "pkg.program")
    done = subprocess.run(
        command(*arguments, start=start), env=VARIABLES, capture_output=True, text=True,
        timeout=40, cwd=tmp_path,
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == ["0 0 2 2.0 []", "1 1 2 2.0 []"], done.stderr


def test_on_two_machines(script):
    port, file = free_port(), script(PROGRAM)
    both = [
        subprocess.Popen(
            command("--nnodes=2", f"--node-rank={i}", "--nproc-per-node=2",
                    f"--rdzv-endpoint=127.0.0.1:{port}", file),
            env=VARIABLES, stdout=subprocess.PIPE, text=True,
        )
        for i in range(2)
    ]  # fmt: skip
    outputs = [one.communicate(timeout=40)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    for node, text in enumerate(outputs):
        assert sorted(text.splitlines()) == [f"{i} {2 * node + i} 4 4.0 []" for i in range(2)]


def alive(marker):
    """The processes whose command has this text."""
    found = []
    for file in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if str(marker).encode() in Path(file).read_bytes():
                found.append(file)
        except OSError:
            continue
    return found


def test_an_exception_ends_all_within_five_seconds(script):
    file = script(PROGRAM + "\nif dist.get_rank(): raise ValueError('on purpose')\ndist.barrier()")
    began = time.monotonic()
    done = run("--standalone", "--nproc-per-node=2", file)
    assert done.returncode == 1
    assert time.monotonic() - began < 15  # starting is slow on a busy machine
    assert done.stderr.index("ValueError: on purpose") < done.stderr.index("rank 1 failed")
    assert "DistBackendError" not in done.stderr
    assert alive(file) == []


def test_restarts_begin_at_the_last_checkpoint(script, tmp_path):
    file = script(
        PROGRAM
        + """
path = sys.argv[1]
state = torch.load(path) if os.path.exists(path) else {"step": 0}
for step in range(state["step"], 4):
    dist.all_reduce(x)
    if dist.get_rank() == 0: torch.save({"step": step + 1}, path)
    dist.barrier()
    if step == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": os.kill(os.getpid(), 9)
sys.stdout.write(f"from {state['step']}\\n")
"""
    )
    done = run("--standalone", "--nproc-per-node=2", "--max-restarts=2", file, tmp_path / "state.pt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("from 2") == 2
    assert "signal SIGKILL" in done.stderr


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_everything(script, sent):
    file = script(PROGRAM + "\nsys.stdout.write('on\\n'); sys.stdout.flush()\nwhile True: dist.all_reduce(x)")
    started = subprocess.Popen(
        command("--standalone", "--nproc-per-node=2", file),
        env=VARIABLES,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    while started.stdout.readline() != "on\n":
        pass
    started.send_signal(sent)
    started.wait(10)
    end = time.monotonic() + 5
    while alive(file) and time.monotonic() < end:
        time.sleep(0.05)
    assert alive(file) == []


def test_outputs_in_files(script, tmp_path):
    done = run("--standalone", "--nproc-per-node=2", f"--log-dir={tmp_path}/log", script(PROGRAM))
    assert done.returncode == 0
    assert (tmp_path / "log/attempt_0/1/output.log").read_text().endswith("1 1 2 2.0 []\n")
