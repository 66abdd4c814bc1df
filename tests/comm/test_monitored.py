"""monitored_barrier names the ranks that do not come, as torch's does."""

from datetime import timedelta

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def message(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return None


def barriers(torch, dist, wait_all_ranks):
    rank = dist.get_rank()
    group = dist.new_group()
    dist.monitored_barrier(group, timedelta(seconds=5))
    dist.monitored_barrier(dist.new_group([0, 2]), 5.0)
    if rank in (1, 2):
        told = None
    else:
        told = message(lambda: dist.monitored_barrier(group, timedelta(seconds=0.5), wait_all_ranks))
    dist.barrier()
    return told


def test_missing_ranks_are_named():
    for wait_all_ranks, names in ((False, "Rank 1"), (True, "Ranks 1, 2")):
        zero, one, two, three = ranks(4)(barriers, wait_all_ranks)
        assert f"{names} failed to pass monitoredBarrier in 500 ms" in zero
        assert one is two is None
        assert "Rank 3 successfully reached monitoredBarrier, but received errors" in three


def without_time(torch, dist):
    group = dist.new_group([0, 1])
    return message(lambda: group.monitored_barrier(timedelta(0))) if dist.get_rank() == 0 else None


def test_rank_0_without_time():
    told, _ = ranks(2)(without_time)
    assert "Rank 0 timed out in monitoredBarrier after 0 ms" in told
