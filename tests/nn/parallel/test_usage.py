"""Parameters that backward leaves out: the gradients of every rank are torch's on gloo."""

import contextlib
import random

import numpy as np
import pytest

from tests.support.ranks import Failed, needs_mpi, ranks

pytestmark = needs_mpi


class Blocks:
    """A module that applies the linear layers which `path` names; with `aux` it has a second output."""

    def __new__(cls, torch, count, **settings):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(count))
                self.register_buffer("seen", torch.zeros(2))

            def through(self, path, x):
                for i in path:
                    x = torch.tanh(self.blocks[i](x))
                return x

            def forward(self, x, path, aux=None):
                with torch.no_grad():
                    self.seen += x.mean(0)
                if aux is None:
                    return self.through(path, x)
                return {"main": [self.through(path, x)], "aux": (self.through(aux, x), None)}

        torch.manual_seed(0)
        return torch.nn.parallel.DistributedDataParallel(Module(), **settings)


def grads(ddp):
    return [None if p.grad is None else p.grad.flatten().tolist() for p in ddp.parameters()]


def accumulated(torch, dist, looks):
    """Each rank uses a block in no_sync, and another one in the backward that sums."""
    ddp = Blocks(torch, 4, find_unused_parameters=looks)
    x, first = torch.ones(1, 2), 2 * dist.get_rank()
    with ddp.no_sync():
        ddp(x, [first]).sum().backward()
    ddp(x, [first + 1]).sum().backward()
    return grads(ddp)


def test_a_parameter_that_only_no_sync_uses_is_summed(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(accumulated, True))
    got = ranks(2)(accumulated, True)
    assert got[0] == got[1]
    for mine, theirs in zip(got[0], want[0]):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def without_aux(torch, dist, settings):
    """The loss leaves an output out; gradients are cleared between forward and backward."""
    ddp, found = Blocks(torch, 3, **settings), []
    for step in range(3):
        out = ddp(torch.ones(1, 2), [0, dist.get_rank()], [2])
        if step == 1:
            ddp.zero_grad()
        out["main"][0].sum().backward()
        found.append(grads(ddp))
    return found


def test_an_output_may_be_left_out_of_the_loss(oracle):
    settings = {"find_unused_parameters": True}
    want = oracle(lambda torch: ranks(2, "torch")(without_aux, settings))
    close(ranks(2)(without_aux, settings), want)
    assert want[0][0][4] is None


def close(got, want):
    """Nested lists of numbers and None are equal up to rounding."""
    if isinstance(want, list):
        assert len(got) == len(want)
        for mine, theirs in zip(got, want):
            close(mine, theirs)
    elif want is None:
        assert got is None
    else:
        assert got == pytest.approx(want, rel=1e-4, abs=1e-6)


def checkpointed(torch, dist):
    """A static graph in which a layer is checkpointed twice: it gets two gradients."""
    from importlib import import_module

    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    ddp = Blocks(torch, 3, static_graph=True)
    ddp.module.through = lambda path, x: sum(checkpoint(ddp.module.blocks[i], x, use_reentrant=True) for i in path)
    found = []
    for step in range(3):
        x = torch.full((1, 2), float(dist.get_rank() + step), requires_grad=True)
        ddp(x, [0, 0, 1]).sum().backward()
        found.append(grads(ddp))
    return found


def test_a_static_graph_counts_gradients(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(checkpointed))
    close(ranks(2)(checkpointed), want)


def other_graph(torch, dist):
    ddp = Blocks(torch, 2, static_graph=True)
    for path in ([0], [0, 1]):
        ddp(torch.ones(1, 2), path).sum().backward()


def test_a_static_graph_that_changes_is_an_error():
    with pytest.raises(Failed, match="Your training graph has changed"):
        ranks(2)(other_graph)


def buffers(torch, dist, settings):
    """The buffers of each rank, after steps with and without sums."""
    with pytest.warns(FutureWarning) if "broadcast_buffers" in settings else contextlib.nullcontext():
        ddp = Blocks(torch, 1, **settings)
    found = []
    for kind in ("sum", "no_grad", "sum", "no_sync", "sum", "sum"):
        x = torch.full((1, 2), 1.0 + dist.get_rank())
        if kind == "no_grad":
            with torch.no_grad():
                ddp(x, [0])
        else:
            with ddp.no_sync() if kind == "no_sync" else contextlib.nullcontext():
                ddp(x, [0]).sum().backward()
        found.append(ddp.module.seen.tolist())
    return found


@pytest.mark.parametrize("settings", [{}, {"forward_sync_buffers": False}, {"broadcast_buffers": False}], ids=str)
def test_buffers_of_rank_0(oracle, settings):
    want = oracle(lambda torch: ranks(2, "torch")(buffers, settings))
    assert ranks(2)(buffers, settings) == want


def own_buffers(torch, dist, settings):
    """The buffers after DDP is made."""
    module = torch.nn.BatchNorm1d(2)
    module.running_mean += dist.get_rank()
    torch.nn.parallel.DistributedDataParallel(module, **settings)
    return module.running_mean.tolist()


def test_buffers_at_first():
    assert ranks(2)(own_buffers, {"forward_sync_buffers": False}) == [[0, 0], [0, 0]]
    assert ranks(2)(own_buffers, {"broadcast_buffers": False}) == [[0, 0], [1, 1]]


# -- random programs -------------------------------------------------------------------------------


def program(seed):
    """(settings of DDP, steps) of a training: each rank takes its own path through the blocks."""
    r = random.Random(seed)
    settings = {
        "find_unused_parameters": True,
        "gradient_as_bucket_view": r.random() < 0.4,
        "bucket_cap_mb": r.choice([25, 0.00001]),
    }

    def path():
        return [r.randrange(4) for _ in range(r.randint(1, 4))]

    steps, synchronised = [], True
    for _ in range(5):
        clear = r.choice(["", "", "before", "between"])
        to_none = synchronised and r.random() < 0.5  # torch refuses it after no_sync
        synchronised = r.random() < 0.6
        aux = [path() if r.random() < 0.4 else None for _ in range(2)]
        loss = [r.choice(["main", "aux", "both"]) for _ in range(2)]
        steps.append((clear, to_none, synchronised, [path(), path()], aux, loss, r.random() < 0.7))
    return settings, steps


def total(out, loss):
    if not isinstance(out, dict):
        return out.sum()
    main, aux = out["main"][0].sum(), out["aux"][0].pow(2).sum()
    return {"main": main, "aux": aux, "both": main + aux}[loss]


def trained(torch, dist, seeds):
    rank, found = dist.get_rank(), []
    for seed in seeds:
        settings, steps = program(seed)
        ddp = Blocks(torch, 4, **settings)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        generator = torch.Generator().manual_seed(10 * seed + rank)
        for clear, to_none, synchronised, paths, aux, losses, moves in steps:
            if clear == "before":
                optimizer.zero_grad(set_to_none=to_none)
            with contextlib.nullcontext() if synchronised else ddp.no_sync():
                out = ddp(torch.randn(3, 2, generator=generator), paths[rank], aux[rank])
                if clear == "between":
                    optimizer.zero_grad(set_to_none=to_none)
                total(out, losses[rank]).backward()
            found.append(grads(ddp))
            if moves:
                optimizer.step()
        found.append([p.flatten().tolist() for p in ddp.parameters()])
    return found


def test_random_training(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(trained, list(range(12))))
    close(ranks(2)(trained, list(range(12))), want)
