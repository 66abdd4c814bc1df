"""torch.distributed.checkpoint.state_dict beside torch's on gloo."""

from importlib import import_module

import numpy as np
import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def model(torch, kind):
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.PReLU(4), torch.nn.Linear(4, 3))
    if kind == "divided":
        fully_shard = import_module(f"{torch.__name__}.distributed.fsdp").fully_shard
        fully_shard(made[0])
        fully_shard(made)
    return torch.nn.parallel.DistributedDataParallel(made) if kind == "DDP" else made


def step(torch, dist, network, optimizer):
    generator = torch.Generator().manual_seed(7 + dist.get_rank())
    network(torch.randn(5, 3, generator=generator)).pow(2).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def described(torch, value):
    """Nested values as lists: of a tensor whether it is divided, its shape and its numbers."""
    if isinstance(value, dict):
        found = sorted(value.items(), key=lambda pair: str(pair[0]))
        return [[str(k), described(torch, v)] for k, v in found]
    if isinstance(value, (list, tuple)):
        return [described(torch, v) for v in value]
    if not isinstance(value, torch.Tensor):
        return value
    rows = value.to_local() if hasattr(value, "to_local") else value
    return [hasattr(value, "to_local"), list(value.shape), rows.detach().double().flatten().tolist()]


def restored(torch, dist, kind, settings):
    """The states of a model and an optimizer, and what a new model and optimizer have of them."""
    api = import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    options = api.StateDictOptions(**settings)
    pairs = []
    for _ in range(2):
        network = model(torch, kind)
        pairs.append((network, torch.optim.AdamW(network.parameters(), lr=0.1)))
    step(torch, dist, *pairs[0])
    state, optimizer_state = api.get_state_dict(*pairs[0], options=options)
    found = described(torch, [state, optimizer_state])
    if options.cpu_offload:  # rank 0 alone has the state
        return found
    keys = api.set_state_dict(*pairs[1], model_state_dict=state, optim_state_dict=optimizer_state, options=options)
    network, optimizer = pairs[1]
    after = [list(keys), list(network.parameters()), optimizer.state_dict()]
    optimizer.load_state_dict(pairs[0][1].state_dict())
    return [*found, *described(torch, [*after, optimizer.state_dict()["state"]])]


def close(got, want):
    if isinstance(want, list):
        assert len(got) == len(want)
        for mine, theirs in zip(got, want):
            close(mine, theirs)
    elif isinstance(want, float):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    else:
        assert got == want


@pytest.mark.parametrize("kind", ["divided", "DDP"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"full_state_dict": True},
        {"full_state_dict": True, "cpu_offload": True},
        {"flatten_optimizer_state_dict": True},
    ],
    ids=str,
)
def test_states_are_torchs(oracle, kind, settings):
    want = oracle(lambda torch: ranks(2, "torch")(restored, kind, settings))
    close(ranks(2)(restored, kind, settings), want)


def from_rank_0(torch, dist):
    """Rank 0 alone has the state."""
    api = import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    options = api.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    network = model(torch, "divided")
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    step(torch, dist, network, optimizer)
    state, optimizer_state = api.get_state_dict(network, optimizer, options=options)
    other = model(torch, "divided")
    another = torch.optim.AdamW(other.parameters(), lr=0.5)
    given = (state, optimizer_state) if dist.get_rank() == 0 else ({}, {})
    api.set_model_state_dict(other, given[0], options=options)
    api.set_optimizer_state_dict(other, another, given[1], options=options)
    equal = [bool((a.to_local() == b.to_local()).all()) for a, b in zip(network.parameters(), other.parameters())]
    moments = [type(s["exp_avg"]).__name__ for s in another.state.values()]
    return [all(equal), set(moments) == {"DTensor"}, another.param_groups[0]["lr"]]


def test_rank_0_may_have_the_state_alone():
    assert ranks(2)(from_rank_0) == [[True, True, 0.1]] * 2


def of_several(torch, dist):
    """Two optimizers, whose groups stand in another order when they are loaded."""
    api = import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    network = model(torch, "plain")
    first, second = list(network.parameters())[:2], list(network.parameters())[2:]
    optimizers = [torch.optim.Adam(first, lr=0.1), torch.optim.SGD(second, lr=0.2, momentum=0.5)]
    network(torch.ones(1, 3)).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
    state = api.get_optimizer_state_dict(network, optimizers)
    state["param_groups"].reverse()
    network.zero_grad()
    others = [torch.optim.Adam(first, lr=1.0), torch.optim.SGD(second, lr=1.0, momentum=0.1)]
    api.set_optimizer_state_dict(network, others, state)
    return described(torch, [optimizer.state_dict() for optimizer in others])


def test_several_optimizers(oracle):
    want = oracle(lambda torch: ranks(2, "torch")(of_several))
    close(ranks(2)(of_several), want)


def refused(torch, dist):
    api = import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    try:
        api.get_model_state_dict(model(torch, "plain"), options=api.StateDictOptions(broadcast_from_rank0=True))
    except ValueError as error:
        return "full_state_dict must be True" in str(error)


def test_options_that_do_not_go_together():
    assert ranks(2)(refused) == [True, True]
