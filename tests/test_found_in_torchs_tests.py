"""What torch's own tests ask for, and no other test did: places, views, creation, dtypes."""

from __future__ import annotations

import warnings

import pytest
from programs import Programs, outcome

import rushlight

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


test_programs = run.test()
