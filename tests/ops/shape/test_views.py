"""How tensors lie in memory, views that tensors become, and writes through views, against torch."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome

program = Programs()
test_program = program.test()


def matrix(torch, *shape):
    return torch.arange(1.0, 1.0 + int(np.prod(shape)), dtype=torch.float64).reshape(shape).requires_grad_()


def weighted(torch, y):
    """A sum in which every element counts differently."""
    return (y * matrix(torch, *y.shape).detach() ** 2).sum()


# -- views that a tensor becomes -------------------------------------------------------------------


@program
def a_tensor_becomes_its_transpose(torch):
    x = matrix(torch, 2, 3)
    y = x * 1
    back = y.t_()
    weighted(torch, y).backward()
    return [back is y, y, x.grad, y._version, list(y.stride())]


@program
def dimensions_come_and_go(torch):
    x = matrix(torch, 2, 1, 3)
    y = x * 2
    y.squeeze_(1).unsqueeze_(0).transpose_(0, 2).swapaxes_(0, 1)
    weighted(torch, y).backward()
    return [y, x.grad, y._version]


@program
def views_of_what_turns_stay_what_they_were(torch):
    x = matrix(torch, 2, 3)
    y = x * 1
    row = y[0]
    y.t_()
    row.mul_(3)
    y[2] = 0
    weighted(torch, y).backward()
    return [y, row, x.grad]


@program
def a_view_turns_and_its_base_stays(torch):
    x = matrix(torch, 3, 4)
    y = x * 1
    part = y[1:]
    part.t_()
    part.mul_(2)
    weighted(torch, y).backward()
    return [y, part, x.grad]


@program
def who_has_saved_it_notices(torch):
    x = matrix(torch, 2, 2)
    y = x * 1
    z = y * y
    y.t_()
    return outcome(lambda: z.sum().backward())


@program
def a_leaf_that_requires_grad_does_not_turn(torch):
    return [outcome(lambda: matrix(torch, 2, 3).t_()), outcome(lambda: matrix(torch, 2, 3).resize_(3))]


@program
def other_sizes(torch):
    x = torch.arange(6.0)
    x.resize_(2, 2)
    y = torch.arange(4.0)
    y.resize_(2, 3)
    z = torch.zeros(1, 2, 2, 2).resize_(1, 3, 2, 2, memory_format=torch.channels_last)
    w = torch.zeros(2).resize_as_(torch.zeros(2, 1))
    return [x, list(y.shape), y.flatten()[:4], list(z.stride()), list(w.shape)]


# -- as_strided ------------------------------------------------------------------------------------


@program
def memory_that_overlaps(torch):
    x = matrix(torch, 5)
    windows = x.as_strided((3, 3), (1, 1))
    weighted(torch, windows).backward()
    return [windows, x.grad]


@program
def memory_looked_at_twice(torch):
    x = matrix(torch, 2, 3)
    y = (x * 2).t().as_strided((2, 2), (1, 3), 1)
    (g,) = torch.autograd.grad(weighted(torch, y * y), x, create_graph=True)
    return [y, g, torch.autograd.grad(weighted(torch, g * g), x)]


@program
def a_write_through_any_strides(torch):
    x = matrix(torch, 6)
    y = x * 1
    y.as_strided((2, 2), (3, 1), 1).mul_(5)
    weighted(torch, y).backward()
    return [y, x.grad]


@program
def beyond_the_memory(torch):
    x = torch.zeros(4)
    return [
        outcome(x.as_strided, (3,), (2,)),
        outcome(x.as_strided, (2,), (1,), 3),
        outcome(x.as_strided, (2,), (1, 1)),
        outcome(x.as_strided, (2,), (-1,), 1),
    ]


# -- writes through views whose base's gradient lies otherwise -------------------------------------


@program
def the_gradient_comes_transposed(torch):
    found = []
    for flat in (lambda y: y.view(6), lambda y: y.reshape(-1), lambda y: y.flatten()[1:4]):
        x = matrix(torch, 2, 3)
        y = x * 1
        flat(y).mul_(2)
        weighted(torch, y.t()).backward()
        found += [y, x.grad]
    return found


@program
def the_base_lies_transposed(torch):
    x = matrix(torch, 2, 3)
    y = (x * 1).t().clone()
    y.t().view(-1).mul_(2)
    weighted(torch, y).backward()
    return [y, x.grad]


# -- memory formats --------------------------------------------------------------------------------


@program
def channels_last(torch):
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    y = x.contiguous(memory_format=torch.channels_last)
    last = [
        x.to(memory_format=torch.channels_last),
        x.clone(memory_format=torch.channels_last),
        y.clone(),
        y.double(),
        torch.empty_like(y),
        torch.zeros_like(x, memory_format=torch.channels_last),
        y * 2,
        y.contiguous(),
        y.double(memory_format=torch.contiguous_format),
    ]
    return [
        y,
        [list(t.stride()) for t in last],
        y.is_contiguous(),
        y.is_contiguous(memory_format=torch.channels_last),
        y.contiguous(memory_format=torch.channels_last) is y,
        str(torch.channels_last),
    ]


@program
def wrong_formats(torch):
    x = torch.zeros(2, 3)
    return [
        outcome(x.contiguous, memory_format=torch.channels_last),
        outcome(x.clone, memory_format=torch.channels_last_3d),
        x.is_contiguous(memory_format=torch.channels_last),
        outcome(x.contiguous, memory_format=torch.preserve_format),
    ]


@program
def gradients_go_through_formats(torch):
    x = matrix(torch, 1, 2, 2, 3)
    weighted(torch, x.to(memory_format=torch.channels_last)).backward()
    return x.grad


# -- what torch refuses ----------------------------------------------------------------------------


@program
def what_does_not_fit(torch):
    x, i = torch.zeros(3, 4), torch.tensor([0, 5])
    calls = [
        lambda: torch.narrow(x, 2, 0, 1),
        lambda: torch.narrow(x, 0, 4, 0),
        lambda: x.movedim((0, 1), (0,)),
        lambda: x.movedim((0, 0), (0, 1)),
        lambda: torch.take(x, torch.tensor([12])),
        lambda: torch.put(x, i, x),
        lambda: x.index_select(0, i),
        lambda: x.index_add(0, i, torch.zeros(2, 4)),
        lambda: x.index_fill(0, i, 1),
        lambda: x.gather(0, torch.tensor([[3]])),
        lambda: x.scatter(0, torch.tensor([[3]]), 1.0),
        lambda: x.scatter_add(0, torch.tensor([[0]]), torch.zeros(1, 1, dtype=torch.float64)),
        lambda: x.select_scatter(torch.zeros(3), 0, 0),
        lambda: torch.block_diag(torch.zeros(1, 1, 1)),
        lambda: torch.cat([]),
        lambda: torch.stack([]),
        lambda: torch.hstack([]),
        lambda: torch.cat([x, x[0]]),
        lambda: x.unflatten(1, (3, 2)),
        lambda: x.view(5),
        lambda: x.view(-1, -1),
        lambda: torch.meshgrid(x),
        lambda: x.masked_scatter(x > -1, torch.zeros(3)),
        lambda: x.masked_fill(x > 0, 1j),
        lambda: x.hsplit(3),
        lambda: x.tensor_split(0),
        lambda: torch.combinations(x),
        lambda: torch.arange(0, 5, -1),
        lambda: torch.scatter_reduce(x, 0, torch.tensor([[0]]), x, "most"),
        lambda: torch.zeros(()).unbind(),
    ]
    return [outcome(call) for call in calls]


# -- rushlight's own -------------------------------------------------------------------------------


def test_nothing_is_half_done():
    """Where torch's index_add_ stops in the middle."""
    x, i = rushlight.zeros(3), rushlight.tensor([0, 5])
    for write in (
        lambda: x.index_fill_(0, i, 1),
        lambda: x.index_add_(0, i, rushlight.ones(2)),
        lambda: x.index_copy_(0, i, rushlight.ones(2)),
        lambda: x.put_(i, rushlight.ones(2)),
        lambda: x.scatter_reduce_(0, i, rushlight.ones(2), "sum"),
        lambda: x.resize_(-1),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            write()
    assert x.tolist() == [0, 0, 0]
    assert x._version == 0


def test_many_living_views_do_not_slow_down_those_that_die():
    x = rushlight.zeros(3)
    kept = [x[0] for _ in range(5000)]
    for _ in range(5000):
        x[1:]
    living = [view for view in x._views if view() is not None]
    assert len(living) == len(kept)
    assert len(x._views) <= 2 * len(kept) + 5000


def test_copies_of_views_show_the_views_parameters():
    assert list(inspect.signature(rushlight.narrow_copy).parameters) == ["input", "dim", "start", "length", "out"]
    found = list(inspect.signature(rushlight.slice_scatter).parameters)
    assert found == ["input", "src", "dim", "start", "end", "step", "out"]


def test_as_strided_scatter_says_where_it_cannot():
    with pytest.raises(NotImplementedError, match="no gaps"):
        rushlight.zeros(4, 4)[:, ::2].as_strided_scatter(rushlight.zeros(2), (2,), (1,))


@pytest.mark.parametrize("recorded", [False, True])
def test_copies_into_another_shape_or_into_memory_that_is_not_to_be_written(recorded):
    x = rushlight.zeros(3, 4, requires_grad=recorded) * 1
    with pytest.raises(RuntimeError, match=r"output with shape \[3, 4\] doesn't match the broadcast shape \[1, 1, 4\]"):
        x.copy_(rushlight.ones(1, 1, 4))
    with pytest.raises(RuntimeError, match="more than one element .* or its memory is read-only"):
        (rushlight.zeros(1, requires_grad=recorded) * 1).expand(3).copy_(rushlight.ones(3))
    assert x.copy_(rushlight.ones(1, 4)).sum().item() == 12


@pytest.mark.origin("fuzzing")
def test_what_is_the_tensor_itself_and_what_a_view():
    x = rushlight.ones(3, requires_grad=True)
    assert x.flatten() is x
    assert rushlight.broadcast_tensors(x, rushlight.ones(1))[0] is x
    assert x.t() is not x
    assert x.t()._base is x
    assert not x.t().is_leaf
    assert rushlight.ones(2, 3).flatten(1) is not x
    assert rushlight.ones(2, 3).flatten().shape == (6,)


@program.found_in("torch tests")
def transposes_are_of_matrices(torch):
    tensors = [torch.tensor(1j), torch.ones(2), torch.tensor([[1, 2j]]), torch.ones(2, 3, 4), torch.tensor(2)]
    return [
        [outcome(lambda: t.mT), outcome(lambda: t.H), outcome(lambda: t.mH), outcome(t.adjoint)]  # noqa: B023
        for t in tensors
    ]


@program.found_in("torch tests")
def wider_elements_stand_where_whole_ones_do(torch):
    x = torch.arange(24, dtype=torch.int16)
    views = (x.view(4, 2, 3), x[:20].view(4, 5)[:, 1:], x.view(8, 3)[:, :2], x.view(6, 4).T, x[1:3], x[2:6], x[0])
    return [outcome(v.view, dtype) for v in views for dtype in (torch.int32, torch.int8, torch.float16)]


@program.found_in("piq")
def shifts_and_places_of_cuts_may_be_negative(torch):
    x = matrix(torch, 4, 6)
    rolled = [
        torch.roll(x, -2),
        x.roll((-2, -7), (0, 1)),
        torch.roll(x, torch.tensor(-1), -1),
        torch.func.vmap(lambda row: row.roll(-2))(x),
        torch.compile(lambda v: v.roll((-2, 3), (0, 1)))(x),
    ]
    cut = [
        torch.tensor_split(x, (-3,)),
        torch.hsplit(x, [-3, -2]),
        torch.vsplit(x, [-3, 3]),
        torch.dsplit(x[:, :, None], [-2]),
        x.tensor_split(torch.tensor([1, -1]), 1),
    ]
    weighted(torch, rolled[1]).backward()
    return [rolled, cut, x.grad, list(x.to("meta").roll(-2).shape)]
