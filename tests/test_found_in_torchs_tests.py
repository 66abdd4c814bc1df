"""What torch's own tests ask for, and no other test did: places, views, creation, dtypes."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, leaf, outcome

run = Programs()


# -- positions ---------------------------------------------------------------------------------------------------------

@run
def positions_that_are_not_there_are_refused_also_where_they_add(torch):
    def added(*places, shape=(2, 3)):
        x = torch.zeros(shape)
        return outcome(x.index_put, tuple(torch.tensor(p) for p in places), torch.tensor(1.0), accumulate=True)
    return [added([0], [5]), added([1], [-5]), added([2], [0]), added([-3]), added([5]), added([0, -3], [1, 1]),
            added([-2, 1], [-1, -3]), added([-5], shape=(3,)), added([-3, -1, 0], shape=(3,))]


@run
def bytes_are_masks_in_index_put_too(torch):
    def with_mask(numbers, **how):
        x, mask = torch.arange(6.0).view(3, 2), torch.tensor(numbers, dtype=torch.uint8)
        return [x.index_put_((mask,), torch.tensor([[10.0, 20.0]]), **how), x[mask], torch.index_put(x, (mask,), x[mask])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [with_mask([0, 0, 0], accumulate=True), with_mask([1, 0, 1], accumulate=True), with_mask([0, 1, 0])]


@run
def what_is_no_index_is_refused(torch):
    x = torch.zeros(4, 4)
    keys = ["a", ("a", 0), 1.5, (0.0, slice(0.0, 2.0)), {}, object(), 1j, slice("0", "1"), slice(1.5, 2), slice(0, 2, 1.0)]
    return [outcome(lambda: x[key]) for key in keys]  # noqa: B023


@run
def what_is_no_shape_has_no_coordinates(torch):
    shapes = [(2, 2.0), 2.0, torch.tensor([2, 3]), torch.tensor(3), "ab", (2, -3), torch.Size([2, 3]), 7]
    return [outcome(lambda: list(torch.unravel_index(torch.tensor([1]), shape))) for shape in shapes]  # noqa: B023


PLACES = {
    "index_put_": lambda x, i, v: x.index_put_((i,), v), "__setitem__": lambda x, i, v: x.__setitem__(i, v),
    "adding": lambda x, i, v: x.index_put_((i,), v, accumulate=True), "index_copy_": lambda x, i, v: x.index_copy_(0, i, v),
    "index_add_": lambda x, i, v: x.index_add_(0, i, v), "scatter_": lambda x, i, v: x.scatter_(0, i, v),
    "scatter_add_": lambda x, i, v: x.scatter_add_(0, i, v), "numbers": lambda x, i, v: x.scatter_(0, i, 2.0),
    "scatter_reduce_": lambda x, i, v: x.scatter_reduce_(0, i, v, "amax"),
    "multiply": lambda x, i, v: x.scatter_(0, i, v, reduce="multiply"),
    "index_reduce_": lambda x, i, v: x.index_reduce_(0, i, v, "prod")}


@pytest.mark.parametrize("write", PLACES.values(), ids=PLACES)
def test_writes_at_places_copy_nothing_else(write, monkeypatch):
    from rushlight.autograd import views
    monkeypatch.setattr(views.np, "copyto", None)             # what writes all of a tensor
    x, i, v = rushlight.ones(6), rushlight.tensor([1, 4]), rushlight.tensor([3.0, 5.0])
    memory, whole = x.data_ptr(), x.view(2, 3)
    write(x, i, v)
    assert (x.data_ptr(), x._version) == (memory, 1)
    right = rushlight.ones(6).index_put((i,), v)
    if write is PLACES["adding"] or write in (PLACES["index_add_"], PLACES["scatter_add_"]):
        right = right + (right != 1)
    if write is PLACES["numbers"]:
        right[i] = 2.0
    assert whole.flatten().tolist() == right.tolist()


@run
def writes_at_places_in_all_kinds_of_memory(torch):
    def of(make, write):
        x = make()
        outcome(write, x, torch.tensor([1, 0]), torch.tensor([[3.0, 4.0, 5.0], [0.5, 6.0, 7.0]]))
        return [x, x._version]
    makes = [lambda: torch.ones(2, 3), lambda: torch.ones(3, 2).t(), lambda: torch.ones(4, 6)[::2, ::2],
             lambda: torch.ones(2, 3, requires_grad=True) * 2, lambda: torch.ones(4, 3)[1:3]]
    writes = [PLACES[name] for name in ("index_put_", "__setitem__", "adding", "index_copy_", "index_add_", "index_reduce_")]
    return [of(make, write) for make in makes for write in writes]


def test_writes_at_places_from_the_memory_that_they_write_to():
    x, y = rushlight.arange(6.0), rushlight.arange(6.0)
    x[rushlight.tensor([0, 1, 2])] = x[1:4]
    y.index_put_((rushlight.tensor([1, 2, 3]),), y[0:3], accumulate=True)
    assert (x.tolist(), y.tolist()) == ([1, 2, 3, 3, 4, 5], [0, 1, 3, 5, 4, 5])


@run
def writes_at_places_are_known_to_backward(torch):
    w = torch.ones(4, requires_grad=True)
    x = torch.ones(4)
    y = (w * x).sum()
    x[torch.tensor([0])] = 5.0
    z = torch.zeros(4)
    z.scatter_(0, torch.tensor([0, 2]), w[:2] * 3)
    z.sum().backward()
    return [outcome(y.backward), w.grad]


@pytest.mark.parametrize("write", PLACES.values(), ids=PLACES)
def test_a_failed_write_at_places_changes_nothing(write):
    x = rushlight.zeros(3)
    for places in ([0, 1, 5], [0, 1]):
        if places != [0, 1] or write is PLACES["__setitem__"]:
            with pytest.raises((IndexError, RuntimeError)):
                write(x, rushlight.tensor(places), rushlight.ones(3))
    assert (x.tolist(), x._version) == ([0, 0, 0], 0)


@run
def values_at_places_have_the_tensors_dtype(torch):
    def written(key, value, dtype=torch.float64):
        x = torch.zeros(3, 2, dtype=dtype)
        return [outcome(x.__setitem__, key, value), x]
    mask, places = torch.tensor([True, False, True]), torch.tensor([0, 1])
    return [written(places, torch.ones(2, dtype=torch.int32)), written(places, torch.tensor(1)), written(places, 1),
            written(mask, torch.tensor([1, 2])), written(mask, torch.tensor(3)), written(mask, torch.tensor([3])),
            written(places, torch.tensor([1.5, 2.0]), torch.int64), written(0, torch.tensor([1.5, 2.0]), torch.int64),
            written((slice(None), [1]), torch.ones(3, 1, dtype=torch.int32)),
            written(places, torch.ones(2, dtype=torch.float64))]


@run
def a_number_has_one_place(torch):
    x, at, beyond, v = torch.tensor(1.0), torch.tensor([0]), torch.tensor([1]), torch.tensor([2.0])
    return [[outcome(x.index_copy, 0, i, v), outcome(x.index_select, 0, i), outcome(x.scatter, 0, i, v),
             outcome(x.scatter_add, 0, i, v)] for i in (at, beyond)]


@run
def what_is_in_a_tensor_is_a_number_or_a_tensor(torch):
    x = torch.tensor([1.0, 2.0])
    return [1 in x, 1.5 in x, torch.ones(1) in x, np.float64(2) in x, outcome(lambda: "a" in x), outcome(lambda: None in x),
            outcome(lambda: [1] in x)]


@run
def tensors_in_opposite_order_are_tensors(torch):
    return [reversed(torch.arange(6).view(3, 2)), reversed(torch.tensor(1)), str(torch.ones((), device="meta")),
            f"{torch.ones((), device='meta')}"]


@run
def lists_of_places_are_tuples(torch):
    x, a, b = torch.arange(16).view(4, 4), torch.tensor([0, 1]), torch.tensor([1, 0])

    def written(key):
        y = x.clone()
        y[key] = -1
        return y
    keys = [[[0, 1], [1, 0]], [a, b], [0, 1], [a[0], b[0]], [slice(0, 2), 1], [None, 0], [..., 0], [(0, 1), (1, 0)],
            [0, [1, 2]], [True, False, True, False], [[True, False, True, False]], [a], [[[0, 1]]], [a[0], 1],
            np.array([[0, 1], [1, 0]]), [np.array([0, 1]), np.array([1, 0])], [[0, 1]] * 32, [np.int64(1), 0], []]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [outcome(x.__getitem__, key) for key in keys] + [outcome(written, key) for key in keys] + [
            outcome(x.__delitem__, 0)]


# -- memory ------------------------------------------------------------------------------------------------------------

@run
def tensors_are_set_on_other_memory(torch):
    source, x, y = torch.arange(6.0), torch.zeros(2), torch.tensor([])
    made = [x.set_(source.storage(), 1, (2, 2), (2, 1)).clone(), list(x.stride()), x.storage_offset(),
            y.set_(source.untyped_storage()).clone(), outcome(y.set_, torch.arange(3)), y.set_(source[2:4]).clone()]
    x[0] = 10.0
    return [*made, source, y, y.set_(source, 1, (2,)).clone(), y.set_(),
            outcome(torch.ones(1, requires_grad=True).set_, source)]


@run
def storages_of_windows_are_those_of_the_whole(torch):
    x = torch.arange(12.0).view(4, 3)
    views = [x.as_strided((2, 2), (3, 1), 1), x.unfold(0, 2, 1), x.t(), x[1:].unfold(1, 2, 1)[:, 1]]
    return [[v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(), v.storage_offset(),
             v.untyped_storage().nbytes()] for v in views]


@run
def sizes_that_no_memory_has_are_refused(torch):
    return [outcome(torch.empty(()).resize_, size) for size in ([8, 8, 2**29, 2**29], [0, 4, 2**61])]


@run
def tensors_in_their_own_size_stay_as_they_lie(torch):
    x, image = torch.arange(6.0).view(2, 3).t(), torch.rand(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    flat, kept = torch.rand(image.numel()), list(x.resize_as_(x).stride())
    return [kept, list(flat.resize_as_(image, memory_format=torch.preserve_format).stride()),
            list(x.resize_(3, 2, memory_format=torch.contiguous_format).stride()),
            outcome(x.resize_, 2, memory_format=torch.preserve_format)]


# -- views -------------------------------------------------------------------------------------------------------------

@run
def transposes_are_of_matrices(torch):
    tensors = [torch.tensor(1j), torch.ones(2), torch.tensor([[1, 2j]]), torch.ones(2, 3, 4), torch.tensor(2)]
    return [[outcome(lambda: t.mT), outcome(lambda: t.H), outcome(lambda: t.mH), outcome(t.adjoint)]  # noqa: B023
            for t in tensors]


@run
def what_has_no_complex_view(torch):
    return [outcome(torch.view_as_complex, t) for t in (
        torch.ones(4, 2, dtype=torch.int64), torch.tensor(1.0), torch.ones(4, 3), torch.ones(2, 2))]


# -- from NumPy and others; dtypes -------------------------------------------------------------------------------------

@run
def arrays_between_whole_steps_are_refused(torch):
    array = np.array([3.0, 5.0, 8.0])
    array.strides = (3,)
    return [outcome(torch.from_numpy, array)]


@run
def capsules_of_older_programs_are_tensors(torch):
    x = torch.arange(3.0)
    y = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    y[0] = 5.0
    return [x, torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))]


@run
def positions_go_into_integers_alone(torch):
    x = torch.tensor([0.0, 1.0])
    return [outcome(torch.nonzero, x, out=torch.zeros(1)), outcome(torch.nonzero, x, out=torch.zeros(1, dtype=torch.long)),
            outcome(torch.nonzero, x, as_tuple=True, out=torch.zeros(1, dtype=torch.long))]


@run
def halves_of_complex_numbers_have_names(torch):
    return [str(torch.chalf), str(torch.complex32.to_real()), torch.chalf is torch.complex32]


# -- creation ----------------------------------------------------------------------------------------------------------

@run
def out_gives_ranges_their_shape_and_all_their_dtype(torch):
    def within(make, *numbers):
        x = torch.zeros(2, 3)
        return [list(make(*numbers, out=x.narrow(1, 1, 2)).shape), x]
    return [within(torch.arange, 0, 4), within(torch.linspace, 0, 3, 4), within(torch.logspace, 0, 1, 4),
            torch.linspace(0, 1, 3, out=torch.zeros(3, dtype=torch.int64)), torch.ones(2, out=torch.zeros(5)),
            torch.eye(2, out=torch.zeros(2, 2, dtype=torch.uint8)), torch.zeros(2, out=torch.ones(2, dtype=torch.int8)),
            torch.full((2,), 1.5, out=torch.zeros(2, dtype=torch.int64)), torch.full((2,), True, out=torch.zeros(2))] + [
        outcome(make, dtype=dtype, out=torch.ones(3)) for make, dtype in (
            (lambda **how: torch.arange(3, **how), torch.int64), (lambda **how: torch.zeros(3, **how), torch.float16),
            (lambda **how: torch.linspace(0, 1, 3, **how), torch.float64),
            (lambda **how: torch.eye(3, **how), torch.float64))]


def test_generators_are_pickled_under_torchs_name():
    program = ("import pickle, torch; g = torch.Generator().manual_seed(3); h = pickle.loads(pickle.dumps(g)); "
               "assert torch.equal(torch.rand(2, generator=h), torch.rand(2, generator=g))")
    subprocess.run([sys.executable, "-c", "import rushlight.compat; rushlight.compat.install(); " + program], check=True)


@run
def more_than_memory_can_have_is_refused(torch):
    return [outcome(make) for make in (
        lambda: torch.empty([8, 8, 2**29, 2**29]), lambda: torch.empty([0, 4, 2**61]), lambda: torch.zeros(2**62, 4),
        lambda: torch.full((2**62, 4), 1), lambda: torch.empty_strided([8, 8], [2**61, 1]))]


@run
def nothing_is_joined_along_any_dimension(torch):
    return [torch.cat([torch.ones(0), torch.ones(0)], 1), outcome(torch.linspace, 0, 1j, 3, dtype=torch.float32),
            outcome(torch.logspace, 0j, 1, 3, dtype=torch.float64), torch.linspace(0, 1j, 3)]


@run
def lists_that_hold_themselves_have_no_end(torch):
    endless = []
    endless.append(endless)
    return [outcome(torch.tensor, endless), outcome(torch.as_tensor, endless)]


@run
def a_type_makes_tensors_of_a_named_size(torch):
    return [list(torch.ones(1, dtype=torch.int16).new(size=(2, 3)).shape), outcome(torch.device, -1),
            outcome(torch.device, True), outcome(torch.ones(1).apply_, "abs")]


@run
def bools_are_no_dimensions(torch):
    x = torch.arange(9.0).reshape(3, 3)
    names = ("sum", "mean", "all", "amax", "argmax", "sort", "argsort", "softmax", "cumsum", "squeeze", "unsqueeze",
             "flatten", "std", "max")
    return [outcome(getattr(x, name), True) for name in names] + [outcome(x.topk, 1, True), outcome(torch.cat, [x], True)]


@run
def slices_to_add_or_copy_have_one_shape(torch):
    at, two, zeros = torch.tensor([0]), torch.tensor(2.0), torch.zeros(2, 3)
    return [outcome(getattr(x, name), 0, at, y) for name in ("index_add", "index_copy")
            for x in (torch.tensor(1.0), torch.zeros(3), zeros) for y in (two, two.reshape(1), two.reshape(1, 1))]


@run
def wider_elements_stand_where_whole_ones_do(torch):
    x = torch.arange(24, dtype=torch.int16)
    views = (x.view(4, 2, 3), x[:20].view(4, 5)[:, 1:], x.view(8, 3)[:, :2], x.view(6, 4).T, x[1:3], x[2:6], x[0])
    return [outcome(v.view, dtype) for v in views for dtype in (torch.int32, torch.int8, torch.float16)]


def test_tensors_in_files(tmp_path, oracle):
    def ask(lib):
        path = str(tmp_path / lib.__name__)
        shared = lib.from_file(path, shared=True, size=4, dtype=lib.float64)
        shared[1] = 5.0
        own = lib.from_file(path, size=3, dtype=lib.float64)
        own += 1.0
        assert type(shared.numpy()) is np.ndarray
        with pytest.raises(RuntimeError):
            lib.from_file(path, size=200)
        return np.concatenate([np.fromfile(path), own.numpy()])
    np.testing.assert_array_equal(ask(rushlight), oracle(ask))


# -- numbers -----------------------------------------------------------------------------------------------------------

@run
def factors_stand_where_older_programs_have_them(torch):
    x, v, m = leaf(torch, 1.0, 2.0), torch.tensor([3.0, 5.0]).double(), torch.tensor([[1.0, 2.0], [3.0, 4.0]]).double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [x.add(0.5, v), torch.add(x, 2, v), torch.sub(x, 0.5, v), torch.addcmul(x, 0.5, v, v),
                torch.addcdiv(x, 2, v, v * v),
                torch.addmv(2, x, 3, m, v), torch.addmm(2, m, 3, m, m), torch.addmm(2, m, m, m), torch.addr(2, m, 3, v, v),
                torch.addbmm(2, m, 3, m[None], m[None]), torch.baddbmm(2, m[None], 3, m[None], m[None]), m.addmm(2, 3, m, m)]
        sum(made[i].sum() for i in range(6)).backward()
        y = v.clone()
        written = [y.mul_(0.9).add_(0.1, v).clone(), y.sub_(2, v).clone(), y.addcmul_(0.1, v, v).clone(),
                   y.addcdiv_(-1, v, v).clone(),
                   m.clone().addmm_(2, 3, m, m), y.addmv_(2, m, v)]
        refused = [outcome(torch.add, x, 1, 2), outcome(torch.add, x, v, v), outcome(torch.add, x, 1, v, 2),
                   outcome(torch.addcmul, x, v), outcome(torch.addmm, m, m, m, m), outcome(torch.addcmul, x, 1, 2, v, v)]
    return [*made, x.grad, *written, *refused]


@run
def complex_numbers_have_no_order(torch):
    c, d = torch.tensor([1 + 1j, 2.0]), torch.tensor([1.0, 2.0])
    tried = [lambda: c < 1, lambda: c > d, lambda: d <= 1j, lambda: d >= c, lambda: torch.maximum(c, c),
             lambda: torch.max(d, c),
             lambda: torch.minimum(d, c), lambda: c.relu(), lambda: c.round(), lambda: d.clone().lt_(1j),
             lambda: c.clone().round_(),
             lambda: torch.xlogy(c, c), lambda: d.to(torch.int64) > 1j]
    return [isinstance(outcome(f), str) for f in tried] + [c == c, c != d]


@run
def ops_of_sparse_tensors_fill_out(torch):
    s, ones = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(), torch.ones(2, 2)

    def filled(op, *args, out):
        return [outcome(lambda: op(*args, out=out) is out), out.to_dense() if out.is_sparse else out]
    made = [filled(op, *args, out=torch.zeros_like(s)) for op, *args in (
        (torch.neg, s), (torch.sqrt, s), (torch.add, s, s), (torch.mul, s, 2.0), (torch.div, s, 2.0), (torch.pow, s, 2.0))]
    return made + [filled(op, *args, out=torch.zeros(2, 2)) for op, *args in (
        (torch.mm, s, ones), (torch.matmul, s, ones), (torch.add, ones, s), (torch.addmm, ones, s, ones))] + [
        isinstance(outcome(torch.neg, s, out=torch.zeros(2, 2)), str), isinstance(outcome(torch.neg, ones, out=s), str)]


@run
def numbers_are_copied_into_tensors(torch):
    w = leaf(torch, 1.0, 2.0)
    (w * 1).copy_(2.0).sum().backward()
    return [torch.zeros(2, 2).copy_(3.5), torch.zeros(2, dtype=torch.int64).copy_(True), torch.zeros(2).copy_(float("inf")),
            w.grad,
            outcome(torch.zeros(2).copy_, [1, 2])]


@run
def lists_of_bfloat16_tensors_are_tensors_of_that(torch):
    a, b = torch.tensor(1.5, dtype=torch.bfloat16), torch.tensor([2.5], dtype=torch.bfloat16)
    made = [torch.tensor([a, a]), torch.tensor([a, 2]), torch.tensor([[a, b], [1.0, b]])]
    return [str(t.dtype) for t in made] + [t.float() for t in made]


@run
def random_numbers_around_infinity_and_in_other_memory_formats(torch):
    torch.manual_seed(0)
    inf, image = float("inf"), torch.zeros(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    drawn = [torch.empty(3).cauchy_(inf, 0.5), torch.empty(3).cauchy_(0.0, inf),
             torch.empty(3, dtype=torch.float64).normal_(inf, 2.0),
             torch.randint_like(image, 3, 30), torch.randint_like(image, 9, dtype=torch.int64)]
    return [*drawn, list(drawn[3].stride()), torch.bernoulli(torch.ones(3), out=torch.zeros(3, dtype=torch.int64)),
            list(image.nan_to_num().stride())]


@run
def python_functions_of_elements(torch):
    x, w = torch.zeros(2), torch.zeros(2, requires_grad=True)
    half = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    return [half.apply_(lambda v: v * 2.5).float(), outcome(x.apply_, lambda v: "a"),
            torch.zeros(2, 2).map_(torch.arange(2.0), max),
            outcome(x.map_, torch.zeros(2, 2), max), outcome(x.map_, w, max), outcome(x.map2_, x, w, max),
            outcome(x.map_, torch.zeros(2, dtype=torch.int64), max)]


@run
def the_largest_of_numbers_one_of_which_is_nan(torch):
    def gradient(name):
        x = leaf(torch, 1.0, float("nan"), 2.0, float("nan"))
        getattr(x, name)().backward()
        return x.grad
    return [gradient("max"), gradient("min"), gradient("median")]


@run
def one_number_as_a_sparse_tensor(torch):
    x = leaf(torch, 3.0)
    x[0].to_sparse().to_dense().backward()
    return [x.grad, *[part for t in (torch.tensor(0.0), torch.tensor(3)) for part in (
        t.to_sparse().to_dense(), list(t.to_sparse().indices().shape), t.to_sparse(0).values())],
        outcome(torch.ones(2).to_sparse, 0)]


@run
def whole_quotients_toward_zero(torch):
    """Also of the least number, which has no absolute value."""
    def quotients(numbers, by, dtype=torch.int64):
        return torch.div(torch.tensor(numbers, dtype=dtype), by, rounding_mode="trunc")
    return [quotients([-128, 127, -7], 3, torch.int8), quotients([-128, 5], -1, torch.int8), quotients([-2 ** 63, 7], 2),
            quotients([200, 7], torch.tensor(3, dtype=torch.uint8), torch.uint8), quotients([], 0), quotients([5, -5], True),
            quotients([5, -5], torch.tensor([[2], [-3]], dtype=torch.int32)), outcome(quotients, [5], 0),
            outcome(quotients, [True], torch.tensor([True]), torch.bool)]


test_programs = run.test()
