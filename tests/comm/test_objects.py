"""Collectives of Python objects."""

import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def objects(torch, dist):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = {"rank": rank, "text": "x" * (rank + 1) * 10}
    every = [None] * size
    dist.all_gather_object(every, mine)
    gathered = [None] * size if rank == 1 else None
    dist.gather_object(mine, gathered, dst=1)
    told = [1, "two", [3]] if rank == 0 else [None] * 3
    dist.broadcast_object_list(told, src=0)
    got = [None]
    dist.scatter_object_list(got, [f"for {i}" for i in range(size)] if rank == 1 else None, src=1)
    passed = [None, None]
    if rank == 0:
        dist.send_object_list(["a", {"b": 2}], dst=1)
    elif rank == 1:
        dist.recv_object_list(passed, src=0)
    return [every, gathered, told, got, passed]


@pytest.mark.parametrize("size", [2, 4])
def test_objects(oracle, size):
    want = oracle(lambda torch: ranks(size, "torch")(objects))
    assert ranks(size)(objects) == want
