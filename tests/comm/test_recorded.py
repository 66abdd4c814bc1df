"""Operations between ranks are events of the profiler, with torch's names and shapes."""

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def profiled(torch, dist):
    rank = dist.get_rank()
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(2, dtype=torch.complex64))
        dist.broadcast(torch.ones(2, 2), 0)
        dist.reduce(torch.ones(5), 0)
        dist.all_gather([torch.ones(4), torch.ones(4)], torch.ones(4))
        dist.all_reduce_coalesced([torch.ones(3), torch.ones(1, 2)])
        dist.all_reduce(torch.ones(6), async_op=True).wait()
        if rank == 0:
            dist.send(torch.ones(7), 1)
            dist.send(torch.ones(7), 1)
        else:
            dist.recv(torch.ones(7), 0)
            dist.recv(torch.ones(7))
    events = [e for e in prof.function_events if e.name.startswith("gloo:")]
    return sorted([e.name, e.is_async, e.count, list(map(list, e.input_shapes))] for e in events)


def test_events_are_torchs(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(profiled))
    assert ranks(2)(profiled) == want
