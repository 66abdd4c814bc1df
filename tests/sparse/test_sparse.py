"""Sparse tensors beside torch's: how they print, products and their gradients, arithmetic, sums, errors."""

from __future__ import annotations

import copy
import io
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
import rushlight.nn
from rushlight.autograd import gradcheck, gradgradcheck
from tests.support.programs import Programs, leaf, outcome

program = Programs()


def small(lib, **options):
    """(3, 4), not in order, one place twice."""
    return lib.sparse_coo_tensor([[2, 0, 2, 1], [3, 1, 3, 0]], [1.0, -2.0, 4.0, 0.5], (3, 4), **options)


@program
def made(lib):
    at, of = lib.tensor([[0, 1], [2, 0]]), lib.tensor([3.0, 4.0])
    return [
        small(lib),
        small(lib).coalesce(),
        small(lib, requires_grad=True),
        lib.sparse_coo_tensor(at, of),
        lib.sparse_coo_tensor(at, of, (2, 3), dtype=lib.float64),
        lib.sparse_coo_tensor((2, 3)),
        lib.sparse_coo_tensor(at, lib.ones(2, 2, dtype=lib.int64)),
        lib.eye(3).to_sparse(),
        lib.eye(3).to_sparse(1),
        lib.sparse_coo_tensor(at, lib.tensor([True, False])),
        lib.zeros(2, 2).to_sparse(),
        lib.eye(2).to_sparse().layout,
        lib.sparse_coo_tensor(lib.arange(2002).reshape(2, 1001), lib.arange(1001) % 7 * 0.5),
        lib.sparse.FloatTensor(at, of, lib.Size([2, 3])),
        small(lib).type(),
        lib.strided,
    ]


@program
def looked_at(lib):
    s = small(lib)
    c = s.coalesce()
    return [
        s.shape,
        s.size(0),
        s.dim(),
        s.numel(),
        s._nnz(),
        c._nnz(),
        s.is_sparse,
        s.is_coalesced(),
        c.is_coalesced(),
        c.indices(),
        c.values(),
        s._indices(),
        s._values(),
        s.sparse_dim(),
        s.dense_dim(),
        s.to_dense(),
        s.dtype,
        len(s),
        s.is_leaf,
        s.requires_grad,
        lib.ones(2).is_sparse,
        lib.ones(2).sparse_dim(),
        lib.ones(2, 3).dense_dim(),
        lib.is_tensor(s),
        s[2].to_dense(),
        s.index_select(1, lib.tensor([3, 0])),
        c.detach(),
        s.double(),
        c.clone(),
        s.to(lib.int64),
        lib.arange(12.0).reshape(3, 4).sparse_mask(c),
        s.unsqueeze(0).to_dense(),
    ]


@program
def arithmetic(lib):
    s = small(lib)
    c, d = s.coalesce(), lib.arange(12.0).reshape(3, 4)
    return [
        s * 2,
        2 * c,
        c / 4,
        -c,
        abs(c),
        c + c,
        (s + c).to_dense(),
        c - c,
        c * c,
        d + s,
        d - s,
        c * d,
        c * d[0],
        d * c,
        s.t(),
        c.t().is_coalesced(),
        s.transpose(0, 1),
        s.T,
        c**2,
        s**3,
        c.abs().sqrt(),
        s.relu(),
        lib.add(c, c),
        lib.mul(c, 3),
        lib.sum(s),
        s.sum(0),
        s.sum(1),
        lib.sparse.sum(s),
        lib.sparse.sum(s, [0, 1]),
        s.norm(),
        lib.sparse.sum(lib.sparse_coo_tensor([[0, 1, 1]], lib.ones(3, 2)), 1),
        lib.relu(s),
        lib.neg(s),
        c.sin(),
        lib.sparse.softmax(c, 1),
        lib.sparse.log_softmax(c, 0),
        (c * lib.eye(3, 4).to_sparse()).to_dense(),
    ]


@program
def products(lib):
    s, d = small(lib), lib.arange(8.0).reshape(4, 2)
    stack = lib.arange(12.0).reshape(2, 2, 3).to_sparse()
    return [
        s @ d,
        lib.mm(s, d),
        lib.sparse.mm(s, d),
        lib.spmm(s, d),
        lib.matmul(s, d),
        s.mm(d),
        s.matmul(d),
        s @ d[:, 0],
        lib.mv(s, d[:, 0]),
        d.t() @ s.t(),
        lib.mm(d.t(), s.t()),
        s @ s.t(),
        lib.sparse.mm(s.t(), s),
        d[:3, 0] @ s,
        lib.addmm(lib.ones(3, 2), s, d, alpha=2),
        lib.sparse.addmm(lib.ones(3, 2), s, d, beta=3),
        lib.bmm(stack, lib.ones(2, 3, 2)),
        lib.sparse_coo_tensor((3, 4)) @ d,
        s.double() @ d.double(),
    ]


@program
def gradients(lib):
    """To the values, to the dense operand, through coalescing, sums and softmax; of a leaf they are sparse."""
    s, d = small(lib, requires_grad=True), lib.arange(8.0).reshape(4, 2).requires_grad_()
    lib.sparse.mm(s, d).pow(2).sum().backward()
    x = lib.eye(3, requires_grad=True)
    a = x.to_sparse()
    (lib.sparse.mm(a * 3, d[:3].detach())).sum().backward()
    v = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = lib.sparse_coo_tensor([[0, 0, 1], [0, 0, 1]], v, (2, 2))
    (b.to_dense() ** 2).sum().backward()
    w = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    soft = lib.sparse.softmax(lib.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], w), 1)
    (soft.to_dense() * lib.tensor([[1.0, 2.0], [3.0, 5.0]])).sum().backward()
    u = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    lib.sparse.sum(lib.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], u) * 2, 0).to_dense()[1].backward()
    return [s.grad.to_dense(), d.grad, x.grad, v.grad, w.grad, u.grad, s.is_leaf, b.requires_grad, b.is_leaf]


@program
def network(lib):
    """Two layers of a graph network (T. Kipf, M. Welling), ten steps."""
    lib.manual_seed(0)
    edges = lib.randint(0, 20, (2, 60))
    at = lib.cat([edges, edges.flip(0), lib.arange(20).repeat(2, 1)], 1)
    adjacency = lib.sparse_coo_tensor(at, lib.ones(at.shape[1]), (20, 20)).coalesce()
    degrees = lib.sparse.sum(adjacency, 1).to_dense()
    row, col = adjacency.indices()
    scaled = lib.sparse_coo_tensor(
        adjacency.indices(), adjacency.values() / (degrees[row] * degrees[col]).sqrt(), (20, 20)
    )
    x, y = lib.randn(20, 8), lib.randint(0, 3, (20,))
    first, second = lib.nn.Linear(8, 16), lib.nn.Linear(16, 3)
    optimizer = lib.optim.Adam([*first.parameters(), *second.parameters()], 0.05)
    losses = []
    for _ in range(10):
        out = lib.spmm(scaled, second(lib.relu(scaled @ first(x))))
        loss = lib.nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 4))
    return losses


@program
def refused(lib):
    s, d = small(lib), lib.ones(3, 4)
    calls = [
        lambda: s.values(),
        lambda: s.indices(),
        lambda: s.numpy(),
        lambda: lib.exp(s),
        lambda: s + 1,
        lambda: s + d,
        lambda: d.coalesce(),
        lambda: d.indices(),
        lambda: d.values(),
        lambda: d.is_coalesced(),
        lambda: s.max(),
        lambda: lib.softmax(s, 1),
        lambda: s.view(4, 3),
        lambda: s @ d,
        lambda: lib.mm(s, d),
        lambda: s.item(),
        lambda: lib.sparse_coo_tensor([[0], [1]], [1.0, 2.0]),
        lambda: lib.sparse_coo_tensor([[0], [1]], [1.0], (3,)),
        lambda: s / d,
    ]
    return [raised(f) for f in calls]


def raised(f):
    try:
        return f()
    except NotImplementedError:
        return "NotImplementedError"
    except Exception as e:
        return type(e).__name__


def shown(result):
    if isinstance(result, tuple):
        return [int(n) for n in result]
    return str(result).replace("rushlight.", "torch.")


@pytest.mark.parametrize("name", program)
def test_like_torch(oracle, name):
    assert [shown(r) for r in program[name](rushlight)] == oracle(
        lambda torch: [shown(r) for r in program[name](torch)]
    )


shapes = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.integers(0, 12))


@given(shapes, st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_products_are_those_of_the_dense_matrices(shape, seed):
    (n, m, k, stored), r = shape, np.random.RandomState(seed)
    at = np.stack((r.randint(0, n, stored), r.randint(0, m, stored)))
    s = rushlight.sparse_coo_tensor(at, r.randn(stored), (n, m))
    dense = rushlight.tensor(r.randn(m, k))
    assert np.allclose(s @ dense, s.to_dense() @ dense)
    assert np.allclose(s.coalesce() @ dense, s.to_dense() @ dense)
    assert np.allclose((s @ s.t()).to_dense(), s.to_dense() @ s.to_dense().T)
    assert np.allclose(s.coalesce().to_dense(), s.to_dense())
    assert np.allclose(dense.T @ s.t(), dense.T @ s.to_dense().T)
    back = s.to_dense().to_sparse()
    assert back.is_coalesced()
    assert np.array_equal(back.to_dense(), s.to_dense())


@pytest.mark.parametrize("order", [0, 1])
def test_derivatives_to_any_order(order):
    values = rushlight.tensor([1.0, -2.0, 3.0], dtype=rushlight.float64, requires_grad=True)
    dense = rushlight.arange(4.0).double().reshape(4, 1).sin().requires_grad_()

    def f(values, dense):
        s = rushlight.sparse_coo_tensor([[2, 0, 2], [3, 1, 1]], values, (3, 4)).coalesce()
        soft = rushlight.sparse.softmax(s, 0)
        return (s @ dense).tanh(), soft.values(), (s * s).values()

    assert (gradgradcheck if order else gradcheck)(f, (values, dense))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "complex64"])
def test_products_of_other_dtypes(dtype):
    kind = getattr(rushlight, dtype)
    s, d = small(rushlight).to(kind), rushlight.arange(8).reshape(4, 2).to(kind)
    assert (s @ d).dtype is kind
    assert (s @ d).tolist() == (s.to_dense() @ d).tolist()


def test_copies():
    s = small(rushlight, requires_grad=True)
    for twin in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert repr(twin) == repr(s)
        assert twin._values().data_ptr() != s._values().data_ptr()


def test_indices_are_looked_at():
    """torch looks at them only if asked."""
    for at in ([[0, 3]], [[0, -1]]):
        with pytest.raises(RuntimeError, match=r"index"):
            rushlight.sparse_coo_tensor(at, [1.0, 2.0], (3,))


def test_filled_tensors_are_dense():
    with pytest.raises(NotImplementedError, match="sparse_coo"):
        rushlight.zeros(2, layout=rushlight.sparse_coo)


def test_a_hook_sees_a_sparse_gradient():
    s, seen = small(rushlight, requires_grad=True), []
    s.register_hook(seen.append)
    rushlight.sparse.mm(s, rushlight.ones(4, 1)).sum().backward()
    (s @ rushlight.ones(4)).sum().backward()
    assert [g.is_sparse for g in seen] == [True, False]
    s.grad = None
    assert s.grad is None


class Graph(rushlight.nn.Module):
    """A layer on a graph, whose edges are a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("edges", small(rushlight).coalesce())
        self.linear = rushlight.nn.Linear(2, 3)

    def forward(self, x):
        return self.edges @ self.linear(x)


def test_a_buffer_of_a_module():
    net, x = Graph(), rushlight.ones(4, 2, dtype=rushlight.float64)
    first = net.double()(x)
    file = io.BytesIO()
    rushlight.save(net.state_dict(), file)
    other = Graph().double()
    other.edges = other.edges * 2
    other.load_state_dict(rushlight.load(io.BytesIO(file.getvalue())))
    assert (other(x) == first).all()
    assert (copy.deepcopy(net)(x) == first).all()


def test_files_go_both_ways(torch):
    for s in (small(torch), small(torch).coalesce()):
        file = io.BytesIO()
        torch.save({"s": s}, file)
        ours = rushlight.load(io.BytesIO(file.getvalue()))["s"]
        assert repr(ours) == repr(s)
        file = io.BytesIO()
        rushlight.save({"s": ours}, file)
        assert repr(torch.load(io.BytesIO(file.getvalue()))["s"]) == repr(s)


like_torch = Programs()


@like_torch.found_in("libraries")
def sparse_times_dense_by_its_old_name(torch):
    a = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    return [torch.dsmm(a, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))]


def pieces(torch):
    """Two sparse matrices, the second with a place stored twice, and one of vectors."""
    at, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
    return (
        torch.sparse_coo_tensor(at, values, (2, 3)),
        torch.sparse_coo_tensor(at[:, [0, 1, 1]], values, (2, 3)),
        torch.sparse_coo_tensor(at, torch.arange(6.0).reshape(3, 2), (2, 3, 2)),
    )


@like_torch.found_in("torch tests")
def sparse_tensors_stand_one_after_another(torch):
    s, u, h = pieces(torch)
    joined = [
        torch.cat([s, u]),
        torch.cat([s, u], -1),
        torch.cat([h, h]),
        torch.stack([s, u]),
        torch.stack([s, u], -1),
        torch.stack([s, u], 1),
        torch.cat([s]),
    ]
    return [part for t in joined for part in (t._indices(), t._values(), list(t.shape))] + [
        torch.bmm(torch.stack([s, s]), torch.ones(2, 3, 2)),
        outcome(torch.cat, [s, u.to_dense()]),
        outcome(torch.cat, [s, h]),
        outcome(torch.cat, [s, u.t()]),
    ]


@like_torch.found_in("torch tests")
def parts_and_sums_of_sparse_tensors(torch):
    (s, u, h), linear, w = pieces(torch), torch.nn.functional.linear, torch.ones(2, 3)
    dense = [
        s[1, 2],
        h[1, 2],
        h[1, 2, 1],
        torch.norm(s),
        torch.any(s),
        u.any(),
        linear(s, w),
        linear(s, w, w[:, 0]),
        *torch.sparse.sum(s, 0, torch.float64).to_dense(),
    ]
    sparse = [
        *s,
        *s.unbind(1),
        s.narrow_copy(1, 0, 2),
        s.narrow_copy(0, 1, 1),
        s // 2,
        s.floor_divide(2),
        u.signbit(),
        torch.isposinf(s),
        u.nan_to_num(),
        torch.sum(s, 0, keepdim=True),
        s.sum(1, True),
        h[1],
    ]
    return [*dense, *[t.to_dense() for t in sparse], outcome(s.narrow_copy, 1, 2, 2), outcome(torch.argmax, s)]


@pytest.mark.origin("torch tests")
def test_gradients_reach_the_parts_of_sparse_tensors():
    parts = [s.requires_grad_() for s in pieces(rushlight)[:2]]
    (rushlight.cat([parts[0], parts[1] * 2], 1).to_dense() ** 2).sum().backward()
    assert parts[0].grad.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    assert parts[1].grad.to_dense().tolist() == [[0, 0, 24], [72, 0, 0]]


@like_torch.found_in("torch tests")
def ops_of_sparse_tensors_fill_out(torch):
    s, ones = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(), torch.ones(2, 2)

    def filled(op, *args, out):
        return [outcome(lambda: op(*args, out=out) is out), out.to_dense() if out.is_sparse else out]

    made = [
        filled(op, *args, out=torch.zeros_like(s))
        for op, *args in (
            (torch.neg, s),
            (torch.sqrt, s),
            (torch.add, s, s),
            (torch.mul, s, 2.0),
            (torch.div, s, 2.0),
            (torch.pow, s, 2.0),
        )
    ]
    return (
        made
        + [
            filled(op, *args, out=torch.zeros(2, 2))
            for op, *args in (
                (torch.mm, s, ones),
                (torch.matmul, s, ones),
                (torch.add, ones, s),
                (torch.addmm, ones, s, ones),
            )
        ]
        + [
            isinstance(outcome(torch.neg, s, out=torch.zeros(2, 2)), str),
            isinstance(outcome(torch.neg, ones, out=s), str),
        ]
    )


@like_torch.found_in("torch tests")
def one_number_as_a_sparse_tensor(torch):
    x = leaf(torch, 3.0)
    x[0].to_sparse().to_dense().backward()
    return [
        x.grad,
        *[
            part
            for t in (torch.tensor(0.0), torch.tensor(3))
            for part in (t.to_sparse().to_dense(), list(t.to_sparse().indices().shape), t.to_sparse(0).values())
        ],
        outcome(torch.ones(2).to_sparse, 0),
    ]


def pair(torch, one, other):
    """Two matrices that share one place, of the dtypes of these names."""
    return (
        torch.tensor([[0, 3], [7, 0]]).to(getattr(torch, one)),
        torch.tensor([[5, 4], [0, 0]]).to(getattr(torch, other)),
    )


def dense(result):
    return result.to_dense() if result.is_sparse else result


DTYPES = ["uint8", "int16", "int64", "float32", "float64"]


@like_torch.found_in("torch tests")
def a_sparse_difference_is_taken_in_the_dtype_that_both_have_room_in(torch):
    def difference(one, other, **factor):
        a, b = pair(torch, one, other)
        return [
            dense(a.to_sparse().sub(b.to_sparse(), **factor)),
            dense(a.sub(b.to_sparse(), **factor)),
            dense(a.to_sparse().add(b.to_sparse(), **factor)),
            dense(a.add(b.to_sparse(), **factor)),
        ]

    return [difference(one, other, **factor) for one in DTYPES for other in DTYPES for factor in ({}, {"alpha": 3})]


@like_torch.found_in("torch tests")
def a_sparse_tensor_keeps_its_dtype_in_place(torch):
    def written(name, one, other):
        a, b = pair(torch, one, other)
        s = a.to_sparse()
        back = getattr(s, name)(b.to_sparse())
        return [dense(back), dense(s), back is s]

    return [
        outcome(written, name, one, other) for name in ("add_", "sub_", "mul_") for one in DTYPES for other in DTYPES
    ]


@like_torch.found_in("torch tests")
def a_failed_write_leaves_a_sparse_tensor_as_it_was(torch):
    s = torch.tensor([[0, 3], [7, 0]]).to_sparse()
    return [outcome(s.mul_, 1.5), outcome(s.add_, torch.ones(2, 2).to_sparse()), outcome(s.div_, 2), s.to_dense()]


@like_torch.found_in("torch tests")
def a_function_that_keeps_zeros_is_there_in_place_for_sparse_tensors(torch):
    def written(name, numbers):
        s = torch.tensor(numbers).to_sparse()
        back = getattr(s, name)()
        return [back is s, dense(s)]

    names = [
        "abs_",
        "asin_",
        "asinh_",
        "atan_",
        "atanh_",
        "ceil_",
        "conj_physical_",
        "deg2rad_",
        "erf_",
        "erfinv_",
        "expm1_",
        "floor_",
        "frac_",
        "log1p_",
        "nan_to_num_",
        "neg_",
        "rad2deg_",
        "relu_",
        "round_",
        "sgn_",
        "sign_",
        "sin_",
        "sinh_",
        "sqrt_",
        "tan_",
        "tanh_",
        "trunc_",
    ]
    return [written(name, [0.0, 0.25, -0.75, 0.0]) for name in names] + [
        outcome(written, name, [0, 3]) for name in ("abs_", "neg_", "sign_", "sin_", "sqrt_")
    ]


@like_torch.found_in("torch tests")
def sparse_bools_are_not_subtracted(torch):
    bits, numbers = torch.tensor([True, False]).to_sparse(), torch.tensor([1, 2]).to_sparse()
    return [outcome(operator.sub, a, b) for a in (bits, numbers) for b in (bits, numbers) if bits is a or bits is b]


@like_torch.found_in("torch tests")
def a_factor_of_another_kind_is_refused_beside_sparse_tensors(torch):
    a = torch.tensor([1, 2])
    return [
        outcome(a.to_sparse().add, a.to_sparse(), alpha=1.5),
        outcome(a.add, a.to_sparse(), alpha=1.5),
        dense(a.float().add(a.to_sparse(), alpha=1.5)),
    ]


@pytest.mark.origin("model zoos")
def test_sparse_tensors_that_store_nothing():
    g = rushlight.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (4, 2))
    for nothing in (rushlight.zeros_like(g), rushlight.empty_like(g), g.new().resize_as_(g)):
        assert (nothing.shape, nothing.sparse_dim(), nothing._nnz(), nothing.is_sparse) == ((4, 2), 1, 0, True)
    assert g._nnz() == 2
    assert g.new().shape == (0,)
    assert g.is_same_size(rushlight.ones(4, 2))
    assert rushlight.zeros_like(g, dtype=rushlight.float64).dtype is rushlight.float64
    assert rushlight.zeros_like(g, layout=rushlight.strided).tolist() == [[0, 0]] * 4
    with pytest.raises(RuntimeError, match="that stores values stays"):
        g.resize_as_(rushlight.sparse_coo_tensor(size=(1, 1)))


test_program = like_torch.test()
