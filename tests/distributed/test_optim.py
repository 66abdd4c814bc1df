"""ZeroRedundancyOptimizer: the steps of the optimizer, whose state is divided."""

import numpy as np
import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def train(torch, dist, divided):
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    ddp = nn.parallel.DistributedDataParallel(model)
    if divided:
        from rushlight.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(4):
        ddp(torch.randn(4, 5, generator=generator)).pow(2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        if step == 1 and divided:  # save, and go on with what is loaded
            optimizer.consolidate_state_dict(to=1)
            saved = [optimizer.state_dict() if dist.get_rank() == 1 else None]
            dist.broadcast_object_list(saved, src=1)
            optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
            optimizer.load_state_dict(saved[0])
            scheduler.optimizer = optimizer
    held = sum(t.numel() for s in optimizer.state.values() for t in s.values())
    return [[p.tolist() for p in model.parameters()], held]


def joined(torch, dist, divided):
    from rushlight.distributed.algorithms.join import Join
    from rushlight.distributed.optim import ZeroRedundancyOptimizer

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    if divided:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    with Join([ddp, optimizer] if divided else [ddp]):
        for _ in range(2 + 2 * dist.get_rank()):
            optimizer.zero_grad()
            ddp(torch.randn(4, 5, generator=generator)).pow(2).sum().backward()
            optimizer.step()
    return [p.tolist() for p in model.parameters()]


def test_join_with_unequal_numbers_of_batches():
    plain, divided = ranks(2)(joined, False), ranks(2)(joined, True)
    for want, got in zip(plain, divided):
        for a, b in zip(want, got):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_steps_are_those_of_the_optimizer():
    plain, divided = ranks(2)(train, False), ranks(2)(train, True)
    for (want, whole), (got, part) in zip(plain, divided):
        for a, b in zip(want, got):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
        assert part < 0.7 * whole
    assert sum(part for _, part in divided) == plain[0][1]


def in_backward(torch):
    """Optimizers that step as soon as a gradient is there; some parameters have two."""
    from importlib import import_module

    optim = import_module(f"{torch.__name__}.distributed.optim")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    settings = {"lr": 0.1, "momentum": 0.9}
    optim._apply_optimizer_in_backward(torch.optim.SGD, model[0].parameters(), settings)
    optim._apply_optimizer_in_backward(torch.optim.Adam, model.parameters(), {"lr": 0.01})
    for _ in range(3):
        model(torch.ones(4, 3)).pow(2).sum().backward()
    kinds = [type(o).__name__ for o in optim._get_in_backward_optimizers(model)]
    grads = [p.grad for p in model.parameters()]
    return [[round(x, 5) for x in p.flatten().tolist()] for p in model.parameters()], grads, kinds


def test_optimizers_in_backward(oracle):
    import rushlight

    parameters, grads, kinds = oracle(in_backward)
    own, own_grads, own_kinds = in_backward(rushlight)
    for mine, theirs in zip(own, parameters):
        assert mine == pytest.approx(theirs, abs=2e-5)
    assert own_grads == grads == [None] * 4
    assert own_kinds == kinds


def test_optimizers_in_backward_and_ddp():
    import rushlight
    import rushlight.distributed as dist
    from rushlight.distributed.optim import _apply_optimizer_in_backward

    model = rushlight.nn.Linear(2, 1)
    _apply_optimizer_in_backward(rushlight.optim.SGD, model.parameters(), {"lr": 0.1})
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        with pytest.raises(NotImplementedError, match="step in backward"):
            rushlight.nn.parallel.DistributedDataParallel(model)
    finally:
        dist.destroy_process_group()
