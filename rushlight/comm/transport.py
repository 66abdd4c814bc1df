"""How arrays go between the ranks of a group: by MPI's non-blocking calls; a group of one rank only copies. Each method
begins one operation on contiguous arrays and returns its request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# MPICH allocates memory of the array's size for a sum: 64 MB took 48 ms in one part and 17 ms in parts of 4 MB
# (benchmarks/distributed.py, two ranks).
PART_BYTES = 4 << 20


class MpiTransport:
    """The calls of an MPI communicator."""

    def __init__(self, MPI: Any, comm: Any):
        self.MPI, self.comm = MPI, comm

    def all_reduce(self, x: np.ndarray, op: str) -> Any:
        return self.comm.Iallreduce(self.MPI.IN_PLACE, x, getattr(self.MPI, op))

    def all_reduce_parts(self, x: np.ndarray, op: str) -> list[Any]:
        """`all_reduce` of parts of PART_BYTES, all begun at once."""
        flat, count = x.reshape(-1), max(1, PART_BYTES // x.itemsize)
        return [self.all_reduce(flat[at : at + count], op) for at in range(0, max(1, flat.size), count)]

    def broadcast(self, x: np.ndarray, root: int) -> Any:
        return self.comm.Ibcast(x, root)

    def reduce(self, x: np.ndarray, op: str, root: int) -> Any:
        op = getattr(self.MPI, op)
        if self.comm.rank == root:
            return self.comm.Ireduce(self.MPI.IN_PLACE, x, op, root)
        return self.comm.Ireduce(x, None, op, root)

    def all_gather(self, out: np.ndarray, x: np.ndarray) -> Any:
        return self.comm.Iallgather(x, out)

    def gather(self, out: np.ndarray | None, x: np.ndarray, root: int) -> Any:
        return self.comm.Igather(x, out, root)

    def scatter(self, out: np.ndarray, x: np.ndarray | None, root: int) -> Any:
        return self.comm.Iscatter(x, out, root)

    def reduce_scatter(self, out: np.ndarray, x: np.ndarray, op: str) -> Any:
        return self.comm.Ireduce_scatter_block(x, out, getattr(self.MPI, op))

    def all_to_all(self, out: np.ndarray, x: np.ndarray, out_counts: Sequence[int], counts: Sequence[int]) -> Any:
        return self.comm.Ialltoallv([x, counts], [out, out_counts])

    def barrier(self) -> Any:
        return self.comm.Ibarrier()

    def send(self, x: np.ndarray, to: int, tag: int) -> Any:
        return self.comm.Isend(x, to, tag)

    def receive(self, x: np.ndarray, source: int | None, tag: int) -> Any:
        source = self.MPI.ANY_SOURCE if source is None else source
        return self.comm.Irecv(x, source, tag)


class Done:
    """The request of a completed operation."""

    def Test(self, status: Any = None) -> bool:
        return True


class OneRank:
    """The operations of a group of one rank: outputs are copies of inputs."""

    def all_reduce(self, x: np.ndarray, op: str) -> Done:
        return Done()

    def all_reduce_parts(self, x: np.ndarray, op: str) -> list[Done]:
        return []

    def broadcast(self, x: np.ndarray, root: int) -> Done:
        return Done()

    def reduce(self, x: np.ndarray, op: str, root: int) -> Done:
        return Done()

    def all_gather(self, out: np.ndarray, x: np.ndarray) -> Done:
        out.reshape(-1)[...] = x.reshape(-1)
        return Done()

    def gather(self, out: Any, x: Any, root: int) -> Done:
        return self.all_gather(out, x)

    def scatter(self, out: Any, x: Any, root: int) -> Done:
        return self.all_gather(out, x)

    def reduce_scatter(self, out: np.ndarray, x: np.ndarray, op: str) -> Done:
        return self.all_gather(out, x)

    def all_to_all(self, out: np.ndarray, x: np.ndarray, out_counts: Sequence[int], counts: Sequence[int]) -> Done:
        return self.all_gather(out, x)

    def barrier(self) -> Done:
        return Done()
