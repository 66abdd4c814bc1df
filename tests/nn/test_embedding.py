"""Embeddings and bags: offsets, no columns, sparse gradients, tangents."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import nn, tensor
from rushlight.nn import functional as F

TABLE = rushlight.arange(12.0).reshape(6, 2)


@pytest.mark.origin("suites")
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_last_offset_ends_the_last_bag(mode):
    ids = tensor([0, 1, 2, 3])
    made = F.embedding_bag(ids, TABLE, tensor([0, 2, 2]), mode=mode, include_last_offset=True)
    whole = F.embedding_bag(ids[:2], TABLE, tensor([0, 2]), mode=mode)
    assert made.tolist() == whole.tolist()
    assert F.embedding_bag(ids, TABLE, tensor([0]), mode=mode, include_last_offset=True).shape == (0, 2)


@pytest.mark.origin("suites")
@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ([0, 5], r"offsets\[-1\] can not be greater than input's length 4"),
        ([0, 3, 2], "offsets must not decrease"),
        ([1, 2], r"offsets\[0\] has to be 0"),
        ([0.0], "argument #1 'offsets'"),
    ],
)
def test_bags_say_which_offsets_cannot_be(offsets, words):
    with pytest.raises(RuntimeError, match=words):
        F.embedding_bag(tensor([0, 1, 2, 3]), TABLE, tensor(offsets))


@pytest.mark.origin("suites")
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"input": tensor([[0, 6]])}, RuntimeError, "found idx to be 6"),
        ({"input": tensor([[-1, 0]])}, RuntimeError, "found idx to be -1"),
        ({"weight": TABLE[None]}, RuntimeError, "weight has to be a 2D Tensor"),
        ({"padding_idx": 6}, RuntimeError, "padding_idx must be within the number of embeddings"),
        ({"per_sample_weights": rushlight.ones(2)}, ValueError, "same shape as the input"),
        ({"per_sample_weights": rushlight.ones(1, 2).double()}, RuntimeError, "have the same type as"),
    ],
)
def test_bags_say_which_arguments_cannot_be(change, error, words):
    with pytest.raises(error, match=words):
        F.embedding_bag(**({"input": tensor([[0, 1]]), "weight": TABLE, "mode": "sum"} | change))


@pytest.mark.origin("suites")
def test_empty_bags_are_part_of_the_graph():
    table = TABLE.clone().requires_grad_()
    for mode in ("sum", "mean", "max"):
        F.embedding_bag(tensor([1]), table, tensor([0]), mode=mode, padding_idx=1).sum().backward()
    assert not table.grad.any()


@pytest.mark.origin("suites")
def test_tables_of_no_columns_have_sparse_gradients():
    for rows in (0, 10):
        table = nn.Embedding(rows, 0, sparse=True)
        table(tensor([] if rows == 0 else [1, 2], dtype=rushlight.int64)).sum().backward()
        assert table.weight.grad.is_sparse
        assert table.weight.grad.shape == (rows, 0)


@pytest.mark.origin("suites")
def test_frozen_tables_may_hold_integers():
    table = nn.Embedding.from_pretrained(tensor([[1, 2], [3, 4]]))
    assert table(tensor([1])).tolist() == [[3, 4]]
    assert not table.weight.requires_grad


@pytest.mark.origin("suites")
def test_shortened_rows_keep_their_tangents():
    from rushlight.func import forward_ad

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(TABLE * 2, rushlight.ones(6, 2))
        tangent = forward_ad.unpack_dual(F.embedding(tensor([0, 2]), dual, max_norm=1.0)).tangent
    assert tangent.tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("index", [[0, 0], [[0, 1, 1], [2, 0, 0]], [3]])
def test_gradients_scaled_by_frequency_are_scaled_once(oracle, index):
    def run(torch):
        w = torch.arange(1.0, 9.0).reshape(4, 2).requires_grad_()
        rows = torch.nn.functional.embedding(torch.tensor(index), w, scale_grad_by_freq=True)
        (first,) = torch.autograd.grad((rows**3).sum(), w, create_graph=True)
        (second,) = torch.autograd.grad((first * w.detach()).sum(), w)
        return [first.detach(), second]

    for ours, theirs in zip(run(rushlight), oracle(run)):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)
