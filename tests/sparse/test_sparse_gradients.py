"""Sparse gradients of tables, and the optimizers that take them, beside torch's."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import rushlight
from rushlight import nn, optim
from rushlight.autograd import gradcheck
from tests.support.programs import Programs

program = Programs()


def table(lib, **options):
    weight = lib.linspace(-1.0, 1.0, 12).reshape(6, 2).clone()
    return lib.nn.Embedding(6, 2, sparse=True, _weight=weight, **options)


def trained(lib, name, rounds=4, padding_idx=None, **settings):
    """A table after some steps; in the second round two gradients meet."""
    t = table(lib, padding_idx=padding_idx)
    optimizer = getattr(lib.optim, name)(t.parameters(), **settings)
    for i in range(rounds):
        optimizer.zero_grad()
        (t(lib.tensor([[1, 2], [2, i * 2 % 6]])) ** 2).sum().backward()
        if i == 1:
            t(lib.tensor([5, 2])).sum().backward()
        assert t.weight.grad.is_sparse
        optimizer.step()
    return t.weight.detach()


@program
def sgd(lib):
    return [
        trained(lib, "SGD", lr=0.1),
        trained(lib, "SGD", lr=0.1, maximize=True),
        trained(lib, "SGD", 4, 2, lr=0.1),
        trained(lib, "SGD", lr=0.1, momentum=0.9),
        trained(lib, "SGD", lr=0.1, momentum=0.9, nesterov=True),
        trained(lib, "SGD", lr=0.1, momentum=0.9, dampening=0.3),
    ]


@program
def adagrad(lib):
    return [
        trained(lib, "Adagrad", lr=0.1, lr_decay=0.1),
        trained(lib, "Adagrad", 4, 2, lr=0.1, initial_accumulator_value=1),
    ]


@program
def sparse_adam(lib):
    return [
        trained(lib, "SparseAdam", lr=0.1),
        trained(lib, "SparseAdam", 4, 2, lr=0.1, betas=(0.5, 0.7), eps=1e-3),
        trained(lib, "SparseAdam", lr=0.1, maximize=True),
        repr(lib.optim.SparseAdam(table(lib).parameters())),
    ]


@program
def gradients(lib):
    t = table(lib, padding_idx=3)
    y = t(lib.tensor([[1, 3], [0, 1]]))
    (y * y).sum().backward()
    g = t.weight.grad
    found = [repr(g), repr(g.coalesce()), g.to_dense(), g.is_coalesced(), (g * 2).to_dense(), g.norm()]
    t.weight.grad = None
    (t(lib.tensor([1])).sum() + t.weight.sum()).backward()  # a dense one comes too
    found.append(t.weight.grad.clone())
    t(lib.tensor([1, 1])).sum().backward()
    found.append(t.weight.grad.clone())
    t.weight.grad = None
    t(lib.tensor([1, 1])).sum().backward()
    t.weight.sum().backward()
    found.append(t.weight.grad)
    t.weight.grad = lib.sparse_coo_tensor([[4]], lib.ones(1, 2), (6, 2))
    t(lib.tensor([1])).sum().backward()
    found += [t.weight.grad.to_dense(), repr(lib.autograd.grad(t(lib.tensor([2])).sum(), t.weight)[0])]
    found.append(
        lib.autograd.grad(t(lib.tensor([2, 3])).pow(3).sum(), t.weight, create_graph=True)[0].to_dense().detach()
    )
    t.zero_grad(set_to_none=False)
    return [*found, t.weight.grad._nnz()]


@program
def bags(lib):
    found = []
    for mode in ("sum", "mean"):
        bag = lib.nn.EmbeddingBag(
            6, 2, mode=mode, sparse=True, _weight=lib.linspace(-1.0, 1.0, 12).reshape(6, 2).clone(), padding_idx=4
        )
        (bag(lib.tensor([1, 4, 5, 1]), lib.tensor([0, 3])) ** 2).sum().backward()
        found += [bag.weight.grad.is_sparse, bag.weight.grad.to_dense()]
    return found


@program
def dense_and_sparse(lib):
    """One optimizer for a table and a layer."""
    t, layer = table(lib), lib.nn.Linear(2, 1)
    with lib.no_grad():
        layer.weight.copy_(lib.tensor([[0.5, -2.0]]))
        layer.bias.zero_()
    optimizer = lib.optim.SGD([*t.parameters(), *layer.parameters()], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (layer(t(lib.tensor([1, 4]))) ** 2).sum().backward()
        optimizer.step()
    return [t.weight.detach(), layer.weight.detach(), layer.bias.detach()]


@program
def written(lib):
    """Sparse tensors added to dense ones, and sparse ones changed, in place."""
    s, d = lib.sparse_coo_tensor([[0, 2, 0]], lib.tensor([1.0, 2.0, 3.0]), (3,)), lib.ones(3)
    d.add_(s)
    d.sub_(s, alpha=0.5)
    s.mul_(2).neg_()
    s.add_(s)
    return [d, s.to_dense(), s.div_(4).to_dense(), s.zero_().to_dense()]


test_like_torch = program.test()


@pytest.mark.parametrize(
    "name", ["Adam", "AdamW", "RMSprop", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD", "Adadelta", "Adafactor", "Muon"]
)
def test_other_optimizers_refuse(name):
    t = table(rushlight)
    t(rushlight.tensor([1])).sum().backward()
    before = t.weight.detach().clone()
    with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients, please consider SparseAdam"):
        getattr(optim, name)(t.parameters()).step()
    assert rushlight.equal(t.weight, before)


def test_refused():
    t = table(rushlight)
    t(rushlight.tensor([1])).sum().backward()
    for name in ("SGD", "Adagrad"):
        with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
            getattr(optim, name)(t.parameters(), weight_decay=0.1).step()
    optimizer = optim.SparseAdam(t.parameters())
    t.weight.grad = rushlight.ones(6, 2)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        optimizer.step()
    for settings in ({"lr": 0}, {"eps": 0}, {"betas": (1.0, 0.9)}):
        with pytest.raises(ValueError, match="Invalid"):
            optim.SparseAdam(t.parameters(), **settings)
    with pytest.raises(ValueError, match="SparseAdam requires dense parameter tensors"):
        optim.SparseAdam([rushlight.eye(2).to_sparse().requires_grad_()])
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        nn.functional.embedding(rushlight.tensor([1]), t.weight, scale_grad_by_freq=True, sparse=True)
    with pytest.raises(ValueError, match="max mode does not support sparse weights"):
        nn.functional.embedding_bag(rushlight.tensor([[1]]), t.weight, mode="max", sparse=True)


def test_only_what_was_looked_up_is_stored():
    """A table of a million rows: gradient and step touch a few of them."""
    big = nn.Embedding(1_000_000, 4, sparse=True, _weight=rushlight.zeros(1_000_000, 4))
    big(rushlight.tensor([3, 999_999])).sum().backward()
    assert big.weight.grad._values().shape == (2, 4)
    optim.SGD(big.parameters(), lr=1.0).step()
    assert big.weight.sum(1).nonzero().flatten().tolist() == [3, 999_999]
    assert big.weight.detach()[3].tolist() == [-1.0] * 4


def test_saved_and_gone_on():
    tables = [table(rushlight) for _ in range(2)]
    optimizers = [optim.SparseAdam(t.parameters(), lr=0.1) for t in tables]

    def step(t, optimizer):
        optimizer.zero_grad()
        t(rushlight.tensor([1, 2])).pow(2).sum().backward()
        optimizer.step()

    step(tables[0], optimizers[0])
    tables[1].load_state_dict(tables[0].state_dict())
    optimizers[1].load_state_dict(copy.deepcopy(optimizers[0].state_dict()))
    for t, optimizer in zip(tables, optimizers):
        step(t, optimizer)
    assert rushlight.equal(tables[0].weight, tables[1].weight)


def test_where_it_stays_dense():
    """Of what is no leaf, inside vmap and in a compiled step the gradient is dense, and the same."""
    index = rushlight.tensor([1, 1])

    def loss(w):
        return nn.functional.embedding(index, w, sparse=True).pow(2).sum()

    w = table(rushlight).weight
    expected = rushlight.zeros(6, 2)
    expected[1] = 4 * w.detach()[1]
    loss(w * 1).backward()
    assert not w.grad.is_sparse
    assert np.allclose(w.grad, expected)
    found = rushlight.func.vmap(rushlight.func.grad(loss))(rushlight.stack([w.detach(), w.detach()]))
    assert np.allclose(found[1], expected)
    w.grad = None

    @rushlight.compile
    def step():
        w.grad = None
        loss(w).backward()

    for _ in range(3):
        step()
    assert np.allclose(w.grad.to_dense(), expected)
    assert gradcheck(
        lambda v: nn.functional.embedding(index, v * 1, sparse=True), (w.detach().double().requires_grad_(),)
    )


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


@pytest.mark.origin("model zoos")
def test_sparse_gradients_in_optimizers_of_ones_own(oracle):
    np.testing.assert_allclose(accumulated(rushlight).numpy(), oracle(accumulated), rtol=1e-6)


def test_a_sparse_parameter_of_a_module():
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(rushlight.eye(3).to_sparse())

        def forward(self, x):
            return rushlight.sparse.mm(self.weight, x)

    for m in (Weighted(), copy.deepcopy(Weighted())):
        assert [name for name, _ in m.named_parameters()] == ["weight"]
        assert isinstance(m.weight, nn.Parameter)
        m(rushlight.ones(3, 1)).sum().backward()
        assert m.weight.grad.is_sparse
