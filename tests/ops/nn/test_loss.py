"""Losses: dtypes of targets, numbers at the ends of their range, no elements."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight

DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8", "bool")


def outcome(work, lib):
    """The dtype and the numbers of what is made, or the error's class and first words."""
    try:
        made = work(lib)
        return str(made.dtype), np.array(made.tolist(), float).round(3).tolist()
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        return type(error), str(error).partition("\n")[0].partition(". Use")[0][:45]


@pytest.mark.origin("edge cases")
@pytest.mark.parametrize("name", ["binary_cross_entropy", "mse_loss", "kl_div"])
@pytest.mark.parametrize("target", DTYPES)
def test_dtypes_of_targets(torch, name, target):
    for given in ("float32", "float64", "int64"):

        def work(lib, given=given):
            x, y = lib.tensor([0.0, 1.0, 1.0]), lib.tensor([1.0, 1.0, 0.0])
            return getattr(lib.nn.functional, name)(x.to(getattr(lib, given)), y.to(getattr(lib, target)))

        if name == "mse_loss" and given == "int64" and target in ("int32", "uint8", "bool", "int64"):
            with pytest.raises(NotImplementedError, match='"mse_loss" not implemented for'):
                work(rushlight)
        else:
            assert outcome(work, rushlight) == outcome(work, torch)


@pytest.mark.origin("edge cases")
@pytest.mark.parametrize("target", ["int64", "int32", "bool"])
def test_logits_refuse_whole_targets(torch, target):
    for lib in (rushlight, torch):
        with pytest.raises(RuntimeError):
            lib.nn.functional.binary_cross_entropy_with_logits(lib.ones(2), lib.ones(2).to(getattr(lib, target)))


@pytest.mark.origin("edge cases")
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_classes(torch, dtype):
    def work(lib):
        return lib.nn.functional.cross_entropy(
            lib.arange(6.0).reshape(2, 3) % 4, lib.tensor([0, 1]).to(getattr(lib, dtype))
        )

    assert outcome(work, rushlight) == outcome(work, torch)


INF, NAN = math.inf, math.nan


@pytest.mark.origin("edge cases")
def test_logits_at_the_ends(torch):
    def run(lib, n):
        x = lib.tensor([INF, INF, -INF, NAN, 90.0, -90.0] * n, requires_grad=True)
        y = lib.tensor([0.0, 1.0, 0.0, 0.5, 0.25, 0.75] * n)
        loss = lib.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")
        loss.sum().backward()
        return [loss.tolist(), x.grad.tolist()]

    for n in (1, 1000):
        np.testing.assert_allclose(run(rushlight, n), run(torch, n), rtol=1e-6)
    lost = rushlight.nn.functional.binary_cross_entropy_with_logits(rushlight.tensor([-INF]), rushlight.ones(1))
    assert lost == INF  # torch's is nan: inf - inf


@pytest.mark.origin("edge cases")
def test_logits_at_the_ends_compiled():
    def loss(x, y):
        return rushlight.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")

    x, y = rushlight.tensor([INF, INF, -INF, -INF, 90.0, -90.0]), rushlight.tensor([0.0, 1.0, 0.0, 1.0, 0.25, 0.75])
    np.testing.assert_allclose(rushlight.compile(loss)(x, y).numpy(), loss(x, y).numpy(), rtol=1e-6)


@pytest.mark.origin("edge cases")
def test_the_mean_loss_of_nothing(torch):
    for smoothing in (0.0, 0.1):
        for made in (lambda lib: lib.zeros(0, 3), lambda lib: lib.zeros(0, dtype=lib.int64)):
            for lib in (rushlight, torch):
                assert lib.nn.functional.cross_entropy(lib.zeros(0, 3), made(lib), label_smoothing=smoothing).isnan()


@pytest.mark.origin("scripts")
def test_the_distance_of_a_triplet_loss_is_a_module(oracle):
    def shown(t):
        return repr(t.nn.TripletMarginWithDistanceLoss(margin=2.0))

    assert shown(rushlight) == oracle(shown)


@pytest.mark.origin("suites")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("more", [{}, {"weight": [0.5, 1.0, 2.0]}, {"ignore_index": 1}, {"label_smoothing": 0.1}])
def test_a_sample_may_be_one_row_of_scores_and_its_class(reduction, more):
    from rushlight.func import grad, vmap

    more = {key: rushlight.tensor(v) if key == "weight" else v for key, v in more.items()}

    def loss(w, x, target):
        return rushlight.nn.functional.cross_entropy(w @ x, target, reduction=reduction, **more)

    w, x, target = rushlight.randn(3, 3), rushlight.randn(4, 3), rushlight.tensor([0, 2, 1, 1])
    for f in (loss, grad(loss), grad(loss, 1)):
        made = vmap(f, (None, 0, 0))(w, x, target)
        one = rushlight.stack([f(w, a, b) for a, b in zip(x, target)])
        assert rushlight.allclose(made, one, atol=1e-6, equal_nan=True)
    assert rushlight.allclose(
        vmap(loss, (None, 0, None))(w, x, target[0]), rushlight.stack([loss(w, a, target[0]) for a in x]), atol=1e-6
    )
