"""Whole modules go from rushlight to torch and back in files; programs written for torch see torch's names of
classes."""

from __future__ import annotations

import inspect
import io
import pickle
import subprocess
import sys
import typing
import warnings

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.base import shown_names
from tests.compat.test_compat import HERE
from tests.support.paths import ROOT

IMAGE, ROWS, STEPS = (2, 4, 6, 6), (2, 4), (5, 2, 4)
MODULES = {  # what makes a module of nn, and the shape of its input
    "linear": (lambda nn: nn.Linear(4, 3), ROWS),
    "padded": (lambda nn: nn.Conv2d(4, 3, 3, padding=1, padding_mode="reflect"), IMAGE),
    "same": (lambda nn: nn.Conv2d(4, 4, 3, padding="same", groups=2), IMAGE),
    "transposed": (lambda nn: nn.ConvTranspose2d(4, 3, 3, stride=2), IMAGE),
    "norms": (lambda nn: nn.Sequential(nn.BatchNorm2d(4), nn.InstanceNorm2d(4), nn.GroupNorm(2, 4)), IMAGE),
    "activations": (lambda nn: nn.Sequential(nn.GELU("tanh"), nn.LeakyReLU(0.3), nn.Softmax(1), nn.PReLU()), ROWS),
    "shapes": (lambda nn: nn.Sequential(nn.MaxPool2d(2), nn.Upsample(scale_factor=2), nn.PixelShuffle(2)), IMAGE),
    "lstm": (lambda nn: nn.LSTM(4, 3, 2, bidirectional=True, proj_size=2), STEPS),
    "gru": (lambda nn: nn.GRU(4, 3, bias=False), STEPS),
    "encoder": (lambda nn: nn.TransformerEncoderLayer(4, 2, 8, 0.0, "gelu"), STEPS),
    "decoder": (lambda nn: nn.TransformerEncoderLayer(4, 2, 8, 0.0, nn.SiLU(), batch_first=True), STEPS),
    "old weight norm": (lambda nn: nn.utils.weight_norm(nn.Linear(4, 3)), ROWS),
}


def made(t, name):
    make, shape = MODULES[name]
    t.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(t.nn), t.linspace(-1, 1, int(np.prod(shape))).reshape(shape)


def result(module, x):
    out = module(x)
    return (out[0] if isinstance(out, tuple) else out).detach().numpy()


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("from_torch", [False, True])
def test_whole_modules_are_read_by_the_other(torch, name, from_torch):
    first, second = (torch, rushlight) if from_torch else (rushlight, torch)
    module, x = made(first, name)
    file = io.BytesIO()
    first.save(module, file)
    assert b"rushlight" not in file.getvalue()
    read = second.load(io.BytesIO(file.getvalue()), weights_only=False)
    other, same_x = made(second, name)
    assert type(read) is type(other)
    assert repr(read) == repr(other)
    np.testing.assert_allclose(result(read, same_x), result(module, x), rtol=1e-5, atol=1e-6)
    seen = []
    with read.register_forward_hook(lambda m, args, out: seen.append(m)):
        result(read, same_x)
    assert seen == [read]


def double(module, args, kwargs, out):
    return out * 2


@pytest.mark.parametrize("from_torch", [False, True])
def test_hooks_in_files_are_called(torch, from_torch):
    first, second = (torch, rushlight) if from_torch else (rushlight, torch)
    module = first.nn.Linear(2, 2)
    module.handle = module.register_forward_hook(double, with_kwargs=True)
    file = io.BytesIO()
    first.save(module, file)
    read = second.load(io.BytesIO(file.getvalue()), weights_only=False)
    x = [[1.0, 2.0]]
    np.testing.assert_allclose(result(read, second.tensor(x)), result(module, first.tensor(x)), rtol=1e-6)
    assert read.register_forward_hook(double).id != read.handle.id
    read._forward_hooks.popitem()
    assert isinstance(read.handle, second.utils.hooks.RemovableHandle)
    read.handle.remove()
    np.testing.assert_allclose(result(read, second.tensor(x)) * 2, result(module, first.tensor(x)), rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["relu", "sigmoid", "nn.functional.gelu", "nn.functional.silu", "nn.functional.conv2d", "special.expm1"]
)
@pytest.mark.parametrize("from_torch", [False, True])
def test_functions_in_files(torch, name, from_torch):
    first, second = (torch, rushlight) if from_torch else (rushlight, torch)
    if name == "special.expm1" and not from_torch:
        name = "expm1"
    file = io.BytesIO()
    function = first
    for part in name.split("."):
        function = getattr(function, part)
    first.save({"f": function}, file)
    found = second.load(io.BytesIO(file.getvalue()), weights_only=False)["f"]
    assert found.__name__.removeprefix("special_") == function.__name__.removeprefix("special_")


def test_layers_of_torchs_files_may_be_allowed(torch):
    file = io.BytesIO()
    torch.save(torch.nn.Flatten(), file)
    with rushlight.serialization.safe_globals([nn.Flatten]):
        assert (
            repr(rushlight.load(io.BytesIO(file.getvalue()), weights_only=True)) == "Flatten(start_dim=1, end_dim=-1)"
        )
        assert rushlight.serialization.get_safe_globals() == [nn.Flatten]


def layers():
    found = [value for value in vars(nn).values() if isinstance(value, type) and issubclass(value, nn.Module)]
    return [*found, nn.Parameter, nn.Buffer]


def test_files_name_layers_as_torch_does(torch):
    ours = {cls.__name__: shown_names.IN_FILES.get(cls) for cls in layers()}
    theirs = {
        name: (cls.__module__, cls.__name__) for name in ours if (cls := getattr(torch.nn, name, None)) is not None
    }
    assert {name: ours[name] for name in theirs if name != "DataParallel"} == {
        name: found for name, found in theirs.items() if name != "DataParallel"
    }


def test_layers_are_shown_as_torchs_until_uninstalled():
    """`type(m).__module__.startswith("torch.nn")` is how thop, torchinfo and fx know torch's layers."""
    code = """
import inspect, pickle, sys, typing
import rushlight.compat
rushlight.compat.install()
import torch
from tests.base import test_shown_names as here
print(torch.nn.Linear, torch.nn.Conv2d.__module__, torch.nn.Parameter)
for cls in here.layers():
    if cls is not torch.nn.DataParallel:
        assert cls.__module__.startswith("torch.nn."), cls
        assert f"class {cls.__name__}" in inspect.getsource(cls), cls
        assert pickle.loads(pickle.dumps(cls)) is cls, cls
        if issubclass(cls, torch.nn.Module):
            typing.get_type_hints(cls)
assert torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2))).graph.find_nodes(op="call_module")
with torch.autocast("cpu"):
    assert torch.nn.LSTM(2, 3)(torch.ones(1, 1, 2))[0].dtype is torch.bfloat16
rushlight.compat.uninstall()
print(rushlight.nn.Linear, [name for name in sys.modules if name.startswith("torch")])
"""
    for before in ("", "import rushlight.nn\n"):
        done = subprocess.run(
            [sys.executable, "-c", before + code],
            capture_output=True,
            text=True,
            check=False,
            env={**HERE, "PYTHONPATH": str(ROOT)},
        )
        assert done.stdout.splitlines() == [
            "<class 'torch.nn.modules.linear.Linear'> torch.nn.modules.conv <class 'torch.nn.parameter.Parameter'>",
            "<class 'rushlight.nn.linear.Linear'> []",
        ], done.stderr


def test_pickles_of_python_keep_our_names():
    text = pickle.dumps(nn.Linear)
    assert b"rushlight.nn.linear" in text
    assert inspect.getmodule(nn.Linear).__name__ == "rushlight.nn.linear"
    assert typing.get_type_hints(nn.Linear)
