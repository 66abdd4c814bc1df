"""torch.export.save: archives that torch 2.13 loads, with equal numbers."""

from __future__ import annotations

import io

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.archives.pt2.to_aten.schemas import SCHEMAS
from tests.archives.compared import TOLERANCE, difference
from tests.archives.models import models

NAMES = [*models(rushlight)]


def built(name):
    rushlight.manual_seed(0)
    make, args = models(rushlight)[name]
    return make().eval(), args


def theirs(torch, value):
    """Our tensors as torch's."""
    if isinstance(value, rushlight.Tensor):
        return torch.from_numpy(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {key: theirs(torch, part) for key, part in value.items()}
    return type(value)([theirs(torch, part) for part in value]) if isinstance(value, (list, tuple)) else value


def saved(program, **settings):
    file = io.BytesIO()
    rushlight.export.save(program, file, **settings)
    return file.getvalue()


def check(torch, model, args, content=None):
    """torch and rushlight compute the archive as the model computes."""
    content = content or saved(rushlight.export.export(model, args))
    expected = model(*args)
    mine = rushlight.export.load(io.BytesIO(content))
    assert difference(mine.module()(*args), expected) <= TOLERANCE
    program = torch.export.load(io.BytesIO(content))
    assert difference(program.module()(*theirs(torch, args)), expected) <= TOLERANCE
    assert {*program.state_dict} >= {*dict(model.named_parameters()), *model.state_dict()}


@pytest.mark.parametrize("name", NAMES)
def test_torch_loads_it(torch, name):
    check(torch, *built(name))


@pytest.mark.parametrize("name", ["convnet", "lstm", "outputs", "shapes"])
def test_an_archive_is_written_again(torch, name):
    """After training, the new archive has the new weights."""
    model, args = built(name)
    program = rushlight.export.load(io.BytesIO(saved(rushlight.export.export(model, args))))
    again = program.module()
    with rushlight.no_grad():
        for p in again.parameters():
            p.mul_(0.5)
    content = saved(program)
    expected = again(*args)
    assert difference(torch.export.load(io.BytesIO(content)).module()(*theirs(torch, args)), expected) <= TOLERANCE


def test_the_names_of_parameters_are_atens(torch):
    for target, (names, by_name) in SCHEMAS.items():
        name, _, overload = target.partition(".")
        arguments = getattr(getattr(torch.ops.aten, name), overload)._schema.arguments
        assert names == tuple(a.name for a in arguments if not a.kwarg_only), target
        assert by_name == tuple(a.name for a in arguments if a.kwarg_only), target


def test_a_model_in_training(torch):
    """The archive updates the buffers."""
    rushlight.manual_seed(0)
    model, x = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()), rushlight.randn(4, 2, 6, 6)
    content = saved(rushlight.export.export(model, (x,)))
    other = torch.export.load(io.BytesIO(content)).module()
    for _ in range(2):
        assert difference(other(theirs(torch, x)), model(x)) <= TOLERANCE
    for name, buffer in model.named_buffers():
        assert difference(buffer, dict(other.named_buffers())[name]) <= TOLERANCE


class Sized(nn.Module):
    """Conditions on sizes, which torch.fx cannot follow; constants, views and writes."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, ids, mask=None):
        x = self.table(ids)
        if ids.shape[1] > 3:
            x = x + rushlight.linspace(0, 1, ids.shape[1]).unsqueeze(-1)
        y = rushlight.zeros(ids.shape[0], 4)
        y[:, 1:3] = x.mean(1)[:, :2]
        best = x.argmax(-1)
        x[best == 0] = 0.5
        return y, x[:, [0, 2], -1], x.unfold(1, 2, 1), best, 3


def test_a_model_that_fx_cannot_follow(torch):
    rushlight.manual_seed(0)
    model, ids = Sized().eval(), rushlight.randint(0, 10, (2, 5))
    program = rushlight.export.export(model, (ids,))
    assert program.module()(ids)[-1] == 3
    content = saved(program)
    expected = model(ids)[:-1]
    got = torch.export.load(io.BytesIO(content)).module()(theirs(torch, ids))
    assert got[-1] == 3
    assert difference(got[:-1], expected) <= TOLERANCE
    assert difference(program.module()(ids)[:-1], expected) <= TOLERANCE


def test_shared_and_unused_weights(torch):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out, self.unused = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False), nn.Linear(2, 2)
            self.out.weight = self.table.weight
            self.register_buffer("factor", rushlight.full((5,), 0.5), persistent=False)

        def forward(self, ids):
            return self.out(self.table(ids)) * self.factor

    model, ids = Tied(), rushlight.tensor([[1, 4]])
    content = saved(rushlight.export.export(model, (ids,)))
    expected = model(ids)
    assert difference(torch.export.load(io.BytesIO(content)).module()(theirs(torch, ids)), expected) <= TOLERANCE
    assert difference(rushlight.export.load(io.BytesIO(content)).module()(ids), expected) <= TOLERANCE


def test_dtypes(torch):
    class Cast(nn.Module):
        def forward(self, x, n):
            return x.half() * 2, x.double() + n, (n > 1) & (x > 0), n.to(rushlight.int16), x.bfloat16().float(), x.exp()

    x, n = rushlight.linspace(-1, 1, 4), rushlight.tensor([0, 1, 2, 3])
    check(torch, Cast(), (x, n))


def test_infinite_numbers_and_extra_files(torch):
    class Masked(nn.Module):
        def forward(self, x):
            return x.masked_fill(x > 0, -float("inf")).softmax(-1).clamp(max=float("inf"))

    x = rushlight.linspace(-1, 1, 6).view(2, 3)
    content = saved(rushlight.export.export(Masked(), (x[:1],)), extra_files={"a.txt": "text"})
    check(torch, Masked(), (x[:1],), content)
    extra = {"a.txt": ""}
    torch.export.load(io.BytesIO(content), extra_files=extra)
    assert extra["a.txt"] == "text"


def export_to(model, place):
    program = rushlight.export.export(model, (rushlight.eye(3),))
    rushlight.export.save(program, place)


def test_what_cannot_be_written_is_named(tmp_path):
    class Dice(nn.Module):
        def forward(self, x):
            return nn.functional.dropout(x, 0.5)

    class Rare(nn.Module):
        def forward(self, x):
            return rushlight.linalg.eigvals(x)

    class Numbers(nn.Module):
        def forward(self, x):
            return x * x.sum().item()

    for model, words in ((Dice(), "draws random numbers"), (Rare(), "linalg_eigvals"), (Numbers(), "item")):
        with pytest.raises(rushlight.export.ExportError, match=words) as error:
            export_to(model, tmp_path / "a.pt2")
        assert "test_write.py" in str(error.value)
        assert not (tmp_path / "a.pt2").exists()


def test_the_archive_is_the_same_each_time(tmp_path):
    model, args = built("perceptron")
    contents = [saved(rushlight.export.export(model, args)) for _ in range(2)]
    assert contents[0] == contents[1]
    rushlight.export.save(rushlight.export.export(model, args), tmp_path / "a.pt2")
    assert np.array_equal(rushlight.export.load(tmp_path / "a.pt2").module()(*args).detach(), model(*args).detach())
    with pytest.raises(TypeError, match="ExportedProgram"):
        rushlight.export.save(model, tmp_path / "a.pt2")
