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
        return fsdp.FullyShardedDataParallel(model, auto_wrap_policy=linear, sharding_strategy=strategy)
    for layer in model:
        if list(layer.parameters()):
            fsdp.fully_shard(layer)
    return fsdp.fully_shard(model)


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def train(torch, dist, how):

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
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    with torch.no_grad():
        losses.append(model(x).sum().item())
    state = {k.removeprefix("module."): whole(v) for k, v in model.state_dict().items()}
    fresh = network(torch)
    fresh.load_state_dict(state)
    held = sum(p._array.size for p in model.parameters())
    return [losses, norms, fresh(x).sum().item(), held]


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
        [list(parts[k].to_local().shape) for k in ("2.weight", "5.bias")],
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
    """Parameters, gradients and two moments: 4 times the parameters in one process. The second run imports no modules
    and compiles no loops, whose memory would count."""
    alone, parts = (min(max(ranks(size)(memory, how)) for _ in range(2)) for how in (None, "fsdp of layers"))
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


BUILT = ["mixed", "mixed fully", "hybrid", "hybrid fully", "meta fully"]


def built(torch, dist, how):
    """A divided network in one of torch's ways."""
    from importlib import import_module

    fsdp = import_module(f"{torch.__name__}.distributed.fsdp")
    mesh = import_module(f"{torch.__name__}.distributed.device_mesh").init_device_mesh
    two, half = {"mesh_dim_names": ("replicate", "shard")}, torch.bfloat16
    cpu = torch.device("cpu")
    model = network(torch)
    FSDP = fsdp.FullyShardedDataParallel
    if how == "mixed":
        precision = fsdp.MixedPrecision(half, torch.float32, half)
        model = network(torch).append(torch.nn.BatchNorm1d(3))
        return FSDP(model, mixed_precision=precision, device_id=cpu)
    if how == "offload":
        return FSDP(model, cpu_offload=fsdp.CPUOffload(offload_params=True), device_id=cpu)
    if how == "synced":  # rank 0's values count
        if dist.get_rank():
            for p in model.parameters():
                torch.nn.init.zeros_(p)
        return FSDP(model, sync_module_states=True, device_id=cpu)
    if how.startswith("meta") and how != "meta fully":  # the other ranks have no values
        values = model.state_dict()
        if dist.get_rank():
            model = model.to("meta")

        def init(module):
            module.to_empty(device="cpu", recurse=False)

        torch.manual_seed(0)
        init = init if how == "meta init" else None
        model = FSDP(model, param_init_fn=init, sync_module_states=True)
        model.load_state_dict(values)
        return model
    if how == "hybrid":
        shape = mesh("cpu", (2, dist.get_world_size() // 2), **two)
        strategy = fsdp.ShardingStrategy.HYBRID_SHARD
        return FSDP(model, device_mesh=shape, sharding_strategy=strategy, device_id=cpu)
    options = {}
    if how == "mixed fully":
        options["mp_policy"] = fsdp.MixedPrecisionPolicy(half, torch.float32, torch.float32)
    if how == "hybrid fully":
        options["mesh"] = mesh("cpu", (2, dist.get_world_size() // 2), **two)
    if how == "meta fully":
        source = model.state_dict()
        with torch.device("meta"):
            model = network(torch)
    for layer in model:
        if list(layer.parameters()):
            fsdp.fully_shard(layer, **options)
    fsdp.fully_shard(model, reshard_after_forward=False, **options)
    if how == "meta fully":
        tensors = import_module(f"{torch.__name__}.distributed.tensor")
        parts = {
            name: torch.nn.Parameter(tensors.distribute_tensor(source[name], p.device_mesh, p.placements))
            for name, p in model.state_dict().items()
        }
        model.load_state_dict(parts, assign=True)
    return model


def train_built(torch, dist, how):
    model = built(torch, dist, how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    losses = []
    for step in range(3):
        generator = torch.Generator().manual_seed(10 * step + dist.get_rank())
        x = torch.randint(0, 11, (8, 5), generator=generator)
        y = torch.randint(0, 3, (8,), generator=generator)
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out.float(), y)
        loss.backward()
        norm = whole(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)) if (
            "fully" in how
        ) else model.clip_grad_norm_(0.5)  # fmt: skip
        optimizer.step()
        optimizer.zero_grad()
        losses.append([loss.item(), norm.item()])
    state = model.state_dict()
    sums = {k: [whole(v).double().sum().item(), str(v.dtype)[-8:]] for k, v in state.items()}
    return [str(out.dtype)[-8:], losses, list(sums), list(sums.values())]


@pytest.mark.parametrize("how", BUILT)
def test_training_is_torchs(oracle, how):
    size = 4 if "hybrid" in how else 2
    want = oracle(lambda torch: ranks(size, "torch")(train_built, how))
    got = ranks(size)(train_built, how)
    tolerance = 3e-2 if "mixed" in how else 1e-4  # of bfloat16
    for (dtype, losses, names, sums), (own, own_losses, own_names, own_sums) in zip(want, got):
        assert (own, own_names) == (dtype, names)
        np.testing.assert_allclose(own_losses, losses, rtol=tolerance, atol=tolerance / 10)
        for (number, kind), (own_number, own_kind) in zip(sums, own_sums):
            assert own_kind == kind
            np.testing.assert_allclose(own_number, number, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize(
    ("size", "how"), [(4, "hybrid"), (4, "hybrid fully"), (2, "synced"), (2, "meta"), (2, "meta init")]
)
def test_training_is_that_of_plain_fsdp(size, how):
    """What torch cannot do on the CPU: it needs a GPU for CPUOffload and sync_module_states."""
    want = ranks(size)(train_built, "offload")
    for (*_, losses, _, _), (*_, others, _, _) in zip(ranks(size)(train_built, how), want):
        np.testing.assert_allclose(losses, others, rtol=1e-4)


def refusals(torch, dist):
    from rushlight.distributed import fsdp
    from rushlight.distributed.tensor import Shard, distribute_tensor

    found = []

    def refused(call):
        try:
            call()
        except (NotImplementedError, RuntimeError) as error:
            found.append(str(error).splitlines()[0])

    with torch.device("meta"):
        model = fsdp.fully_shard(torch.nn.Linear(4, 3))
    refused(lambda: model(torch.ones(1, 4)))
    model.to_empty(device="cpu")
    model.reset_parameters()
    assert model(torch.ones(1, 4)).shape == (1, 3)
    refused(lambda: model.weight.sum())
    refused(lambda: distribute_tensor(torch.ones(2, 2), None, [Shard(1)]))
    return [*found, list(model.weight.to_local().shape), list(model.weight.full_tensor().shape)]


def test_what_is_not_there():
    first, second = ranks(2)(refusals)
    assert first == [
        "parameters of a divided module are on the device meta",
        "DTensor.sum needs rows of other ranks",
        "a tensor is not distributed as [Shard(dim=1)]",
        [2, 4],
        [3, 4],
    ]
    assert second[3:] == [[1, 4], [3, 4]]


def settings(torch, dist):
    from rushlight.distributed.fsdp import FullStateDictConfig, StateDictType
    from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP

    model = FSDP(network(torch))
    config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        found = [len(model.state_dict())]
    found.append(len(model.state_dict()))
    FSDP.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT)
    found.append(list(model.state_dict()["5.weight"].to_local().shape))
    model(torch.ones(2, 5).long()).sum().backward()
    with FSDP.summon_full_params(model, with_grads=True):
        found.append(list(model.module[5].weight.grad.shape))
        with torch.no_grad():
            model.module[5].weight.fill_(7.0)
    with FSDP.summon_full_params(model, writeback=False):
        found.append(model.module[5].weight.sum().item())
    return found


def test_settings_of_states_and_summoned_parameters():
    assert ranks(2)(settings) == [[9, 9, [2, 17], [3, 17], 357.0], [0, 9, [1, 17], [3, 17], 357.0]]


def batch_norms(torch, dist):
    from rushlight.distributed import fsdp

    seen = {}

    class Looking(torch.nn.BatchNorm1d):
        def forward(self, x):
            seen["inside"] = [x.dtype, self.weight.dtype, self.running_mean.dtype]
            return super().forward(x)

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), Looking(8), torch.nn.Linear(8, 1))
    half = torch.bfloat16
    model = fsdp.FullyShardedDataParallel(
        model,
        auto_wrap_policy=fsdp.ModuleWrapPolicy([torch.nn.Linear]),
        mixed_precision=fsdp.MixedPrecision(half, half, half),
    )
    model.module[1].register_forward_hook(lambda _, args, out: seen.update(out=out.dtype))
    model(torch.randn(6, 4)).sum().backward()
    grads = {str(p.grad.dtype) for p in model.parameters()}
    return [*map(str, seen["inside"]), str(seen["out"]), *grads]


def test_batch_norms_compute_in_float32():
    """As in torch, where a policy divides the modules."""
    for found in ranks(2)(batch_norms):
        assert found == [*["torch.float32"] * 3, "torch.bfloat16", "torch.float32"]


def whole_shapes(torch, dist):
    from copy import deepcopy

    from rushlight.distributed.fsdp import fully_shard

    model = fully_shard(torch.nn.Linear(5, 3))
    weight = model.weight
    refused = []
    for make in (torch.optim.Muon, torch.optim.Adafactor, torch.optim.LBFGS):
        with pytest.raises(NotImplementedError, match="needs whole parameters"):
            make([weight])
        refused.append(make.__name__)
    with pytest.raises(AssertionError, match="does not support deepcopy"):
        deepcopy(model)
    assert repr(weight).startswith("DTensor(tensor([[")
    return [
        list(weight.shape), list(weight.size()), weight.size(0), weight.numel(), len(weight),
        weight.ndim, list(weight.to_local().shape),
    ]  # fmt: skip


def test_shapes_are_those_of_the_whole_tensor():
    first, second = ranks(2)(whole_shapes)
    assert first == [[3, 5], [3, 5], 3, 15, 3, 2, [2, 5]]
    assert second == [*first[:-1], [1, 5]]
