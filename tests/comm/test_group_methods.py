"""Operations as methods of a group, beside torch's on gloo."""

import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def operations(torch, dist):
    group, rank = dist.group.WORLD, dist.get_rank()
    found = []

    def note(*tensors):
        found.append([t.tolist() for t in tensors])

    def mine(n=2):
        return torch.arange(float(n)) + 10 * rank

    x = mine()
    group.allreduce([x]).wait()
    note(x)
    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.MAX
    x = mine()
    group.allreduce([x], options).wait()
    note(x)
    x = mine()
    group.broadcast(x, root=1).wait()
    note(x)
    options = dist.ReduceOptions()
    options.rootRank = 1
    x = mine()
    group.reduce([x], options).wait()
    note(*([x] if rank == 1 else []))
    outs = [torch.zeros(2), torch.zeros(2)]
    group.allgather([outs], [mine()]).wait()
    note(*outs)
    out = torch.zeros(4)
    group._allgather_base(out, mine()).wait()
    note(out)
    options = dist.GatherOptions()
    outs = [torch.zeros(2), torch.zeros(2)]
    group.gather([outs] if rank == 0 else [], [mine()], options).wait()
    note(*outs)
    x = torch.zeros(2)
    group.scatter([x], [[mine(), mine() + 1]] if rank == 0 else [], dist.ScatterOptions()).wait()
    note(x)
    outs = [torch.zeros(2), torch.zeros(2)]
    group.alltoall(outs, [mine(), mine() + 1]).wait()
    note(*outs)
    out = torch.zeros(4)
    group.alltoall_base(out, mine(4), [], []).wait()
    note(out)
    if rank == 0:
        group.send([mine()], 1, 3).wait()
    else:
        x = torch.zeros(2)
        group.recv([x], 0, 3).wait()
        note(x)
    group.barrier().wait()
    answer = group.allreduce([mine()]).get_future().then(lambda f: [t * 3 for t in f.wait()])
    note(*answer.wait())
    return found


def test_methods_are_torchs(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(operations))
    assert ranks(2)(operations) == want


def any_source(torch, dist):
    if dist.get_rank() == 0:
        dist.send(torch.ones(2), 1)
        return None
    work = dist.irecv(torch.zeros(2))
    work.wait()
    return work._source_rank()


def test_the_rank_that_has_sent(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(any_source))
    assert ranks(2)(any_source) == want == [None, 0]


def described(torch, dist):
    config = dist.distributed_c10d._get_pg_config(dist.group.WORLD)
    found = [config["pg_desc"], config["pg_size"], config["ranks"]]
    return [*found, dist.Backend.default_device_backend_map, dist.is_backend_available("gloo")]


def test_what_describes_a_group(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(described))
    assert ranks(2)(described) == want


def test_names_of_backends():
    import rushlight.distributed as dist

    assert dist.Backend("GLOO") == "gloo"
    for name in (None, 3, ["gloo"]):
        with pytest.raises(ValueError, match="must be string-ish"):
            dist.Backend(name)
