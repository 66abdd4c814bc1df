"""CSR and CSC matrices against torch's."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight

ROWS = [[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 5.0, 0.0]]


def parts(t, layout="csr"):
    """A matrix in that layout, a dense one (3, 2) and the matrix, dense."""
    dense = t.tensor(ROWS)
    return getattr(dense, f"to_sparse_{layout}")(), t.arange(6.0).view(3, 2), dense


SHOWN = {
    "csr": lambda t, a, x, d: a,
    "csc": lambda t, a, x, d: d.to_sparse_csc(),
    "of double precision": lambda t, a, x, d: a.double(),
    "of whole numbers": lambda t, a, x, d: d.int().to_sparse_csr(),
    "empty": lambda t, a, x, d: t.zeros(2, 3).to_sparse_csr(),
    "the transpose": lambda t, a, x, d: a.transpose(0, 1),
    "of a leaf": lambda t, a, x, d: t.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0], (2, 2), requires_grad=True),
    "twice": lambda t, a, x, d: a * 2,
    "added up": lambda t, a, x, d: a + a,
    "negated": lambda t, a, x, d: -a,
    "abs": lambda t, a, x, d: a.abs(),
    "sin": lambda t, a, x, d: t.sin(a),
    "the other layout": lambda t, a, x, d: a.to_sparse_csc(),
    "and back": lambda t, a, x, d: a.to_sparse_csc().to_sparse_csr(),
    "coo": lambda t, a, x, d: a.to_sparse(),
    "by its layout": lambda t, a, x, d: d.to_sparse(layout=t.sparse_csc),
    "from parts": lambda t, a, x, d: t.sparse_csc_tensor([0, 1, 3], [1, 0, 1], [2.0, 3.0, 4.0]),
    "what it is": lambda t, a, x, d: (a.layout, a.is_sparse, a.is_sparse_csr, a.shape, a.dtype, a._nnz(), a.dim()),
    "sampled": lambda t, a, x, d: t.sparse.sampled_addmm(a, x, x.t(), beta=2.0, alpha=3.0),
    "detached": lambda t, a, x, d: a.detach(),
    "data": lambda t, a, x, d: a.data,
}


@pytest.mark.parametrize("name", SHOWN)
def test_shown_as_torch_does(oracle, name):
    expected = oracle(lambda t: repr(SHOWN[name](t, *parts(t))))
    assert repr(SHOWN[name](rushlight, *parts(rushlight))) == expected


PRODUCTS = {
    "with a matrix": lambda t, a, x: a @ x,
    "mm": lambda t, a, x: t.mm(a, x),
    "sparse.mm": lambda t, a, x: t.sparse.mm(a, x),
    "with a vector": lambda t, a, x: a @ x[:, 0],
    "mv": lambda t, a, x: t.mv(a, x[:, 1]),
    "addmm": lambda t, a, x: t.addmm(t.ones(3, 2), a, x, beta=2.0, alpha=0.5),
    "sparse.addmm": lambda t, a, x: t.sparse.addmm(t.ones(3, 2), a, x),
    "from the left": lambda t, a, x: x.t() @ a,
    "of the transpose": lambda t, a, x: a.transpose(0, 1) @ x,
    "of two": lambda t, a, x: (a @ a).to_dense(),
    "the sum": lambda t, a, x: a.sum(),
    "dense": lambda t, a, x: a.to_dense(),
}


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, layout):
    sparse, x, dense = parts(rushlight, layout)
    expected = PRODUCTS[name](rushlight, dense.to_sparse(), x)
    assert PRODUCTS[name](rushlight, sparse, x).tolist() == expected.tolist()
    if name not in ("of two", "dense", "sparse.mm", "sparse.addmm"):
        assert expected.tolist() == PRODUCTS[name](rushlight, dense, x).tolist()


def test_gradients_go_to_the_values():
    values = rushlight.tensor([1.0, 2.0, 3.0, 4.0, 5.0], requires_grad=True)
    x = rushlight.arange(6.0).view(3, 2).requires_grad_()
    a = rushlight.sparse_csr_tensor([0, 2, 3, 5], [0, 2, 2, 0, 1], values, (3, 3))
    (a @ x).square().sum().backward()
    dense, y = rushlight.tensor(ROWS, requires_grad=True), x.detach().clone().requires_grad_()
    (dense @ y).square().sum().backward()
    assert values.grad.tolist() == dense.grad[dense != 0].tolist()
    assert x.grad.tolist() == y.grad.tolist()
    leaf = rushlight.sparse_csr_tensor([0, 2, 3, 5], [0, 2, 2, 0, 1], values, (3, 3), requires_grad=True)
    (leaf @ x).square().sum().backward()
    assert leaf.grad.tolist() == dense.grad.tolist()
    leaf.grad = None
    rushlight.sparse.mm(leaf, x).square().sum().backward()
    assert leaf.grad.layout is rushlight.sparse_csr
    assert leaf.grad.to_dense().tolist() == (dense.grad * (dense != 0)).tolist()
    by_column = dense.detach().requires_grad_()
    (by_column.to_sparse_csc() @ x).square().sum().backward()
    assert by_column.grad.tolist() == dense.grad.tolist()


def test_gradients_of_samples(oracle):
    def slopes(t):
        a = t.tensor(ROWS).to_sparse_csr()
        x, y = t.arange(6.0).view(3, 2).requires_grad_(), t.arange(6.0).view(2, 3).requires_grad_()
        (t.sparse.sampled_addmm(a, x, y).to_dense() * t.arange(9.0).view(3, 3)).sum().backward()
        return [x.grad, y.grad]

    assert [g.tolist() for g in slopes(rushlight)] == [g.tolist() for g in oracle(slopes)]


REFUSED = {
    "a dense one's rows": lambda t: t.eye(2).crow_indices(),
    "columns of rows": lambda t: t.eye(2).to_sparse_csr().ccol_indices(),
    "rows that do not begin": lambda t: t.sparse_csr_tensor(
        [1, 1, 2], [0, 1], [1.0, 2.0], (2, 2), check_invariants=True
    ),
    "too many values": lambda t: t.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2.0], (2, 2), check_invariants=True),
    "no such column": lambda t: t.sparse_csr_tensor([0, 1, 2], [0, 3], [1.0, 2.0], (2, 2), check_invariants=True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(oracle, name):
    def words(t):
        with pytest.raises(RuntimeError) as caught:
            REFUSED[name](t)
        return str(caught.value).split("\n")[0].rstrip(".")

    assert words(rushlight) == oracle(words)


def test_parts_that_do_not_fit():
    for starts, places in (([0, 1], [0, 1]), ([0, 2, 2], [1, 0]), ([0, 2, 2], [1, 1]), ([0, 1, 2], [0])):
        with pytest.raises(RuntimeError, match="is not satisfied"):
            rushlight.sparse_csr_tensor(starts, places, [1.0, 2.0], (2, 2))
    with pytest.raises(RuntimeError, match="needs 2 sparse dimensions"):
        rushlight.ones(2).to_sparse_csr()
    with pytest.raises(NotImplementedError, match="to_dense"):
        rushlight.nn.functional.pad(rushlight.eye(2).to_sparse_csr(), (1, 1))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        rushlight.eye(2).to_sparse_csr() @ rushlight.ones(3, 2)


def test_copies():
    a = rushlight.tensor(ROWS).to_sparse_csr()
    for b in (copy.deepcopy(a), pickle.loads(pickle.dumps(a)), a.clone()):
        assert repr(b) == repr(a)
        b.values()[0] = 9.0
        assert a.values()[0] == 1.0


def test_empty_rows_anywhere():
    generator = np.random.default_rng(0)
    for shape in ((5, 7), (7, 5), (1, 4), (4, 1), (0, 3), (3, 0)):
        dense = rushlight.tensor(generator.random(shape) * (generator.random(shape) < 0.3))
        for layout in (rushlight.sparse_csr, rushlight.sparse_csc):
            a = dense.to_sparse(layout=layout)
            assert a.to_dense().equal(dense)
            starts, places = (
                (a.crow_indices(), a.col_indices()) if a.is_sparse_csr else (a.ccol_indices(), a.row_indices())
            )
            again = rushlight.sparse_compressed_tensor(starts, places, a.values(), shape, layout=layout)
            assert again.to_dense().equal(dense)


def test_diagonals(oracle):
    def made(t):
        some = t.arange(1.0, 13.0).view(3, 4)
        return [t.sparse.spdiags(some, t.tensor([0, -1, 2]), shape).to_dense() for shape in ((4, 4), (3, 5), (2, 2))]

    assert [m.tolist() for m in made(rushlight)] == [m.tolist() for m in oracle(made)]


@pytest.mark.parametrize("batch", [(2,), (3, 2)])
def test_batches_of_matrices(batch):
    """Each matrix has two elements in each of its rows and columns, as many as the others."""
    generator = np.random.default_rng(0)
    whole = generator.random((*batch, 4, 4)) + 1
    kept = np.stack([np.roll(np.eye(4), k, 1) + np.roll(np.eye(4), k + 1, 1) for k in range(6)])
    dense = rushlight.tensor(whole * kept[: np.prod(batch)].reshape(whole.shape))
    csr, csc = dense.to_sparse_csr(), dense.to_sparse_csc()
    assert (csr.shape, csr._nnz(), csr.values().shape) == (dense.shape, 8, (*batch, 8))
    for a, starts, places in (
        (csr, csr.crow_indices(), csr.col_indices()),
        (csc, csc.ccol_indices(), csc.row_indices()),
    ):
        assert (starts.shape, places.shape) == ((*batch, 5), (*batch, 8))
        again = rushlight.sparse_compressed_tensor(starts, places, a.values(), layout=a.layout)
        for b in (a, again, a * 2 - a, a.to_sparse_csr(), a.to_sparse_csc(), a.mT.mT):
            assert b.to_dense().equal(dense)
        assert a.mT.layout is not a.layout
        assert a.mT.to_dense().equal(dense.mT)
        assert a[0].to_dense().equal(dense[0])


def test_a_batch_of_matrices_has_gradients():
    values = rushlight.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    starts, places = [[0, 1, 2], [0, 0, 2]], [[1, 0], [0, 1]]
    (rushlight.sparse_csr_tensor(starts, places, values).to_dense() ** 2).sum().backward()
    assert values.grad.tolist() == [[2, 4], [6, 8]]
    leaf = rushlight.sparse_csr_tensor(starts, places, [[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    leaf.sum().backward()
    assert leaf.grad.tolist() == [[[1, 1]] * 2] * 2


def test_batches_that_do_not_fit():
    uneven = rushlight.tensor([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        uneven.to_sparse_csr()
    with pytest.raises(RuntimeError, match="product of batch dimensions to be non-zero"):
        rushlight.zeros(0, 2, 2).to_sparse_csr()
    starts, places, values = [[0, 1, 2], [0, 1, 2]], [[1, 0], [0, 1]], [[1.0, 2.0], [3.0, 4.0]]
    a = rushlight.sparse_csr_tensor(starts, places, values)
    for parts_ in (
        (starts[:1], places, values),
        (starts[0], places, values),
        (starts, places, values[0]),
        (starts, places, values, (2, 2)),
        (starts, [[1, 0], [0, 2]], values, (2, 2, 2)),
        ([[0, 1, 2], [0, 1, 1]], places, values),
    ):
        with pytest.raises(RuntimeError):
            rushlight.sparse_csr_tensor(*parts_)
    for wrong in (a.t, lambda: a.transpose(0, 1)):
        with pytest.raises(RuntimeError, match="dimensions"):
            wrong()
