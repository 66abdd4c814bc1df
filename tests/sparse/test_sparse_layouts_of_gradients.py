"""Gradients of sparse tensors beside torch's: values and layouts, for leaves of each layout."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.autograd import gradcheck, gradgradcheck

ROWS = [[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]
SOURCES = {
    "dense": lambda t: leaf_and(t, t.tensor(ROWS), lambda x: x.to_sparse()),
    "dense to csr": lambda t: leaf_and(t, t.tensor(ROWS), lambda x: x.to_sparse_csr()),
    "values": lambda t: leaf_and(
        t, t.tensor([1.0, 2.0, 3.0]), lambda v: t.sparse_coo_tensor([[0, 1, 0], [0, 1, 2]], v, (2, 3))
    ),
    "coo": lambda t: leaf_and(t, t.tensor(ROWS).to_sparse(), lambda s: s),
    "csr": lambda t: leaf_and(t, t.tensor(ROWS).to_sparse_csr(), lambda s: s),
}
FUNCTIONS = {
    "S @ d": lambda t, s, d: s @ d,
    "d @ S": lambda t, s, d: d @ s,
    "sparse.mm": lambda t, s, d: t.sparse.mm(s, d),
    "mv": lambda t, s, d: t.mv(s, d[:, 0]),
    "addmm": lambda t, s, d: t.addmm(t.ones(2, 2), s, d, beta=2, alpha=3),
    "sparse.addmm": lambda t, s, d: t.sparse.addmm(t.ones(2, 2), s, d, alpha=3),
    "linear": lambda t, s, d: t.nn.functional.linear(d.t(), s),
    "sum": lambda t, s, d: s.sum(),
    "d + S": lambda t, s, d: d.t() + s,
    "S + S": lambda t, s, d: s + s,
    "add(alpha)": lambda t, s, d: t.add(s, s, alpha=3),
    "S * 2": lambda t, s, d: s * 2,
    "S * S": lambda t, s, d: s * s,
    "-S": lambda t, s, d: -s,
    "abs": lambda t, s, d: s.abs(),
    "t": lambda t, s, d: s.t(),
    "clone": lambda t, s, d: s.clone(),
    "to": lambda t, s, d: s.double(),
    "to_dense": lambda t, s, d: s.to_dense(),
    "to_dense(masked_grad=False)": lambda t, s, d: s.to_dense(masked_grad=False),
    "values": lambda t, s, d: (s.coalesce() if s.is_sparse else s).values(),
    "element": lambda t, s, d: s[0][1],
}
COO_ONLY = {
    "d - S": lambda t, s, d: d.t() - s,
    "S / 2": lambda t, s, d: s / 2,
    "S * d": lambda t, s, d: s * d.t(),
    "S * number": lambda t, s, d: s * d.sum(),
    "S / number": lambda t, s, d: s / s.sum(),
    "S @ S": lambda t, s, d: s @ s.t(),
    "sparse.sum": lambda t, s, d: t.sparse.sum(s),
    "sparse.sum(0)": lambda t, s, d: t.sparse.sum(s, 0),
    "pow": lambda t, s, d: s**2,
    "permute": lambda t, s, d: s.permute(1, 0),
    "stack": lambda t, s, d: t.stack([s, s]),
    "bmm": lambda t, s, d: t.bmm(t.stack([s]), t.stack([d])),
    "softmax": lambda t, s, d: t.sparse.softmax(s, 1),
}


def leaf_and(t, leaf, make):
    leaf.requires_grad_()
    return leaf, make(leaf)


def gradients(t, source, function):
    leaf, sparse = SOURCES[source](t)
    d = t.arange(1.0, 7.0).view(3, 2).requires_grad_()
    out = function(t, sparse, d)
    if out.layout != t.strided:
        out = out.to_dense(masked_grad=False)
    (out * t.arange(1.0, 1.0 + out.numel()).view(out.shape)).sum().backward()
    found = [str(leaf.grad.layout), leaf.grad.to_dense().tolist()]
    return found if d.grad is None else [*found, d.grad.to_dense().tolist()]


@pytest.mark.parametrize("source", SOURCES)
def test_as_torch(oracle, source):
    functions = FUNCTIONS if "csr" in source else FUNCTIONS | COO_ONLY
    expected = oracle(lambda t: {name: gradients(t, source, f) for name, f in functions.items()})
    for name, f in functions.items():
        layout, *values = gradients(rushlight, source, f)
        assert layout == expected[name][0], name
        for ours, theirs in zip(values, expected[name][1:], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)


def reduced(t, how):
    a = t.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, -3.0, 0.0]]).to_sparse_csr()
    a.requires_grad_()
    x = t.tensor([[1.0, 5.0], [2.0, -1.0], [1.0, 2.5]], requires_grad=True)
    out = t.sparse.mm(a, x, how)
    (out * t.arange(1.0, 7.0).view(3, 2)).sum().backward()
    return [out.tolist(), str(a.grad.layout), a.grad.to_dense().tolist(), x.grad.tolist()]


@pytest.mark.parametrize("how", ["sum", "mean", "amax", "amin"])
def test_products_that_are_reduced_otherwise(oracle, how):
    assert reduced(rushlight, how) == oracle(lambda t: reduced(t, how))


def test_an_element_that_is_not_stored_has_a_gradient():
    a = rushlight.zeros(2, 2, requires_grad=True)
    a.to_sparse()[0][1].backward()
    assert a.grad.tolist() == [[0, 1], [0, 0]]


def test_leaves_add_up_dense_and_sparse_gradients():
    s = rushlight.tensor(ROWS).to_sparse().requires_grad_()
    rushlight.sparse.mm(s, rushlight.ones(3, 2)).sum().backward()
    assert s.grad.is_sparse
    (s @ rushlight.ones(3, 2)).sum().backward()
    assert s.grad.tolist() == [[4, 2, 4], [2, 4, 2]]
    s.sum().backward()
    rushlight.sparse.mm(s, rushlight.ones(3, 2)).sum().backward()
    assert s.grad.tolist() == [[7, 3, 7], [3, 7, 3]]


def test_a_large_dense_gradient_and_a_sparse_one():
    s = rushlight.eye(2000).to_sparse().requires_grad_()
    (s.sum() + rushlight.sparse.mm(s, rushlight.ones(2000, 1)).sum()).backward()
    assert s.grad.sum() == 2000 * 2000 + 2000


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_finite_differences(check):
    at = rushlight.tensor([[0, 1, 0], [0, 1, 2]])
    v = rushlight.tensor([1.0, -2.0, 3.0], dtype=rushlight.float64, requires_grad=True)
    d = rushlight.arange(1.0, 7.0).double().view(3, 2).sin().requires_grad_()

    def f(v, d):
        s = rushlight.sparse_coo_tensor(at, v, (2, 3))
        both = (s * d.t()) @ d + rushlight.sparse.mm(s / s.sum(), d)
        return both.tanh(), (s @ (s * 2).t()).to_dense(), rushlight.stack([s, s]).sum(1).to_dense()

    assert check(f, (v, d))


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_finite_differences_of_sparse_inputs(layout):
    dense = rushlight.tensor(ROWS, dtype=rushlight.float64)
    s = dense.to_sparse(layout=getattr(rushlight, layout)).requires_grad_()
    d = rushlight.arange(1.0, 7.0).double().view(3, 2).requires_grad_()
    assert gradcheck(lambda s, d: s @ d, (s, d), masked=False)
    assert gradcheck(lambda s, d: rushlight.sparse.mm(s, d), (s, d), masked=True)
    assert gradcheck(lambda s: s * 2, (s,), masked=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(lambda s, d: rushlight.sparse.mm(s, d), (s, d), masked=False)


def test_transforms():
    s, d = rushlight.tensor(ROWS).to_sparse(), rushlight.ones(3, 2)
    assert rushlight.func.grad(lambda s: (s @ d).sum())(s).tolist() == [[2, 2, 2], [2, 2, 2]]
    masked = rushlight.func.grad(lambda s: rushlight.sparse.mm(s, d).sum())(s)
    assert masked.is_sparse
    with pytest.raises(NotImplementedError, match="forward AD"):
        rushlight.func.jvp(lambda x: x.to_sparse() @ d, (s.to_dense(),), (s.to_dense(),))


def test_writes_do_not_change_what_was_saved():
    s = rushlight.tensor(ROWS).to_sparse().requires_grad_()
    x = s.clone()
    y = x * x
    x.mul_(10)
    y.to_dense().sum().backward()
    assert s.grad.to_dense().tolist() == [[2, 0, 6], [0, 4, 0]]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        s.mul_(2)


def test_hooks_and_retained_gradients():
    s, seen = rushlight.tensor(ROWS).to_sparse().requires_grad_(), []
    x = s * 2
    x.retain_grad()
    x.register_hook(lambda g: seen.append(g.layout) or g * 2)
    x.sum().backward()
    assert seen == [rushlight.strided]
    assert x.grad.tolist() == [[2, 2, 2]] * 2
    assert s.grad.tolist() == [[4, 4, 4]] * 2
    x = s * 2
    x.backward(rushlight.ones(2, 3).to_sparse())
    assert s.grad.tolist() == [[6, 6, 6]] * 2
