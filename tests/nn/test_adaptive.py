"""The adaptive softmax and the small rest of torch.nn, against torch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F


def adaptive(lib, nn, target):
    lib.manual_seed(0)
    m = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10, 15], 2.0, head_bias=True).double()
    x = lib.randn(7, 16).double() if isinstance(target, list) else lib.randn(16).double()
    x.requires_grad_()
    output, loss = m(x, lib.tensor(target))
    loss.backward()
    grads = [p.grad for p in m.parameters()]
    return [output.detach(), loss.detach(), x.grad, *(g for g in grads if g is not None)]


@pytest.mark.parametrize("target", [[0, 4, 5, 17, 19, 12, 3], [1, 2, 3, 0, 1, 2, 3], 11])
def test_adaptive_softmax(oracle, target):
    expected = oracle(lambda torch: adaptive(torch, torch.nn, target))
    for got, want in zip(adaptive(rl, nn, target), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, atol=1e-9)


def test_adaptive_softmax_is_a_softmax():
    m = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], head_bias=True).double()
    x = rl.randn(5, 8, dtype=rl.float64)
    logs = m.log_prob(x)
    np.testing.assert_allclose(logs.exp().sum(1).detach().numpy(), 1, rtol=1e-12)
    for c in range(12):
        np.testing.assert_allclose(m(x, rl.full((5,), c)).output.detach().numpy(), logs[:, c].detach().numpy())
    assert rl.equal(m.predict(x), logs.argmax(1))


@pytest.mark.parametrize("cutoffs", [[5, 3], [0, 3], [3, 25], [3, 3], [20], [2.5]])
def test_adaptive_cutoffs(cutoffs):
    with pytest.raises(ValueError, match="unique, positive integers sorted in an increasing order"):
        nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs)


def test_adaptive_refuses():
    m = nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5])
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 9\], but values in range \[1, 10\]"):
        m(rl.ones(2, 4), rl.tensor([1, 10]))
    with pytest.raises(RuntimeError, match="same size in the batch dimension"):
        m(rl.ones(2, 4), rl.tensor([1]))
    with pytest.raises(RuntimeError, match="multi-target not supported"):
        m(rl.ones(1, 4), rl.tensor([[1]]))


def test_gradients_of_convolutions(oracle):
    def ask(lib, nn):
        rng = np.random.default_rng(0)
        x, w, g = (lib.tensor(rng.normal(size=s)) for s in ((2, 4, 6, 7), (6, 2, 3, 2), (2, 6, 3, 4)))
        settings = {"stride": 2, "padding": (1, 0), "groups": 2}
        return [
            nn.grad.conv2d_input(x.shape, w, g[..., :3], **settings),
            nn.grad.conv2d_weight(x, w.shape, g[..., :3], **settings),
        ]

    for got, want in zip(ask(rl, nn), oracle(lambda torch: ask(torch, torch.nn))):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-10)


def test_conv_with_time_first():
    x, w, b = rl.randn(5, 2, 3), rl.randn(3, 3, 4), rl.randn(4)
    same = F.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), b, padding=1).permute(2, 0, 1)
    assert rl.equal(F.conv_tbc(x, w, b, 1), same)
    with pytest.raises(RuntimeError, match=r"Input dim 2 \(input channels\) is not == dim 1"):
        F.conv_tbc(x, w[:, :2], b)


def test_sync_batchnorm_is_batchnorm():
    plain = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    made = nn.SyncBatchNorm.convert_sync_batchnorm(plain)
    assert type(made[0]) is nn.SyncBatchNorm
    assert made[0].weight is nn.SyncBatchNorm.convert_sync_batchnorm(made)[0].weight
    x = rl.randn(2, 3, 4, 4)
    assert rl.equal(made(x), nn.BatchNorm2d(3)(x).relu())


def test_paths_of_torch():
    from rushlight.nn.modules.batchnorm import _BatchNorm

    from rushlight.nn.modules.utils import _pair

    assert issubclass(nn.BatchNorm1d, _BatchNorm)
    assert _pair(2) == (2, 2)
    assert nn.modules.Linear is nn.Linear
    assert list(nn.DataParallel(nn.Linear(1, 1)).state_dict()) == ["module.weight", "module.bias"]
