"""Groups of ranks: who is in them, and what they are called."""

import pytest

import rushlight.distributed as dist
from tests.support.ranks import needs_mpi, ranks


def membership(torch, dist):
    rank, found = dist.get_rank(), []
    some = dist.new_group([2, 0])
    found.append([dist.get_rank(some), dist.get_world_size(some)])
    if rank in (0, 2):
        found.append(dist.get_process_group_ranks(some))
        found.append([dist.get_global_rank(some, 1), dist.get_group_rank(some, 2)])
        x = torch.ones(1) * rank
        dist.broadcast(x, 2, group=some)
        found.append(x.item())
    own, every = dist.new_subgroups(2)
    x = torch.ones(1) * rank
    dist.all_reduce(x, group=own)
    found.append([x.item(), len(every)])
    own, _ = dist.new_subgroups_by_enumeration([[0, 3], [1, 2]])
    x = torch.ones(1) * rank
    dist.all_reduce(x, group=own)
    found.append(x.item())
    dist.all_reduce(x)
    return found


@needs_mpi
def test_groups_are_torchs(oracle):
    want = oracle(lambda torch: ranks(4, "torch")(membership))
    assert ranks(4)(membership) == want


def subgroups_of(torch, dist):
    """Subgroups of a group that other ranks do not make, then groups of all ranks."""
    rank, found = dist.get_rank(), []
    some = dist.new_group([0, 1, 3], use_local_synchronization=True)
    if rank != 2:
        for _ in range(2):
            own, every = dist.new_subgroups(group_size=1, group=some)
            found.append([dist.get_process_group_ranks(own), len(every)])
    pair = dist.new_group([rank // 2 * 2, rank // 2 * 2 + 1], use_local_synchronization=True)
    own, every = dist.new_subgroups(group_size=2, group=pair)
    x = torch.ones(1) * rank
    dist.all_reduce(x, group=own)
    found.append([x.item(), len(every)])
    whole = dist.new_group()
    dist.all_reduce(x, group=whole)
    return [*found, x.item()]


@needs_mpi
def test_subgroups_of_a_group():
    alone = [[[0], 3], [[0], 3]], [[[1], 3], [[1], 3]], [], [[[3], 3], [[3], 3]]
    sums = [[1.0, 1]], [[1.0, 1]], [[5.0, 1]], [[5.0, 1]]
    assert ranks(4)(subgroups_of) == [a + b + [12.0] for a, b in zip(alone, sums)]


def interleaved(torch, dist):
    """Two groups of the same ranks do not mix their operations."""
    one, two = dist.new_group(), dist.new_group()
    x, y = torch.ones(1000), torch.ones(1000) * 2
    works = [dist.all_reduce(x, group=one, async_op=True), dist.all_reduce(y, group=two, async_op=True)]
    for work in reversed(works):
        work.wait()
    dist.destroy_process_group(one)
    try:
        dist.all_reduce(x, group=one)
    except ValueError as error:
        return [x[0].item(), y[0].item(), "is not initialized" in str(error)]


@needs_mpi
def test_groups_do_not_mix():
    assert ranks(2)(interleaved) == [[2.0, 4.0, True]] * 2


def many(torch, dist):
    """More operations than anybody waits for."""
    works = [dist.all_reduce(torch.ones(3), async_op=True) for _ in range(300)]
    future = works[-1].get_future()
    seen = []
    future.add_done_callback(lambda f: seen.append(f.value()[0][0].item()))
    works[-1].wait()
    return [all(work.is_completed() for work in works), seen, works[0].result()[0].tolist()]


@needs_mpi
def test_many_at_once():
    assert ranks(2)(many) == [[True, [2.0], [2.0, 2.0, 2.0]]] * 2


@pytest.fixture
def world():
    dist.init_process_group(rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("world")
def test_wrong_groups():
    for ranks_ in ([0, 0], [1]):
        with pytest.raises(ValueError, match="within the world_size"):
            dist.new_group(ranks_)
    with pytest.raises(ValueError, match="must not exceed the world size"):
        dist.new_subgroups(2)
    with pytest.raises(ValueError, match="more than one subgroup"):
        dist.new_subgroups_by_enumeration([[0], [0]])
    with pytest.raises(ValueError, match="is not part of group"):
        dist.get_global_rank(None, 3)


def test_backends():
    with pytest.raises(RuntimeError, match="NCCL"):
        dist.init_process_group("nccl", rank=0, world_size=1)
    with pytest.raises(ValueError, match="Unknown backend"):
        dist.init_process_group("pigeon", rank=0, world_size=1)
    for name in ("mpi", "gloo", "cpu:gloo,cuda:nccl"):
        dist.init_process_group(name, rank=0, world_size=1)
        assert dist.get_backend() == ("mpi" if name == "mpi" else "gloo")
        dist.destroy_process_group()
