"""FullyShardedDataParallel and fully_shard: the training of DDP, in less memory per rank."""

import numpy as np
import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi
sizes = pytest.mark.parametrize("size", [2, 4])


def network(torch):
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Embedding(11, 6), nn.Flatten(), nn.Linear(30, 17), nn.Tanh(),
        nn.Sequential(nn.Linear(17, 17), nn.LayerNorm(17), nn.ReLU()), nn.Linear(17, 3),
    )  # fmt: skip


def wrapped(torch, model, how):
    from rushlight.distributed import fsdp
    from rushlight.nn.parallel import DistributedDataParallel

    linear = fsdp.ModuleWrapPolicy([torch.nn.Linear])
    if how == "ddp":
        return DistributedDataParallel(model)
    if how == "fsdp":
        return fsdp.FullyShardedDataParallel(model)
    if how == "fsdp of layers":
        return fsdp.FullyShardedDataParallel(model, auto_wrap_policy=linear)
    if how == "kept until backward":
        strategy = fsdp.ShardingStrategy.SHARD_GRAD_OP
        return fsdp.FullyShardedDataParallel(
            model, auto_wrap_policy=linear, sharding_strategy=strategy
        )
    for layer in model:
        if list(layer.parameters()):
            fsdp.fully_shard(layer)
    return fsdp.fully_shard(model)


def train(torch, dist, how):
    from rushlight.distributed import fsdp

    model = wrapped(torch, network(torch), how)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    losses, norms = [], []
    for step in range(4):
        generator = torch.Generator().manual_seed(10 * step + dist.get_rank())
        x = torch.randint(0, 11, (8, 5), generator=generator)
        y = torch.randint(0, 3, (8,), generator=generator)
        for _ in range(2):  # gradients add up
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
        if how == "ddp":
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
        else:
            norms.append(fsdp.clip_grad_norm_(model, 0.5).item())
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    with torch.no_grad():
        losses.append(model(x).sum().item())
    state = {k.removeprefix("module."): v for k, v in model.state_dict().items()}
    fresh = network(torch)
    fresh.load_state_dict(state)
    return [losses, norms, fresh(x).sum().item(), sum(p.numel() for p in model.parameters())]


@sizes
@pytest.mark.parametrize("how", ["fsdp", "fsdp of layers", "kept until backward", "fully_shard"])
def test_training_is_that_of_ddp(size, how):
    want, got = ranks(size)(train, "ddp"), ranks(size)(train, how)
    for (losses, norms, last, count), (own, own_norms, own_last, part) in zip(want, got):
        np.testing.assert_allclose(own, losses, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(own_norms, norms, rtol=1e-4)
        np.testing.assert_allclose(own_last, last, rtol=1e-4)
        np.testing.assert_allclose(own_last, losses[-1], rtol=1e-4)
        assert part < count * 1.3 / size + 40
    assert sum(part for *_, part in got) == count


def states(torch, dist):
    from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP
    from rushlight.distributed.fsdp import StateDictType

    model = FSDP(network(torch))
    whole = model.state_dict()
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        parts = model.state_dict()
    other = FSDP(network(torch))
    for p in other.parameters():
        torch.nn.init.zeros_(p)
    other.load_state_dict(whole)
    same = all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters()))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 5).long()).sum().backward()
    optimizer.step()
    saved = FSDP.optim_state_dict(model, optimizer)
    moments = saved["state"]
    again = torch.optim.Adam(model.parameters())
    again.load_state_dict(FSDP.optim_state_dict_to_load(model, again, saved))
    for p in model.parameters():
        assert torch.equal(again.state[p]["exp_avg"], optimizer.state[p]["exp_avg"])
    with FSDP.summon_full_params(model):
        shape = list(model.module[2].weight.shape)
    return [
        list(whole) == list(network(torch).state_dict()),
        [list(whole[k].shape) for k in ("2.weight", "5.bias")],
        [list(parts[k].shape) for k in ("2.weight", "5.bias")],
        same,
        list(moments["2.weight"]["exp_avg"].shape),
        shape,
    ]


def test_states():
    first, second = ranks(2)(states)
    assert first == [True, [[17, 30], [3]], [[9, 30], [2]], True, [17, 30], [17, 30]]
    assert second[2] == [[8, 30], [1]]


def memory(torch, dist, how):
    """The largest sum of bytes that NumPy has for arrays, in units of the model's parameters."""
    import gc
    import tracemalloc

    nn = torch.nn
    gc.collect()
    tracemalloc.start()
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(8)])
    count = sum(p.numel() * 4 for p in model.parameters())
    model = wrapped(torch, model, how) if how else model
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 256)).sum().backward()
    tracemalloc.reset_peak()
    optimizer.step()
    optimizer.zero_grad()
    model(torch.ones(2, 256)).sum().backward()
    peak = tracemalloc.get_traced_memory()[1] / count
    tracemalloc.stop()
    return peak


@sizes
def test_memory_per_rank(size):
    """Parameters, gradients and two moments: 4 times the parameters in one process."""
    alone, parts = max(ranks(size)(memory, None)), max(ranks(size)(memory, "fsdp of layers"))
    assert alone > 3.9
    assert parts < 4.0 / size + 1.0  # one of eight layers is whole, with its gradient


def policies(torch, dist):
    from functools import partial

    from rushlight.distributed.fsdp.wrap import (
        enable_wrap,
        size_based_auto_wrap_policy,
        transformer_auto_wrap_policy,
        wrap,
    )

    from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP

    by_size = partial(size_based_auto_wrap_policy, min_num_params=100)
    by_class = partial(transformer_auto_wrap_policy, transformer_layer_cls={torch.nn.LayerNorm})
    found = []
    for policy in (by_size, by_class):
        model = FSDP(network(torch), auto_wrap_policy=policy)
        found.append([type(m).__name__ for m in model.module])
    with enable_wrap(wrapper_cls=FSDP):
        inside = wrap(torch.nn.Linear(2, 2))
    return [*found, type(inside).__name__, type(wrap(inside.module)).__name__]


def test_policies():
    whole = "FullyShardedDataParallel"
    layers = ["Embedding", "Flatten", "Linear", "Tanh", "Sequential", "Linear"]
    by_size = ["Embedding", "Flatten", whole, "Tanh", "Sequential", "Linear"]
    assert ranks(2)(policies) == [[by_size, layers, whole, "Linear"]] * 2
