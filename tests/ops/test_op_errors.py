"""Ops refuse what torch refuses, in the same words where that is promised."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize(
    "ask",
    [
        lambda lib: lib.stack([lib.tensor(1.0), lib.tensor(1.0)], 1),
        lambda lib: lib.stack([lib.ones(3)] * 2, -3),
        lambda lib: lib.cat([lib.ones(2)] * 2, 1),
        lambda lib: lib.tensor(2.0).index_select(0, lib.tensor([0, 0])),
        lambda lib: lib.cat([lib.ones(2, 3), lib.ones(2)], 1),
    ],
)
def test_errors_of_dimensions_that_are_not_there(torch, ask):
    with pytest.raises(Exception) as expected:
        ask(torch)
    with pytest.raises(expected.type) as got:
        ask(rushlight)
    assert str(got.value).startswith(str(expected.value).partition("\n")[0][:40])


REFUSED = {
    "softmax of whole numbers": lambda t: t.arange(3).softmax(0),
    "softmax of truths": lambda t: t.tensor([[True]]).softmax(1),
    "log_softmax of whole numbers": lambda t: t.nn.functional.log_softmax(t.arange(3), 0),
    "a parameter of numbers": lambda t: t.nn.Parameter([1.0]),
    "a parameter of an array": lambda t: t.nn.Parameter(np.ones(2)),
    "a parameter of whole numbers": lambda t: t.nn.Parameter(t.arange(2)),
}


@pytest.mark.origin("scripts")
@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_in_torch(oracle, name):
    def kind(t):
        with pytest.raises((AttributeError, NotImplementedError, RuntimeError)) as caught:
            REFUSED[name](t)
        return caught.type.__name__

    assert kind(rushlight) == oracle(kind)


program = Programs()


@program.found_in("torch tests")
def none_is_no_tensor(torch):
    f, x = torch.nn.functional, torch.ones(2, 2)
    calls = [
        torch.sin,
        torch.sum,
        torch.max,
        torch.zeros_like,
        f.relu,
        f.gelu,
        f.elu,
        f.dropout,
        torch.nn.Linear(2, 2),
        torch.nn.Conv2d(1, 1, 1),
        torch.nn.MaxPool2d(2),
        torch.nn.LayerNorm(2),
        torch.nn.BatchNorm1d(2),
    ]
    return [outcome(call, None) for call in calls] + [
        outcome(torch.matmul, x, None),
        outcome(torch.matmul, [1.0], x),
        outcome(f.cross_entropy, None, x),
    ]


NAN = float("nan")


REFUSED_IN_THE_SAME_WORDS = {
    "lists of different length": lambda t: t.tensor([[1, 2], [3]]),
    "deeper": lambda t: t.tensor([[[1, 2], [3, 4]], [[1, 2], [3]]]),
    "one list is missing": lambda t: t.tensor([[1, 2], 3]),
    "images without a batch": lambda t: t.ones(3, 4, 5).permute(0, 2, 3, 1),
    "a dimension left out": lambda t: t.ones(2, 2).permute(0),
    "expand what is not one": lambda t: t.ones(2, 3).expand(4, 2, 4),
    "broadcast_to": lambda t: t.broadcast_to(t.ones(2), (3,)),
    "expand_as": lambda t: t.ones(2).expand_as(t.ones(3)),
    "too many indices": lambda t: t.ones(2, 2)[0, 0, 0],
    "the element of a number": lambda t: t.tensor(1.0)[0],
    "a slice of a number": lambda t: t.tensor(1.0)[:],
    "the first of none": lambda t: t.tensor(1.0)[..., :1],
    "elements of a number": lambda t: t.tensor(1.0)[t.tensor([0])],
    "a mask of another shape": lambda t: t.ones(2, 2)[t.tensor([True, False, True])],
    "along columns": lambda t: t.ones(2, 2)[:, t.tensor([True, False, True])],
    "written where a mask does not fit": lambda t: t.ones(2, 2).__setitem__(t.ones(2, 3).bool(), 1.0),
    "one less a mask": lambda t: 1 - t.tensor([True]),
    "numbers less a mask": lambda t: t.ones(2) - (t.ones(2) > 0),
    "repeats that do not fit": lambda t: t.repeat_interleave(t.ones(2), t.tensor([1, 2, 3])),
    "Cholesky of nan": lambda t: t.linalg.cholesky(t.tensor([[1.0, 0.0], [NAN, 1.0]])),
}


@pytest.mark.origin("tutorials")
@pytest.mark.parametrize("name", REFUSED_IN_THE_SAME_WORDS)
def test_refused_in_the_same_words(oracle, name):
    def words(t):
        with pytest.raises(Exception) as caught:
            REFUSED_IN_THE_SAME_WORDS[name](t)
        return f"{type(caught.value).__name__.strip('_')}: {caught.value}".split("\n")[0]

    assert words(rushlight) == oracle(words)


X, IMAGE = rushlight.arange(6.0).reshape(2, 3), rushlight.ones(1, 1, 4, 4)
F = rushlight.nn.functional
FLOATS_FOR_INTEGERS = {
    "chunk": lambda: X.chunk(1.5),
    "unsafe_chunk": lambda: rushlight.unsafe_chunk(X, 1.5),
    "split": lambda: X.split(1.5),
    "unsafe_split": lambda: rushlight.unsafe_split(X, 1.5),
    "tril": lambda: X.tril(0.5),
    "triu": lambda: X.triu(0.5),
    "rot90": lambda: X.rot90(1.5),
    "unfold size": lambda: X.unfold(1, 1.5, 1),
    "unfold step": lambda: X.unfold(1, 1, 1.5),
    "cov": lambda: X.cov(correction=0.5),
    "quantile": lambda: rushlight.tensor(1.0).quantile(0.5, 0.5),
    "round": lambda: X.round(decimals=0.5),
    "randint": lambda: rushlight.randint(1.5, (2,)),
    "randint_like": lambda: rushlight.randint_like(X, 1.5),
    "histogram": lambda: X.histogram(1.5),
    "repeat_interleave": lambda: rushlight.repeat_interleave(X, 2, 0, output_size=4.5),
    "pad": lambda: F.pad(X, (1.5, 2)),
    "avg_pool2d": lambda: F.avg_pool2d(IMAGE, 2, divisor_override=1.5),
    "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(IMAGE, (1.5, 1)),
    "adaptive_max_pool2d": lambda: F.adaptive_max_pool2d(IMAGE, (1.5, 1)),
    "nll_loss": lambda: F.nll_loss(X, rushlight.tensor([0, 1]), ignore_index=0.5),
    "ctc_loss": lambda: F.ctc_loss(X, rushlight.tensor([1]), (2.0,), (1,)),
}


@pytest.mark.parametrize("name", FLOATS_FOR_INTEGERS)
def test_a_float_is_no_integer(name):
    """Found by a search over torch's database of operators: a half was added to each integer argument of 3,201
    calls."""
    with pytest.raises(TypeError, match="must be int|as an integer"):
        FLOATS_FOR_INTEGERS[name]()


PLACE, MASK = rushlight.tensor([[0]]), rushlight.tensor([True, False, True])
NO_NUMBERS = {
    "masked_fill": lambda: X.masked_fill(MASK, None),
    "index_fill": lambda: X.index_fill(0, rushlight.tensor([0]), None),
    "scatter": lambda: X.scatter(0, PLACE, None),
    "searchsorted": lambda: rushlight.searchsorted(X[0], "a"),
    "bucketize": lambda: rushlight.bucketize(None, X[0]),
    "bilinear": lambda: F.bilinear(X, X, rushlight.ones(1, 3, 3), 2.5),
}


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_none_and_text_are_no_numbers(name):
    """NumPy makes nan of None."""
    with pytest.raises(TypeError, match="must be (Number or )?Tensor, not"):
        NO_NUMBERS[name]()


LU, PIVOTS = rushlight.linalg.lu_factor(rushlight.eye(3) + 1)
UNFIT = {
    "soft_margin_loss": lambda: F.soft_margin_loss(X[0], X[0, :, None]),
    "bilinear": lambda: F.bilinear(X, X, rushlight.ones(1, 3, 3), rushlight.ones(2, 1)),
    "index_reduce": lambda: X.index_reduce(0, rushlight.tensor([0]), X[:1, :1], "mean"),
    "lu_solve": lambda: rushlight.linalg.lu_solve(LU, PIVOTS[:2], rushlight.ones(3, 1)),
    "unfold": lambda: X.unfold(1, -3, 1),
    "batch_norm": lambda: F.batch_norm(X, None, rushlight.ones(3), training=True),
    "instance_norm": lambda: F.instance_norm(X[None], rushlight.ones(2), None),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_would_broadcast_in_silence_is_refused(name):
    with pytest.raises((RuntimeError, ValueError), match="match|same|must"):
        UNFIT[name]()


def test_fold_of_a_wrong_number_of_windows_names_the_sizes():
    with pytest.raises(RuntimeError, match=r"Given output_size=\(2, 2\).*but got input.size\(2\)=4"):
        F.fold(rushlight.ones(1, 4, 4), 2, 2)


test_program = program.test()
