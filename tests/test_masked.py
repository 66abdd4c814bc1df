"""Masked reductions: those of the elements that are left, one row at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.ops.reduce import masked

ALONE = {  # the same function of the elements that are left
    "sum": lambda x: x.sum(),
    "prod": lambda x: x.prod(),
    "mean": lambda x: x.mean(),
    "amax": lambda x: x.amax(),
    "amin": lambda x: x.amin(),
    "norm": lambda x: rushlight.norm(x),
    "var": lambda x: rushlight.var(x, correction=0),
    "std": lambda x: rushlight.std(x, correction=0),
    "logsumexp": lambda x: rushlight.logsumexp(x, 0),
    "median": lambda x: rushlight.median(x),
}
SETTINGS = {"var": {"correction": 0}, "std": {"correction": 0}}
SCANS = {
    "softmax": rushlight.softmax,
    "log_softmax": rushlight.log_softmax,
    "cumsum": rushlight.cumsum,
    "cumprod": rushlight.cumprod,
    "softmin": lambda x, dim: rushlight.softmax(-x, dim),
}


def rows(seed):
    random = np.random.default_rng(seed)
    x, mask = random.standard_normal((3, 5)), random.random((3, 5)) < 0.6
    mask[:, seed % 5] = True
    return rushlight.from_numpy(x), rushlight.from_numpy(mask)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(ALONE)), st.integers(0, 99))
def test_a_reduction_is_that_of_what_is_left(name, seed):
    x, mask = rows(seed)
    made = getattr(masked, name)(x.requires_grad_(), dim=1, mask=mask, **SETTINGS.get(name, {}))
    alone = [ALONE[name](x.detach()[i][mask[i]]) for i in range(3)]
    assert rushlight.allclose(made.detach(), rushlight.stack(alone), 1e-9, 1e-12)
    if name not in ("std", "var") or (mask.sum(1) > 1).all():
        made.sum().backward()
        assert (x.grad[~mask] == 0).all(), "what is left out has no gradient"


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(sorted(SCANS)), st.integers(0, 99))
def test_a_scan_is_that_of_what_is_left(name, seed):
    x, mask = rows(seed)
    made = getattr(masked, name)(x, 1, mask=mask)
    for i in range(3):
        assert rushlight.allclose(made[i][mask[i]], SCANS[name](x[i][mask[i]], 0), 1e-9, 1e-12)


def test_nothing_left_gives_the_identity():
    x, none = rushlight.ones(2), rushlight.tensor([False, False])
    expected = {"sum": 0, "prod": 1, "amax": -math.inf, "amin": math.inf, "norm": 0, "logsumexp": -math.inf}
    for name, value in expected.items():
        assert getattr(masked, name)(x, mask=none) == value, name
    for name in ("mean", "var", "std"):
        assert getattr(masked, name)(x, mask=none).isnan(), name
    assert masked.amax(rushlight.tensor([3, 4]), mask=none) == -(2**63)
    assert masked.sum(rushlight.tensor([True, True]), mask=none).dtype is rushlight.int64


def test_a_mask_broadcasts_but_not_the_input():
    x = rushlight.ones(2, 3)
    assert masked.sum(x, mask=rushlight.tensor([True, False, True])) == 4
    assert masked.sum(x, 1, mask=rushlight.tensor([[True], [False]])).tolist() == [3, 0]
    with pytest.raises(IndexError, match="mask dimensionality higher than of the input"):
        masked.sum(x[0], mask=rushlight.ones(2, 3) > 0)


def test_refusals():
    x, mask = rushlight.tensor([1, 2]), rushlight.tensor([False, False])
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        masked.mean(x)
    with pytest.raises(ValueError, match="no fully masked out rows"):
        masked.median(x, mask=mask)
    with pytest.raises(NotImplementedError, match="\"softmax\" not implemented for 'Long'"):
        masked.softmax(x, 0, mask=mask)
    with pytest.raises(NotImplementedError, match="identity of amax on torch.bool input"):
        masked.amax(x > 1)
    with pytest.raises(AssertionError, match="Only one of unbiased and correction may be given"):
        masked.var(x, None, True, correction=1)
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        masked.sum([1.0])


def test_the_mask_of_results(oracle):
    """Of scans it is the input's mask: torch's own tests compare with it."""

    def ask(t):
        x, mask = t.tensor([1.0, 2.0, 3.0]), t.tensor([True, True, False])
        names = ("cumsum", "cumprod", "softmax", "log_softmax", "normalize", "sum", "logsumexp")
        args = {"normalize": (2.0, 0)}
        return [
            t.masked._output_mask(getattr(t.masked, name), x, *args.get(name, (0,)), mask=mask).tolist()
            for name in names
        ]

    assert ask(rushlight) == oracle(ask)
