"""Attention in native functions: blocks of queries, one query, masks, causal, and strided heads."""

import numpy as np
import pytest

import rushlight.nn.functional as F
from tests.compile.native.native_case import assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")
attend = F.scaled_dot_product_attention


@pytest.mark.faster
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("lead", "queries", "keys", "size"),
    [((2, 3), 20, 20, 8), ((1, 2), 64, 64, 64), ((3,), 7, 33, 5), ((1, 1), 100, 17, 20), ((2, 1), 130, 300, 17)],
)
def test_blocks_of_queries(lead, queries, keys, size, causal):
    q, k, v = normal(*lead, queries, size), normal(*lead, keys, size), normal(*lead, keys, size)
    assert_same(lambda q, k, v: attend(q, k, v, is_causal=causal) * 2, q, k, v, tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize(("queries", "keys", "size"), [(1, 65, 32), (1, 1, 4), (2, 40, 64), (3, 17, 5), (1, 300, 17)])
def test_few_queries(queries, keys, size):
    q, k, v = normal(3, 2, queries, size), normal(3, 2, keys, size), normal(3, 2, keys, size)
    assert_same(lambda q, k, v: attend(q, k, v) + 1, q, k, v, tolerance=2e-6)
    assert_same(lambda q, k, v: attend(q, k, v, is_causal=True), q, k, v, tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize("queries", [1, 20])
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 1), (2, 3, 20), (1, 1, 20)])
def test_masks(shape, queries):
    """A query whose keys are all masked has the result 0."""
    q, k, v = normal(2, 3, queries, 8), normal(2, 3, 23, 8), normal(2, 3, 23, 8)
    mask = normal(*shape[:2], min(shape[2], queries), 23)
    mask[mask > 0.5] = -np.inf
    mask[-1, -1, -1] = -np.inf
    assert_same(lambda q, k, v, mask: attend(q, k, v, mask), q, k, v, mask, tolerance=2e-6)


@pytest.mark.faster
def test_a_mask_of_bools():
    q, k, v = normal(2, 3, 20, 8), normal(2, 3, 23, 8), normal(2, 3, 23, 8)
    assert_same(lambda q, k, v, m: attend(q, k, v, m > 0), q, k, v, normal(2, 1, 1, 23), tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize("queries", [1, 20])
def test_heads_side_by_side(queries):
    """Views of one projection; the heads of the result are neighbours, so that the reshape is a view."""

    def heads(x):
        q, k, v = (part.transpose(1, 2) for part in x.reshape(2, queries, 3, 3, 8).unbind(2))
        return attend(q, k, v).transpose(1, 2).reshape(2, queries, 24) + 1

    assert_same(heads, normal(2, queries, 72), tolerance=2e-6)


@pytest.mark.faster
def test_numbers_of_other_strides():
    q, k, v = normal(2, 3, 8, 20), normal(2, 3, 8, 23), normal(2, 3, 8, 23)
    assert_same(lambda q, k, v: attend(q.mT, k.mT, v.mT) + 1, q, k, v, tolerance=2e-6)


@pytest.mark.faster
def test_scores_of_huge_numbers():
    q, k, v = normal(1, 2, 20, 8) * 100, normal(1, 2, 23, 8), normal(1, 2, 23, 8)
    assert_same(lambda q, k, v: attend(q, k, v) + 1, q, k, v, tolerance=1e-4)  # scores of 1,000 have 1e-4 of error


@pytest.mark.faster
@pytest.mark.parametrize("queries", [1, 20, 150])
def test_heads_on_two_cores(monkeypatch, queries):
    q, k, v = normal(1, 3, queries, 8), normal(1, 3, 23, 8), normal(1, 3, 23, 8)
    assert_same_on_cores(monkeypatch, lambda q, k, v: attend(q, k, v) + 1, q, k, v, tolerance=2e-6)
