"""What collections of optimizers, layers and models asked for that was missing."""
from __future__ import annotations

import inspect

import numpy as np
import pytest

import rushlight
from rushlight.nn import common_types
from rushlight.optim import optimizer


def stepped(t, kind, **settings):
    w = t.tensor([1.0, -2.0], requires_grad=True)
    steps = getattr(t.optim, kind)([w], lr=0.1, **settings)
    steps.param_groups[0]["step"] = 0             # a wrapper's own number
    for _ in range(3):
        (w * w).sum().backward()
        steps.step()
    return t.stack([w.detach(), steps.state[w]["step"].expand(2)])


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


def test_functions_by_their_aten_names():
    from rushlight.ops import aten
    add = rushlight.ops.aten.add
    assert add is aten.add
    assert add(rushlight.ones(2), 1).tolist() == add.Tensor(rushlight.ones(2), rushlight.ones(2)).tolist() == [2, 2]
    assert (str(add), repr(add.Tensor)) == ("aten.add", "<OpOverload(op='aten.add', overload='Tensor')>")
    assert (add.Tensor.name(), aten.mm.default.name()) == ("aten::add.Tensor", "aten::mm")
    assert aten.view.default(rushlight.eye(2), [4]).shape == (4,)
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'nothing'"):
        aten.nothing
    with pytest.raises(AttributeError):
        aten.Size


def test_types_of_results():
    x = rushlight.eye(2)
    assert isinstance(x.max(0), rushlight.return_types.max)
    assert isinstance(rushlight.func.vmap(lambda row: row.sort())(x), rushlight.return_types.sort)
    assert isinstance(rushlight.linalg.qr(x), rushlight.return_types.linalg_qr)
    assert repr(rushlight.return_types.topk) == "<class 'torch.return_types.topk'>"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rushlight.return_types.nothing


def test_type_of_the_class_of_tensors():
    mask = rushlight.tensor([1, 0]) > 0
    assert mask.type(rushlight.Tensor).dtype is rushlight.float32
    rushlight.set_default_dtype(rushlight.float64)
    try:
        assert mask.type("torch.Tensor").dtype is rushlight.float64
    finally:
        rushlight.set_default_dtype(rushlight.float32)


def test_what_layers_import():
    from rushlight.nn.modules.transformer import _get_activation_fn, _get_clones
    assert _get_activation_fn("gelu") is rushlight.nn.functional.gelu
    one, two = _get_clones(rushlight.nn.Linear(1, 1), 2)
    assert one.weight is not two.weight
    assert rushlight.cuda._initialized is False
    assert rushlight._C._jit_set_autocast_mode(False) is False
    assert rushlight.storage.TypedStorage is type(rushlight.ones(1).storage())


def test_old_questions_about_backends():
    vars(rushlight).pop("has_mps", None)
    with pytest.warns(UserWarning, match="'has_mps' is deprecated"):
        assert rushlight.has_mps is False
    with pytest.raises(AttributeError):
        rushlight.backends.has_nothing


class Copied(rushlight.optim.Optimizer):
    """SGD as it stands in torch's own files."""

    def __init__(self, params, lr, differentiable=False):
        super().__init__(params, {"lr": lr, "differentiable": differentiable})

    @optimizer._use_grad_for_differentiable
    def step(self):
        for group in self.param_groups:
            params, grads = [*group["params"]], [p.grad for p in group["params"]]
            optimizer._view_as_real(params, grads)
            for p, g in zip(params, grads):
                p.add_(g, alpha=-optimizer._get_value(optimizer._to_scalar(group["lr"])))
                self.recorded = p.requires_grad and p.grad_fn is not None


@pytest.mark.parametrize("differentiable", [False, True])
def test_optimizers_copied_out_of_torch(differentiable):
    w = rushlight.tensor([1 + 2j], requires_grad=True)
    p = w.clone()
    p.retain_grad()
    p.abs().square().sum().backward()
    sgd = Copied([w if not differentiable else p], rushlight.tensor([0.25]), differentiable)
    if not differentiable:
        w.grad = p.grad
    sgd.step()
    assert sgd.param_groups[0]["params"][0].tolist() == [0.5 + 1j]
    assert sgd.recorded is differentiable
    assert optimizer._default_to_fused_or_foreach([w], False, True) == (False, False)
    assert optimizer._stack_if_compiling([w]) == [w]
    assert "cuda" in optimizer._get_capturable_supported_devices()
