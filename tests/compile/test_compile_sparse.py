"""Compiled functions that meet sparse tensors run as they are, and say so."""

from __future__ import annotations

import warnings

import pytest

import rushlight as torch
from rushlight.compile import compile

AT = torch.tensor([[0, 1], [1, 0]])
MATRIX = torch.sparse_coo_tensor(AT, torch.tensor([1.0, 2.0]), (2, 2)).to_sparse_csr()


def returned(x):
    return torch.sparse.mm(torch.sparse_coo_tensor(AT, x, (2, 2)), torch.ones(2, 2))


def reached(x):
    return (MATRIX @ x.view(2, 1)).relu()


def looked_at(x):
    y = (x * 2).sum().item()
    return returned(x + y).sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [returned, reached, looked_at])
def test_sparse_tensors(function):
    fast = compile(function, backend="numpy")
    for k in range(5):
        x = torch.tensor([1.0, 2.0]) + k
        assert torch.equal(fast(x), function(x))


def test_sparse_arguments():
    fast = compile(torch.sparse.mm, backend="numpy")
    s = torch.sparse_coo_tensor(AT, torch.tensor([1.0, 2.0]), (2, 2))
    for _ in range(4):
        assert fast(s, torch.ones(2, 1)).tolist() == [[1], [2]]


@pytest.mark.parametrize("looks", [False, True])
def test_sparse_gradients_stay_sparse(looks):
    def losses(make):
        torch.manual_seed(0)
        table = torch.nn.Embedding(5, 2, sparse=True)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)

        def step(i):
            scale = table.weight.abs().max().item() if looks else 1.0
            optimizer.zero_grad()
            loss = (table(i) * scale).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        f = make(step)
        return [f(torch.tensor([1, 1, 3])).item() for _ in range(6)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert losses(lambda f: compile(f, backend="numpy")) == losses(lambda f: f)
