"""Classes that programs subclass have only torch's names and underscored ones: a subclass of a user may take any other
name."""

from __future__ import annotations

import inspect

import pytest

import rushlight
import rushlight.distributions
import rushlight.utils.data

torch = pytest.importorskip("torch", reason="compares with the names of torch")
# name of a module -> its classes are compared
MODULES = ("nn", "optim", "optim.lr_scheduler", "utils.data", "distributions", "amp", "fx")
CLASSES = ("Tensor", "nn.Parameter", "autograd.Function", "optim.swa_utils.AveragedModel")
# name of a class -> names that torch lacks, each with a reason
ALLOWED = {
    "autocast": {"again"},  # a context that is entered again; torch keeps it in functions
    "Graph": {"code"},  # the program of the graph; torch prints it as python_code
    "Transform": {"domain", "codomain"},  # annotations without values in torch
    "Geometric": {"param_shape"},  # of the classes with probs and logits
}


def find(library, path):
    for name in path.split("."):
        library = getattr(library, name, None)
    return library


def pairs():
    for path in MODULES:
        theirs, ours = find(torch, path), find(rushlight, path)
        for name, cls in sorted(vars(theirs).items()):
            mine = getattr(ours, name, None)
            if inspect.isclass(cls) and inspect.isclass(mine) and cls.__name__ == name:
                yield pytest.param(mine, cls, id=f"{path}.{name}")
    for path in CLASSES:
        yield pytest.param(find(rushlight, path), find(torch, path), id=path)


@pytest.mark.parametrize(("ours", "theirs"), [*pairs()])
def test_only_names_of_torch(ours, theirs):
    public = {name for name in dir(ours) if not name.startswith("_")}
    assert public - {*dir(theirs)} - ALLOWED.get(ours.__name__, set()) == set()
