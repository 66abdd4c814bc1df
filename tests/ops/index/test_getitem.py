"""Reading and writing at indices: masks, lists, ellipses, no elements, versions, shared memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome


@pytest.mark.origin("edge cases")
@pytest.mark.parametrize(
    "key",
    [
        lambda i, m: (slice(None), i, ..., i),
        lambda i, m: (None, i, i, ..., i),
        lambda i, m: (i, ..., slice(1), i),
        lambda i, m: (m, ..., i),
        lambda i, m: (0, i, ..., i),
        lambda i, m: (i, ..., i),
        lambda i, m: (i, ..., 0, i),
    ],
)
def test_an_ellipsis_between_indices_that_stands_for_nothing(torch, key):
    def run(lib):
        x = lib.arange(27.0).reshape(3, 3, 3).requires_grad_()
        k = key(lib.tensor([0, 2, 1]), lib.tensor([[True, False, True], [False, False, False], [True, False, False]]))
        y = x[k]
        (y * lib.arange(1.0, y.numel() + 1).reshape(y.shape)).sum().backward()
        z = lib.zeros(3, 3, 3)
        z[k] = y.detach()
        return [tuple(y.shape), y.tolist(), x.grad.tolist(), z.tolist()]

    assert run(rushlight) == run(torch)


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize(
    "key",
    [
        lambda i, m: (0, slice(None), i),
        lambda i, m: (i, slice(None), -1),
        lambda i, m: (0, None, i),
        lambda i, m: (0, ..., i),
        lambda i, m: (slice(None), 1, slice(None), i),
        lambda i, m: (1, slice(None), i, 2),
        lambda i, m: (0, slice(None), m),
        lambda i, m: (i, 0),
        lambda i, m: (0, i),
        lambda i, m: (..., 0, slice(None), i),
        lambda i, m: (0, slice(None), -1, i),
    ],
)
def test_integers_of_a_key_are_taken_before_its_tensors(key):
    """Of NumPy they count as index tensors, and their dimension comes first."""
    x = np.arange(120.0).reshape(2, 3, 4, 5)
    i, m = np.array([0, 1, 1]), np.array([True, False, True, True])
    parts = key(i, m)
    taken = key(slice(None), slice(None))
    y = x[tuple(p for p in taken if p is not None)]  # the integers alone
    expected = y[tuple(p for p in parts if not isinstance(p, int))]
    t = rushlight.tensor(x, requires_grad=True)
    of_tensors = tuple(rushlight.tensor(p) if isinstance(p, np.ndarray) else p for p in parts)
    made = t[of_tensors]
    np.testing.assert_array_equal(made.detach().numpy(), expected)
    made.sum().backward()
    assert t.grad.sum().item() == expected.size
    written = rushlight.zeros(2, 3, 4, 5, dtype=rushlight.float64)
    written[of_tensors] = t.detach()[of_tensors]
    np.testing.assert_array_equal(written[of_tensors].numpy(), expected)


@pytest.mark.origin("fuzzing")
def test_numbers_written_to_integers():
    x = rushlight.zeros(3, dtype=rushlight.uint8)
    x[0], x[rushlight.tensor([1])] = -3, 7
    assert x.tolist() == [253, 7, 0]
    for number in (300, float("nan")):
        with pytest.raises(RuntimeError, match="without overflow"):
            x[1:] = number


@pytest.mark.origin("fuzzing")
def test_gradients_at_places_of_no_elements():
    x = rushlight.zeros(3, 4, 0, requires_grad=True)
    x[rushlight.tensor([-2, 2, 2])].sum().backward()
    assert x.grad.shape == (3, 4, 0)


@pytest.mark.origin("fuzzing")
def test_bytes_are_masks_as_indices():
    x, mask = rushlight.arange(6.0).reshape(3, 2), rushlight.tensor([1, 0, 1], dtype=rushlight.uint8)
    assert x[mask].tolist() == [[0, 1], [4, 5]]
    x[mask, 0] = 9.0
    assert x.tolist() == [[9, 1], [2, 3], [9, 5]]


@pytest.mark.origin("fuzzing")
def test_nothing_is_written_at_false():
    x = rushlight.ones(2)
    x[False] = 3.0
    assert x.tolist() == [1, 1]
    assert x._version == 0


program = Programs()


@program.found_in("torch tests")
def positions_that_are_not_there_are_refused_also_where_they_add(torch):
    def added(*places, shape=(2, 3)):
        x = torch.zeros(shape)
        return outcome(x.index_put, tuple(torch.tensor(p) for p in places), torch.tensor(1.0), accumulate=True)

    return [
        added([0], [5]),
        added([1], [-5]),
        added([2], [0]),
        added([-3]),
        added([5]),
        added([0, -3], [1, 1]),
        added([-2, 1], [-1, -3]),
        added([-5], shape=(3,)),
        added([-3, -1, 0], shape=(3,)),
    ]


@program.found_in("torch tests")
def bytes_are_masks_in_index_put_too(torch):
    def with_mask(numbers, **how):
        x, mask = torch.arange(6.0).view(3, 2), torch.tensor(numbers, dtype=torch.uint8)
        return [
            x.index_put_((mask,), torch.tensor([[10.0, 20.0]]), **how),
            x[mask],
            torch.index_put(x, (mask,), x[mask]),
        ]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [with_mask([0, 0, 0], accumulate=True), with_mask([1, 0, 1], accumulate=True), with_mask([0, 1, 0])]


@program.found_in("torch tests")
def what_is_no_index_is_refused(torch):
    x = torch.zeros(4, 4)
    keys = [
        "a",
        ("a", 0),
        1.5,
        (0.0, slice(0.0, 2.0)),
        {},
        object(),
        1j,
        slice("0", "1"),
        slice(1.5, 2),
        slice(0, 2, 1.0),
    ]
    return [outcome(lambda: x[key]) for key in keys]  # noqa: B023


PLACES = {
    "index_put_": lambda x, i, v: x.index_put_((i,), v),
    "__setitem__": lambda x, i, v: x.__setitem__(i, v),
    "adding": lambda x, i, v: x.index_put_((i,), v, accumulate=True),
    "index_copy_": lambda x, i, v: x.index_copy_(0, i, v),
    "index_add_": lambda x, i, v: x.index_add_(0, i, v),
    "scatter_": lambda x, i, v: x.scatter_(0, i, v),
    "scatter_add_": lambda x, i, v: x.scatter_add_(0, i, v),
    "numbers": lambda x, i, v: x.scatter_(0, i, 2.0),
    "scatter_reduce_": lambda x, i, v: x.scatter_reduce_(0, i, v, "amax"),
    "multiply": lambda x, i, v: x.scatter_(0, i, v, reduce="multiply"),
    "index_reduce_": lambda x, i, v: x.index_reduce_(0, i, v, "prod"),
}


@pytest.mark.origin("torch tests")
@pytest.mark.parametrize("write", PLACES.values(), ids=PLACES)
def test_writes_at_places_copy_nothing_else(write, monkeypatch):
    from rushlight.core import views

    monkeypatch.setattr(views.np, "copyto", None)  # what writes all of a tensor
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


@program.found_in("torch tests")
def writes_at_places_in_all_kinds_of_memory(torch):
    def of(make, write):
        x = make()
        outcome(write, x, torch.tensor([1, 0]), torch.tensor([[3.0, 4.0, 5.0], [0.5, 6.0, 7.0]]))
        return [x, x._version]

    makes = [
        lambda: torch.ones(2, 3),
        lambda: torch.ones(3, 2).t(),
        lambda: torch.ones(4, 6)[::2, ::2],
        lambda: torch.ones(2, 3, requires_grad=True) * 2,
        lambda: torch.ones(4, 3)[1:3],
    ]
    writes = [
        PLACES[name] for name in ("index_put_", "__setitem__", "adding", "index_copy_", "index_add_", "index_reduce_")
    ]
    return [of(make, write) for make in makes for write in writes]


@pytest.mark.origin("torch tests")
def test_writes_at_places_from_the_memory_that_they_write_to():
    x, y = rushlight.arange(6.0), rushlight.arange(6.0)
    x[rushlight.tensor([0, 1, 2])] = x[1:4]
    y.index_put_((rushlight.tensor([1, 2, 3]),), y[0:3], accumulate=True)
    assert (x.tolist(), y.tolist()) == ([1, 2, 3, 3, 4, 5], [0, 1, 3, 5, 4, 5])


@program.found_in("torch tests")
def writes_at_places_are_known_to_backward(torch):
    w = torch.ones(4, requires_grad=True)
    x = torch.ones(4)
    y = (w * x).sum()
    x[torch.tensor([0])] = 5.0
    z = torch.zeros(4)
    z.scatter_(0, torch.tensor([0, 2]), w[:2] * 3)
    z.sum().backward()
    return [outcome(y.backward), w.grad]


@pytest.mark.origin("torch tests")
@pytest.mark.parametrize("write", PLACES.values(), ids=PLACES)
def test_a_failed_write_at_places_changes_nothing(write):
    x = rushlight.zeros(3)
    for places in ([0, 1, 5], [0, 1]):
        if places != [0, 1] or write is PLACES["__setitem__"]:
            with pytest.raises((IndexError, RuntimeError)):
                write(x, rushlight.tensor(places), rushlight.ones(3))
    assert (x.tolist(), x._version) == ([0, 0, 0], 0)


@program.found_in("torch tests")
def values_at_places_have_the_tensors_dtype(torch):
    def written(key, value, dtype=torch.float64):
        x = torch.zeros(3, 2, dtype=dtype)
        return [outcome(x.__setitem__, key, value), x]

    mask, places = torch.tensor([True, False, True]), torch.tensor([0, 1])
    return [
        written(places, torch.ones(2, dtype=torch.int32)),
        written(places, torch.tensor(1)),
        written(places, 1),
        written(mask, torch.tensor([1, 2])),
        written(mask, torch.tensor(3)),
        written(mask, torch.tensor([3])),
        written(places, torch.tensor([1.5, 2.0]), torch.int64),
        written(0, torch.tensor([1.5, 2.0]), torch.int64),
        written((slice(None), [1]), torch.ones(3, 1, dtype=torch.int32)),
        written(places, torch.ones(2, dtype=torch.float64)),
    ]


@program.found_in("torch tests")
def tensors_in_opposite_order_are_tensors(torch):
    return [
        reversed(torch.arange(6).view(3, 2)),
        reversed(torch.tensor(1)),
        str(torch.ones((), device="meta")),
        f"{torch.ones((), device='meta')}",
    ]


@program.found_in("torch tests")
def lists_of_places_are_tuples(torch):
    x, a, b = torch.arange(16).view(4, 4), torch.tensor([0, 1]), torch.tensor([1, 0])

    def written(key):
        y = x.clone()
        y[key] = -1
        return y

    keys = [
        [[0, 1], [1, 0]],
        [a, b],
        [0, 1],
        [a[0], b[0]],
        [slice(0, 2), 1],
        [None, 0],
        [..., 0],
        [(0, 1), (1, 0)],
        [0, [1, 2]],
        [True, False, True, False],
        [[True, False, True, False]],
        [a],
        [[[0, 1]]],
        [a[0], 1],
        np.array([[0, 1], [1, 0]]),
        [np.array([0, 1]), np.array([1, 0])],
        [[0, 1]] * 32,
        [np.int64(1), 0],
        [],
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            [outcome(x.__getitem__, key) for key in keys]
            + [outcome(written, key) for key in keys]
            + [outcome(x.__delitem__, 0)]
        )


test_program = program.test()
