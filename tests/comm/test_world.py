"""How worlds of several processes begin and end: each way to start, and each way that a rank can fail. The other ranks
end, in time, with an error that names the rank; nothing stays behind."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.ranks import ROOT, environment, free_port, needs_mpi

pytestmark = needs_mpi
START = """
import os, sys, time, signal
from datetime import timedelta
import rushlight as torch
import rushlight.distributed as dist
"""
SUM = """
x = torch.ones(2) * (dist.get_rank() + 1)
dist.all_reduce(x)
sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()} {x.tolist()}\\n")
sys.stdout.flush()
"""


def program(folder, *parts):
    file = folder / "program.py"
    file.write_text(START + "".join(parts))
    return str(file)


def start(file, size, arguments=(), **variables):
    port = free_port()
    return [
        subprocess.Popen(
            [sys.executable, file, *map(str, arguments)],
            env=environment(rank, size, port, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(size)
    ]


def finish(processes, seconds=30):
    """[(exit status, text)], after so many seconds at most."""
    end = time.monotonic() + seconds
    try:
        return [(process.wait(max(0.1, end - time.monotonic())), process.stdout.read()) for process in processes]
    finally:
        for process in processes:
            process.kill()


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    """No server runs on, and no name of shared memory is left, once the ranks have ended."""
    had = named_memory()
    yield
    end = time.monotonic() + 5
    while (servers() or named_memory() - had) and time.monotonic() < end:
        time.sleep(0.05)
    assert servers() == []
    assert named_memory() - had == set()


def named_memory():
    """The shared memory of MPICH and of UCX, which MPICH uses, that has a name."""
    return {name for name in glob.glob("/dev/shm/*") if "mpich" in name or "ucx" in name}


def servers():
    """The servers whose ranks are no more: orphans, whose parent is process 1."""
    found = []
    for file in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            command = Path(file).read_bytes().split(b"\0")
            parent = re.search(r"PPid:\s+(\d+)", Path(file).with_name("status").read_text())
        except OSError:
            continue
        here = str(ROOT / "rushlight" / "comm" / "server.py").encode()
        if here in command and parent.group(1) == "1":
            found.append(file)
    return found


@pytest.mark.parametrize("size", [2, 4])
def test_plain_processes_with_torchs_variables(tmp_path, size):
    file = program(tmp_path, "dist.init_process_group()", SUM)
    total = float(size * (size + 1) // 2)
    for rank, (status, text) in enumerate(finish(start(file, size))):
        assert (status, text) == (0, f"rank {rank} of {size} [{total}, {total}]\n")


@pytest.mark.parametrize("how", ["tcp", "file", "store"])
def test_other_ways_to_meet(tmp_path, how):
    method = {"tcp": f"'tcp://127.0.0.1:{free_port()}'", "file": f"'file://{tmp_path}/meet'", "store": "None"}[how]
    store = f"dist.FileStore('{tmp_path}/store', 2)" if how == "store" else "None"
    file = program(
        tmp_path,
        f"dist.init_process_group(init_method={method}, store={store}, rank=int(sys.argv[1]), world_size=2)",
        SUM,
    )
    both = [
        subprocess.Popen(
            [sys.executable, file, str(rank)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    assert finish(both) == [(0, "rank 0 of 2 [3.0, 3.0]\n"), (0, "rank 1 of 2 [3.0, 3.0]\n")]


def mpiexec():
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


needs_mpiexec = pytest.mark.skipif(mpiexec() is None, reason="there is no mpiexec")


@needs_mpiexec
def test_under_mpiexec(tmp_path):
    file = program(tmp_path, "dist.init_process_group()", SUM)
    done = subprocess.run(
        [mpiexec(), "-n", "2", sys.executable, file],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {r} of 2 [3.0, 3.0]" for r in range(2)]


@needs_mpiexec
def test_an_exception_under_mpiexec_ends_all(tmp_path):
    file = program(
        tmp_path, "dist.init_process_group()\nif dist.get_rank(): raise ValueError('on purpose')\n", "dist.barrier()"
    )
    done = subprocess.run(
        [mpiexec(), "-n", "2", sys.executable, file],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode
    assert "ValueError: on purpose" in done.stderr


def test_spawn(tmp_path):
    file = tmp_path / "spawned.py"
    file.write_text(
        START
        + "import rushlight.multiprocessing as mp\n"
        + "def main(rank, port):\n"
        + "    os.environ.update(MASTER_ADDR='localhost', MASTER_PORT=str(port))\n"
        + "    dist.init_process_group('gloo', rank=rank, world_size=2)\n"
        + SUM.replace("\n", "\n    ")
        + "\nif __name__ == '__main__': mp.spawn(main, (int(sys.argv[1]),), nprocs=2)\n"
    )
    variables = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run(
        [sys.executable, file, str(free_port())],
        env={**variables, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {r} of 2 [3.0, 3.0]" for r in range(2)]


def test_ranks_on_two_hosts(tmp_path):
    """As far as one machine can show it: MPI is told that ranks 0, 1 and 2, 3 share no memory."""
    file = program(
        tmp_path,
        "from rushlight.comm import world\n",
        "world.host_id = lambda: f\"host {int(os.environ['RANK']) // 2}\"\n",
        "dist.init_process_group()",
        SUM,
    )
    for rank, (status, text) in enumerate(finish(start(file, 4))):
        assert (status, text) == (0, f"rank {rank} of 4 [10.0, 10.0]\n")


def test_again_and_again(tmp_path):
    file = program(
        tmp_path,
        "for i in range(3):\n    dist.init_process_group()\n    dist.barrier()\n"
        "    dist.new_group([0, 1]).size()\n    dist.destroy_process_group()\n"
        "dist.init_process_group()",
        SUM,
    )
    assert [status for status, _ in finish(start(file, 2))] == [0, 0]


def test_ranks_divide_the_cores(tmp_path):
    file = program(tmp_path, "dist.init_process_group()\nfrom rushlight.base import threads\nprint(threads.cores())")
    cores = len(os.sched_getaffinity(0))
    for variables in ({"OMP_NUM_THREADS": ""}, {"OMP_NUM_THREADS": "3"}):
        want = variables["OMP_NUM_THREADS"] or str(max(1, cores // 2))
        assert finish(start(file, 2, **variables)) == [(0, f"{want}\n")] * 2


FAULTS = {
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "an exception": "raise ValueError('on purpose')",
    "exit": "sys.exit(0)",
}
ON_PURPOSE = "if dist.get_rank() == 1: {}\n"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("where", ["barrier()", "all_reduce(torch.ones(1 << 20))", "recv(torch.ones(1), 1)"])
def test_a_rank_that_is_gone(tmp_path, fault, where):
    file = program(
        tmp_path,
        "dist.init_process_group()\ndist.barrier()\n",
        ON_PURPOSE.format(FAULTS[fault]),
        f"if dist.get_rank() == 0: dist.{where}\n",
    )
    began = time.monotonic()
    (status, text), (other, its) = finish(start(file, 2))
    assert time.monotonic() - began < 10
    assert status == 1
    gone = "rank 1 has ended its program" if fault != "killed" else "rank 1 was lost"
    assert "[Rank 0]" in text
    assert gone in text or "rank 1 was lost" in text
    assert other == {"killed": -9, "an exception": 1, "exit": 0}[fault]
    assert ("ValueError: on purpose" in its) == (fault == "an exception")


def test_a_rank_that_is_killed_at_any_time(tmp_path):
    """Also while it starts."""
    file = program(
        tmp_path,
        "import threading, faulthandler\nfaulthandler.dump_traceback_later(15, exit=True)\n",
        "if int(os.environ['RANK']) == 1:\n",
        "    threading.Timer(float(sys.argv[1]), os.kill, (os.getpid(), 9)).start()\n",
        "dist.init_process_group(timeout=timedelta(seconds=8))\n",
        "for _ in range(10**9): dist.all_reduce(torch.ones(1000))\n",
    )
    for after in (0.0, 0.05, 0.1, 0.13, 0.16, 0.2, 0.3):
        (status, text), _ = finish(start(file, 2, [after]), 25)
        assert status, (after, text)
        assert "Timeout (" not in text


def test_a_rank_that_does_not_come(tmp_path):
    file = program(
        tmp_path,
        "if int(os.environ['RANK']) == 1: sys.exit()\n",
        "dist.init_process_group(timeout=timedelta(seconds=1))\n",
    )
    (status, text), *_ = finish(start(file, 3))
    assert status == 1
    assert "Timed out after 1 seconds waiting for clients" in text
    assert "have not come: 1" in text


def test_a_collective_that_one_rank_does_not_reach(tmp_path):
    file = program(
        tmp_path,
        "dist.init_process_group(timeout=timedelta(seconds=1))\n",
        "if dist.get_rank() == 1:\n    dist.all_reduce(torch.ones(1))\n    time.sleep(5)\n",
        "else:\n    dist.all_reduce(torch.ones(1))\n    dist.all_reduce(torch.ones(3))\n",
    )
    (status, text), _ = finish(start(file, 2, TORCH_DISTRIBUTED_DEBUG="DETAIL"))
    assert status == 1
    assert "Timed out after 1000ms; ranks [1] have not reached it" in text
    assert re.search(r"rank 1: last in all_reduce\(float32 \(1,\), SUM\).*program.py:\d+", text)
    assert re.search(r"rank 0: last in all_reduce\(float32 \(3,\), SUM\).*program.py:\d+", text)


def test_monitored_barrier(tmp_path):
    file = program(
        tmp_path,
        "dist.init_process_group()\ndist.barrier()\n",
        "if dist.get_rank() == 2: time.sleep(5)\n",
        "else: dist.monitored_barrier(timeout=timedelta(seconds=1))\n",
    )
    told = ["Rank 2 failed to pass monitoredBarrier", "Rank 1 successfully reached"]
    for (status, text), words in zip(finish(start(file, 3)), told):
        assert status == 1
        assert words in text


def test_a_call_of_mpi_that_does_not_return(tmp_path):
    """As Create_group, if a rank is lost while the others make a group."""
    file = program(
        tmp_path,
        "dist.init_process_group()\ndist.barrier()\n",
        "from rushlight.comm.groups import world_group\n",
        "if dist.get_rank() == 1: os.kill(os.getpid(), 9)\n",
        "world = world_group().world\n",
        "world.call(lambda: world.comm.Recv(bytearray(1), 1), [0, 1], timedelta(seconds=20))\n",
    )
    (status, text), *_ = finish(start(file, 3))
    assert status == 1
    assert "a group of [0, 1] was not made: rank 1 was lost" in text


def test_two_processes_of_one_rank(tmp_path):
    file = program(
        tmp_path,
        "dist.init_process_group(rank=min(int(os.environ['RANK']), 1), world_size=3,",
        " timeout=timedelta(seconds=2))\n",
    )
    texts = [text for status, text in finish(start(file, 3)) if status]
    assert len(texts) == 3
    assert sum("there are two processes of rank 1" in text for text in texts) == 1


def test_interrupt_ends_everything(tmp_path):
    file = program(
        tmp_path,
        "dist.init_process_group()\nprint('on', flush=True)\n",
        "while True: dist.all_reduce(torch.ones(1000))\n",
    )
    both = start(file, 2)
    for process in both:
        assert process.stdout.readline() == "on\n"
    for process in both:
        process.send_signal(signal.SIGINT)
    assert all(status for status, _ in finish(both, 10))


def test_a_port_that_is_taken(tmp_path):
    import socket

    file = program(tmp_path, "dist.init_process_group(timeout=timedelta(seconds=1))")
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, file], env=environment(0, 2, port), capture_output=True, text=True, timeout=20
        )
    assert "EADDRINUSE" in done.stderr
