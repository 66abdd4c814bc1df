"""Gradients through collectives: those of torch on gloo."""

import numpy as np
import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def gradients(torch, dist):
    if torch.__name__ == "torch":
        import torch.distributed.nn
    f, rank, n = dist.nn.functional, dist.get_rank(), dist.get_world_size()
    weight = torch.arange(1.0, 4.0) * (rank + 1)
    found = {}

    def run(name, function, *shape):
        x = (torch.arange(float(np.prod(shape))).reshape(shape) + rank).requires_grad_()
        out = function(x)
        outs = out if isinstance(out, (tuple, list)) else [out]
        sum((o * weight * (i + 1)).sum() for i, o in enumerate(outs)).backward()
        found[name] = [[o.tolist() for o in outs], x.grad.tolist()]

    run("all_reduce", f.all_reduce, 3)
    run("broadcast", lambda x: f.broadcast(x, 1), 3)
    run("reduce", lambda x: f.reduce(x, 0) if rank == 0 else f.reduce(x, 0) * 0, 3)
    run("all_gather", f.all_gather, 3)
    run("gather", lambda x: f.gather(x, 1), 3)
    run("scatter", lambda x: f.scatter(list(x), 1), n, 3)
    run("reduce_scatter", lambda x: f.reduce_scatter(torch.zeros(3), list(x)), n, 3)
    run("all_to_all", lambda x: f.all_to_all([torch.zeros(3) for _ in x], list(x)), n, 3)
    run("all_to_all_single", lambda x: f.all_to_all_single(torch.zeros(n, 3), x), n, 3)
    return found


@pytest.mark.parametrize("size", [2, 4])
def test_gradients_are_torchs(oracle, size):
    want = oracle(lambda torch: ranks(size, "torch")(gradients))
    assert ranks(size)(gradients) == want
