"""`rushlight.onnx.load`: the module runs, is trained, compiled, saved, and named after the file."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.onnx import OnnxModule, load
from rushlight.onnx.messages import GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, read, written
from rushlight.onnx.tensors import move_data, tensor_of
from rushlight.serialization.archive import Damaged
from tests.onnx.files import convnet, file, graph, node


def images(n=6):
    return rushlight.randn(n, 1, 8, 8), rushlight.arange(n) % 3


def test_weights_have_the_names_of_the_file():
    model = load(convnet())
    names = ["conv.weight", "conv.bias", "norm.weight", "norm.bias", "head.weight", "head.bias"]
    assert [name for name, _ in model.named_parameters()] == names
    assert [name for name, _ in model.named_buffers()] == ["norm.running_mean", "norm.running_var"]
    assert (model.input_names, model.output_names) == (["x"], ["y"])


def test_texts_of_the_file():
    """`metadata` has the texts of the model, and not of its nodes."""
    step = node("Relu", "x", "y")
    step.metadata_props = [StringStringEntryProto(key="line", value="7")]
    made = read(file(step, inputs="x", outputs="y"))
    assert load(written(made)).metadata == {}
    texts = {"letters": "abc", "empty": ""}
    made.metadata_props = [StringStringEntryProto(key=key, value=text) for key, text in texts.items()]
    model = load(written(made))
    assert model.metadata == copy.deepcopy(model).metadata == pickle.loads(pickle.dumps(model)).metadata == texts


def test_numbers_of_the_convnet():
    """The same network of modules, with the file's weights."""
    model, (x, _) = load(convnet()), images()
    own = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
    ).eval()
    places = {"conv": "0", "norm": "1", "head": "5"}
    weights = {places[name.split(".")[0]] + "." + name.split(".")[1]: v for name, v in model.state_dict().items()}
    own.load_state_dict(weights, strict=False)
    assert rushlight.allclose(model(x), own(x), atol=1e-5)


def test_onnxruntime_computes_the_same():
    onnxruntime = pytest.importorskip("onnxruntime")
    x, _ = images()
    expected = onnxruntime.InferenceSession(convnet()).run(None, {"x": x.numpy()})[0]
    assert np.allclose(load(convnet())(x).detach().numpy(), expected, atol=1e-5)


def train(model, steps, compiled=False):
    x, target = images()
    optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    step = rushlight.compile(step) if compiled else step
    return [float(step().item()) for _ in range(steps)]


def test_fine_tuning():
    model = load(convnet())
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    losses = train(model, 30)
    assert losses[-1] < losses[0] / 3
    assert all(not p.equal(before[name]) for name, p in model.named_parameters())
    assert all(b.equal(load(convnet()).get_buffer(name)) for name, b in model.named_buffers())


def test_fine_tuning_and_export(tmp_path):
    """A model that was read, trained and written again gives the same numbers in onnxruntime."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model, (x, _) = load(convnet()), images()
    train(model, 5)
    rushlight.onnx.export(model, (x,), str(tmp_path / "m.onnx"), input_names=["x"], dynamic_shapes=({0: "n"},))
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    x, _ = images(9)
    found = session.run(None, {"x": x.numpy()})[0]
    assert np.allclose(found, model(x).detach().numpy(), atol=1e-5)


def test_a_compiled_training_gives_the_same_losses():
    rushlight.manual_seed(1)
    eager = train(load(convnet()), 6)
    rushlight.manual_seed(1)
    assert np.allclose(train(load(convnet()), 6, compiled=True), eager, rtol=1e-4)


def test_sizes_that_are_computed_do_not_break_the_graph():
    model, (x, _) = load(convnet()), images()
    assert rushlight.compiler.explain(model, x).graph_break_count == 0
    compiled = rushlight.compile(model)
    for n in (6, 3):
        x, _ = images(n)
        assert rushlight.allclose(compiled(x), model(x), atol=1e-5)


def test_copies_pickles_and_state_dicts(tmp_path):
    model, (x, _) = load(convnet()), images()
    expected = model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other(x).equal(expected)
    train(other, 3)
    rushlight.save(other.state_dict(), tmp_path / "weights.pt")
    model.load_state_dict(rushlight.load(tmp_path / "weights.pt"))
    assert model(x).equal(other(x))
    assert not model(x).equal(expected)


def test_repr_prints_the_graph():
    text = repr(load(convnet()))
    assert "inputs: x: float32[N, 1, 8, 8]" in text
    assert "c = Conv(x, conv.weight, conv.bias, pads=[1, 1, 1, 1], kernel_shape=[3, 3])" in text
    assert "shape = Concat(batch1, [-1], axis=0)" in text
    many = load(file(*(node("Neg", f"x{i}", f"x{i + 1}") for i in range(300)), inputs="x0", outputs="x300"))
    assert "100 more nodes" in repr(many)


def test_the_viewer_shows_the_graph(capsys):
    model, (x, _) = load(convnet()), images()
    rushlight.viz.print_graph(model(x).sum())
    printed = capsys.readouterr().out
    assert "ConvolutionBackward0 (6, 4, 8, 8)" in printed
    assert "NativeBatchNormBackward0" in printed


def two_inputs():
    return file(node("Sub", "a b", "d"), node("Add", "a b", "s"), inputs="a b", outputs="d s")


def test_inputs_by_position_and_by_name():
    model = load(two_inputs())
    a, b = rushlight.tensor([3.0]), rushlight.tensor([1.0])
    for found in (model(a, b), model(a, b=b), model(b=b, a=a), model(np.float32([3]), np.float32([1]))):
        assert [v.item() for v in found] == [2, 4]


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((1, 2, 3), {}, "takes 2 inputs"),
        ((1,), {}, "needs the inputs b"),
        ((1, 2), {"a": 1}, "'a' was given twice"),
        ((1,), {"c": 1}, "'c' is not an input: the inputs are a, b"),
    ],
)
def test_wrong_inputs(args, kwargs, words):
    with pytest.raises(TypeError, match=words):
        load(two_inputs())(*args, **kwargs)


@pytest.mark.parametrize("name", ["train", "a..b", ".a", "", "weight", "forward.x", "graph", "1.2", "a.b.c"])
def test_odd_names_of_weights(name):
    data = file(
        node("Add", f"x {name}", "y") if name else node("Neg", "x", "y"),
        inputs="x",
        outputs="y",
        weights={name: np.float32([1, 2])},
    )
    model = load(data)
    assert len(list(model.parameters())) == 1
    if name:
        assert model(rushlight.zeros(2)).tolist() == [1, 2]


def test_names_that_clash():
    """A weight `a` and a weight `a.b`."""
    weights = {"a": np.float32([1]), "a.b": np.float32([10]), "a_b": np.float32([100])}
    data = file(node("Sum", "x a a.b a_b", "y"), inputs="x", outputs="y", weights=weights)
    model = load(data)
    assert model(rushlight.zeros(1)).item() == 111
    assert len(model.state_dict()) == 3


def test_which_weights_are_trained():
    data = file(
        node("Mul", "x scale", "a"),
        node("Clip", "a low high", "b"),
        node("Gather", "table index", "c"),
        node("Resize", "b - scales", "d"),
        node("Add", "d c", "y"),
        inputs="x",
        outputs="y",
        weights={
            "scale": np.float32([2]),
            "low": np.float32(0),
            "high": np.float32([9]),
            "table": np.float32([1, 2]),
            "index": np.int64(1),
            "scales": np.float32([2.0]),
        },
    )
    model = load(data)
    assert [name for name, _ in model.named_parameters()] == ["scale", "table"]
    assert model(rushlight.tensor([1.0, 8.0])).tolist() == [4, 4, 11, 11]


def test_constants_in_nodes_are_weights_too():
    data = file(node("Constant", "", "w", value=np.float32([1, 2])), node("Mul", "x w", "y"), inputs="x", outputs="y")
    assert list(load(data).state_dict()) == ["w"]


def test_weights_of_inner_graphs_are_weights_too():
    w = np.arange(100, dtype=np.float32)
    then = graph(node("Mul", "x inner.weight", "t"), outputs="t", weights={"inner.weight": w})
    other = graph(node("Constant", "", "k", value=w), node("Add", "x k", "e"), outputs="e")
    model = load(file(node("If", "c", "y", then_branch=then, else_branch=other), inputs="c x", outputs="y"))
    assert sorted(name for name, _ in model.named_parameters()) == ["inner.weight", "k"]
    model(rushlight.tensor(True), rushlight.ones(100)).sum().backward()
    assert model.inner.weight.grad.tolist() == [1] * 100
    assert model.k.grad is None
    again = graph(node("Sub", "x inner.weight", "t2"), outputs="t2", weights={"inner.weight": w})
    model = load(file(node("If", "c", "y", then_branch=then, else_branch=again), inputs="c x", outputs="y"))
    assert list(model.state_dict()) == []  # one name for two weights
    assert model(rushlight.tensor(False), rushlight.ones(100)).tolist() == (1 - w).tolist()


def test_external_data(tmp_path):
    weights = {"w": np.arange(1000, dtype=np.float32)}
    made = graph(node("Add", "x w", "y"), inputs="x", outputs="y", weights=weights)
    move_data(made, tmp_path / "weights.bin")
    (tmp_path / "model.onnx").write_bytes(
        written(ModelProto(graph=made, opset_import=[OperatorSetIdProto(version=21)]))
    )
    assert load(tmp_path / "model.onnx")(rushlight.zeros(1000)).tolist() == list(range(1000))
    with pytest.raises(Damaged, match="load the model from its path"):
        load((tmp_path / "model.onnx").read_bytes())


def test_errors_name_the_node():
    model = load(
        file(node("MatMul", "x w", "y", name="layer_7"), inputs="x", outputs="y", weights={"w": np.ones((3, 2), "f4")})
    )
    with pytest.raises(RuntimeError, match="node 'layer_7': y = MatMul"):
        model(rushlight.ones(2, 5))


def test_a_file_without_a_graph():
    with pytest.raises(Damaged, match="no graph"):
        load(written(ModelProto(ir_version=8)))
    assert isinstance(load(written(ModelProto(graph=GraphProto()))), OnnxModule)


def test_a_tensor_is_not_the_memory_of_the_file():
    data = bytearray(file(node("Add", "x w", "y"), inputs="x", outputs="y", weights={"w": np.ones(4, "f4")}))
    model = load(data)
    data[:] = bytes(len(data))
    assert model(rushlight.zeros(4)).tolist() == [1] * 4


def test_import_rushlight_does_not_load_onnx():
    import subprocess
    import sys

    code = "import sys, rushlight; assert not [m for m in sys.modules if m.startswith('rushlight.onnx')]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tensor_of_scalars_stays_a_buffer():
    model = load(file(node("Mul", "x s", "y"), inputs="x", outputs="y", weights={"s": tensor_of(np.float32(3), "s")}))
    assert ([*model.parameters()], [name for name, _ in model.named_buffers()]) == ([], ["s"])
