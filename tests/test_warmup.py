"""`rushlight warmup` compiles what would be compiled at its first use."""
import pytest

import rushlight
from rushlight import cli
from rushlight.compile import warmup
from rushlight.ops import large

pytest.importorskip("numba")


def test_loops_are_ready_afterwards(monkeypatch):
    monkeypatch.setattr(warmup, "OPTIMIZERS", {"Adam": [{}]})
    said = []
    count = warmup.warmup(lambda name, seconds: said.append(name), ["relu"])
    assert count == len(said)
    assert {"relu", "relu, derivative by x", "softmax", "layer_norm, derivative by weight", "LSTM", "Adam()"} <= set(said)
    assert large.loop_of("relu", "", (("f4", "each"),)).paid.function is not None
    p = rushlight.ones(3, requires_grad=True)
    p.grad = rushlight.ones(3)
    assert rushlight.optim.Adam([p]).loop(p).function is not None


@pytest.mark.parametrize("name", warmup.OPTIMIZERS)
def test_the_loop_of_an_optimizer_is_the_one_that_steps(name):
    for settings in warmup.OPTIMIZERS[name]:
        p = rushlight.ones(3, requires_grad=True)
        p.grad = rushlight.ones(3)
        optimizer = getattr(rushlight.optim, name)([p], **settings)
        loop = optimizer.loop(p)
        before = loop.owed
        if loop.function is None:
            optimizer.step()
            assert loop.owed > before
        assert optimizer.loop(p) is loop


def test_frequent_ops_have_loops():
    assert len(list(warmup.elementwise(warmup.FREQUENT))) > 100
    assert not [name for name in warmup.FREQUENT if name != "pow" and not list(warmup.elementwise([name]))]


def test_a_folder_that_cannot_be_written(monkeypatch, capsys):
    monkeypatch.setattr("rushlight.compile.cache.folder", lambda: None)
    assert cli.main(["warmup"]) == 2
    assert "RUSHLIGHT_CACHE" in capsys.readouterr().err


def test_without_numba(monkeypatch, capsys):
    def missing():
        raise ImportError("Numba is not installed: pip install rushlight[jit]")
    monkeypatch.setattr(warmup, "backend", missing)
    assert cli.main(["warmup"]) == 2
    assert "pip install rushlight[jit]" in capsys.readouterr().err


def test_the_command_says_what_it_did(monkeypatch, capsys):
    monkeypatch.setattr(warmup, "warmup", lambda say: say("relu", 0.5) or 1)
    assert cli.main(["warmup"]) == 0
    assert "  0.50 s  relu\n1 loops are in" in capsys.readouterr().out
