"""Public functions do not bind as methods, as torch's built-in functions do not."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
from importlib import import_module
from types import BuiltinFunctionType, MethodType

import pytest

import rushlight
from rushlight.base.public_function import PublicFunction, private

SPACES = ("", ".linalg", ".fft", ".special", ".nn.functional", ".sparse")


def functions(space):
    """The public functions of a namespace, by name."""
    module = import_module("rushlight" + space)
    found = {name: getattr(module, name) for name in dir(module) if name[:3] != "has"}
    return {name: f for name, f in found.items() if isinstance(f, PublicFunction)}


@pytest.mark.parametrize("space", SPACES)
def test_no_builtin_of_torch_binds(torch, space):
    theirs, ours = torch, rushlight
    for part in space.split(".")[1:]:
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    names = [
        name for name in dir(theirs) if isinstance(getattr(theirs, name), BuiltinFunctionType) and hasattr(ours, name)
    ]
    assert len(names) > 5
    kept = type("Kept", (), {name: getattr(ours, name) for name in names})()
    assert [name for name in names if isinstance(getattr(kept, name), MethodType)] == []


@pytest.mark.origin("phiml")
def test_functions_as_class_attributes():
    class Backend:
        exp, mm, cat, where = rushlight.exp, rushlight.matmul, rushlight.cat, rushlight.where
        zeros, svd, fft = rushlight.zeros, rushlight.linalg.svdvals, rushlight.fft.fft

    b, x = Backend(), rushlight.eye(2)
    assert b.exp(x * 0).tolist() == [[1, 1], [1, 1]]
    assert b.mm(x, x).tolist() == b.where(x > 0, x, b.zeros(2, 2)).tolist() == x.tolist()
    assert b.cat([x, x]).shape == (4, 2)
    assert b.svd(x).tolist() == [1, 1]
    assert b.fft(rushlight.ones(1)).tolist() == [1]
    assert x.exp().shape == (2, 2)  # methods of tensors bind


@pytest.mark.parametrize("space", SPACES)
def test_copies_and_pickles_are_the_function_itself(space):
    for name, f in functions(space).items():
        assert pickle.loads(pickle.dumps(f)) is f, name
        assert copy.deepcopy(f) is f, name


def test_it_looks_like_its_function():
    f = rushlight.exp
    assert f.__name__ == f.__qualname__ == "exp"
    assert f.__module__ == "rushlight"
    assert f == private(f)
    assert {f: 1}[private(f)] == 1
    assert str(inspect.signature(f)) == "(input, *, out=None)"
    assert "floating(lambda x, /: exp(x)" in inspect.getsource(f)
    assert "e to the power" in pydoc.render_doc(f)
    with pytest.raises(AttributeError):
        f.nothing_of_that_name
