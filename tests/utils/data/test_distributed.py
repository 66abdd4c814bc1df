"""Data for several ranks: who gets which samples, and workers inside MPI processes."""

import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def shares(torch, dist, drop_last):
    sampler = torch.utils.data.distributed.DistributedSampler(range(11), drop_last=drop_last)
    found = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        found.append(list(sampler))
    return found


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("size", [2, 4])
def test_shares_are_torchs(oracle, size, drop_last):
    want = oracle(lambda torch: ranks(size, "torch")(shares, drop_last))
    assert ranks(size)(shares, drop_last) == want


class Squares:
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return float(i * i)


def loaded(torch, dist):
    """Workers are forked between collectives."""
    total = torch.zeros(1)
    for _ in range(2):
        sampler = torch.utils.data.distributed.DistributedSampler(Squares())
        for batch in torch.utils.data.DataLoader(Squares(), 4, sampler=sampler, num_workers=2):
            part = batch.sum().float().reshape(1)
            dist.all_reduce(part)
            total += part
    return total.item()


def test_workers_inside_ranks():
    assert ranks(2)(loaded) == [2.0 * sum(i * i for i in range(40))] * 2
