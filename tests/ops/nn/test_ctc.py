"""CTC loss against torch, against a sum over all alignments, and what it refuses."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np
import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F


def case(seed):
    """(log_probs before the softmax, targets without the blank, lengths, settings); some have no alignment."""
    rng = np.random.default_rng(seed)
    t, n, c, s = rng.integers(3, 10), rng.integers(1, 5), rng.integers(2, 6), rng.integers(1, 5)
    blank = int(rng.integers(c))
    labels = rng.integers(0, c - 1, (n, s))
    labels += labels >= blank
    lengths = rng.integers(0, s + 1, n)
    if seed % 2:
        labels = np.concatenate([row[:k] for row, k in zip(labels, lengths)])
    times = rng.integers(1, t + 1, n)
    settings = {"blank": blank, "reduction": ["mean", "sum", "none"][seed % 3], "zero_infinity": seed % 5 < 3}
    return rng.normal(size=(t, n, c)), labels, times, lengths, settings


def answers(lib, functional, seed):
    x, labels, times, lengths, settings = case(seed)
    x = lib.tensor(x, requires_grad=True)
    args = [lib.tensor(a) for a in (labels, times, lengths)]
    loss = functional.ctc_loss(x.log_softmax(-1), *args, **settings)
    loss.sum().backward()
    return [loss.detach(), x.grad]


@pytest.mark.parametrize("seed", range(12))
def test_like_torch(oracle, seed):
    expected = oracle(lambda torch: answers(torch, torch.nn.functional, seed))
    for got, want in zip(answers(rl, F, seed), expected):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-7, atol=1e-9)


def test_is_the_sum_over_alignments():
    x = rl.randn(4, 1, 3, dtype=rl.float64).log_softmax(-1)
    p = x.exp().numpy()[:, 0]
    total = 0.0
    for path in product(range(3), repeat=4):
        if [c for c, _ in groupby(path) if c != 0] == [1, 1]:
            total += np.prod([p[t, c] for t, c in enumerate(path)])
    loss = F.ctc_loss(x, rl.tensor([[1, 1]]), (4,), (2,), reduction="sum")
    np.testing.assert_allclose(loss.item(), -np.log(total), rtol=1e-12)


def test_without_a_batch():
    x = rl.randn(5, 3).log_softmax(-1)
    alone = nn.CTCLoss(reduction="none")(x, rl.tensor([1, 2]), rl.tensor(5), rl.tensor(2))
    assert alone.shape == ()
    assert alone == F.ctc_loss(x.unsqueeze(1), rl.tensor([1, 2]), (5,), (2,), reduction="none")[0]


def test_gradient_of_logits():
    labels = rl.tensor([[1, 2, 2], [2, 1, 0]])

    def loss(x):
        return F.ctc_loss(x.log_softmax(-1), labels, (6, 5), (3, 2), reduction="sum")

    assert rl.autograd.gradcheck(loss, rl.randn(6, 2, 3, dtype=rl.float64, requires_grad=True))


def test_second_derivative_is_refused():
    x = rl.randn(4, 1, 3, requires_grad=True)
    loss = F.ctc_loss(x.log_softmax(-1), rl.tensor([[1, 2]]), (4,), (2,))
    (g,) = rl.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(NotImplementedError, match="derivative for ctc_loss_backward is not implemented"):
        (g * g).sum().backward()


X = rl.zeros(5, 2, 4)
Y = rl.tensor([[1, 2], [1, 3]])


@pytest.mark.parametrize(
    ("args", "settings", "error", "words"),
    [
        ((X, Y, (5, 5, 5), (2, 2)), {}, RuntimeError, "input_lengths must be of size batch_size"),
        ((X, Y, (5, 5), (2,)), {}, RuntimeError, "target_lengths must be of size batch_size"),
        ((X, Y, (5, 6), (2, 2)), {}, RuntimeError, "Expected input_lengths to have value at most 5, but got value 6"),
        ((X, Y, (5, 5), (2, -1)), {}, RuntimeError, "Expected target_lengths to have value at least 0"),
        ((X, Y, (5, 5), (2, 3)), {}, RuntimeError, "Expected tensor to have size at least 3 at dimension 1"),
        ((X, Y[0], (5, 5), (2, 2)), {}, RuntimeError, "Expected tensor to have size 4 at dimension 0, but got size 2"),
        ((X, Y, rl.tensor([5.0, 5.0]), (2, 2)), {}, RuntimeError, "input_lengths must be integral"),
        ((X, Y, (5, 5), (2, 2)), {"blank": 4}, RuntimeError, "blank must be in label range"),
        ((X, Y + 2, (5, 5), (2, 2)), {}, RuntimeError, "targets must be in label range"),
        *[
            ((X.to(dtype), Y, (5, 5), (2, 2)), {}, NotImplementedError, '"ctc_loss" not implemented for')
            for dtype in (rl.float16, rl.int64, rl.bool, rl.complex64)
        ],
        ((X[:0], Y, (5, 5), (2, 2)), {}, RuntimeError, "log_probs tensor must not be empty"),
        ((X, Y, (5, 5), (2, 2)), {"reduction": "all"}, ValueError, "all is not a valid value for reduction"),
    ],
)
def test_refused(args, settings, error, words):
    with pytest.raises(error, match=words):
        F.ctc_loss(*args, **settings)
