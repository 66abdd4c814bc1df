"""torch.jit.load: archives that torch 2.13 writes, with torch's numbers, gradients and state."""

from __future__ import annotations

import io
import warnings
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import rushlight
from tests.archives.compared import TOLERANCE, difference, ours
from tests.archives.models import built
from tests.archives.programs import programs

SILERO = find_spec("silero_vad")
TRACED = (
    "perceptron convnet residual separable wave volume lstm two_lstms gru rnn cells gpt attention bag norms activations "
    "shapes reductions integers"
).split()
SCRIPTED = (
    "perceptron convnet residual separable wave volume lstm two_lstms gru rnn cells gpt attention bag norms activations "
    "shapes reductions integers transformer"
).split()
PROGRAMS = "loops containers state nested greedy tuples".split()


def archive(torch, module, args=None):
    """The bytes of a scripted module, or of a traced one if arguments are given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.jit.script(module) if args is None else torch.jit.trace(module, args)
        file = io.BytesIO()
        torch.jit.save(made, file)
    return made, file.getvalue()


def loaded(content):
    return rushlight.jit.load(io.BytesIO(content))


def check(theirs, mine, args):
    """Equal results, with gradients recorded and without."""
    expected = theirs(*args)
    assert difference(mine(*ours(args)), expected) <= TOLERANCE
    with rushlight.no_grad():
        assert difference(mine(*ours(args)), expected) <= TOLERANCE
    assert [*mine.state_dict()] == [*theirs.state_dict()]


@pytest.mark.parametrize("name", TRACED)
def test_a_traced_model(torch, name):
    module, args = built(torch, name)
    theirs, content = archive(torch, module, args)
    check(theirs, loaded(content), args)


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_scripted_model(torch, name):
    module, args = built(torch, name)
    theirs, content = archive(torch, module)
    check(theirs, loaded(content), args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_scripted_program(torch, name):
    torch.manual_seed(0)
    module, args = programs(torch)[name]
    theirs, content = archive(torch, module.eval())
    mine = loaded(content)
    for _ in range(3):  # the third call depends on the state of the first two
        expected, got = theirs(*args), mine(*ours(args))
        if name == "tuples":
            assert (got[1], got[2]) == (expected[1], expected[2])
            assert (got[0].x.numpy() == expected[0].x.numpy()).all()
            expected, got = expected[0], got[0]
        if name == "loops":
            assert got[1] == expected[1]
            expected, got = expected[0], got[0]
        assert difference(got, expected) <= TOLERANCE


def test_other_methods_and_attributes(torch):
    module, args = programs(torch)["state"]
    mine = loaded(archive(torch, module)[1])
    mine(*ours(args))
    assert mine.calls == 1
    mine.reset()
    assert mine.calls == 0
    assert (mine.mean == 0).all()
    mine.calls = 5
    assert difference(mine(*ours(args)), module(*args) * 6) <= TOLERANCE


def test_it_is_differentiated(torch):
    module, args = built(torch, "convnet")
    theirs, content = archive(torch, module.train())
    mine = loaded(content)
    assert mine.training
    theirs(*args).square().sum().backward()
    mine(*ours(args)).square().sum().backward()
    gradients = {name: p.grad for name, p in theirs.named_parameters()}
    assert [*gradients] == [name for name, _ in mine.named_parameters()]
    joined = [np.concatenate([g.numpy().ravel() for g in each]) for each in (
        [p.grad for p in mine.parameters()], gradients.values())]  # fmt: skip
    assert np.abs(joined[0] - joined[1]).max() <= TOLERANCE * np.abs(joined[1]).max()
    for name, buffer in theirs.named_buffers():
        assert difference(dict(mine.named_buffers())[name], buffer) <= TOLERANCE


def test_it_is_compiled_copied_and_saved(torch, tmp_path):
    module, args = built(torch, "residual")
    mine = loaded(archive(torch, module)[1])
    x = ours(args)[0]
    with rushlight.no_grad():
        expected = mine(x)
        compiled = rushlight.compile(mine, fullgraph=True)
        for _ in range(3):
            assert np.abs((compiled(x) - expected).numpy()).max() <= TOLERANCE * np.abs(expected.numpy()).max()
        other = deepcopy(mine)
        other.out.bias.add_(1.0)
        assert not rushlight.equal(other(x), mine(x))
        rushlight.save(mine.state_dict(), tmp_path / "weights.pt")
        other.load_state_dict(rushlight.load(tmp_path / "weights.pt"))
        assert rushlight.equal(other(x), expected)


def test_it_shows_itself(torch):
    mine = loaded(archive(torch, built(torch, "residual")[0])[1])
    assert isinstance(mine, rushlight.jit.ScriptModule)
    assert mine.original_name == "Residual"
    assert "def forward" in mine.code
    assert "(norm_a): RecursiveScriptModule(original_name=BatchNorm2d)" in repr(mine)
    with pytest.raises(NotImplementedError, match=r"torch\.export\.save"):
        mine.save("x.pt")
    with pytest.raises(NotImplementedError, match=r"torch\.export\.save.*torch\.onnx\.export"):
        rushlight.jit.save(mine, "x.pt")
    with pytest.raises(RuntimeError, match=r"torch\.jit\.load reads it"):
        rushlight.load(io.BytesIO(archive(torch, torch.nn.ReLU())[1]))


def test_extra_files_and_paths(torch, tmp_path):
    scripted = torch.jit.script(torch.nn.Linear(2, 3))
    torch.jit.save(scripted, str(tmp_path / "a.pt"), _extra_files={"labels.txt": b"cat dog"})
    extra = {"labels.txt": ""}
    mine = rushlight.jit.load(tmp_path / "a.pt", map_location="cpu", _extra_files=extra)
    assert extra["labels.txt"] == b"cat dog"
    assert mine(rushlight.ones(1, 2)).shape == (1, 3)
    with pytest.raises(RuntimeError, match="cuda"):
        rushlight.jit.load(tmp_path / "a.pt", map_location="cuda")


def test_an_exception_of_the_program(torch):
    class Strict(torch.nn.Module):
        def forward(self, x):
            if x.dim() != 2:
                raise ValueError("two dimensions are needed")
            return x

    mine = loaded(archive(torch, Strict())[1])
    with pytest.raises(rushlight.jit.Error, match="ValueError: two dimensions are needed"):
        mine(rushlight.ones(3))
    with pytest.raises(TypeError, match="forward"):
        mine()


@pytest.mark.skipif(SILERO is None, reason="silero-vad is not installed")
@pytest.mark.parametrize(("rate", "size"), [(16000, 512), (8000, 256)])
def test_silero_vad(torch, rate, size):
    """The probabilities of speech in several chunks: each depends on the state that the chunks before have left."""
    path = str(Path(SILERO.origin).parent / "data" / "silero_vad.jit")
    theirs, mine = torch.jit.load(path).eval(), rushlight.jit.load(path).eval()
    torch.manual_seed(0)
    sound = torch.randn(1, 20 * size) * torch.linspace(0, 1, 20 * size)
    with torch.no_grad(), rushlight.no_grad():
        chunks = [sound[:, k : k + size] for k in range(0, 20 * size, size)]
        expected = torch.cat([theirs(chunk, rate) for chunk in chunks])
        got = rushlight.cat([mine(ours(chunk), rate) for chunk in chunks])
        assert difference(got, expected) <= TOLERANCE
        assert difference(mine.audio_forward(ours(sound), rate), theirs.audio_forward(sound, rate)) <= TOLERANCE
