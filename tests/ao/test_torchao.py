"""quantize_ beside torchao's definition, computed by torch, and beside torchao itself where it is installed."""

from __future__ import annotations

import copy
import io
import subprocess
import sys

import numpy as np
import pytest

import rushlight
from rushlight.ao.torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8Tensor,
    Int8WeightOnlyConfig,
    MappingType,
    PerTensor,
    quantize_,
)
from tests.support.paths import ROOT

SHAPES = [(1, 7, 5), (3, 40, 33), (2, 530, 3)]  # rows, inputs, outputs
CONFIGS = {
    "weights": Int8WeightOnlyConfig(),
    "weights, one scale": Int8WeightOnlyConfig(granularity=PerTensor()),
    "symmetric": Int8DynamicActivationInt8WeightConfig(),
    "asymmetric": Int8DynamicActivationInt8WeightConfig(act_mapping_type=MappingType.ASYMMETRIC),
}


def arrays(rows, k, n):
    """x, whose rows differ in size, a weight and a bias."""
    rng = np.random.default_rng(rows)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((rows, k), (n, k), n))
    return x * 10.0 ** np.arange(rows, dtype=np.float32)[:, None] / 100, w / 5, b


def as_int8(torch, x, symmetric, dim):
    """(integers, scale, zero point): the numbers of torchao's documents, -128 to 127."""
    if dim is None:
        low, high = x.amin().reshape(1, 1), x.amax().reshape(1, 1)
    else:
        low, high = x.amin(dim, keepdim=True), x.amax(dim, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)
    eps = 1.1920928955078125e-07
    if symmetric:
        scale, zero = (torch.maximum(-low, high) / 127.5).clamp(min=eps), 0 * low
    else:
        scale = ((high - low) / 255).clamp(min=eps)
        zero = (-128 - torch.round(low / scale)).clamp(-128, 127)
    return (torch.round(x * (1.0 / scale)) + zero).clamp(-128, 127), scale, zero


def defined(torch, name, shape):
    """(outputs, integers of the weight, their scale) by definition, in torch."""
    x, w, b = map(torch.from_numpy, arrays(*shape))
    q, scale, _ = as_int8(torch, w, True, None if "one" in name else 1)
    if name.startswith("weights"):
        return x @ q.T * scale.T + b, q, scale
    p, x_scale, zero = as_int8(torch, x, name == "symmetric", 1)
    sums = ((p - zero).double() @ q.double().T).float()
    return sums * x_scale * scale.T + b, q, scale


def model_of(shape):
    x, w, b = map(rushlight.from_numpy, arrays(*shape))
    model = rushlight.nn.Sequential(rushlight.nn.Linear(shape[1], shape[2]))
    model.load_state_dict({"0.weight": w, "0.bias": b})
    return model, x


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CONFIGS)
def test_a_linear_layer_computes_as_torchao_defines(oracle, name, shape):
    expected, q, scale = oracle(lambda torch: defined(torch, name, shape))
    model, x = model_of(shape)
    quantize_(model, CONFIGS[name])
    found = model(x).detach().numpy()
    assert (model[0].weight.qdata.numpy() == q).all()
    assert (model[0].weight.scale.numpy() == scale).all()
    assert (abs(found - expected) <= 1e-5 * abs(expected).max(1, keepdims=True)).all()


@pytest.mark.parametrize("name", CONFIGS)
def test_torchao_itself(torch, name):
    """Run with torchao beside torch; the tests above need no torchao."""
    theirs = pytest.importorskip("torchao.quantization")
    config = CONFIGS[name]
    granularity = getattr(theirs, type(config.granularity).__name__)()
    settings = {"granularity": granularity}
    if hasattr(config, "act_mapping_type"):
        settings["act_mapping_type"] = getattr(theirs.MappingType, config.act_mapping_type.name)
    for shape in SHAPES:
        x, w, b = arrays(*shape)
        other = torch.nn.Sequential(torch.nn.Linear(shape[1], shape[2]))
        other.load_state_dict({"0.weight": torch.from_numpy(w), "0.bias": torch.from_numpy(b)})
        theirs.quantize_(other, getattr(theirs, type(config).__name__)(**settings))
        model, _ = model_of(shape)
        quantize_(model, config)
        expected = other(torch.from_numpy(x)).detach().numpy()
        assert (other[0].weight.qdata.numpy() == model[0].weight.qdata.numpy()).all()
        found = model(rushlight.from_numpy(x)).detach().numpy()
        assert (abs(found - expected) <= 1e-5 * abs(expected).max(1, keepdims=True)).all()


def test_an_embedding_is_chosen_by_the_filter():
    model = rushlight.nn.ModuleDict({"a": rushlight.nn.Embedding(6, 4), "b": rushlight.nn.Linear(4, 2)})
    before = model["a"].weight.detach().clone()
    quantize_(model, Int8WeightOnlyConfig(), lambda module, name: isinstance(module, rushlight.nn.Embedding))
    rows = model["a"](rushlight.arange(6))
    assert isinstance(model["a"].weight, Int8Tensor)
    assert not isinstance(model["b"].weight, Int8Tensor)
    assert (rows == model["a"].weight.dequantize()).all()
    assert (abs(rows - before) <= model["a"].weight.scale * 0.5 * (1 + 1e-3)).all()


def test_a_quantized_weight_is_a_parameter():
    model, x = model_of((3, 40, 33))
    quantize_(model, Int8DynamicActivationInt8WeightConfig())
    weight = model[0].weight
    assert dict(model.named_parameters())["0.weight"] is weight
    assert isinstance(model[0], rushlight.nn.Linear)
    assert isinstance(weight, rushlight.nn.Parameter)
    assert not weight.requires_grad
    assert weight.shape == (33, 40)
    assert weight.dtype is rushlight.float32
    assert repr(model[0]) == "Linear(in_features=40, out_features=33, bias=True, weight=Int8Tensor)"
    assert (weight.T @ rushlight.ones(33) == weight.dequantize().T @ rushlight.ones(33)).all()
    assert (copy.deepcopy(model)(x) == model(x)).all()
    file = io.BytesIO()
    rushlight.save(model, file)
    file.seek(0)
    assert (rushlight.load(file, weights_only=False)(x) == model(x)).all()


@pytest.mark.parametrize("assign", [False, True])
def test_a_state_loads_into_another_model(assign):
    (one, x), (other, _) = model_of((3, 40, 33)), model_of((1, 40, 33))
    for model in (one, other):
        quantize_(model, Int8DynamicActivationInt8WeightConfig())
    other.load_state_dict(one.state_dict(), assign=assign)
    assert isinstance(other[0].weight, Int8Tensor)
    assert (other(x) == one(x)).all()
    with pytest.raises(RuntimeError, match="load the state before quantize_"):
        other.load_state_dict(model_of((3, 40, 33))[0].state_dict())


def test_an_int8_weight_is_not_converted():
    model, x = model_of((3, 40, 33))
    quantize_(model, Int8WeightOnlyConfig())
    before = model(x)
    assert (model.float().eval().to("cpu")(x) == before).all()
    with pytest.raises(NotImplementedError, match="cannot be changed or converted"):
        model.double()


def test_backward_through_an_int8_layer_is_an_error():
    model, x = model_of((3, 40, 33))
    for config in CONFIGS.values():
        quantize_(model, config)
        with pytest.raises(NotImplementedError, match="no gradients"):
            model(x.clone().requires_grad_()).sum().backward()
        with pytest.raises(NotImplementedError, match="no gradients"):  # of the bias
            model(x).sum().backward()


def test_the_bias_is_read_when_the_layer_runs():
    model, x = model_of((3, 40, 33))
    quantize_(model, Int8WeightOnlyConfig())
    before = model(x).detach()
    with rushlight.no_grad():
        model[0].bias += 1
    np.testing.assert_allclose(model(x).detach().numpy(), before.numpy() + 1, rtol=1e-5, atol=1e-5)
    model[0].bias = rushlight.nn.Parameter(rushlight.zeros(33))
    np.testing.assert_allclose(
        model(x).detach().numpy(), (before - rushlight.from_numpy(arrays(3, 40, 33)[2])).numpy(), atol=1e-5
    )


def test_what_is_not_supported_is_an_error():
    model, _ = model_of((3, 40, 33))
    with pytest.raises(NotImplementedError, match="group_size"):
        quantize_(model, Int8WeightOnlyConfig(group_size=32))
    with pytest.raises(NotImplementedError, match="granularity"):
        quantize_(model, Int8DynamicActivationInt8WeightConfig(granularity=PerTensor()))
    with pytest.raises(NotImplementedError, match="of Sequential"):
        quantize_(model, Int8WeightOnlyConfig(), lambda module, name: True)
    with pytest.raises(ValueError, match="takes a configuration"):
        quantize_(model, lambda module: None)


PROGRAM = """
import rushlight.compat; rushlight.compat.install()
import torch, torchao, torch.ao.nn.quantized.dynamic as nnqd
from torchao.quantization import quantize_, Int8WeightOnlyConfig
model = torch.nn.Sequential(torch.nn.Linear(4, 2))
quantize_(model, Int8WeightOnlyConfig())
print(model(torch.ones(1, 4)).shape, torchao.quantize_ is quantize_)
model = torch.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(4, 2)), {torch.nn.Linear}, torch.qint8)
print(type(model[0]) is nnqd.Linear is torch.nn.quantized.dynamic.Linear, model[0].weight().qscheme() is torch.per_tensor_affine)
"""


def test_programs_import_torchao():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout.splitlines() == ["torch.Size([1, 2]) True", "True True"], done.stderr


def test_the_version_is_below_all_of_torchao():
    """transformers reads the version, and imports parts of torchao 0.15 and newer that rushlight lacks."""
    version = pytest.importorskip("packaging.version")
    program = "import rushlight.compat; rushlight.compat.install(); import torchao; print(torchao.__version__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert version.parse("0") <= version.parse(done.stdout.strip()) < version.parse("0.0.1")
