"""Arguments of ops: dimensions, numbers as tensors, NumPy's names of keywords, what is seldom given."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome


def odd(lib):
    """Calls with an argument that few give."""
    x, m = lib.tensor([-2.5, -0.75, 1.25]), lib.arange(6.0).reshape(2, 3)
    for dtype in (lib.float16, lib.float64, lib.bfloat16):
        yield lib.nanmean(x, dtype=dtype)
        yield m.nanmean(1, True, dtype=dtype)
    yield lib.addr(lib.tensor(2), lib.tensor([1, 0], dtype=lib.int32), lib.tensor([4, -3], dtype=lib.int16))
    yield lib.take_along_dim(m, lib.tensor([3, 0], dtype=lib.int32))
    yield x.scatter_add(0, lib.tensor(2), lib.tensor([1.0, 2.0, 3.0]))
    yield x.scatter(0, lib.tensor(2), lib.tensor([1.0, 2.0, 3.0]))
    yield x.scatter_reduce(-1, lib.tensor(0), lib.tensor([0.25, -3.0, 1.0]), "amax")
    yield lib.zeros(0, 3).masked_scatter(lib.tensor([True, False, True]), lib.ones(0, 3))
    yield (lib.tensor([2.0]) @ lib.ones(3, 1, 2).transpose(0, 2)).view(-1)
    yield (lib.ones(1, 3, 2).transpose(0, 2) @ lib.ones(1, 2)).view(-1)


@pytest.mark.origin("edge cases")
def test_calls_with_odd_arguments(torch):
    for ours, theirs in zip(odd(rushlight), odd(torch), strict=True):
        assert str(ours.dtype) == str(theirs.dtype)
        assert ours.stride() == theirs.stride()
        np.testing.assert_allclose(np.array(ours.tolist()), np.array(theirs.tolist()), rtol=1e-2)


program = Programs()


@program.found_in("libraries")
def a_tensor_of_one_number_is_a_dimension_or_a_size(torch):
    x, d, n = torch.arange(6.0).view(2, 3), torch.tensor(1), torch.tensor(6)
    return [
        x.sum(d),
        x.mean(d),
        x.amax(d),
        x.var(d),
        x.prod(d),
        x.norm(2, d),
        x.logsumexp(d),
        x.flip(d),
        x.squeeze(d),
        x.any(d),
        x.all(d),
        x.nansum(d),
        torch.count_nonzero(x, d),
        x.softmax(d),
        x.view(n),
        x.reshape(n),
        torch.ones(1).expand(n),
        x.roll(d, torch.tensor(0)),
        x.movedim(d, torch.tensor(0)),
        torch.fft.fftn(x, dim=(d,)),
    ]


@program.found_in("torch tests")
def dimensions_are_integers(torch):
    x = torch.ones(2, 3)
    return [outcome(f, x, dim=d) for f in (torch.sum, torch.amax, torch.cumsum, torch.softmax) for d in ("a", 1.5)]


@program.found_in("torch tests")
def numpys_names_of_keywords(torch):
    x, y = torch.tensor([1.0, 5.0, 2.0]), torch.tensor([3.0, 1.0, 2.0])
    return [
        *torch.aminmax(x, axis=0),
        torch.trapezoid(x, axis=0),
        torch.linalg.cross(x, y, axis=0),
        torch.linalg.vector_norm(x=x, axis=0),
    ]


@program.found_in("torch tests")
def bools_are_no_dimensions(torch):
    x = torch.arange(9.0).reshape(3, 3)
    names = (
        "sum",
        "mean",
        "all",
        "amax",
        "argmax",
        "sort",
        "argsort",
        "softmax",
        "cumsum",
        "squeeze",
        "unsqueeze",
        "flatten",
        "std",
        "max",
    )
    return [outcome(getattr(x, name), True) for name in names] + [
        outcome(x.topk, 1, True),
        outcome(torch.cat, [x], True),
    ]


def scalars(lib):
    """Losses of calls that are given their numbers as tensors of no dimensions."""
    F, two = lib.nn.functional, lib.tensor(2.0)
    x = lib.linspace(-2, 2, 6).reshape(2, 3).requires_grad_()
    y = x * 2
    mean, var = lib.zeros(3), lib.ones(3)
    made = [
        F.softplus(x, two, two),
        F.elu(x, two),
        F.smooth_l1_loss(x, y, beta=two / 4),
        F.huber_loss(x, y, delta=two / 4),
        F.layer_norm(x, (3,), eps=two / 1000),
        F.batch_norm(x, mean, var, training=True, eps=two / 1000),
        F.group_norm(x, 1, eps=two / 1000),
        F.instance_norm(x[None], eps=two / 1000),
        F.adaptive_avg_pool1d(x[None], lib.tensor(2)),
        lib.addcmul(x, x, x, value=two),
        lib.addcdiv(x, x, x + 3, value=two),
        lib.as_strided(x, (2,), (1,), lib.tensor(1)),
    ]
    for out in made:
        (grad,) = lib.autograd.grad(out.sum(), x, retain_graph=True)
        yield out.detach()
        yield grad
    yield lib.histc(x.detach(), 3, -two, two)
    yield lib.logspace(0, 2, lib.tensor(3), lib.tensor(2.0))


def test_tensors_of_no_dimensions_stand_for_numbers(oracle):
    for ours, theirs in zip(scalars(rushlight), oracle(lambda lib: list(scalars(lib))), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


test_program = program.test()
