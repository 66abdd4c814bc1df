"""A library that looks at MPI.COMM_WORLD under `rushlight run` does not initialize MPI."""

import subprocess
import sys

from tests.support.paths import ROOT
from tests.support.ranks import environment, free_port, needs_mpi

PROGRAM = """
from mpi4py import MPI
import torch, torch.distributed as dist
seen = [MPI.COMM_WORLD.Get_size(), MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.size]
dist.init_process_group("gloo")
dist.all_reduce(x := torch.ones(2))
import mpi4py.MPI
print(seen, x.tolist(), mpi4py.MPI.COMM_WORLD.size, MPI.SUM == mpi4py.MPI.SUM, flush=True)
"""
ALONE = """
from mpi4py import MPI
import numpy as np
x = np.ones(2)
MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, x, MPI.SUM)
print(x.tolist(), MPI.COMM_WORLD.Get_size(), isinstance(MPI.COMM_SELF, MPI.Comm))
"""


def run(tmp_path, text, **variables):
    program = tmp_path / "program.py"
    program.write_text(text)
    command = [sys.executable, "-m", "rushlight", "run", str(program)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **variables)


@needs_mpi
def test_a_world_after_a_look_at_mpi(tmp_path):
    port = free_port()
    started = [run(tmp_path, PROGRAM, env=environment(rank, 2, port)) for rank in range(2)]
    for one in started:
        assert one.communicate(timeout=120)[0] == "[1, 0, 1] [2.0, 2.0] 2 True\n"


@needs_mpi
def test_a_program_that_uses_mpi_itself(tmp_path):
    assert run(tmp_path, ALONE).communicate(timeout=120)[0] == "[1.0, 1.0] 1 True\n"
