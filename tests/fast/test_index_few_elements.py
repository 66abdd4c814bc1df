"""Ways of few elements: the same numbers as the long way, in the same layout."""

from types import SimpleNamespace

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F
from rushlight.base.dependencies import has_llvmlite
from rushlight.fast import dispatch, max_pool_values, pad_table, policy

needs_loops = pytest.mark.skipif(not has_llvmlite(), reason="without llvmlite there are no loops")


@needs_loops
@pytest.mark.parametrize(
    "function",
    [
        F.gelu,
        F.mish,
        F.elu,
        F.selu,
        lambda x: F.celu(x, 0.5),
        lambda x: F.softplus(x, 2.0, 3.0),
        rushlight.erf,
        rushlight.sigmoid,
        F.silu,
        F.logsigmoid,
        F.hardsigmoid,
        F.hardswish,
        lambda x: F.hardshrink(x, 0.25),
        lambda x: F.softshrink(x, 0.25),
        rushlight.sign,
    ],
)
def test_loops_of_few_elements_give_what_numpy_gives(function, monkeypatch):
    values = np.array([-np.inf, -30, -1.5, -0.0, 0.0, 0.5, 3, 30, np.inf, np.nan], np.float32)
    x, expected = rushlight.tensor(values), function(rushlight.tensor(values))
    monkeypatch.setattr(policy.small_arrays, "left", 0.0)
    by_loop = []
    empty = SimpleNamespace(empty=lambda *how: by_loop.append(how) or np.empty(*how))
    monkeypatch.setattr(dispatch, "np", empty)
    for _ in range(2):  # the first call reads the loop
        rushlight.testing.assert_close(function(x), expected, equal_nan=True)
    assert len(by_loop) == 2
    rushlight.testing.assert_close(function(x.double()), expected.double(), equal_nan=True)
    rushlight.testing.assert_close(function(x.reshape(2, 5).T), expected.reshape(2, 5).T, equal_nan=True)


def test_borders_by_a_table(monkeypatch):
    x = rushlight.arange(60.0).reshape(1, 3, 4, 5)
    amounts, modes = (2, 1, 3, 0), ("reflect", "replicate", "circular")
    by_table = [F.pad(x, amounts, mode=mode) for mode in modes]
    assert pad_table.table.cache_info().currsize
    monkeypatch.setattr(pad_table, "PAD_TABLE_ELEMENTS", 0)
    pad_table.table.cache_clear()
    for mode, made in zip(modes, by_table):
        assert F.pad(x, amounts, mode=mode).equal(made)


def test_maxima_of_few_windows_by_a_table(monkeypatch):
    x = rushlight.arange(128.0).sin().reshape(1, 2, 8, 8)
    x[0, 1, 3, 4], x[0, 0, 0, 0] = float("nan"), float("-inf")
    settings = [(2,), (3, 2, 1), (3, 1, 1, 2), (2, 3, 0, 1, True)]
    by_table = [F.max_pool2d(x, *setting) for setting in settings]
    monkeypatch.setattr(max_pool_values, "POOL_TABLE_ELEMENTS", 0)
    for setting, made in zip(settings, by_table):
        rushlight.testing.assert_close(F.max_pool2d(x, *setting), made, rtol=0, atol=0, equal_nan=True)


def test_adding_a_multiple_writes_in_place():
    x, y = rushlight.rand(3, 4), rushlight.rand(3, 4)
    place, expected = x.data_ptr(), x + y * 0.25
    assert x.add_(y, alpha=0.25) is x
    assert x.data_ptr() == place
    assert x.equal(expected)
    assert x.sub_(y, alpha=0.25)._version == 2
    whole = rushlight.arange(3)
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        whole.add_(whole.clone(), alpha=0.5)
    assert whole.tolist() == [0, 1, 2]


def test_filling_views():
    x = rushlight.zeros(4, 6)
    x[:, 1].fill_(3)
    x[1:3].fill_(0.5)
    assert x.sum().item() == 2 * 6 * 0.5 + 2 * 3


def test_values_where_a_formula_has_none():
    inf, nan = float("inf"), float("nan")
    x = rushlight.tensor([0.0, 0.0, 0.0, 2.0, 2.0])
    y = rushlight.tensor([0.0, inf, nan, 0.0, nan])
    assert str(rushlight.xlogy(x, y).tolist()) == "[0.0, 0.0, nan, -inf, nan]"
    assert rushlight.sinc(rushlight.tensor([0.0, 1.0])).tolist()[0] == 1.0
    assert rushlight.lgamma(rushlight.tensor([-inf, inf, 0.0, 1.0])).tolist() == [inf, inf, inf, 0]
    assert rushlight.sinc(rushlight.tensor(0.0)).item() == 1.0
