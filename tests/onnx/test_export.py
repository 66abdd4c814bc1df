"""`torch.onnx.export`: the file, its names, and the arguments."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.onnx.export import OPSETS, OnnxExporterError, ONNXProgram, export
from rushlight.onnx.messages import read
from rushlight.onnx.tensors import array_of
from tests.onnx.onnx_case import check, error_of, largest_error, session

X = rushlight.ones(2, 3)


def line():
    rushlight.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 300), nn.Tanh(), nn.Linear(300, 2))


def run(path, *arrays):
    runtime = pytest.importorskip("onnxruntime")
    running = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return running.run(None, dict(zip([i.name for i in running.get_inputs()], arrays)))


def test_weights_have_the_names_of_the_state_dict():
    model = line()
    program = export(model, (X,))
    found = {t.name: array_of(t) for t in program.model_proto.graph.initializer}
    assert found.keys() == model.state_dict().keys()
    assert all(np.array_equal(found[key], t.numpy()) for key, t in model.state_dict().items())
    assert repr(program) == "ONNXProgram(input -> output, 3 nodes)"


def test_tied_weights_are_stored_once():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    model[2].weight = model[0].weight
    assert len(export(model, (X,)).model_proto.graph.initializer) == 3


def test_a_file_in_one_piece(tmp_path):
    model = line()
    program = export(model, (X,), tmp_path / "a.onnx", external_data=False)
    assert [f.name for f in tmp_path.iterdir()] == ["a.onnx"]
    assert (tmp_path / "a.onnx").read_bytes() == program.model_proto.SerializeToString()
    assert error_of(run(tmp_path / "a.onnx", X.numpy())[0], model(X).detach().numpy()) < 1e-6


def test_large_weights_beside_the_file(tmp_path):
    model = line()
    program = export(model, (X,), tmp_path / "a.onnx")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data"]
    assert error_of(run(tmp_path / "a.onnx", X.numpy())[0], model(X).detach().numpy()) < 1e-6
    program.save(tmp_path / "b.onnx")  # the program keeps its weights
    assert (tmp_path / "b.onnx").stat().st_size > 4000
    assert error_of(run(tmp_path / "b.onnx", X.numpy())[0], model(X).detach().numpy()) < 1e-6


def test_weights_as_inputs_and_left_out(tmp_path):
    program = export(line(), (X,))
    program.save(tmp_path / "a.onnx", keep_initializers_as_inputs=True, include_initializers=False)
    graph = read((tmp_path / "a.onnx").read_bytes()).graph
    assert [i.name for i in graph.input] == ["input", "0.weight", "0.bias", "2.weight", "2.bias"]
    assert not graph.initializer
    assert len(program.model_proto.graph.input) == 1


def test_names_of_inputs_and_outputs():
    program = export(lambda a, b: (a + b, a), (X, X), input_names=["left"], output_names=["sum"])
    assert [i.name for i in program.model_proto.graph.input] == ["left", "b"]
    assert [o.name for o in program.model_proto.graph.output] == ["sum", "output_1"]
    assert largest_error(session(program), lambda a, b: (a + b, a), (X, X * 3)) == 0


def test_an_output_named_like_a_value_inside():
    program = export(lambda x: x.tanh().relu() * 2, (X,), output_names=["tanh"])
    assert largest_error(session(program), lambda x: x.tanh().relu() * 2, (X,)) < 1e-6


def test_names_that_weights_and_inputs_have():
    model = nn.Linear(3, 3)

    def results(weight):
        return {"bias": model(weight), "weight": weight + 1}

    program = export(results, (X,))
    assert [o.name for o in program.model_proto.graph.output] == ["bias", "weight_1"]
    assert largest_error(session(program), results, (X * 2,)) < 1e-6

    class Named(nn.Linear):
        def forward(self, x):
            return {"bias": super().forward(x)}

    named = Named(3, 3)
    assert largest_error(session(export(named, (X,))), named, (X,)) < 1e-6
    with pytest.raises(ValueError, match="several inputs or outputs are named 'x'"):
        export(lambda x: x + 1, (X,), output_names=["x"])


def test_results_that_are_inputs_weights_and_repeated():
    model = nn.Linear(3, 3)

    def results(x):
        y = model(x)
        return [y, y, x, model.weight, {"zeros": rushlight.zeros(2), "y": y}]

    assert largest_error(session(export(results, (X,))), results, (X + 1,)) < 1e-6


def test_arguments_that_are_not_tensors_become_part_of_the_file():
    def model(x, times, flag=False, *, power=1):
        return x * times if flag else x**power

    program = export(model, (X, 3), kwargs={"flag": True})
    assert [i.name for i in program.model_proto.graph.input] == ["x"]
    running = session(program)
    assert error_of(running.run(None, {"x": X.numpy()})[0], 3 * X.numpy()) == 0


def test_the_model_stays_as_it_was():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)).train()
    before = {key: t.clone() for key, t in model.state_dict().items()}
    program = export(model, (X,), dynamic_shapes=({0: "n"},))
    assert model.training
    assert model[1].training
    assert all(rushlight.equal(t, before[key]) for key, t in model.state_dict().items())
    assert [n.op_type for n in program.model_proto.graph.node] == ["BatchNormalization"]


class Everything(nn.Module):
    """Operators whose form changed between versions."""

    def __init__(self):
        super().__init__()
        self.norm, self.groups = nn.LayerNorm(8), nn.GroupNorm(2, 4)
        self.gru = nn.GRU(8, 8, batch_first=True)

    def forward(self, x):  # (n, 4, 8)
        y = nn.functional.gelu(self.norm(x)) + nn.functional.gelu(x, approximate="tanh")
        y = self.gru(self.groups(y))[0]
        y = nn.functional.pad(y, (1, 1), mode="circular").softmax(-1)
        a, b = nn.functional.interpolate(y, scale_factor=2.0, mode="linear").chunk(2, 1)
        grid = rushlight.linspace(-1, 1, 8).view(1, 2, 2, 2).expand(x.shape[0], 2, 2, 2)
        sampled = nn.functional.grid_sample(y[:, None], grid, align_corners=False)
        return (a * b).amax(-1), y.mean((1, 2)), y.scatter_add(1, y.argmax(1, keepdim=True), x[:, :1, :1] * y), sampled


@pytest.mark.parametrize("opset", OPSETS)
def test_versions_of_operators(opset):
    rushlight.manual_seed(0)
    examples = [(rushlight.randn(n, 4, 8),) for n in (2, 1, 3)]
    program = check(Everything(), examples, dynamic_shapes=({0: "n"},), opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset


def test_other_versions_are_refused():
    with pytest.raises(ValueError, match="opset_version=9"):
        export(line(), (X,), opset_version=9)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "int32", "uint8", "bool"])
def test_dtypes_of_inputs(dtype):
    def model(x):
        return x + x, x.to(rushlight.float32).mean(0), x.reshape(-1)[1:], x == x, rushlight.where(x > 0, x, x)

    x = (rushlight.arange(6).reshape(2, 3) % 3).to(getattr(rushlight, dtype))
    assert largest_error(session(export(model, (x,))), model, (x,)) <= 1e-3 * (dtype == "float16")


def test_integers_where_onnx_takes_floats():
    x = rushlight.ones(1, 1, 4, 4, dtype=rushlight.int64)
    for function in (lambda x: nn.functional.max_pool2d(x, 2), lambda x: nn.functional.avg_pool2d(x, 2)):
        with pytest.raises(OnnxExporterError, match="takes no int64"):
            export(function, (x,))


def test_products_and_sums_of_small_integers():
    def model(x):
        return x @ x.T, x.sum(0, dtype=rushlight.uint8), -x, x**2, x.to(rushlight.float32).var(1)

    x = rushlight.arange(6, dtype=rushlight.uint8).reshape(2, 3)
    assert largest_error(session(export(model, (x,))), model, (x,)) < 1e-6


def test_bfloat16_and_half_models():
    pytest.importorskip("ml_dtypes")
    program = export(line().to(rushlight.bfloat16), (X.to(rushlight.bfloat16),))
    assert {t.data_type for t in program.model_proto.graph.initializer} == {16}
    assert {t.data_type for t in export(line().half(), (X.half(),)).model_proto.graph.initializer} == {10}


def test_an_error_of_the_example_itself():
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        export(line(), (rushlight.ones(2, 4),), dynamic_shapes=({0: "n"},))


def test_a_model_that_computes_differently_for_a_file():
    def model(x):
        return x * 2 if rushlight.onnx.is_in_onnx_export() else x * 3

    assert error_of(session(export(model, (X,))).run(None, {"x": X.numpy()})[0], 2 * X.numpy()) == 0


def test_custom_operators_are_refused():
    with pytest.raises(NotImplementedError, match="no custom operators"):
        export(line(), (X,), custom_opsets={"mine": 1})
    with pytest.raises(TypeError, match="dynamic_shape"):
        export(line(), (X,), dynamic_shape=({0: "n"},))


def test_a_function_without_tensors_is_refused():
    with pytest.raises(OnnxExporterError, match="returns no tensors"):
        export(lambda x: 3, (X,))


def test_under_the_name_of_torch(tmp_path):
    (tmp_path / "program.py").write_text(
        "import torch\nfrom torch import nn\n"
        "program = torch.onnx.export(nn.Linear(3, 2), (torch.ones(1, 3),), 'a.onnx', input_names=['x'], dynamo=True,\n"
        "    dynamic_shapes={'input': {0: torch.export.Dim('batch')}}, report=False, optimize=True, verbose=False)\n"
        "program.save('b.onnx')\nprint(type(program) is torch.onnx.ONNXProgram, torch.onnx.is_in_onnx_export())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "run", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "True False\n", done.stderr
    shape = read((tmp_path / "b.onnx").read_bytes()).graph.input[0].type.tensor_type.shape
    assert [d.dim_param or d.dim_value for d in shape.dim] == ["batch", 3]


def test_the_program_of_torch_export():
    exported = rushlight.export.export(line(), (X,))
    assert isinstance(export(exported, (X,)), ONNXProgram)
