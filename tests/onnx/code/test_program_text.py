"""`OnnxModule.code`: the program computes the same, with torch itself and with rushlight."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.onnx import load
from tests.onnx import backend
from tests.onnx.files import convnet, file, function, graph, node


def run(text, weights, torch, *inputs):
    """The outputs of the program's Model, as arrays."""
    if torch is rushlight:
        text = text.replace("import torch\n", "import rushlight as torch\n").replace("from torch", "from rushlight")
    names = {}
    exec(compile(text, "model.py", "exec"), names)
    model = names["Model"]()
    model.load_state_dict({name: torch.tensor(w.detach().numpy()) for name, w in weights.items()})
    found = model(*(torch.tensor(x) for x in inputs))
    return [v.detach().numpy() for v in (found if isinstance(found, tuple) else (found,))]


def check(data, *inputs, torch=rushlight):
    model = load(data)
    expected = model(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = run(model.code(), model.state_dict(), torch, *inputs)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert np.allclose(a, b.detach().numpy(), atol=1e-5)
    return model.code()


X = np.random.default_rng(0).normal(0, 1, (5, 1, 8, 8)).astype(np.float32)


def test_the_convnet_reads_like_torch():
    text = check(convnet(), X)
    for line in (
        "self.conv.weight = nn.Parameter(torch.zeros(4, 1, 3, 3))",
        "self.norm.register_buffer('running_mean', torch.zeros(4))",
        "c = F.conv2d(x, self.conv.weight, self.conv.bias, padding=1)",
        "n = F.batch_norm(c, self.norm.running_mean, self.norm.running_var, self.norm.weight, self.norm.bias)",
        "p = F.max_pool2d(r, 2, stride=2)",
        "y = F.linear(f, self.head.weight, self.head.bias)",
    ):
        assert f"        {line}\n" in text
    assert "rushlight.onnx" not in text.partition('"""\n\n')[2]


def test_the_program_runs_with_torch_itself(torch):
    check(convnet(), X, torch=torch)


def controls():
    loop = graph(node("Mul", "h w", "n"), node("Identity", "c", "go"), inputs="i c h", outputs="go n n")
    then, other = graph(node("Neg", "s", "t"), outputs="t"), graph(node("Abs", "s", "e"), outputs="e")
    twice = function("Twice", "a", "c", node("Add", "a a", "c"))
    return file(
        node("Loop", "count - x", "last all", body=loop),
        node("ReduceSum", "all", "s", keepdims=0),
        node("Greater", "s zero", "sign"),
        node("If", "sign", "u", then_branch=then, else_branch=other),
        node("Twice", "u", "y", domain="own"),
        inputs="x",
        outputs="y last",
        weights={"count": np.int64(3), "w": np.float32([2, 3]), "zero": np.float32(0)},
        functions=[twice],
        domains={"own": 1},
    )


@pytest.mark.parametrize("x", [[1.0, 2.0], [-1.0, -2.0]])
def test_graphs_become_functions(x, torch):
    text = check(controls(), np.float32(x))
    assert text.count("def ") > 4
    check(controls(), np.float32(x), torch=torch)


@pytest.mark.parametrize("name", ["class", "a-b", "1x", "torch", "conv", "self", "é"])
def test_odd_names_become_variables(name):
    data = file(
        node("Conv", "x w", name, auto_pad="SAME_LOWER"),
        node("Neg", name, "y"),
        inputs="x",
        outputs="y",
        weights={"w": np.ones((2, 1, 3, 3), "f4")},
    )
    check(data, X)


def test_names_that_are_no_attributes():
    weights = {"layers.0.weight": np.float32([2]), "a/b": np.float32([3]), "if.x": np.float32([5])}
    check(
        file(node("Sum", "x layers.0.weight a/b if.x", "y"), inputs="x", outputs="y", weights=weights), np.float32([1])
    )


def test_texts_are_refused():
    data = file(node("StringConcat", "x c", "y"), inputs="x", outputs="y", weights={"c": np.array(["a"], object)})
    with pytest.raises(NotImplementedError, match="no text for"):
        load(data).code()


SKIPPED = ("Bernoulli", "Random", "Dropout")


def is_tensors(info):
    return info.type.WhichOneof("value") == "tensor_type"


def test_programs_of_backend_tests():
    """Each tenth backend test: its program gives the numbers of the module, or code() raises NotImplementedError."""
    pytest.importorskip("onnx")
    same = refused = 0
    for i, (_, case) in enumerate(backend.cases()):
        if i % 10:
            continue
        model, sets = backend.contents(case)
        if any(n.op_type.startswith(SKIPPED) for n in model.graph.node) or not all(map(is_tensors, model.graph.output)):
            continue
        try:
            module = load(model.SerializeToString())
            text = module.code()
        except NotImplementedError:
            refused += 1
            continue
        for inputs, _ in sets:
            if any(
                v is None
                or isinstance(v, list)
                or np.asarray(v).dtype.kind not in "biufc"
                or "float8" in str(np.asarray(v).dtype)
                for v in inputs
            ):
                refused += 1
                continue
            expected = module(*inputs)
            found = run(text, module.state_dict(), rushlight, *map(np.asarray, inputs))
            expected = expected if isinstance(expected, tuple) else (expected,)
            for a, b in zip(found, expected):
                assert np.allclose(a, b.detach().numpy(), 1e-3, 1e-5, equal_nan=True), case.name
            same += 1
    assert same > 130
    assert refused < 60
