"""`rushlight warmup` compiles what would be compiled at its first use."""

import os
import subprocess
import sys

import numpy as np
import pytest

import rushlight
from rushlight import cli
from rushlight.compile import warmup
from rushlight.fast import elementwise

pytest.importorskip("llvmlite")


@pytest.mark.faster
def test_loops_are_ready_afterwards(monkeypatch):
    monkeypatch.setattr(warmup, "OPTIMIZERS", {"Adam": [{}]})
    said = []
    count = warmup.warmup(lambda name, seconds: said.append(name), ["relu"])
    assert count == len(said)
    assert {"relu", "relu, derivative by x", "softmax", "layer_norm, derivative by weight", "LSTM", "Adam()"} <= set(
        said
    )
    assert elementwise.loop_of("relu", "", (("f4", "each"),)).paid.function is not None
    p = rushlight.ones(3, requires_grad=True)
    p.grad = rushlight.ones(3)
    assert rushlight.optim.Adam([p])._loop(p).function is not None


@pytest.mark.faster
@pytest.mark.parametrize("name", warmup.OPTIMIZERS)
def test_the_loop_of_an_optimizer_is_the_one_that_steps(name):
    for settings in warmup.OPTIMIZERS[name]:
        p = rushlight.ones(3, requires_grad=True)
        p.grad = rushlight.ones(3)
        optimizer = getattr(rushlight.optim, name)([p], **settings)
        loop = optimizer._loop(p)
        before = loop.owed
        if loop.function is None:
            optimizer.step()
            assert loop.owed > before
        assert optimizer._loop(p) is loop


def test_the_loops_of_random_numbers_are_those_that_draw(monkeypatch):
    """A function is compiled for each kind of arguments: drawing finds its kind among those compiled."""
    from rushlight.loops.cache import of
    from rushlight.random import Generator, bernoulli, loops, normal, stream, uniform

    for _, build in warmup.random_numbers():
        build()
    used = {m._LOOP.name: m._LOOP for m in (stream, uniform, normal, bernoulli)}
    count = lambda name: len(of(getattr(loops, name)).codes)  # of kinds of arguments
    known = {name: count(name) for name in used}
    assert min(known.values()) > 0
    for name, loop in used.items():
        monkeypatch.setattr(loop, "compiled", getattr(loops, name))
    g = Generator().manual_seed(0)
    scaled, chances = lambda n: g.uniform(n, low=1.0, high=2.0), lambda n: g.bernoulli_scalar(0.5, n, "float32")
    for draw in (g.uniform, scaled, g.normal, chances):
        draw(20), draw(700)
    assert known == {name: count(name) for name in used}


def test_frequent_ops_have_loops():
    assert len(list(warmup.elementwise(warmup.FREQUENT))) > 100
    assert not [name for name in warmup.FREQUENT if name != "pow" and not list(warmup.elementwise([name]))]


def test_a_folder_that_cannot_be_written(monkeypatch, capsys):
    monkeypatch.setattr("rushlight.loops.cache.folder", lambda: None)
    assert cli.main(["warmup"]) == 2
    assert "RUSHLIGHT_CACHE" in capsys.readouterr().err


def test_without_llvmlite(monkeypatch, capsys):
    def missing():
        raise ImportError("llvmlite is not installed: pip install rushlight[jit]")

    monkeypatch.setattr(warmup, "binding", missing)
    assert cli.main(["warmup"]) == 2
    assert "pip install rushlight[jit]" in capsys.readouterr().err


def test_the_command_says_what_it_did(monkeypatch, capsys):
    monkeypatch.setattr(warmup, "warmup", lambda say: say("relu", 0.5) or 1)
    assert cli.main(["warmup"]) == 0
    assert "  0.50 s  relu\n1 loops compiled; cache folder:" in capsys.readouterr().out


CALLED = r"""
import numpy as np
from rushlight.loops.cache import calling, compiled
once = compiled("def kernel(x):\n    for i in range(x.shape[0]):\n        x[i] = exp(x[i]) + f32(-2.25)\n")
x = np.ones(3, np.float32)
once(x)
if {}:
    calling("def kernel(x):\n    once(x)\n    once(x)\n", once=once)(x)
print(*x)
"""


@pytest.mark.exhaustive
def test_a_loop_read_from_its_file_is_called_by_others(tmp_path):
    """The loop that calls it is compiled in a process that has only read it."""

    def ran(twice):
        return subprocess.run(
            [sys.executable, "-c", CALLED.format(twice)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "RUSHLIGHT_CACHE": str(tmp_path)},
        ).stdout.split()

    once = np.exp(np.float32(1)) + np.float32(-2.25)
    ran(False)
    found = ran(True)
    expected = np.full(3, np.exp(np.exp(once) - 2.25) - 2.25)
    np.testing.assert_allclose([float(x) for x in found], expected, rtol=1e-5)


PARTED = """
import numpy as np
from rushlight.loops.cache import calling, compiled, of
one = compiled("def kernel(x, i):\\n    x[i] = x[i] + f32(2)\\n")
whole = calling("def kernel(x):\\n    inner(x)\\n\\n\\n@cached\\ndef inner(x):\\n    one(x, 1)\\n", one=one)
x = np.ones(3, np.float32)
whole(x)
print(x[1], of(one).text_key)
"""


@pytest.mark.exhaustive
def test_a_part_calls_a_loop_that_was_compiled_anew(tmp_path):
    """The machine code of the loop is lost."""

    def ran():
        return subprocess.run(
            [sys.executable, "-c", PARTED],
            capture_output=True,
            text=True,
            env={**os.environ, "RUSHLIGHT_CACHE": str(tmp_path)},
        ).stdout.split()

    number, key = ran()
    assert number == "3.0"
    (file,) = (tmp_path / "loops").glob(f"rushlight_{key}*.o")
    file.unlink()
    assert ran() == ran() == ["3.0", key]
