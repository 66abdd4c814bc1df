"""Learning-rate schedules against formulas and torch: rates and momenta, resumed, saved and loaded, refusals."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight
from rushlight import nn, tensor
from rushlight.optim import SGD, Adam, lr_scheduler


class Halved:
    def __init__(self):
        self.by = 0.5

    def __call__(self, epoch):
        return self.by**epoch


CASES = [
    ("LambdaLR", {"lr_lambda": Halved()}),
    ("LambdaLR", {"lr_lambda": [lambda e: 1 / (1 + e), Halved()]}),
    ("MultiplicativeLR", {"lr_lambda": lambda e: 0.9}),
    ("StepLR", {"step_size": 2}),
    ("MultiStepLR", {"milestones": [2, 4, 4]}),
    ("ConstantLR", {"total_iters": 3}),
    ("LinearLR", {"total_iters": 4}),
    ("LinearLR", {"total_iters": 4, "end_factor": 0.2, "start_factor": 0.8}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 1e-3}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "eta_min": 1e-3}),
    ("PolynomialLR", {"total_iters": 4, "power": 2.0}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 22}),
    (
        "OneCycleLR",
        {"max_lr": [0.5, 0.1], "epochs": 4, "steps_per_epoch": 6, "three_phase": True, "anneal_strategy": "linear"},
    ),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 22, "three_phase": True, "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": [0.01, 0.002], "max_lr": 0.1, "step_size_up": 3, "step_size_down": 5}),
    (
        "CyclicLR",
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "mode": "exp_range", "gamma": 0.9, "cycle_momentum": False},
    ),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "scale_fn": Halved(), "scale_mode": "iterations"}),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(CASES)]


def two_groups(torch, adam=False, lr=0.1):
    params = [torch.ones(2, requires_grad=True) for _ in range(2)]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.01}]
    return torch.optim.Adam(groups, lr=lr) if adam else torch.optim.SGD(groups, lr=lr, momentum=0.9)


def facts(optimizer, scheduler):
    groups = optimizer.param_groups
    momenta = [g["momentum"] if "momentum" in g else g["betas"][0] for g in groups]
    return [g["lr"] for g in groups] + momenta + list(scheduler.get_last_lr())


def rates(torch, make, adam=False, epochs=18, reload_at=None):
    """Rates and momenta of each epoch; `reload_at`: the epoch after which saved state goes on in new objects."""
    optimizer = two_groups(torch, adam)
    scheduler = make(torch.optim.lr_scheduler, optimizer)
    found = []
    for epoch in range(epochs):
        found.append(facts(optimizer, scheduler))
        optimizer.step()
        scheduler.step()
        if epoch == reload_at:
            saved = optimizer.state_dict(), scheduler.state_dict()
            optimizer = two_groups(torch, adam)
            scheduler = make(torch.optim.lr_scheduler, optimizer)
            optimizer.load_state_dict(saved[0])
            scheduler.load_state_dict(saved[1])
    return found


@pytest.mark.parametrize("adam", [False, True])
@pytest.mark.parametrize(("name", "settings"), CASES, ids=IDS)
def test_like_torch(oracle, name, settings, adam):
    def asked(torch):
        return rates(torch, lambda s, o: getattr(s, name)(o, **settings), adam)

    np.testing.assert_allclose(
        rates(rushlight, lambda s, o: getattr(s, name)(o, **settings), adam), oracle(asked), rtol=1e-13
    )


@pytest.mark.parametrize(("name", "settings"), CASES, ids=IDS)
def test_saved_and_loaded_goes_on_alike(name, settings):
    def make(s, o):
        return getattr(s, name)(o, **settings)

    assert rates(rushlight, make) == rates(rushlight, make, reload_at=6)


@pytest.mark.parametrize("last_epoch", [0, 3])
@pytest.mark.parametrize(("name", "settings"), CASES, ids=IDS)
def test_resumed_like_torch(oracle, name, settings, last_epoch):
    def asked(torch):
        def make(s, optimizer):
            for group in optimizer.param_groups:
                group.update(initial_lr=group["lr"], lr=group["lr"] / 2, max_lr=0.5, min_lr=1e-5)
                group.update(max_momentum=0.95, base_momentum=0.85)
            return getattr(s, name)(optimizer, **settings, last_epoch=last_epoch)

        return rates(torch, make, epochs=8)

    np.testing.assert_allclose(asked(rushlight), oracle(asked), rtol=1e-13)


COMPOSED = [
    lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [5]),
    lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
    lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 5), s.StepLR(o, 2)], [4, 9]),
    lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.LinearLR(o, 0.1, 1.0, 4), s.StepLR(o, 3)]), s.ExponentialLR(o, 0.9)], [4]
    ),
    lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingWarmRestarts(o, 5), s.PolynomialLR(o, 3)], [4, 9]
    ),
    lambda s, o: s.ChainedScheduler([s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 5)], optimizer=o),
]


@pytest.mark.parametrize("make", COMPOSED, ids=range(len(COMPOSED)))
def test_composed_like_torch(oracle, make):
    ours = rates(rushlight, make)
    np.testing.assert_allclose(ours, oracle(lambda torch: rates(torch, make)), rtol=1e-13)
    assert ours == rates(rushlight, make, reload_at=6)


PLATEAUS = [
    {"patience": 1},
    {"patience": 0, "mode": "max", "threshold_mode": "abs", "threshold": 0.3, "cooldown": 2},
    {"patience": 1, "factor": 0.5, "min_lr": [0.01, 0.001]},
    {"patience": 0, "threshold": 0.2, "cooldown": 1, "min_lr": 0.02, "eps": 1e-3},
    {"mode": "min", "threshold_mode": "abs", "patience": 1},
]


@pytest.mark.parametrize("settings", PLATEAUS, ids=range(len(PLATEAUS)))
def test_plateaus_like_torch(oracle, settings):
    def asked(torch):
        optimizer = two_groups(torch)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)
        found = []
        for metric in np.random.RandomState(0).rand(30):
            optimizer.step()
            scheduler.step(torch.tensor(metric))
            found.append(facts(optimizer, scheduler) + [scheduler.best, scheduler.num_bad_epochs])
        return found

    assert asked(rushlight) == oracle(asked)


@pytest.mark.parametrize(("name", "settings"), CASES + [("ReduceLROnPlateau", {})])
def test_saved_format_is_torchs(torch, name, settings):
    def saved(library):
        optimizer = two_groups(library)
        scheduler = getattr(library.optim.lr_scheduler, name)(optimizer, **settings)
        return scheduler.state_dict(), optimizer.state_dict()["param_groups"]

    assert saved(rushlight) == saved(torch)


def cosine(part):
    return (1 + math.cos(math.pi * part)) / 2


@given(
    st.sampled_from(["StepLR", "ExponentialLR", "LinearLR", "PolynomialLR", "CosineAnnealingLR"]),
    st.integers(1, 12),
    st.floats(0.1, 1.0),
)
def test_step_by_step_equals_the_formula(name, n, x):
    """The next rate from the present one, and the rate as a formula of the epoch, are two ways to one number."""
    settings, formula = {
        "StepLR": ({"step_size": n, "gamma": x}, lambda t: x ** (t // n)),
        "ExponentialLR": ({"gamma": x}, lambda t: x**t),
        "LinearLR": ({"start_factor": x, "total_iters": n}, lambda t: x + (1 - x) * min(n, t) / n),
        "PolynomialLR": ({"total_iters": n, "power": x}, lambda t: (1 - min(n, t) / n) ** x),
        "CosineAnnealingLR": ({"T_max": n, "eta_min": x / 2}, lambda t: x / 2 + (1 - x / 2) * cosine(t / n)),
    }[name]
    optimizer = SGD([rushlight.ones(1, requires_grad=True)], lr=1.0)
    scheduler = getattr(lr_scheduler, name)(optimizer, **settings)
    for epoch in range(1, 30):
        optimizer.step()
        scheduler.step()
        assert scheduler.get_last_lr()[0] == pytest.approx(formula(epoch), rel=1e-9, abs=1e-9)


def test_a_tensor_keeps_its_identity():
    lr = rushlight.tensor(0.1)
    optimizer = Adam([rushlight.ones(1, requires_grad=True)], lr=lr)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == pytest.approx(0.05)
    assert scheduler.get_last_lr()[0] is not lr
    assert scheduler.base_lrs[0].item() == pytest.approx(0.1)


def test_warm_restarts_take_fractions_of_epochs():
    optimizer = two_groups(rushlight)
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=4, T_mult=2)
    for epoch, part in ((1.5, 1.5 / 4), (4.0, 0.0), (8.0, 0.5), (11.9, 7.9 / 8), (12.0, 0.0), (1.0, 0.25)):
        scheduler.step(epoch)
        assert scheduler.get_last_lr()[0] == pytest.approx(0.1 * cosine(part))


def test_closed_forms_by_epoch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, settings, expected in (
            ("StepLR", {"step_size": 2}, 1e-3),
            ("ExponentialLR", {"gamma": 0.5}, 0.1 / 32),
            ("MultiStepLR", {"milestones": [2, 5, 6]}, 1e-3),
            ("ConstantLR", {"factor": 0.5}, 0.1),
            ("LinearLR", {"total_iters": 10, "start_factor": 0.5}, 0.075),
            ("PolynomialLR", {"total_iters": 10}, 0.05),
            ("CosineAnnealingLR", {"T_max": 10}, 0.05),
        ):
            scheduler = getattr(lr_scheduler, name)(two_groups(rushlight), **settings)
            scheduler.step(5)
            assert scheduler.get_last_lr()[0] == pytest.approx(expected), name


def test_warnings():
    optimizer = two_groups(rushlight)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    optimizer.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(3)
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


S = lr_scheduler


@pytest.mark.parametrize(
    ("error", "words", "make"),
    [
        (TypeError, "int is not an Optimizer", lambda o: S.StepLR(3, 2)),
        (KeyError, "param 'initial_lr' is not specified", lambda o: S.StepLR(o, 2, last_epoch=3)),
        (ValueError, "Expected 2 lr_lambdas, but got 1", lambda o: S.LambdaLR(o, [lambda e: 1])),
        (ValueError, "greater than 0 and less or equal to 1", lambda o: S.LinearLR(o, start_factor=0)),
        (ValueError, "between 0 and 1", lambda o: S.ConstantLR(o, factor=2)),
        (ValueError, "one more than the number of milestone", lambda o: S.SequentialLR(o, [S.StepLR(o, 2)], [2])),
        (ValueError, "same optimizer", lambda o: S.SequentialLR(o, [S.StepLR(two_groups(rushlight), 2)], [])),
        (ValueError, "does not support `ReduceLROnPlateau`", lambda o: S.ChainedScheduler([S.ReduceLROnPlateau(o)])),
        (ValueError, "positive integer T_0", lambda o: S.CosineAnnealingWarmRestarts(o, T_0=0)),
        (ValueError, "total_steps OR", lambda o: S.OneCycleLR(o, max_lr=0.1)),
        (ValueError, "max_lr has 1 values", lambda o: S.OneCycleLR(o, max_lr=[0.1], total_steps=5)),
        (ValueError, "Tried to step 3 times", lambda o: [f.step() for f in 4 * [S.OneCycleLR(o, 0.1, 2)]]),
        (ValueError, "mode is invalid", lambda o: S.CyclicLR(o, 0.1, 0.2, mode="x")),
        (
            ValueError,
            "must support momentum",
            lambda o: S.CyclicLR(rushlight.optim.Adagrad(o.param_groups[0]["params"]), 0.1, 0.2),
        ),
        (ValueError, "Factor should be < 1.0", lambda o: S.ReduceLROnPlateau(o, factor=1.0)),
        (ValueError, "expected 2 min_lrs, got 1", lambda o: S.ReduceLROnPlateau(o, min_lr=[1])),
    ],
)
def test_refusals(error, words, make):
    optimizer = two_groups(rushlight)
    optimizer.step()
    with pytest.raises(error, match=words):
        make(optimizer)


def test_a_composed_schedule_cannot_begin_late():
    optimizer = two_groups(rushlight)
    optimizer.step()
    late = S.ChainedScheduler([S.StepLR(optimizer, 2)])
    scheduler = S.SequentialLR(optimizer, [S.StepLR(optimizer, 2), late], [1])
    with pytest.raises(NotImplementedError, match="ChainedScheduler cannot begin in the middle"):
        scheduler.step()


def test_groups_added_later():
    optimizer = two_groups(rushlight)
    scheduler = S.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.05)
    optimizer.add_param_group({"params": [rushlight.ones(1, requires_grad=True)], "lr": 1.0})
    scheduler.step(1.0)
    scheduler.step(1.0)
    assert scheduler.get_last_lr() == pytest.approx([0.05, 0.01, 0.1])


@pytest.mark.origin("courses")
def test_schedules_are_of_the_module_that_has_them():
    """`if scheduler.__module__ == lr_scheduler.__name__: scheduler.step()`, where it may be a plain function
    instead."""
    from rushlight.optim import SGD, lr_scheduler

    scheduler = lr_scheduler.StepLR(SGD([nn.Parameter(rushlight.ones(1))], lr=0.1), 2)
    assert scheduler.__module__ == lr_scheduler.__name__ == "rushlight.optim.lr_scheduler"
    assert {getattr(lr_scheduler, name).__module__ for name in lr_scheduler.__all__} == {lr_scheduler.__name__}
    assert type(pickle.loads(pickle.dumps(lr_scheduler.LambdaLR))) is type


def cyclic(optimizer, low, high):
    return rushlight.optim.lr_scheduler.CyclicLR(optimizer, low, high, base_momentum=low, max_momentum=high)


def one_cycle(optimizer, low, high):
    return rushlight.optim.lr_scheduler.OneCycleLR(optimizer, high, 9, base_momentum=low, max_momentum=high)


def averaged(optimizer, low, high):
    return rushlight.optim.swa_utils.SWALR(optimizer, low)


def in_sequence(optimizer, low, high):
    parts = [rushlight.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) for _ in range(2)]
    return rushlight.optim.lr_scheduler.SequentialLR(optimizer, parts, [2])


@pytest.mark.origin("suites")
@pytest.mark.parametrize("schedule", [cyclic, one_cycle, averaged, in_sequence])
def test_schedules_keep_their_own_copies_of_tensors(schedule):
    rates = []
    for write in (False, True):
        lr, low, high = tensor(0.5), tensor(0.1), tensor(0.9)
        optimizer = rushlight.optim.SGD([nn.Parameter(rushlight.ones(1))], lr=lr, momentum=0.5)
        made = schedule(optimizer, low, high)
        assert optimizer.param_groups[0]["lr"] is lr
        seen = []
        for _ in range(4):
            if write:
                low.mul_(0.5)
                high.mul_(0.5)
            optimizer.step()
            made.step()
            seen.append(float(optimizer.param_groups[0]["lr"]))
        rates.append(seen)
    assert rates[0] == pytest.approx(rates[1])
