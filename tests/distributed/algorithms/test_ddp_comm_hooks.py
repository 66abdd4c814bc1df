"""Communication hooks: 16 bits, and products of thin matrices."""

import importlib

import numpy as np
import pytest

from tests.support.ranks import needs_mpi, ranks

pytestmark = needs_mpi


def gradients(torch, dist, name):
    if torch.__name__ == "torch":
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    else:
        from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks
    torch.manual_seed(0)
    model = torch.nn.Linear(30, 20)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    hook = getattr(default_hooks, name)
    if name.endswith("wrapper"):
        hook = hook(default_hooks.allreduce_hook)
    ddp.register_comm_hook(None, hook)
    x = torch.randn(4, 30, generator=torch.Generator().manual_seed(dist.get_rank()))
    ddp(x).pow(2).sum().backward()
    return [p.grad.tolist() for p in model.parameters()]


@pytest.mark.parametrize(
    "name", ["allreduce_hook", "fp16_compress_hook", "bf16_compress_hook", "bf16_compress_wrapper"]
)
def test_hooks_are_torchs(oracle, name):
    on_gloo = "allreduce_hook" if name.startswith("bf16") else name  # gloo has no bfloat16 hooks
    want = oracle(lambda torch: ranks(2, "torch")(gradients, on_gloo))
    digits = {"a": 1e-5, "f": 2e-3, "b": 2e-2}[name[0]]  # of float32, float16, bfloat16
    for mine, theirs in zip(ranks(2)(gradients, name), want):
        for a, b in zip(mine, theirs):
            np.testing.assert_allclose(a, b, rtol=digits, atol=digits * np.abs(b).max())


def power(torch, dist, rank, feedback, epsilon):
    """How far the gradient of a matrix is from the mean, in each of several steps."""
    from rushlight.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

    torch.manual_seed(0)
    model = torch.nn.Linear(40, 30)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    state = power.PowerSGDState(None, rank, 2, use_error_feedback=feedback, orthogonalization_epsilon=epsilon)
    ddp.register_comm_hook(state, power.powerSGD_hook)
    found, total = [], 0
    for _ in range(12):
        model.zero_grad()
        x = torch.arange(160.0).reshape(4, 40).sin() * (dist.get_rank() + 1)
        ddp(x).pow(2).sum().backward()
        alone = torch.nn.Linear(40, 30)
        alone.load_state_dict(model.state_dict())
        want = 0
        for r in range(2):
            alone.zero_grad()
            alone(torch.arange(160.0).reshape(4, 40).sin() * (r + 1)).pow(2).sum().backward()
            want = want + alone.weight.grad / 2
        total = total + model.weight.grad - want
        found.append(((model.weight.grad - want).norm() / want.norm()).item())
    return [found, (total.norm() / want.norm()).item()]


@pytest.mark.parametrize("epsilon", [0, 1e-8])
def test_power_sgd(epsilon):
    for found, _ in ranks(2)(power, 2, False, epsilon):
        assert max(found[:2]) < 1e-6  # the first steps are exact
        assert found[-1] < 1e-3  # sin(40 i + j) is a matrix of rank 2
    for found, total in ranks(2)(power, 1, True, epsilon):
        assert found[-1] > 1e-3
        assert total < 5  # errors are made good, not added up: twelve would be more


def in_bytes(torch, dist, name):
    """Gradients whose sums go as bytes, and the exact ones."""
    hooks = importlib.import_module(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks").quantization
    torch.manual_seed(0)
    model = torch.nn.Linear(40, 30)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    x = torch.randn(4, 40, generator=torch.Generator().manual_seed(dist.get_rank()))
    ddp(x).pow(2).sum().backward()
    exact = [p.grad.clone() for p in model.parameters()]
    ddp.zero_grad()
    ddp.register_comm_hook(None, getattr(hooks, name))
    ddp(x).pow(2).sum().backward()
    span = max(g.abs().max().item() for g in exact)
    return [(p.grad - g).abs().max().item() / span for p, g in zip(model.parameters(), exact)]


@pytest.mark.parametrize("kind", ["pertensor", "perchannel"])
def test_sums_in_bytes(kind):
    for errors in ranks(2)(in_bytes, f"quantization_{kind}_hook"):
        assert max(errors) < 2 / 255
        assert max(errors) > 0
