"""Tensors on the device "meta": shapes and dtypes as torch's, no elements, and clear words where numbers are asked
for."""

from __future__ import annotations

import copy
import pickle
import warnings
from importlib import import_module

import pytest

import rushlight
from rushlight import nn


def shapes(lib):
    """What ops make of tensors without elements: shapes, dtypes, steps in memory, whether they require a gradient."""
    F, layers = import_module(f"{lib.__name__}.nn.functional"), import_module(f"{lib.__name__}.nn")
    m = lib.empty(2, 3, device="meta")
    with lib.device("meta"):
        image, net = (
            lib.randn(4, 3, 16, 16),
            layers.Sequential(
                layers.Conv2d(3, 8, 3),
                layers.BatchNorm2d(8),
                layers.ReLU(),
                layers.MaxPool2d(2),
                layers.Dropout(),
                layers.Flatten(),
                layers.Linear(8 * 7 * 7, 10),
                layers.LayerNorm(10),
                layers.Softmax(-1),
            ),
        )
        q, words, long = lib.randn(1, 2, 5, 8), lib.randint(100, (3, 4)), lib.zeros(2, 1, dtype=lib.long)
        written = m.clone()
        written[0] = 1
        written[:, 1] += 2
        written.add_(1).mul_(m).normal_()
        return [
            m,
            m.t(),
            m.t().contiguous(),
            m.half(),
            m[0],
            m[:, 1:],
            m > 0,
            m.argmax(1),
            m.sum(0, keepdim=True).expand(4, 3) * 2,
            lib.cat([m, m]).softmax(-1).topk(2).indices,
            lib.einsum("ij,jk->ik", m, lib.randn(3, 4)),
            written,
            m.view(3, 2),
            m + lib.tensor(2.0, device="cpu"),
            m[lib.tensor([0, 1, 1])],
            m.gather(1, long),
            lib.where(m > 0, m, 0.0),
            lib.arange(5),
            lib.eye(3),
            lib.full((2,), 3),
            lib.randperm(4),
            lib.zeros_like(m),
            m.new_zeros(4),
            lib.rand_like(m),
            m.new_zeros(4, device="cpu"),
            lib.zeros_like(m, device="cpu"),
            lib.ones(2, device="cpu"),
            net(image),
            F.cross_entropy(net(image), lib.randint(10, (4,))),
            layers.LSTM(3, 5, 2, dropout=0.1)(lib.randn(2, 4, 3))[0],
            layers.MultiheadAttention(8, 2)(*[lib.randn(5, 2, 8)] * 3)[0],
            layers.Embedding(100, 8)(words),
            F.scaled_dot_product_attention(q, q, q, is_causal=True),
            F.interpolate(image, scale_factor=2, mode="bilinear"),
            lib.nn.init.orthogonal_(lib.empty(3, 3)),
            lib.nn.init.trunc_normal_(lib.empty(3)),
            *net.state_dict().values(),
        ]


def test_shapes_are_torchs(torch):
    def facts(t):
        return str(t.device), tuple(t.shape), str(t.dtype), t.requires_grad

    assert [facts(t) for t in shapes(rushlight)] == [facts(t) for t in shapes(torch)]


def test_print_as_torchs(torch):
    def shown(lib):
        m = lib.empty(2, 3, device="meta", requires_grad=True)
        return (repr(m), repr(lib.nn.Parameter(m)), repr(lib.zeros(2, dtype=lib.int64, device="meta")), repr(m * 2))

    assert shown(rushlight) == shown(torch)


def test_it_takes_no_memory():
    with rushlight.device("meta"):
        huge = nn.Linear(1 << 20, 1 << 20)  # 4 TiB
    assert huge.weight.nbytes == 1 << 42
    assert copy.deepcopy(huge).weight.is_meta
    assert pickle.loads(pickle.dumps(huge.weight)).shape == huge.weight.shape


def test_drawing_and_dropout_leave_the_stream_where_it_is():
    rushlight.manual_seed(0)
    expected = rushlight.rand(1)
    rushlight.manual_seed(0)
    rushlight.randn(3, device="meta")
    nn.Linear(3, 3, device="meta")
    nn.functional.dropout(rushlight.ones(3, device="meta"))
    assert rushlight.equal(rushlight.rand(1), expected)


def test_an_empty_module_is_filled():
    real, x = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), rushlight.rand(5, 3)
    with rushlight.device("meta"):
        loaded = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    reset = nn.Linear(3, 4, device="meta").to_empty(device="cpu")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loaded.load_state_dict(real.state_dict())
    assert len(told) == 7
    assert "is a no-op" in str(told[0].message)
    assert loaded[0].weight.is_meta
    loaded.load_state_dict(real.state_dict(), assign=True)
    assert rushlight.equal(loaded(x), real(x))
    assert loaded[0].weight.requires_grad
    rushlight.manual_seed(3)
    fresh = nn.Linear(3, 4)
    rushlight.manual_seed(3)
    reset.reset_parameters()
    assert rushlight.equal(reset.weight, fresh.weight)
    assert fresh.to("meta").bias.is_meta


def test_backward_gives_gradients_without_elements():
    layer = nn.Linear(3, 4, device="meta")
    y = layer(rushlight.ones(2, 3, device="meta"))
    (y.relu() + y).sum().backward()
    assert layer.weight.grad.is_meta
    assert layer.weight.grad.shape == (4, 3)


NUMBERS = [
    (lambda m: m[0, 0].item(), RuntimeError, "cannot be called on meta tensors"),
    (lambda m: bool(m[0, 0] > 0), RuntimeError, "cannot be called on meta tensors"),
    (lambda m: m.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda m: m.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda m: rushlight.zeros(2, 3).copy_(m), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda m: nn.Linear(2, 2, device="meta").to("cpu"), NotImplementedError, "to_empty"),
    (lambda m: m.numpy(), TypeError, "can't convert meta device type tensor to numpy"),
    (lambda m: m.nonzero(), NotImplementedError, "nonzero"),
    (lambda m: m[m > 0], (NotImplementedError, IndexError), "shape depends on the elements"),
    (lambda m: m.unique(), NotImplementedError, "unique"),
    (lambda m: m + rushlight.ones(2, 3), RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
    (lambda m: m @ m, RuntimeError, "2x3 and 2x3"),
    (lambda m: m + rushlight.ones(4, 3, device="meta"), RuntimeError, "must match"),
]


@pytest.mark.parametrize(("ask", "error", "text"), NUMBERS)
def test_numbers_are_refused(ask, error, text):
    with pytest.raises(error, match=text):
        ask(rushlight.empty(2, 3, device="meta"))


def test_the_chosen_device_is_left_again():
    with rushlight.device("meta"):
        with rushlight.device("cpu"):
            assert rushlight.ones(2).is_cpu
        assert rushlight.ones(2).is_meta
        assert rushlight.get_default_device().type == "meta"
    assert rushlight.ones(2).is_cpu
    try:
        rushlight.set_default_device("meta")
        assert rushlight.tensor([1.0]).is_meta
        assert rushlight.ones(2, device="cpu").is_cpu
    finally:
        rushlight.set_default_device(None)
    assert rushlight.tensor([1.0]).is_cpu
    with pytest.raises(RuntimeError, match="does not exist here"), rushlight.device("xpu"):
        pass


def test_ops_do_not_compute(torch):
    """What a model of 1e15 parameters makes of 1e9 tokens, in half precision too, and how it lies; torch says the
    same."""

    def facts(lib):
        F, n = import_module(f"{lib.__name__}.nn.functional"), 1 << 20

        def made(*shape, dtype=lib.float32):
            return lib.empty(*shape, dtype=dtype, device="meta")

        x, w, image = made(1 << 15, 1 << 15, n), made(n, n), made(1 << 20, 1 << 10, 16, 16)
        h, words = x.half(), made(1 << 15, 1 << 15, dtype=lib.long)
        return [
            (tuple(t.shape), t.dtype.__repr__(), t.stride())
            for t in [
                x @ w,
                F.linear(h, w.half()),
                x.transpose(0, 2) * 2,
                x + x[0],
                x.mean(1),
                x.amax((0, 2)),
                h.softmax(-1),
                h.mean(-1),
                F.layer_norm(x, (n,)),
                F.embedding(words, w),
                x.std(0),
                x.max(1).indices,
                F.conv2d(image, made(1 << 12, 1 << 10, 3, 3)),
                F.max_pool2d(image, 2),
                F.dropout(x),
                x.view(-1, n),
                x > x[:, :1],
                lib.where(x > 0, x, 0.0),
                F.scaled_dot_product_attention(*[made(1, 1 << 10, 1 << 20, 1 << 10)] * 3),
                x[::2].exp(),
                F.batch_norm(image, None, None, training=True),
                x.reshape(-1),
                w.t().contiguous(),
            ]
        ]

    assert facts(rushlight) == facts(torch)


def test_what_computes_with_sizes_does_not_compute(torch):
    """Recurrent layers, joined, padded, repeated and indexed tensors of up to 1e15 elements."""

    def facts(lib):
        layers, F, n = import_module(f"{lib.__name__}.nn"), import_module(f"{lib.__name__}.nn.functional"), 1 << 20
        with lib.device("meta"):
            x, steps, places = lib.empty(n, n), lib.empty(5, n, 64), lib.zeros(n, dtype=lib.long)
            layer = layers.LSTM(64, 1 << 15, 2, bidirectional=True, proj_size=1 << 12)
            out, (h, c) = layer(steps)
            grouped = lib.empty(1 << 30, 6, 8, 8)
            made = [
                out,
                h,
                c,
                *layers.GRU(64, n, batch_first=True)(steps.transpose(0, 1)),
                *layers.RNN(64, n)(steps[:, 0]),
                layers.GRUCell(64, n)(steps[0]),
                *layers.LSTMCell(64, n)(steps[0]),
                lib.cat([x, x, x[:3]]),
                lib.cat([x, x[:, :5]], -1),
                lib.stack([x, x]),
                lib.stack([x, x], -1),
                F.pad(x, (1, 2, 3, -4)),
                x.repeat(3, 1, 2),
                x[places],
                x[:, places],
                x[None, places, ..., places],
                x.gather(1, places[:, None]),
                x.index_select(1, places),
                x.scatter(0, places[None], 1.0),
                x.index_add(0, places, x),
                x.topk(3).indices,
                F.group_norm(grouped, 3),
                x.roll(1, 0),
                F.cross_entropy(x, places),
                F.nll_loss(x, places, reduction="none"),
                lib.cat([x.half(), x.half()]),
                x.sort().values,
            ]
            return [(tuple(t.shape), t.dtype.__repr__(), t.stride(), t.requires_grad) for t in made]

    assert facts(rushlight) == facts(torch)


def test_wrong_sizes_are_refused_as_ever():
    with rushlight.device("meta"):
        x = rushlight.empty(3, 4)
        for ask in (
            lambda: rushlight.cat([x, x[:, :2]]),
            lambda: rushlight.stack([x, x[:2]]),
            lambda: x.repeat(2),
            lambda: nn.functional.pad(x, (-5, 0)),
            lambda: nn.functional.group_norm(x, 3),
        ):
            with pytest.raises(RuntimeError):
                ask()
        for ask in (lambda: rushlight.cat([x, x], 2), lambda: rushlight.stack([x, x], 3), lambda: x.topk(2, 2)):
            with pytest.raises(IndexError):
                ask()


def test_a_huge_model_is_trained():
    with rushlight.device("meta"):
        model = nn.Sequential(nn.Embedding(1 << 20, 1 << 20), nn.Linear(1 << 20, 3 << 20), nn.LayerNorm(3 << 20))
        y = model(rushlight.zeros(1 << 10, 3, dtype=rushlight.long))
        y.square().mean().backward()
    assert model[1].weight.grad.shape == (3 << 20, 1 << 20)


def test_errors_name_the_true_sizes():
    with rushlight.device("meta"), pytest.raises(RuntimeError, match=r"1024x2048 and 4096x8"):
        rushlight.empty(1024, 2048) @ rushlight.empty(4096, 8)


def test_functions_that_look_at_numbers_say_shapes():
    """Checks of arguments find nothing wrong where there are no numbers."""
    x = rushlight.zeros(3, 4, 4, device="meta")
    for made in (
        rushlight.linalg.inv(x),
        rushlight.linalg.cholesky(x),
        rushlight.cholesky_inverse(x),
        x.bernoulli(),
        rushlight.normal(x, x),
        nn.functional.affine_grid(x[:, :2, :3], (3, 1, 4, 4), align_corners=False),
        x.quantile(0.5, 1),
        nn.functional.one_hot(x.long(), 5),
        x.take(x.long()),
        x[0].multinomial(3),
    ):
        assert made.is_meta
