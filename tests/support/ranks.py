"""Processes that are the ranks of a world, for tests of torch.distributed: with rushlight on MPI, or with torch on
gloo. With MPIEXEC="mpiexec --oversubscribe" in the environment mpiexec starts them: an MPI that is not made from MPICH,
as Open MPI, needs it.

`ranks(2)(function, *args)` runs `function(torch, dist, *args)` on each rank and returns what each has returned. The
processes are kept for the next test; after a failure they are started anew."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import random
import socket
import subprocess
import sys
import traceback
from importlib.util import find_spec
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = {"rushlight": 20, "torch": 120}  # torch takes long to load what DDP needs
TORCHS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
needs_mpi = pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed: pip install mpi4py mpich")


def free_port():
    """A port that no server has, below those that the system gives to connections (from 32768 on): no process takes it
    before the world starts."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


def environment(rank, size, port, **more):
    """The variables that torchrun sets, for a program that finds this checkout."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        **more,
    }


class Failed(Exception):
    """A rank has raised an exception; its traceback is the text."""


class Ranks:
    """The processes of a world."""

    def __init__(self, library, size):
        port, self.processes, self.pipes = free_port(), [], []
        self.seconds = SECONDS[library]
        if library == "rushlight" and "MPIEXEC" in os.environ:
            self.start_by_mpiexec(size)
            return
        for rank in range(size):
            ours, theirs = socket.socketpair()
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.support.ranks", library, str(theirs.fileno())],
                    env=environment(rank, size, port),
                    pass_fds=[theirs.fileno()],
                    cwd=ROOT,
                )
            )
            theirs.close()
            self.pipes.append(Connection(ours.detach()))

    def start_by_mpiexec(self, size):
        """The ranks connect to a socket, since mpiexec closes inherited files."""
        variables = {k: v for k, v in environment(0, 1, 0).items() if k not in TORCHS}
        with Listener(family="AF_UNIX") as listener:
            command = [*os.environ["MPIEXEC"].split(), "-n", str(size), sys.executable]
            command += ["-m", "tests.support.ranks", "rushlight", listener.address]
            self.processes = [subprocess.Popen(command, env=variables, cwd=ROOT)]
            listener._listener._socket.settimeout(self.seconds)  # a rank that fails does not connect
            pipes = [listener.accept() for _ in range(size)]
        self.pipes = [pipe for _, pipe in sorted((pipe.recv(), pipe) for pipe in pipes)]

    def __call__(self, function, *args):
        for pipe in self.pipes:
            pipe.send((function.__module__, function.__qualname__, args))
        answers = []
        for pipe in self.pipes:
            if not pipe.poll(self.seconds):
                self.end()
                raise TimeoutError(f"{function.__name__}: no answer within {self.seconds} s")
            answers.append(pipe.recv())
        for fine, answer in answers:
            if not fine:
                self.end()
                raise Failed(answer)
        return [answer for _, answer in answers]

    def end(self):
        for key in [key for key, pool in _pools.items() if pool is self]:
            del _pools[key]
        for process in self.processes:
            process.kill()
            process.wait()


_pools = {}


@atexit.register
def end_all():
    for pool in list(_pools.values()):
        pool.end()


def ranks(size, library="rushlight"):
    """The pool of `size` ranks; the four that were used last are kept."""
    pool = _pools.pop((library, size), None) or Ranks(library, size)
    while len(_pools) > 3:
        _pools.pop(next(iter(_pools))).end()
    _pools[library, size] = pool
    return pool


def serve(library, descriptor):
    """A rank: run what comes until the pipe is closed."""
    torch = importlib.import_module(library)
    dist = importlib.import_module(f"{library}.distributed")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if descriptor.isdigit():
        pipe = Connection(int(descriptor))
    else:
        pipe = Client(descriptor)
        pipe.send(dist.get_rank())
    with contextlib.suppress(EOFError):
        while True:
            module, name, args = pipe.recv()
            try:
                function = importlib.import_module(module)
                for part in name.split("."):
                    function = getattr(function, part)
                pipe.send((True, function(torch, dist, *args)))
            except BaseException:
                pipe.send((False, f"rank {dist.get_rank()}: {traceback.format_exc()}"))


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
