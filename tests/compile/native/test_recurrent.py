"""Recurrent layers in native functions."""

import numpy as np
import pytest

import rushlight
from tests.compile.native.native_case import assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")
nn = rushlight.nn
LAYERS = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "tanh": nn.RNN,
    "relu": lambda *sizes, **how: nn.RNN(*sizes, nonlinearity="relu", **how),
}


def layer(name: str, *sizes: int, **how: object) -> rushlight.nn.Module:
    rushlight.manual_seed(0)
    return LAYERS[name](*sizes, **how)


@pytest.mark.faster
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("hidden", [1, 7, 17, 33, 50, 64])
@pytest.mark.parametrize("batch", [1, 3])
def test_hidden_sizes(name, hidden, batch):
    made = layer(name, 5, hidden)
    assert_same(lambda x: made(x)[0].relu() + 1, normal(6, batch, 5), tolerance=3e-6)


@pytest.mark.faster
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("batch", [1, 2, 7, 20])
def test_batches(name, batch):
    made = layer(name, 3, 16, batch_first=True)
    assert_same(lambda x: made(x)[0][:, -1], normal(batch, 9, 3), tolerance=3e-6)


@pytest.mark.faster
@pytest.mark.parametrize("name", LAYERS)
def test_layers_and_directions(name):
    made = layer(name, 3, 17, num_layers=2, bidirectional=True)
    assert_same(lambda x: made(x)[0], normal(7, 3, 3), tolerance=3e-6)
    made = layer(name, 3, 17, bias=False)
    assert_same(lambda x: made(x.flip(0))[0] * 2, normal(7, 2, 3), tolerance=3e-6)


@pytest.mark.faster
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("reverse", [False, True])
def test_first_and_last_states(name, reverse):
    made = layer(name, 3, 17, bidirectional=reverse)
    first = normal(2 if reverse else 1, 2, 17)

    def function(x, h):
        out, last = made(x, (h, h * 0.5) if name == "lstm" else h)
        states = last if name == "lstm" else (last,)
        return rushlight.cat([out.flatten(), *[s.flatten() for s in states]])

    assert_same(function, normal(5, 2, 3), first, tolerance=3e-6)


@pytest.mark.faster
@pytest.mark.parametrize("batch", [1, 3])
def test_cells(batch):
    rushlight.manual_seed(0)
    lstm, gru, rnn = nn.LSTMCell(5, 17), nn.GRUCell(5, 17), nn.RNNCell(5, 17)
    x, h, c = normal(batch, 5), normal(batch, 17), normal(batch, 17)
    assert_same(lambda x, h, c: rushlight.cat(lstm(x, (h, c)), 1), x, h, c, tolerance=2e-6)
    assert_same(lambda x, h: gru(x, h) + 1, x, h, tolerance=2e-6)
    assert_same(lambda x, h: rnn(x.relu(), h), x, h, tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_large_and_wrong_numbers(name):
    made = layer(name, 3, 17)
    x = normal(5, 2, 3)
    x[1] *= 1e6
    assert_same(lambda x: made(x)[0], x, tolerance=3e-6)
    x[2, 1, 0] = np.nan
    assert_same(lambda x: made(x)[0], x, tolerance=3e-6)


@pytest.mark.faster
def test_weights_that_change():
    made = layer("lstm", 3, 17)
    x = rushlight.from_numpy(normal(5, 1, 3))
    with rushlight.no_grad():
        compiled = rushlight.compile(lambda x: made(x)[0])
        for _ in range(3):
            compiled(x)
        made.weight_hh_l0.mul_(0.5)
        assert rushlight.allclose(compiled(x), made(x)[0], atol=1e-6)
        ((program,),) = compiled.programs.values()
        assert program.native is not None, program.native_reason


@pytest.mark.faster
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("batch", [1, 20])
def test_sequences_on_two_cores(monkeypatch, name, batch):
    made = layer(name, 5, 17, bidirectional=True)
    assert_same_on_cores(monkeypatch, lambda x: made(x)[0] + 1, normal(4, batch, 5), tolerance=3e-6)
