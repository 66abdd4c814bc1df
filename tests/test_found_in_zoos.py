"""What collections of optimizers, layers and models asked for that was missing."""
from __future__ import annotations

import inspect

import numpy as np
import pytest

import rushlight
from rushlight.nn import common_types


def stepped(t, kind, **settings):
    w = t.tensor([1.0, -2.0], requires_grad=True)
    optimizer = getattr(t.optim, kind)([w], lr=0.1, **settings)
    optimizer.param_groups[0]["step"] = 0         # a wrapper's own number
    for _ in range(3):
        (w * w).sum().backward()
        optimizer.step()
    return t.stack([w.detach(), optimizer.state[w]["step"].expand(2)])


@pytest.mark.parametrize("kind", ["Adam", "NAdam", "ASGD"])
def test_a_step_of_the_users_in_a_group(oracle, kind):
    np.testing.assert_allclose(stepped(rushlight, kind).numpy(), oracle(lambda t: stepped(t, kind)), rtol=1e-6)


def accumulated(t):
    """Adagrad for sparse gradients, as optimizers of one's own do it."""
    w = t.nn.Embedding(4, 2, sparse=True, _weight=t.arange(8.0).view(4, 2) + 1)
    w(t.tensor([2, 0, 2])).square().sum().backward()
    g = w.weight.grad.coalesce()
    total = t.zeros_like(w.weight.detach())
    total.add_(g.new(g._indices(), g._values().pow(2), g.size()))
    std = total.sparse_mask(g)
    w.weight.data.add_(g.new(g._indices(), g._values() / std._values().sqrt(), g.size()), alpha=-0.5)
    return w.weight.detach()


def test_sparse_gradients_in_optimizers_of_ones_own(oracle):
    np.testing.assert_allclose(accumulated(rushlight).numpy(), oracle(accumulated), rtol=1e-6)


def test_sparse_tensors_that_store_nothing():
    g = rushlight.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (4, 2))
    for nothing in (rushlight.zeros_like(g), rushlight.empty_like(g), g.new().resize_as_(g)):
        assert (nothing.shape, nothing.sparse_dim(), nothing._nnz(), nothing.is_sparse) == ((4, 2), 1, 0, True)
    assert g._nnz() == 2
    assert g.new().shape == (0,)
    assert g.is_same_size(rushlight.ones(4, 2))
    assert rushlight.zeros_like(g, dtype=rushlight.float64).dtype is rushlight.float64
    assert rushlight.zeros_like(g, layout=rushlight.strided).tolist() == [[0, 0]] * 4
    with pytest.raises(RuntimeError, match="that stores values stays"):
        g.resize_as_(rushlight.sparse_coo_tensor(size=(1, 1)))


def test_old_names_of_autocast():
    assert rushlight.GradScaler is rushlight.amp.GradScaler
    assert rushlight.get_autocast_gpu_dtype() is rushlight.float16
    rushlight.set_autocast_cpu_dtype(rushlight.float16)
    try:
        assert rushlight.get_autocast_cpu_dtype() is rushlight.float16
    finally:
        rushlight.set_autocast_cpu_dtype(rushlight.bfloat16)
    rushlight.set_autocast_cpu_enabled(True)
    try:
        assert rushlight.is_autocast_cpu_enabled()
    finally:
        rushlight.set_autocast_cpu_enabled(False)
    assert rushlight.set_autocast_gpu_dtype(rushlight.float16) is None
    assert rushlight.clear_autocast_cache() is None


def test_names_of_sizes(torch):
    theirs = torch.nn.common_types
    names = [n for n in dir(theirs) if n.endswith("_t") and "scalar" not in n and "tensor" not in n and "indices" not in n]
    assert {n: getattr(common_types, n) for n in names} == {n: getattr(theirs, n) for n in names}


def test_what_reversible_networks_import():
    from rushlight.utils.checkpoint import detach_variable, get_device_states, set_device_states
    assert get_device_states(rushlight.ones(1)) == ([], [])
    assert set_device_states([], []) is None
    x = rushlight.ones(2, requires_grad=True)
    y, three = detach_variable((x * 2, 3))
    assert (y.is_leaf, y.requires_grad, three) == (True, True, 3)
    with pytest.raises(RuntimeError, match="Only tuple of tensors"):
        detach_variable([x])


def test_projections_packed(oracle):
    def parts(t):
        q, k = t.arange(4.0).view(2, 2), t.ones(3, 2)
        return t.cat(t.nn.functional._in_projection_packed(q, k, k, t.arange(12.0).view(6, 2)))
    assert parts(rushlight).tolist() == oracle(parts).tolist()


def test_collate_by_its_path():
    assert rushlight.utils.data._utils.collate.default_collate([1, 2]).tolist() == [1, 2]
    assert inspect.ismodule(rushlight.utils.data._utils.worker)
