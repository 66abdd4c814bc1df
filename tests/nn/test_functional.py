"""nn.functional: values and gradients as torch's, slopes of its own values, and errors that say what is wrong."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import rushlight
from rushlight.autograd import gradcheck
from rushlight.nn import functional as F
from tests.support.programs import Programs, outcome, skip_other_stream


class Inputs:
    """The same numbers for every library: `x(2, 3)` a leaf of float64, `p(2, 3)` in (0, 1), `n(5, 2)` classes."""

    def __init__(self, lib, seed=0):
        self.lib, self.random, self.leaves = lib, np.random.default_rng(seed), []

    def x(self, *shape):
        return self.leaf(np.round(self.random.standard_normal(shape), 3))

    def p(self, *shape):
        return self.leaf(np.round(self.random.uniform(0.05, 0.95, shape), 3))

    def leaf(self, array):
        self.leaves.append(self.fixed(array).requires_grad_())
        return self.leaves[-1]

    def fixed(self, array):
        array = np.asarray(array)  # NumPy's own integers have 32 bits on some machines
        return self.lib.tensor(array.astype(np.int64) if array.dtype.kind == "i" else array)

    def n(self, classes, *shape):
        return self.fixed(self.random.integers(0, classes, shape))

    def sign(self, *shape):
        return self.fixed(self.random.choice([-1.0, 1.0], shape))


def answer(lib, ask):
    """What a case gives: its value, and the gradient of each leaf of a weighted sum of it."""
    inputs = Inputs(lib)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = ask(lib.nn.functional, inputs)
    weights = np.round(np.random.default_rng(1).standard_normal(tuple(out.shape)), 3)
    if out.requires_grad:
        (out * lib.tensor(weights)).sum().backward()
    return [out, *[leaf.grad for leaf in inputs.leaves]]


REDUCTIONS = ("mean", "sum", "none")

CASES = {
    # activations
    **{
        name: lambda F, i, name=name: getattr(F, name)(i.x(3, 4))
        for name in (
            "relu",
            "relu6",
            "elu",
            "celu",
            "selu",
            "leaky_relu",
            "hardtanh",
            "hardsigmoid",
            "hardswish",
            "hardshrink",
            "softshrink",
            "tanhshrink",
            "softsign",
            "softplus",
            "logsigmoid",
            "gelu",
            "mish",
            "silu",
            "sigmoid",
            "tanh",
            "glu",
            "rrelu",
        )
    },
    "elu settings": lambda F, i: F.elu(i.x(3, 4), 0.3),
    "celu settings": lambda F, i: F.celu(i.x(3, 4), 0.3),
    "gelu tanh": lambda F, i: F.gelu(i.x(3, 4), approximate="tanh"),
    "softplus settings": lambda F, i: F.softplus(i.x(3, 4), beta=3, threshold=1),
    "threshold": lambda F, i: F.threshold(i.x(3, 4), 0.1, 5.0),
    "prelu one": lambda F, i: F.prelu(i.x(3, 4), i.x(1)),
    "prelu channels": lambda F, i: F.prelu(i.x(2, 3, 2), i.x(3)),
    "inplace": lambda F, i: F.relu(i.x(3, 4) * 1, inplace=True) * 2,
    "softmax": lambda F, i: F.softmax(i.x(2, 3), dim=0),
    "softmin": lambda F, i: F.softmin(i.x(2, 3), dim=1),
    "log_softmax": lambda F, i: F.log_softmax(i.x(2, 3), dim=-1),
    # linear maps and distances
    "linear": lambda F, i: F.linear(i.x(2, 2, 3), i.x(4, 3), i.x(4)),
    "linear vector": lambda F, i: F.linear(i.x(3), i.x(4, 3)),
    "linear row": lambda F, i: F.linear(i.x(2, 3), i.x(3)),
    "bilinear": lambda F, i: F.bilinear(i.x(2, 3), i.x(2, 2), i.x(4, 3, 2), i.x(4)),
    "normalize": lambda F, i: F.normalize(i.x(2, 3), p=3),
    "cosine_similarity": lambda F, i: F.cosine_similarity(i.x(2, 3), i.x(1, 3)),
    "pairwise_distance": lambda F, i: F.pairwise_distance(i.x(2, 3), i.x(2, 3), p=1, keepdim=True),
    "pdist": lambda F, i: F.pdist(i.x(4, 3)),
    # tables
    "embedding": lambda F, i: F.embedding(i.n(4, 2, 3), i.x(4, 2), padding_idx=1),
    "embedding by frequency": lambda F, i: F.embedding(i.n(4, 5), i.x(4, 2), scale_grad_by_freq=True),
    **{
        f"embedding_bag {mode}": lambda F, i, mode=mode: F.embedding_bag(
            i.n(4, 6), i.x(4, 2), i.fixed([0, 2, 2, 5]), mode=mode, padding_idx=1
        )
        for mode in ("sum", "mean", "max")
    },
    "embedding_bag weights": lambda F, i: F.embedding_bag(
        i.n(4, 2, 3), i.x(4, 2), mode="sum", per_sample_weights=i.x(2, 3)
    ),
    "one_hot": lambda F, i: F.one_hot(i.n(4, 2, 2)),
    # convolutions
    "conv1d": lambda F, i: F.conv1d(i.x(2, 2, 5), i.x(3, 2, 2), i.x(3), stride=2, padding=1),
    "conv2d": lambda F, i: F.conv2d(i.x(1, 2, 4, 5), i.x(2, 2, 2, 3), i.x(2), padding=(1, 0), dilation=(1, 2)),
    "conv2d groups": lambda F, i: F.conv2d(i.x(1, 4, 3, 3), i.x(4, 2, 2, 2), groups=2),
    "conv2d same": lambda F, i: F.conv2d(i.x(1, 1, 4, 4), i.x(1, 1, 2, 3), padding="same"),
    "conv2d one image": lambda F, i: F.conv2d(i.x(2, 3, 3), i.x(2, 2, 2, 2)),
    "conv3d": lambda F, i: F.conv3d(i.x(1, 1, 3, 3, 3), i.x(2, 1, 2, 2, 2), i.x(2)),
    "conv_transpose1d": lambda F, i: F.conv_transpose1d(i.x(2, 2, 3), i.x(2, 3, 2), i.x(3), stride=2, output_padding=1),
    "conv_transpose2d": lambda F, i: F.conv_transpose2d(i.x(1, 2, 3, 2), i.x(2, 1, 2, 3), padding=1, dilation=2),
    "conv_transpose2d far": lambda F, i: F.conv_transpose2d(
        i.x(1, 1, 2, 2), i.x(1, 1, 2, 2), padding=1, dilation=3, output_padding=2
    ),
    "unfold": lambda F, i: F.unfold(i.x(1, 2, 3, 4), (2, 3), padding=(1, 0)),
    "fold": lambda F, i: F.fold(i.x(1, 8, 4), (3, 3), 2),
    # pooling
    "max_pool1d": lambda F, i: F.max_pool1d(i.x(1, 2, 6), 3, 2, 1),
    "max_pool2d": lambda F, i: F.max_pool2d(i.x(1, 2, 4, 4), 2, ceil_mode=True, padding=1),
    "max_pool2d indices": lambda F, i: F.max_pool2d(i.x(1, 2, 4, 4), 2, return_indices=True)[1],
    "max_pool3d": lambda F, i: F.max_pool3d(i.x(1, 2, 2, 4), (2, 2, 2)),
    "avg_pool1d": lambda F, i: F.avg_pool1d(i.x(1, 2, 6), 3, 2, 1),
    "avg_pool2d": lambda F, i: F.avg_pool2d(i.x(1, 2, 4, 4), 3, 1, 1, count_include_pad=False),
    "avg_pool2d divisor": lambda F, i: F.avg_pool2d(i.x(1, 2, 4, 4), 2, divisor_override=3),
    "avg_pool3d": lambda F, i: F.avg_pool3d(i.x(1, 1, 2, 4, 2), 2),
    "adaptive_avg_pool2d": lambda F, i: F.adaptive_avg_pool2d(i.x(1, 1, 5, 4), (2, None)),
    "adaptive_max_pool2d": lambda F, i: F.adaptive_max_pool2d(i.x(1, 1, 5, 4), (2, 3)),
    "lp_pool2d": lambda F, i: F.lp_pool2d(i.p(1, 1, 4, 4), 3, 2),
    "max_unpool2d": lambda F, i: F.max_unpool2d(i.x(1, 1, 2, 2), i.fixed([[[[0, 3], [8, 15]]]]), 2),
    # normalization
    "layer_norm": lambda F, i: F.layer_norm(i.x(2, 3, 2), (3, 2), i.x(3, 2), i.x(3, 2)),
    "rms_norm": lambda F, i: F.rms_norm(i.x(2, 3), (3,), i.x(3)),
    "group_norm": lambda F, i: F.group_norm(i.x(2, 4, 3), 2, i.x(4), i.x(4)),
    "instance_norm": lambda F, i: F.instance_norm(i.x(2, 2, 4), weight=i.x(2), bias=i.x(2)),
    "batch_norm": lambda F, i: F.batch_norm(i.x(3, 2, 2), None, None, i.x(2), i.x(2), training=True),
    "batch_norm frozen": lambda F, i: F.batch_norm(i.x(3, 2), i.fixed([0.1, 0.2]), i.fixed([1.0, 2.0]), i.x(2), i.x(2)),
    "local_response_norm": lambda F, i: F.local_response_norm(i.x(1, 4, 2, 2), 3, alpha=0.5),
    # padding and resizing
    "pad": lambda F, i: F.pad(i.x(2, 3), (1, -1, 2, 0), value=7.0),
    **{
        f"pad {mode}": lambda F, i, mode=mode: F.pad(i.x(1, 1, 3, 4), (2, 1, 1, 2), mode=mode)
        for mode in ("reflect", "replicate", "circular")
    },
    "interpolate nearest": lambda F, i: F.interpolate(i.x(1, 1, 5), size=3),
    "interpolate exact": lambda F, i: F.interpolate(i.x(1, 1, 5), size=3, mode="nearest-exact"),
    "interpolate linear": lambda F, i: F.interpolate(i.x(1, 1, 4), scale_factor=1.7, mode="linear"),
    "interpolate bilinear": lambda F, i: F.interpolate(i.x(1, 1, 2, 3), (4, 5), mode="bilinear", align_corners=True),
    "interpolate bicubic": lambda F, i: F.interpolate(i.x(1, 1, 3, 3), (5, 4), mode="bicubic"),
    "interpolate area": lambda F, i: F.interpolate(i.x(1, 1, 4, 4), 2, mode="area"),
    "interpolate antialias": lambda F, i: F.interpolate(i.x(1, 1, 6, 6), (3, 4), mode="bilinear", antialias=True),
    "pixel_shuffle": lambda F, i: F.pixel_shuffle(i.x(1, 8, 2, 1), 2),
    "pixel_unshuffle": lambda F, i: F.pixel_unshuffle(i.x(1, 1, 4, 2), 2),
    "channel_shuffle": lambda F, i: F.channel_shuffle(i.x(1, 6, 2), 3),
    # attention
    "attention": lambda F, i: F.scaled_dot_product_attention(i.x(1, 2, 3, 2), i.x(1, 2, 4, 2), i.x(1, 2, 4, 3)),
    "attention causal": lambda F, i: F.scaled_dot_product_attention(*[i.x(2, 3, 2)] * 3, is_causal=True),
    "attention numbers": lambda F, i: F.scaled_dot_product_attention(*[i.x(3, 2)] * 3, attn_mask=i.x(3, 3), scale=0.3),
    "attention booleans": lambda F, i: F.scaled_dot_product_attention(
        *[i.x(1, 3, 2)] * 3, attn_mask=i.fixed([[True, False, True], [False] * 3, [True] * 3])
    ),
    # losses
    **{
        f"{name} {r}": lambda F, i, name=name, r=r: getattr(F, name)(i.x(2, 3), i.x(2, 3), reduction=r)
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
        for r in REDUCTIONS
    },
    "smooth_l1_loss beta": lambda F, i: F.smooth_l1_loss(i.x(2, 3), i.x(2, 3), beta=0.3),
    "smooth_l1_loss 0": lambda F, i: F.smooth_l1_loss(i.x(2, 3), i.x(2, 3), beta=0),
    "huber_loss delta": lambda F, i: F.huber_loss(i.x(2, 3), i.x(2, 3), delta=0.3),
    "mse_loss weight": lambda F, i: F.mse_loss(i.x(2, 3), i.x(2, 3), weight=i.fixed(np.arange(6.0).reshape(2, 3))),
    "mse_loss broadcast": lambda F, i: F.mse_loss(i.x(2, 3), i.x(3)),
    "binary_cross_entropy": lambda F, i: F.binary_cross_entropy(i.p(2, 3), i.p(2, 3), weight=i.fixed([1.0, 2.0, 3.0])),
    "with_logits": lambda F, i: F.binary_cross_entropy_with_logits(i.x(2, 3), i.p(2, 3)),
    "with_logits weights": lambda F, i: F.binary_cross_entropy_with_logits(
        i.x(2, 3), i.p(2, 3), i.fixed([1.0, 2.0, 3.0]), pos_weight=i.fixed([3.0, 1.0, 2.0]), reduction="sum"
    ),
    **{
        f"kl_div {r}": lambda F, i, r=r: F.kl_div(i.x(2, 3), i.p(2, 3), reduction=r) for r in (*REDUCTIONS, "batchmean")
    },
    "kl_div log_target": lambda F, i: F.kl_div(i.x(2, 3), i.x(2, 3), log_target=True),
    "poisson_nll_loss": lambda F, i: F.poisson_nll_loss(i.x(2, 3), i.fixed([[1.0, 2, 3], [4, 0, 1]]), full=True),
    "poisson_nll_loss plain": lambda F, i: F.poisson_nll_loss(i.p(2, 3), i.p(2, 3), log_input=False),
    "gaussian_nll_loss": lambda F, i: F.gaussian_nll_loss(i.x(2, 3), i.x(2, 3), i.p(2, 1), full=True),
    **{
        f"nll_loss {r}": lambda F, i, r=r: F.nll_loss(
            i.x(4, 3), i.fixed([0, 2, 1, 2]), i.fixed([0.5, 1, 2]), ignore_index=1, reduction=r
        )
        for r in REDUCTIONS
    },
    "nll_loss images": lambda F, i: F.nll_loss(i.x(2, 3, 2, 2), i.n(3, 2, 2, 2)),
    "cross_entropy": lambda F, i: F.cross_entropy(i.x(4, 3), i.n(3, 4)),
    "cross_entropy one": lambda F, i: F.cross_entropy(i.x(3), i.fixed(2)),
    "cross_entropy images": lambda F, i: F.cross_entropy(
        i.x(2, 3, 4), i.n(3, 2, 4), i.fixed([0.5, 1, 2]), ignore_index=0
    ),
    **{
        f"cross_entropy smooth {r}": lambda F, i, r=r: F.cross_entropy(
            i.x(4, 3), i.fixed([0, 2, 1, 2]), i.fixed([0.5, 1, 2]), ignore_index=1, reduction=r, label_smoothing=0.2
        )
        for r in REDUCTIONS
    },
    "cross_entropy smooth plain": lambda F, i: F.cross_entropy(
        i.x(4, 3), i.fixed([0, 2, -100, 2]), label_smoothing=0.2
    ),
    **{
        f"cross_entropy soft {r}": lambda F, i, r=r: F.cross_entropy(
            i.x(2, 3, 2), i.p(2, 3, 2), i.fixed([0.5, 1, 2]), reduction=r, label_smoothing=0.1
        )
        for r in REDUCTIONS
    },
    "linear_cross_entropy": lambda F, i: F.linear_cross_entropy(i.x(4, 2), i.x(3, 2), i.n(3, 4)),
    "cosine_embedding_loss": lambda F, i: F.cosine_embedding_loss(i.x(3, 2), i.x(3, 2), i.sign(3), margin=0.1),
    "margin_ranking_loss": lambda F, i: F.margin_ranking_loss(i.x(3), i.x(3), i.sign(3), margin=0.5),
    "hinge_embedding_loss": lambda F, i: F.hinge_embedding_loss(i.x(3, 2), i.sign(3, 2)),
    "soft_margin_loss": lambda F, i: F.soft_margin_loss(i.x(3, 2), i.sign(3, 2)),
    "triplet_margin_loss": lambda F, i: F.triplet_margin_loss(i.x(3, 2), i.x(3, 2), i.x(3, 2), swap=True),
    "multi_margin_loss": lambda F, i: F.multi_margin_loss(i.x(3, 4), i.n(4, 3), p=2, weight=i.fixed([1.0, 2, 3, 4])),
    "multilabel_margin_loss": lambda F, i: F.multilabel_margin_loss(i.x(2, 4), i.fixed([[3, 0, -1, 1], [1, -1, 2, 3]])),
    "multilabel_soft_margin_loss": lambda F, i: F.multilabel_soft_margin_loss(i.x(2, 3), i.p(2, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_torchs(name, oracle):
    ask = CASES[name]
    expected = oracle(lambda torch: answer(torch, ask))
    found = answer(rushlight, ask)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        if theirs is None:
            assert ours is None or not ours.numpy().any()
        else:
            assert tuple(ours.shape) == theirs.shape
            assert ours.detach().numpy().dtype == theirs.dtype
            np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    "name",
    [n for n in CASES if n not in ("one_hot", "max_pool2d indices", "inplace", "embedding", "embedding by frequency")],
)
def test_gradients_are_slopes(name):
    """Without torch: the gradients are those of the values."""
    inputs = Inputs(rushlight)
    CASES[name](F, inputs)
    leaves = inputs.leaves

    def again(*given):
        replay = Inputs(rushlight)
        values = iter(given)
        replay.leaf = lambda array: next(values)
        return CASES[name](F, replay)

    assert gradcheck(again, tuple(leaves))


# -- what has its own story ------------------------------------------------------------------------


def test_losses_show_torchs_names():
    x, t = rushlight.ones(2, 3, requires_grad=True), rushlight.zeros(2, 3)
    assert repr(F.mse_loss(x, t)) == "tensor(1., grad_fn=<MseLossBackward0>)"
    assert repr(F.cross_entropy(x, rushlight.tensor([0, 1]))) == "tensor(1.0986, grad_fn=<NllLossBackward0>)"
    assert F.l1_loss(x, t).grad_fn.name() == "MeanBackward0"
    assert F.mse_loss(t, t).grad_fn is None


def test_no_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        big = rushlight.tensor([[1e4, -1e4]], requires_grad=True)
        for loss in (
            F.cross_entropy(big, rushlight.tensor([1])),
            F.soft_margin_loss(big, rushlight.tensor([[-1.0, 1.0]])),
            F.binary_cross_entropy_with_logits(big, rushlight.tensor([[0.0, 1.0]])),
            F.softplus(big).sum(),
            F.logsigmoid(big).sum(),
            F.mish(big).sum(),
            F.gelu(big).sum(),
            F.silu(big).sum(),
        ):
            big.grad = None
            loss.backward()
            assert rushlight.isfinite(loss)
            assert rushlight.isfinite(big.grad).all()


def test_ignored_targets_count_for_nothing():
    x = rushlight.tensor([[-math.inf, 0.0, 1.0], [1.0, 2.0, 3.0]], requires_grad=True)
    loss = F.cross_entropy(x, rushlight.tensor([-100, 2]))
    loss.backward()
    assert loss.item() == pytest.approx(0.4076, abs=1e-4)
    assert (x.grad[0] == 0).all()
    assert math.isnan(F.cross_entropy(x, rushlight.tensor([-100, -100])).item())


def test_running_statistics_follow():
    mean, var = rushlight.zeros(2), rushlight.ones(2)
    x = rushlight.tensor([[1.0, 2.0], [3.0, 6.0]])
    F.batch_norm(x, mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [1.0, 2.0]
    assert var.tolist() == [1.5, 4.5]  # the unbiased variance, 2 and 8
    F.batch_norm(x[:0], mean, var, training=True)
    assert mean.tolist() == [1.0, 2.0]


def test_embedding_shortens_rows_in_place():
    weight = rushlight.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    out = F.embedding(rushlight.tensor([0, 1]), weight, max_norm=1.0)
    np.testing.assert_allclose(out.numpy(), [[0.6, 0.8], [0.3, 0.4]], atol=1e-6)
    np.testing.assert_allclose(weight.numpy(), [[0.6, 0.8], [0.3, 0.4], [6, 8]], atol=1e-6)


@pytest.mark.parametrize(
    "name", ["dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]
)
def test_dropout_is_torchs(name, oracle):
    shape = {"dropout": (3, 5), "alpha_dropout": (3, 5), "dropout1d": (2, 3, 2), "dropout2d": (2, 3, 2, 1)}.get(
        name, (2, 3, 2, 1, 1)
    )

    def ask(lib):
        if lib is not rushlight:
            skip_other_stream(lib)
        lib.manual_seed(3)
        x = lib.linspace(-1, 1, math.prod(shape)).reshape(shape)
        f = getattr(lib.nn.functional, name)
        return [f(x, 0.4, True), f(x, 0.4, False), f(x.transpose(0, 1), 0.3, True), f(x, 1.0, True), lib.rand(1)]

    for ours, theirs in zip(ask(rushlight), oracle(ask)):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6, atol=1e-6)


def test_dropout_keeps_the_mean():
    rushlight.manual_seed(0)
    out = F.dropout(rushlight.ones(10000), 0.3)
    assert set(np.round(out.numpy(), 4)) == {np.float32(0), np.float32(1.4286)}
    assert out.mean().item() == pytest.approx(1, abs=0.03)


def test_attention_drops_out():
    rushlight.manual_seed(0)
    q = rushlight.ones(1, 4, 2)
    assert F.scaled_dot_product_attention(q, q, q, dropout_p=0.5).std() > 0


def test_gumbel_softmax_is_one_hot():
    rushlight.manual_seed(0)
    logits = rushlight.zeros(5, 3, requires_grad=True)
    out = F.gumbel_softmax(logits, hard=True)
    assert (out.sum(1) == 1).all()
    assert ((out == 0) | (out == 1)).all()
    (out * rushlight.arange(3)).sum().backward()
    assert logits.grad.abs().sum() > 0


ERRORS = {
    "conv channels": (RuntimeError, "channels", lambda x: F.conv2d(x(1, 3, 4, 4), x(2, 2, 3, 3))),
    "conv dims": (
        RuntimeError,
        "Expected 3D (unbatched) or 4D (batched) input to conv2d",
        lambda x: F.conv2d(x(4, 4), x(2, 2, 3, 3)),
    ),
    "conv kernel": (
        RuntimeError,
        "Kernel size can't be greater than actual input size",
        lambda x: F.conv2d(x(1, 1, 2, 2), x(1, 1, 3, 3)),
    ),
    "conv bias": (RuntimeError, "bias", lambda x: F.conv1d(x(1, 1, 4), x(2, 1, 3), x(3))),
    "conv same strided": (
        RuntimeError,
        "not supported for strided",
        lambda x: F.conv1d(x(1, 1, 4), x(1, 1, 3), stride=2, padding="same"),
    ),
    "linear": (
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
        lambda x: F.linear(x(2, 3), x(5, 4)),
    ),
    "batch size": (
        ValueError,
        "Expected input batch_size (3) to match target batch_size (2)",
        lambda x: F.cross_entropy(x(3, 5), rushlight.tensor([1, 2])),
    ),
    "class": (IndexError, "Target 7 is out of bounds", lambda x: F.nll_loss(x(2, 5), rushlight.tensor([1, 7]))),
    "negative class": (
        IndexError,
        "Target -1 is out of bounds",
        lambda x: F.nll_loss(x(2, 5), rushlight.tensor([1, -1])),
    ),
    "class dtype": (RuntimeError, "expected target dtype to be Long", lambda x: F.nll_loss(x(2, 5), x(2))),
    "weights": (
        RuntimeError,
        "weight tensor should be defined either for all 5 classes",
        lambda x: F.cross_entropy(x(2, 5), rushlight.tensor([1, 2]), x(4)),
    ),
    "reduction": (
        ValueError,
        "avg is not a valid value for reduction",
        lambda x: F.mse_loss(x(2), x(2), reduction="avg"),
    ),
    "probabilities": (RuntimeError, "between 0 and 1", lambda x: F.binary_cross_entropy(x(2) * 3, x(2))),
    "sizes": (ValueError, "must be the same as input size", lambda x: F.binary_cross_entropy_with_logits(x(2), x(3))),
    "row": (IndexError, "out of", lambda x: F.embedding(rushlight.tensor([9]), x(3, 2))),
    "layer_norm": (
        RuntimeError,
        "Given normalized_shape=[3], expected input with shape [*, 3]",
        lambda x: F.layer_norm(x(2, 4), (3,)),
    ),
    "group_norm": (RuntimeError, "divisible by num_groups", lambda x: F.group_norm(x(2, 3), 2)),
    "one value": (
        ValueError,
        "Expected more than 1 value per channel",
        lambda x: F.batch_norm(x(1, 3), None, None, training=True),
    ),
    "dropout": (ValueError, "between 0 and 1", lambda x: F.dropout(x(2), 1.5)),
    "glu": (RuntimeError, "Halving dimension must be even", lambda x: F.glu(x(2, 3))),
    "pad": (RuntimeError, "divisible by 2", lambda x: F.pad(x(2, 3), (1,))),
    "reflect": (RuntimeError, "Padding size should be less than", lambda x: F.pad(x(1, 3), (3, 0), mode="reflect")),
    "pool": (RuntimeError, "Output size is too small", lambda x: F.max_pool2d(x(1, 1, 2, 2), 3)),
    "mask and causal": (
        RuntimeError,
        "Explicit attn_mask should not be set",
        lambda x: F.scaled_dot_product_attention(x(3, 2), x(3, 2), x(3, 2), attn_mask=x(3, 3), is_causal=True),
    ),
    "interpolate": (ValueError, "either size or scale_factor", lambda x: F.interpolate(x(1, 1, 3))),
    "one_hot": (RuntimeError, "smaller than num_classes", lambda x: F.one_hot(rushlight.tensor([3]), 2)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_is_wrong(name):
    kind, message, act = ERRORS[name]
    with pytest.raises(kind) as caught:
        act(lambda *shape: rushlight.ones(*shape))
    assert message in str(caught.value)
    if kind is not NotImplementedError:
        assert "test_functional.py" in str(caught.value), "it names the user's statement"


@pytest.mark.parametrize(
    ("shape", "factors"),
    [((2, 3, 5), (3,)), ((2, 3, 4, 5), (2, 2)), ((1, 2, 3, 4), (1, 7)), ((1, 2, 2, 3, 2), (2, 1, 3))],
)
def test_elements_repeated(shape, factors):
    """'nearest' by whole factors is a sum of windows turned around; gradients add up what each element became."""
    x = rushlight.randn(*shape, requires_grad=True)
    expected = x
    for dim, factor in enumerate(factors, 2):
        expected = expected.repeat_interleave(factor, dim)
    g = rushlight.randn(*expected.shape)
    (theirs,) = rushlight.autograd.grad(expected, x, g)
    for how in ({"scale_factor": factors}, {"size": expected.shape[2:]}):
        made = F.interpolate(x, **how)
        assert rushlight.equal(made, expected)
        (ours,) = rushlight.autograd.grad(made, x, g)
        assert rushlight.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("slope", [0.25, 1.0, 0.0, -0.5, 2.0, float("nan")])
def test_straight_pieces_of_strange_numbers(slope):
    """In the ways that NumPy takes for many numbers, too: nothing is added to an infinity, and no 0 is negative."""
    numbers = np.float32([0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, -0.5, 1e-40, 3e38, -3e38, *np.linspace(-2, 2, 50)])
    x, w = rushlight.from_numpy(numbers), rushlight.tensor([slope])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(F.prelu(x, w), np.where(numbers > 0, numbers, numbers * np.float32(slope)))
    for lambd in (0.5, 0.0):
        shrunk = F.softshrink(x, lambd).numpy()
        expected = np.sign(numbers) * np.maximum(np.abs(numbers) - np.float32(lambd), 0)
        np.testing.assert_array_equal(shrunk, expected)
        assert not np.signbit(shrunk[shrunk == 0]).any()


NOTHING = {
    "linear of no features": lambda t: (t.nn.functional.linear, (2, 4, 0), (3, 0), (3,)),
    "linear to no features": lambda t: (t.nn.functional.linear, (2, 4, 5), (0, 5), (0,)),
    "layer norm of none": lambda t: (lambda x: t.nn.functional.layer_norm(x, (0,)), (2, 4, 0)),
    "attention of none": lambda t: (t.nn.functional.scaled_dot_product_attention, (2, 3, 0), (2, 4, 0), (2, 4, 5)),
}


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("name", NOTHING)
def test_layers_of_no_features(oracle, name):
    """-1 does not say how many rows there are, where rows hold nothing."""

    def shapes(t):
        f, *sizes = NOTHING[name](t)
        inputs = [t.ones(size, requires_grad=True) for size in sizes]
        out = f(*inputs)
        out.sum().backward()
        return [out, *(x.grad for x in inputs)]

    for a, b in zip(shapes(rushlight), oracle(shapes), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b)


def of_signs(t):
    return t.tensor([1.0, -1.0, 1.0, -1.0])


POSITIONAL = {
    "kl_div": lambda t, a, b, c, r: t.kl_div(a.log_softmax(1), b.softmax(1), r),
    "kl_div, log_target": lambda t, a, b, c, r: t.kl_div(a, b.log_softmax(1), r, log_target=True),
    "hinge": lambda t, a, b, c, r: t.hinge_embedding_loss(a, b.sign(), 1.0, r),
    "cosine": lambda t, a, b, c, r: t.cosine_embedding_loss(a, b, of_signs(t), 0.1, r),
    "ranking": lambda t, a, b, c, r: t.margin_ranking_loss(a[:, 0], b[:, 0], of_signs(t), 0.2, r),
    "triplet": lambda t, a, b, c, r: t.triplet_margin_loss(a, b, c, 1.0, 2.0, 1e-6, False, r),
    "poisson": lambda t, a, b, c, r: t.poisson_nll_loss(a, b.exp(), True, False, 1e-8, r),
    "bce": lambda t, a, b, c, r: t.binary_cross_entropy_with_logits(a, b.sigmoid(), None, None, r),
    "ctc": lambda t, a, b, c, r: t.ctc_loss(
        a[:, None].log_softmax(2), t.tensor([[1, 2]]), t.tensor([4]), t.tensor([2]), 0, r
    ),
    "embedding": lambda t, a, b, c, r: t.embedding(a, t.tensor([r, 2]), 1),
    "batch_norm": lambda t, a, b, c, r: t.batch_norm(a, b[0], c[0], None, None, True, 0.1, 1e-5, False),
    "instance_norm": lambda t, a, b, c, r: t.instance_norm(a[None], None, None, None, None, True, 0.1, 1e-5, False),
}


def three(t):
    t.manual_seed(0)
    return t.randn(4, 5), t.randn(4, 5), t.randn(4, 5)


@pytest.mark.origin("scripts")
@pytest.mark.parametrize("name", POSITIONAL)
def test_functions_in_the_order_of_torchs_own_code(oracle, name):
    for reduction in (0, 1, 2):
        expected = oracle(lambda t, r=reduction: POSITIONAL[name](t, *three(t), r))
        np.testing.assert_allclose(
            POSITIONAL[name](rushlight, *three(rushlight), reduction), expected, rtol=1e-5, atol=1e-6
        )


@pytest.mark.origin("scripts")
def test_too_many_arguments_say_which_there_are():
    with pytest.raises(TypeError, match="torch.kl_div\\(input, target, reduction\\)"):
        rushlight.kl_div(1, 2, 3, 4)


program = Programs()


@program.found_in("torch tests")
def layers_refuse_images_of_nothing(torch):
    f, zeros = torch.nn.functional, torch.zeros
    shapes = [(3, 0, 4), (0, 3, 4), (0, 4), (2, 3, 0), (0, 0, 4)]
    pads = [(shape, mode) for shape in shapes for mode in ("reflect", "replicate")]
    return [
        *[outcome(f.pad, zeros(shape), (2, 2), mode=mode) for shape, mode in pads],
        *[outcome(f.pad, zeros(shape), (2, 2), mode="circular") for shape in [(3, 0, 4), (0, 3, 4)]],
        *[outcome(f.unfold, zeros(shape), 2) for shape in [(1, 0, 5, 5), (0, 2, 5, 5), (0, 5, 5)]],
        *[outcome(f.fold, zeros(shape), (4, 5), 2) for shape in [(1, 0, 12), (0, 4, 12), (0, 12)]],
        *[outcome(f.interpolate, zeros(shape), 2) for shape in [(2, 0, 4, 4), (0, 2, 4, 4), (2, 0, 4), (2, 1, 0)]],
        *[outcome(f.group_norm, zeros(shape), groups) for shape, groups in [((1, 4), 4), ((2, 4), 4), ((1, 4), 2)]],
    ]


@program.found_in("torch tests")
def sizes_are_whole_numbers(torch):
    f, x = torch.nn.functional, torch.zeros(1, 1, 4)
    sizes = [
        2.0,
        (2.0,),
        torch.tensor(2.0),
        "a",
        (None,),
        2,
        torch.tensor(2),
        (torch.tensor(2),),
        np.int64(2),
        (np.int32(3),),
    ]
    ratios = [[0.5, 0.5, 0.6], (0.5, 0.25)]
    return [
        *[outcome(f.interpolate, x, size=size) for size in sizes],
        *[outcome(f.fractional_max_pool2d, torch.zeros(1, 1, 8, 8), 2, output_ratio=r) for r in ratios],
    ]


@pytest.mark.origin("torch tests")
@pytest.mark.parametrize(
    ("words", "call"),
    [
        (
            "0D or 1D target tensor expected, multi-target not supported",
            lambda x: rushlight.nn.functional.cosine_embedding_loss(x, x, x),
        ),
        (
            "both arguments to linear need to be at least 1D, but they are 0D and 2D",
            lambda x: rushlight.nn.Linear(1, 1)(rushlight.tensor(1.0)),
        ),
        ("smaller than num_classes", lambda x: rushlight.nn.functional.one_hot(x.long(), -2)),
        ("Expected num groups to be greater than 0, got -2", lambda x: rushlight.nn.functional.group_norm(x, -2)),
    ],
)
def test_layers_say_what_they_expected(words, call):
    with pytest.raises(RuntimeError, match=words):
        call(rushlight.zeros(2, 4))


test_program = program.test()
