"""Functions that move the elements of sparse tensors, sparse products and block layouts, beside torch's."""

from __future__ import annotations

import pytest

import rushlight


def parts(t):
    at = t.tensor([[0, 0, 1], [0, 2, 1]])
    s = t.sparse_coo_tensor(at, t.tensor([1.0, 2.0, 3.0]), (2, 3)).coalesce()
    repeated = t.sparse_coo_tensor(t.tensor([[0, 0, 1, 0], [0, 2, 1, 0]]), t.tensor([1.0, 2.0, 3.0, 4.0]), (2, 3))
    return s, repeated, t.arange(6.0).view(3, 2)


def block(t):
    return t.arange(16.0).view(4, 4).to_sparse_bsr((2, 2))


def hybrid(t):
    return t.sparse_csr_tensor([0, 1, 3], [0, 0, 1], t.arange(6.0).view(3, 2))


FUNCTIONS = {
    "smm": lambda t, s, u, d: t.smm(u, d),
    "hspmm": lambda t, s, u, d: t.hspmm(u, d),
    "sspaddmm": lambda t, s, u, d: t.sspaddmm(t.eye(2).to_sparse(), s, d, beta=2, alpha=3),
    "methods": lambda t, s, u, d: (s.smm(d), t.eye(2).to_sparse().sspaddmm(s, d)),
    "hstack": lambda t, s, u, d: t.hstack([s, u]),
    "vstack": lambda t, s, u, d: t.vstack([s, u]),
    "dstack": lambda t, s, u, d: t.dstack([s, s]),
    "column_stack": lambda t, s, u, d: t.column_stack([s, s]),
    "vectors": lambda t, s, u, d: (t.hstack([s[0], s[1]]), t.vstack([s[0], s[1]])),
    "cat of a dense dimension": lambda t, s, u, d: t.cat([d.to_sparse(1)] * 2, 1),
    "column": lambda t, s, u, d: s[:, 0],
    "element": lambda t, s, u, d: s[0, 2],
    "index_select": lambda t, s, u, d: s.index_select(1, t.tensor([2, 0, 2])),
    "unsqueeze": lambda t, s, u, d: (s.unsqueeze(0), s.unsqueeze(2)),
    "movedim": lambda t, s, u, d: s.movedim(0, 1),
    "adjoint": lambda t, s, u, d: (s.mT, s.H, s.adjoint(), s.swapaxes(0, 1)),
    "resized": lambda t, s, u, d: s.clone().sparse_resize_((3, 4), 2, 0),
    "cleared": lambda t, s, u, d: s.clone().sparse_resize_and_clear_((3, 4), 2, 0),
    "zeros": lambda t, s, u, d: (t.zeros_like(s), t.zeros_like(s.to_sparse_csr()), s.new_zeros(2)),
    "flags": lambda t, s, u, d: (
        [x.is_coalesced() for x in (s, u, s * 2, u * 2, s + s, s.t(), t.cat([s, s]), s[0])],
        u.clone()._coalesced_(True).is_coalesced(),
        s.stride(),
        s.is_contiguous(),
    ),
    "bsr": lambda t, s, u, d: (block(t), block(t).to_dense(), block(t) @ t.ones(4, 2)),
    "bsc": lambda t, s, u, d: t.eye(4).to_sparse_bsc((2, 2)),
    "blocks": lambda t, s, u, d: (block(t) * 2, block(t).abs(), block(t).sum()),
    "transposed": lambda t, s, u, d: block(t).t(),
    "to bsc": lambda t, s, u, d: block(t).to_sparse_bsc((2, 2)),
    "of parts": lambda t, s, u, d: (
        t.sparse_bsr_tensor([0, 1, 2], [0, 1], t.ones(2, 2, 2)),
        t.sparse_bsc_tensor([0, 1, 2], [0, 1], t.ones(2, 2, 2)),
        t.sparse_compressed_tensor([0, 1], [1], t.ones(1, 1, 2), (1, 4), layout=t.sparse_bsr),
    ),
    "csr with dense dimensions": lambda t, s, u, d: (
        hybrid(t),
        hybrid(t).to_dense(),
        hybrid(t) * 2,
        hybrid(t).to_sparse(),
        hybrid(t).to_sparse_csc(),
        t.arange(8.0).view(2, 2, 2).to_sparse_csr(dense_dim=1),
    ),
}
REFUSED = {
    "cat of csr": lambda t, s, u, d: t.cat([s.to_sparse_csr()] * 2),
    "stack of csr": lambda t, s, u, d: t.stack([s.to_sparse_csr()] * 2),
    "expand": lambda t, s, u, d: s.expand(2, 3),
    "repeat": lambda t, s, u, d: s.repeat(2, 1),
    "sparse + 1": lambda t, s, u, d: s + 1,
    "1 - sparse": lambda t, s, u, d: 1 - s,
    "relu6": lambda t, s, u, d: t.nn.functional.relu6(s),
    "mean": lambda t, s, u, d: s.mean(),
    "reduce of coo": lambda t, s, u, d: t.sparse.mm(s, d, "mean"),
    "assigned": lambda t, s, u, d: s.__setitem__(0, 1.0),
    "a block that does not fit": lambda t, s, u, d: t.ones(3, 4).to_sparse_bsr((2, 2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_torch(oracle, name):
    def shown(t):
        return repr(FUNCTIONS[name](t, *parts(t)))

    assert shown(rushlight) == oracle(shown)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_in_torch(oracle, name):
    def raised(t):
        try:
            REFUSED[name](t, *parts(t))
        except Exception as error:
            return type(error).__name__
        return "nothing"

    assert raised(rushlight) == oracle(raised)


def test_more_slices_than_torch():
    s, _, _ = parts(rushlight)
    dense = s.to_dense()
    for of in (s, s.to_sparse_csr(), s.to_sparse_csc()):
        for got, expected in (
            (of[:, 1:], dense[:, 1:]),
            (of[0:1], dense[0:1]),
            (of[:, ::2], dense[:, ::2]),
            (of[...], dense),
        ):
            assert got.to_dense().equal(expected)
    with pytest.raises(NotImplementedError, match="index"):
        s[rushlight.tensor([0, 1])]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr"])
def test_files_and_comparison(tmp_path, torch, layout):
    """A file is read here and by torch; `assert_close` compares places and values."""

    def made(t, factor=1.0):
        block = (2, 2) if layout == "sparse_bsr" else None
        return (t.eye(4) * factor).to_sparse(layout=getattr(t, layout), blocksize=block)

    for writer, reader in ((rushlight, rushlight), (rushlight, torch), (torch, rushlight)):
        writer.save({"x": made(writer)}, tmp_path / "x.pt")
        found = reader.load(tmp_path / "x.pt")["x"]
        assert repr(found) == repr(made(reader))
        reader.testing.assert_close(found, made(reader))
        with pytest.raises(AssertionError):
            reader.testing.assert_close(found, made(reader, 2.0))


def test_a_function_of_ones_own_gives_a_sparse_gradient():
    class Rows(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, w):
            return w.sum()

        @staticmethod
        def backward(ctx, g):
            return rushlight.sparse_coo_tensor([[0]], g.expand(1, 2), (3, 2))

    w = rushlight.ones(3, 2, requires_grad=True)
    Rows.apply(w).backward()
    assert w.grad.is_sparse
    assert w.grad.to_dense().tolist() == [[1, 1], [0, 0], [0, 0]]
    w.grad = None
    Rows.apply(w * 2).backward()
    assert w.grad.tolist() == [[2, 2], [0, 0], [0, 0]]
