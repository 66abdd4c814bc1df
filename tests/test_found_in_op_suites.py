"""What torch's tests of reductions, elementwise ops, linear algebra and sparse tensors ask for, and no other test did."""

from __future__ import annotations

import pytest

import rushlight
from tests.support.programs import Programs, outcome

run = Programs()


@run
def all_and_any_over_no_dimensions(torch):
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    return [f(x, dim=dim, keepdim=keep) for f in (torch.all, torch.any) for dim in ((), []) for keep in (False, True)] + [
        torch.sum(x, dim=()), torch.any(x.to(torch.uint8), dim=())]


@run
def running_sums_and_products_in_the_dtype_of_out(torch):
    x = torch.tensor([[1.5, 2.0], [2.5, 3.0]])
    made = []
    for f in (torch.cumsum, torch.cumprod):
        write = getattr(torch.Tensor, f.__name__ + "_")
        made += [f(x, 0, out=torch.zeros(2, 2, dtype=d)) for d in (torch.int64, torch.float64)]
        made += [outcome(f, x, 0, dtype=torch.float32, out=torch.zeros(2, 2, dtype=torch.float64)),
                 outcome(write, x.clone(), 0, dtype=torch.float64), outcome(write, x > 2, 0), f(x > 2, 0),
                 write((x * 50).to(torch.uint8), 0), write(x.to(torch.int32), 0), outcome(f, x, 0, dtype=torch.bool)]
    return made


@run
def histograms_of_nothing_and_of_half_precision(torch):
    x, histogram = torch.tensor([1.0, 2.0, 1.0]), torch.histogram
    none = torch.histogramdd(torch.zeros(3, 0), []), torch.histogramdd(torch.zeros(3, 0), [], density=True)
    return [*torch.histc(x.bfloat16(), 4, 0, 3).tolist(), *[n.hist for n in none], *[list(n.bin_edges) for n in none],
            outcome(histogram, x, 1, weight=x.double()), outcome(histogram, x, x[:0]), outcome(histogram, x, x[:1])]


@run
def one_function_of_three_tensors_elements(torch):
    a, b = torch.tensor([1.0, 5.0]), torch.tensor([3.0])
    return [a.clone().map2_(a, b, lambda x, y, z: x + y * z)]


@run
def dimensions_are_integers(torch):
    x = torch.ones(2, 3)
    return [outcome(f, x, dim=d) for f in (torch.sum, torch.amax, torch.cumsum, torch.softmax) for d in ("a", 1.5)]


@run
def pairs_of_results_go_into_tensors_of_their_dtypes(torch):
    x, pair = torch.tensor([[1.0, 4.0], [3.0, 2.0]]), lambda *dtypes: tuple(torch.zeros(2, dtype=d) for d in dtypes)
    made = []
    for f in (torch.max, torch.median, torch.sort, torch.mode, torch.cummax, lambda x, _, out: torch.linalg.qr(x, out=out)):
        made += [outcome(f, x, 0, out=pair(*d)) for d in ((torch.float64, torch.int64), (torch.float32, torch.int32))]
    return [*made, *torch.max(x, 0, out=pair(torch.float32, torch.int64)),
            str(torch.linalg.lstsq(x, x, out=pair(torch.float64, torch.float64, torch.int64, torch.float64))[0].dtype)]


@run
def numpys_names_of_keywords(torch):
    x, y = torch.tensor([1.0, 5.0, 2.0]), torch.tensor([3.0, 1.0, 2.0])
    return [*torch.aminmax(x, axis=0), torch.trapezoid(x, axis=0), torch.linalg.cross(x, y, axis=0),
            torch.linalg.vector_norm(x=x, axis=0)]


@run
def products_of_truth_values_are_refused(torch):
    a, v = torch.eye(3) > 0, torch.tensor([True, False, True])
    return [outcome(f, x, y) for f, x, y in (
        (torch.mm, a, a), (torch.matmul, a, v), (torch.mv, a, v), (torch.dot, v, v), (torch.bmm, a[None], a[None]))] + [
        outcome(torch.einsum, "ij,jk->ik", a, a), outcome(torch.nn.functional.linear, a, a), torch.outer(v, v)]


@run
def what_einsum_refuses(torch):
    a, v = torch.ones(3, 3), torch.ones(3)

    def said(*args):
        try:
            return torch.einsum(*args)
        except (RuntimeError, ValueError) as error:
            words = ("not match the number of dimensions", "operands were provided", "subscripts must be in [a-zA-Z]",
                     "not part of any ellipsis", "more than once in the output", "any input operand", "does not broadcast",
                     "valid range [0, 52)", "at least one operand")
            return [type(error).__name__, *[w for w in words if w in str(error)]]
    return [said(*args) for args in (
        ("i1->i", a), ("i.j->ij", a), ("ij", v), ("i,j", v), ("i", v, v), ("i->ii", v), ("ij->k", a), ("i", a), ("",),
        ("i,i->", v, v[:2]), (a, [0, 60], v, [60]), ("...i,i...", v, v), (a, [0, 51], v, [51]))]


@run
def what_linear_algebra_refuses(torch):
    a = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 2.0]])
    return [outcome(torch.linalg.vector_norm, a, "fro"),
            outcome(torch.linalg.matrix_power, a[:, :2], 1.5), outcome(torch.tensordot, a, a, ([0], [5])),
            torch.tensordot(a, a, ([-1], [-1]))]


def pieces(torch):
    """Two sparse matrices, the second with a place stored twice, and one of vectors."""
    at, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
    return (torch.sparse_coo_tensor(at, values, (2, 3)), torch.sparse_coo_tensor(at[:, [0, 1, 1]], values, (2, 3)),
            torch.sparse_coo_tensor(at, torch.arange(6.0).reshape(3, 2), (2, 3, 2)))


@run
def sparse_tensors_stand_one_after_another(torch):
    s, u, h = pieces(torch)
    joined = [torch.cat([s, u]), torch.cat([s, u], -1), torch.cat([h, h]), torch.stack([s, u]), torch.stack([s, u], -1),
              torch.stack([s, u], 1), torch.cat([s])]
    return [part for t in joined for part in (t._indices(), t._values(), list(t.shape))] + [
        torch.bmm(torch.stack([s, s]), torch.ones(2, 3, 2)), outcome(torch.cat, [s, u.to_dense()]),
        outcome(torch.cat, [s, h]), outcome(torch.cat, [s, u.t()])]


@run
def parts_and_sums_of_sparse_tensors(torch):
    (s, u, h), linear, w = pieces(torch), torch.nn.functional.linear, torch.ones(2, 3)
    dense = [s[1, 2], h[1, 2], h[1, 2, 1], torch.norm(s), torch.any(s), u.any(), linear(s, w), linear(s, w, w[:, 0]),
             *torch.sparse.sum(s, 0, torch.float64).to_dense()]
    sparse = [*s, *s.unbind(1), s.narrow_copy(1, 0, 2), s.narrow_copy(0, 1, 1), s // 2, s.floor_divide(2), u.signbit(),
              torch.isposinf(s), u.nan_to_num(), torch.sum(s, 0, keepdim=True), s.sum(1, True), h[1]]
    return [*dense, *[t.to_dense() for t in sparse], outcome(s.narrow_copy, 1, 2, 2), outcome(torch.argmax, s)]


@run
def pivots_are_rows(torch):
    LU, pivots = torch.linalg.lu_factor(torch.tensor([[4.0, 1.0], [2.0, 3.0]]))
    calls = [(torch.linalg.lu_solve, LU, p, torch.ones(2, 1)) for p in (pivots * 0, pivots + 2)]
    return [outcome(*call) for call in (*calls, (torch.lu_unpack, LU, pivots * 0), (torch.lu_unpack, LU, pivots + 2))]


@run
def factors_are_numbers_of_the_results_kind(torch):
    x, n = torch.ones(2), torch.ones(2, dtype=torch.int64)
    return [outcome(f, t, t, alpha=alpha) for f in (torch.add, torch.sub) for t in (x, n) for alpha in (True, 1j, 1.5)] + [
        torch.add(x > 0, x > 0, alpha=True)]


@run
def logarithms_of_complex_numbers_near_one(torch):
    parts = [(a, b) for a in (0.0, 1e-19, -1e-10, 0.5, -0.5, -2.0, 1e20) for b in (0.0, 1e-12, -1e-5, 3.0)]
    made = torch.log1p(torch.tensor([complex(*p) for p in parts], dtype=torch.complex128))
    return [f"{part:.9e}" for z in made.tolist() for part in (z.real, z.imag)]


test_program = run.test()


def test_gradients_reach_the_parts_of_sparse_tensors():
    parts = [s.requires_grad_() for s in pieces(rushlight)[:2]]
    (rushlight.cat([parts[0], parts[1] * 2], 1).to_dense() ** 2).sum().backward()
    assert parts[0].grad.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    assert parts[1].grad.to_dense().tolist() == [[0, 0, 24], [72, 0, 0]]


def test_shapes_of_products_are_told_where_they_are_empty():
    with pytest.raises(RuntimeError, match="0x2 and 1x0"):
        rushlight.mm(rushlight.ones(0, 2), rushlight.ones(1, 0))
