"""Collectives of several tensors at once, beside torch's on gloo."""

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def reduced(torch, dist):
    rank, found = dist.get_rank(), []
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
        tensors = [torch.full((2,), rank + 2.0), torch.full((1, 3), rank + 3.0)]
        dist.all_reduce_coalesced(tensors, op)
        found.append([t.tolist() for t in tensors])
    tensors = [torch.full((2,), complex(rank, 1.0)), torch.ones(2)]
    work = dist.all_reduce_coalesced(tensors, async_op=True)
    work.wait()
    found.append(torch.view_as_real(tensors[0]).tolist())
    try:
        dist.all_reduce_coalesced(tensors, dist.ReduceOp.MAX)
    except ValueError as error:
        found.append(str(error)[:27])
    try:
        dist.all_reduce_coalesced([torch.ones(1), torch.ones(1, dtype=torch.int64)])
    except ValueError as error:
        found.append(str(error)[:45])
    return found


def gathered(torch, dist):
    rank, size = dist.get_rank(), dist.get_world_size()
    inputs = [torch.full((2, 2), float(rank)), torch.zeros(0), torch.full((3,), rank + 5.0)]
    lists = [[torch.empty_like(t) for t in inputs] for _ in range(size)]
    dist.all_gather_coalesced(lists, inputs)
    return [[t.tolist() for t in one] for one in lists]


def broadcast(torch, dist):
    tensors = [torch.full((2,), float(dist.get_rank())), torch.full((3,), dist.get_rank())]
    dist._broadcast_coalesced(dist.group.WORLD, tensors, 1024, 1)
    return [t.tolist() for t in tensors]


def test_coalesced_collectives_are_torchs(oracle):
    for function in (reduced, gathered, broadcast):
        want = oracle(lambda torch, function=function: ranks(2, "torch")(function))
        assert ranks(2)(function) == want


def managed(torch, dist):
    x, y = torch.ones(2), torch.ones(2)
    with dist._coalescing_manager(async_ops=True) as manager:
        manager.append(dist.all_reduce(x, async_op=True))
        dist.all_reduce(y)
    manager.wait()
    return [x.tolist(), y.tolist(), dist.supports_complex(dist.ReduceOp.MIN)]


def test_the_manager_waits():
    assert ranks(2)(managed) == [[[2.0, 2.0], [2.0, 2.0], False]] * 2
