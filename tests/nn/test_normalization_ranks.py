"""SyncBatchNorm with several ranks: the numbers of one process that has the whole batch."""

import numpy as np
import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def train(torch, dist, in_parts, momentum, double):
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3, momentum=momentum), nn.ReLU())
    x = torch.randn(sum(range(1, size + 1)), 2, 5, 5)  # rank i has i + 1 samples
    if double:
        model, x = model.double(), x.double()
    if in_parts:
        model = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model))
        x = x.split(list(range(1, size + 1)))[rank]
    for _ in range(2):
        loss = (model(x) ** 2 * (size if in_parts else 1)).sum()
        loss.backward()
    found = [p.grad.double().flatten().tolist() for p in model.parameters()]
    found += [b.double().flatten().tolist() for b in model.buffers()]
    model.eval()
    return found + [model(torch.ones(1, 2, 5, 5, dtype=x.dtype)).double().flatten().tolist()]


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("size", [2, 4])
def test_parts_are_as_the_whole(size, double, momentum):
    whole, parts = (ranks(size)(train, in_parts, momentum, double) for in_parts in (False, True))
    for one, other in zip(whole, parts):
        for a, b in zip(one, other):
            tolerance = 1e-10 if double else 2e-4
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * 10)


def evaluated(torch, dist):
    """In evaluation and in a world of one nothing is sent."""
    norm = torch.nn.SyncBatchNorm(2, process_group=dist.new_group([0]))
    if dist.get_rank() == 0:
        norm(torch.ones(3, 2))
        norm.eval()
        return norm(torch.ones(1, 2)).tolist()
    return None


def test_alone_and_in_evaluation():
    assert np.shape(ranks(2)(evaluated)[0]) == (1, 2)
