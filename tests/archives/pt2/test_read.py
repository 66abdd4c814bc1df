"""torch.export.load: archives that torch 2.13 writes, with torch's numbers, gradients and state."""

from __future__ import annotations

import io
import warnings
from copy import deepcopy

import numpy as np
import pytest

import rushlight
from tests.archives.compared import TOLERANCE, difference, ours
from tests.archives.models import built, models

NAMES = [*models(rushlight)]


def archive(torch, module, args, **settings):
    """(torch's program, the bytes of its archive)."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, args, **settings)
        torch.export.save(program, file)
    return program, file.getvalue()


def loaded(content):
    return rushlight.export.load(io.BytesIO(content))


def test_there_are_twenty():
    assert len(NAMES) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_of_torch(torch, name):
    module, args = built(torch, name)
    program, content = archive(torch, module, args)
    mine = loaded(content)
    expected = module(*args)
    assert difference(mine.module()(*ours(args)), expected) <= TOLERANCE
    assert {*mine.state_dict} == {*program.state_dict}
    assert difference(mine.example_inputs[0], args) == 0


@pytest.mark.parametrize("name", ["convnet", "lstm", "gpt", "norms"])
def test_an_archive_of_core_operators(torch, name):
    """Decomposed programs, whose buffers are written by results."""
    module, args = built(torch, name)
    file = io.BytesIO()
    torch.export.save(torch.export.export(module, args).run_decompositions(), file)
    assert difference(loaded(file.getvalue()).module()(*ours(args)), module(*args)) <= TOLERANCE


def test_dynamic_sizes(torch):
    class Windows(torch.nn.Module):
        def forward(self, x):
            batch, time = x.shape
            y = x.view(batch, time // 2, 2).sum(-1)
            return y / batch + time, torch.arange(time), x.new_zeros(batch * 2, time - 1)

    dims = ({0: torch.export.Dim("batch"), 1: 2 * torch.export.Dim("half", min=2)},)
    mine = loaded(archive(torch, Windows(), (torch.randn(3, 8),), dynamic_shapes=dims)[1]).module()
    for shape in ((1, 4), (5, 20)):
        x = torch.randn(*shape)
        assert difference(mine(*ours((x,))), Windows()(x)) <= TOLERANCE


def test_fixed_sizes_are_checked(torch):
    mine = loaded(archive(torch, *built(torch, "perceptron"))[1]).module()
    with pytest.raises(RuntimeError, match=r"shape \[2, 5\].*exported for \[3, 4\](.|\n)*dynamic_shapes"):
        mine(rushlight.ones(2, 5))
    with pytest.raises(TypeError, match="takes 1 arguments"):
        mine()
    with pytest.raises(TypeError, match="tensor"):
        mine(3)


def test_arguments_by_name(torch):
    module, args = built(torch, "outputs")
    _, content = archive(torch, module, (args[0],), kwargs={"more": args[1]})
    mine, x = loaded(content).module(), ours(args)
    expected = module(*args)
    assert difference(mine(x[0], more=x[1]), expected) <= TOLERANCE
    assert difference(mine(more=x[1], x=x[0]), expected) <= TOLERANCE
    with pytest.raises(TypeError, match="keys"):
        mine(x[0], more={"scale": x[1]["scale"]})


def test_it_is_differentiated_and_trained(torch):
    """Batch norm in training: the program updates the buffers."""
    module, args = built(torch, "convnet")
    theirs, content = archive(torch, module.train(), args)
    theirs, mine = theirs.module(), loaded(content).module()
    theirs(*args).square().sum().backward()
    mine(*ours(args)).square().sum().backward()
    gradients = [np.concatenate([p.grad.numpy().ravel() for p in m.parameters()]) for m in (mine, theirs)]
    assert np.abs(gradients[0] - gradients[1]).max() <= TOLERANCE * np.abs(gradients[1]).max()
    for name, buffer in theirs.named_buffers():
        assert difference(dict(mine.named_buffers())[name], buffer) <= TOLERANCE


def test_a_branch_without_gradients(torch):
    class Branch(torch.nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = x * 2
            return torch.cond(x.sum() > 0, lambda x, y: x + y, lambda x, y: x - y, (x, y))

    mine = loaded(archive(torch, Branch(), (torch.ones(3),))[1]).module()
    for sign in (1.0, -1.0):
        x = rushlight.full((3,), sign, requires_grad=True)
        y = mine(x)
        assert y.tolist() == [3 if sign > 0 else 1] * 3
        y.sum().backward()
        assert x.grad.tolist() == [1, 1, 1]


def test_it_is_compiled_copied_and_shown(torch):
    module, args = built(torch, "residual")
    program = loaded(archive(torch, module, args)[1])
    mine, x = program.module(), ours(args)[0]
    with rushlight.no_grad():
        expected = mine(x)
        compiled = rushlight.compile(mine, fullgraph=True)
        for _ in range(3):
            assert np.abs((compiled(x) - expected).numpy()).max() <= TOLERANCE * np.abs(expected.numpy()).max()
        other = deepcopy(mine)
        other.out.bias.add_(1.0)
        assert not rushlight.equal(other(x), mine(x))
    assert "conv2d = aten.conv2d.default(x, p_a_weight" in mine.code
    assert "aten.relu.default" in str(program)
    assert [node.op for node in program.graph.nodes][-1] == "output"


def test_an_operator_that_is_missing_is_named(torch):
    class Rare(torch.nn.Module):
        def forward(self, x):
            return torch.ops.aten._cdist_forward(x, x, 2.0, None)

    with pytest.raises(NotImplementedError, match=r"torch\.ops\.aten\._cdist_forward\.default"):
        loaded(archive(torch, Rare(), (torch.ones(2, 2),))[1])


def test_extra_files(torch):
    module, args = built(torch, "perceptron")
    file = io.BytesIO()
    torch.export.save(torch.export.export(module, args), file, extra_files={"labels.txt": "cat dog"})
    extra = {"labels.txt": ""}
    rushlight.export.load(io.BytesIO(file.getvalue()), extra_files=extra)
    assert extra == {"labels.txt": "cat dog"}
    with pytest.raises(RuntimeError, match=r"torch\.export\.load reads it"):
        rushlight.load(io.BytesIO(file.getvalue()))
