"""DistributedDataParallel: the losses and gradients of torch's on gloo."""

import numpy as np
import pytest

from tests.support.ranks import Failed, needs_mpi, ranks

pytestmark = needs_mpi
sizes = pytest.mark.parametrize("size", [2, 4])


def network(torch):
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(144, 300),
        nn.ReLU(),
        nn.Linear(300, 10),
    )


def batch(torch, rank, step=0, n=6):
    generator = torch.Generator().manual_seed(100 * step + rank)
    x = torch.randn(n, 1, 8, 8, generator=generator)
    return x, torch.randint(0, 10, (n,), generator=generator)


def summary(model):
    """Sums of the parameters and buffers, and of their squares."""
    return [[t.double().sum().item(), (t.double() ** 2).sum().item()] for t in model.state_dict().values()]


def train(torch, dist, settings, steps=4):
    ddp = torch.nn.parallel.DistributedDataParallel(network(torch), **settings)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        x, y = batch(torch, dist.get_rank(), step)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(ddp(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, summary(ddp)]


SETTINGS = {
    "as torch's": {},
    "small buckets": {"bucket_cap_mb": 0.01},
    "views": {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.01},
    "unused looked for": {"find_unused_parameters": True},
    "static": {"static_graph": True},
    "own buffers": {"broadcast_buffers": False},
}


@sizes
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_training_is_torchs(oracle, size, settings):
    want = oracle(lambda torch: ranks(size, "torch")(train, settings))
    got = ranks(size)(train, settings)
    for mine, theirs in zip(got, want):
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-4)
        np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-3, atol=1e-5)


def gradients(torch, dist):
    """Of DDP, and of the one process that has the whole batch."""
    size = dist.get_world_size()
    model = torch.nn.Sequential(torch.nn.Linear(64, 20), torch.nn.Tanh(), torch.nn.Linear(20, 10))
    torch.manual_seed(dist.get_rank())  # the parameters of rank 0 count
    for p in model.parameters():
        torch.nn.init.normal_(p)
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
    alone = torch.nn.Sequential(torch.nn.Linear(64, 20), torch.nn.Tanh(), torch.nn.Linear(20, 10))
    alone.load_state_dict(model.state_dict())
    batches = [batch(torch, rank) for rank in range(size)]
    loss = torch.nn.functional.cross_entropy
    x, y = batches[dist.get_rank()]
    loss(ddp(x.flatten(1)), y).backward()
    x, y = (torch.cat(parts) for parts in zip(*batches))
    loss(alone(x.flatten(1)), y).backward()
    return [
        (p.grad - q.grad).abs().max().item() / q.grad.abs().max().item()
        for p, q in zip(model.parameters(), alone.parameters())
    ]


@sizes
def test_gradients_are_those_of_the_whole_batch(size):
    assert np.max(ranks(size)(gradients)) < 1e-5


def accumulated(torch, dist, as_views):
    model = torch.nn.Linear(3, 2)
    torch.nn.init.ones_(model.weight)
    ddp = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=as_views)
    x = torch.ones(1, 3) * (dist.get_rank() + 1)
    with ddp.no_sync():
        ddp(x).sum().backward()
    alone = model.weight.grad[0, 0].item()
    ddp(x).sum().backward()
    both = model.weight.grad[0, 0].item()
    ddp(x).sum().backward()
    return [alone, both, model.weight.grad[0, 0].item()]


@pytest.mark.parametrize("as_views", [False, True])
def test_no_sync(as_views):
    assert ranks(2)(accumulated, as_views) == [[1.0, 3.0, 4.5], [2.0, 3.0, 4.5]]


class Branches:
    """A module of which each rank uses another branch."""

    def __new__(cls, torch):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.branches = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3))

            def forward(self, x, which):
                return self.branches[which](x)

        return Module()


def branches(torch, dist, looked_for):
    module = Branches(torch)
    ddp = torch.nn.parallel.DistributedDataParallel(module, find_unused_parameters=looked_for)
    for _ in range(2):
        ddp(torch.ones(1, 2), dist.get_rank()).sum().backward()
    return [None if b.bias.grad is None else b.bias.grad.tolist() for b in module.branches]


def test_unused_parameters(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(branches, True))
    assert ranks(2)(branches, True) == want
    assert want[0] == [[1.0, 1.0], [1.0, 1.0], None]


def test_parameters_without_gradient_are_named():
    with pytest.raises(Failed, match="Expected to have finished reduction.*\n.*branches.2.weight"):
        ranks(2)(branches, False)


def joined(torch, dist, divide):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    with ddp.join(divide_by_initial_world_size=divide):
        for _ in range(2 + 2 * dist.get_rank()):
            optimizer.zero_grad()
            ddp(torch.randn(4, 2, generator=generator)).pow(2).sum().backward()
            optimizer.step()
    return [t.double().flatten().tolist() for t in model.state_dict().values()]


@sizes
@pytest.mark.parametrize("divide", [True, False])
def test_join(oracle, size, divide):
    want = oracle(lambda torch: ranks(size, "torch")(joined, divide))
    for mine, theirs in zip(ranks(size)(joined, divide), want):
        for a, b in zip(mine, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def early(torch, dist):
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    try:
        with ddp.join(throw_on_early_termination=True):
            for _ in range(1 + dist.get_rank()):
                ddp(torch.ones(1, 2)).sum().backward()
    except RuntimeError as error:
        return "exhausted inputs" in str(error)


def test_join_that_throws():
    assert ranks(2)(early) == [True, True]


def hooked(torch, dist):
    model = torch.nn.Linear(3, 2)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    seen = []

    def hook(state, bucket):
        seen.append([state, bucket.index(), bucket.is_last(), len(bucket.gradients()), bucket.buffer().numel()])
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda f: f.value()[0] * 10)

    ddp.register_comm_hook("state", hook)
    ddp(torch.ones(1, 3) * (dist.get_rank() + 1)).sum().backward()
    return [seen, model.weight.grad.tolist(), model.bias.grad.tolist()]


def test_a_communication_hook(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(hooked))
    assert ranks(2)(hooked) == want


def different(torch, dist):
    try:
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2 + dist.get_rank()))
    except RuntimeError as error:
        return str(error)


def test_different_modules_are_named():
    for rank, text in enumerate(ranks(2)(different)):
        assert f"[Rank {rank}]: params[weight]" in text
        assert f"of rank {1 - rank}" in text


def copied(torch, dist):
    import copy

    model = torch.nn.Linear(1, 1)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    other = copy.deepcopy(ddp)
    other(torch.ones(1, 1) * dist.get_rank()).sum().backward()
    return [other.module.weight.grad.item(), model.weight.grad, list(other.state_dict())]


def test_copies():
    assert ranks(2)(copied) == [[0.5, None, ["module.weight", "module.bias"]]] * 2


def compiled(torch, dist, how):
    model = network(torch)
    DDP = torch.nn.parallel.DistributedDataParallel
    ddp = torch.compile(DDP(model)) if how == "outside" else DDP(torch.compile(model))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(ddp(x), y)
        loss.backward()
        optimizer.step()
        return loss

    if how == "step":
        ddp = DDP(model)
        step = torch.compile(step)
    return [step(*batch(torch, dist.get_rank(), i)).item() for i in range(6)]


@pytest.mark.parametrize("how", ["inside", "outside", "step"])
def test_with_compile(how):
    plain = [losses for losses, _ in ranks(2)(uncompiled)]
    np.testing.assert_allclose(ranks(2)(compiled, how), plain, rtol=1e-4)


def uncompiled(torch, dist):
    ddp = torch.nn.parallel.DistributedDataParallel(network(torch))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    losses = []
    for i in range(6):
        x, y = batch(torch, dist.get_rank(), i)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(ddp(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, 0]


def sparse(torch, dist, accumulate):
    torch.manual_seed(3)
    table = torch.nn.Embedding(12, 4, sparse=True)
    bag = torch.nn.EmbeddingBag(9, 4, sparse=True, mode="sum")
    head = torch.nn.Linear(4, 2)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.bag, self.head = table, bag, head

        def forward(self, x):
            return self.head(self.table(x).sum(1) + self.bag(x % 9))

    model = torch.nn.parallel.DistributedDataParallel(Model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(3):
        x = torch.randint(0, 12, (3 + dist.get_rank(), 5), generator=generator)
        if accumulate:
            with model.no_sync():
                model(x).sum().backward()
        model(x).sum().backward()
        optimizer.step()
        grads = [table.weight.grad.to_dense().tolist(), bag.weight.grad.to_dense().tolist()]
        kinds = [table.weight.grad.is_sparse, bag.weight.grad.is_sparse]
        optimizer.zero_grad()
    return [kinds, grads, [p.tolist() for p in model.parameters()]]


@pytest.mark.parametrize("accumulate", [False, True])
def test_sparse_gradients(oracle, accumulate):
    want = oracle(lambda torch: ranks(2, "torch")(sparse, accumulate))
    for (kinds, grads, weights), (own, own_grads, own_weights) in zip(want, ranks(2)(sparse, accumulate)):
        assert own == kinds == [True, True]
        for a, b in zip(grads + weights, own_grads + own_weights):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
