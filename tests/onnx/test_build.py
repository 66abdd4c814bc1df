"""Graphs of files as programs: what is refused, opsets, functions, inner graphs."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.onnx import load
from rushlight.onnx.messages import TensorProto
from rushlight.serialization.archive import Damaged
from tests.onnx.files import file, function, graph, node


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"nodes": [node("Add", "x b", "a"), node("Neg", "a", "b")], "outputs": "b"}, "reads 'b', which no earlier"),
        ({"nodes": [node("Neg", "a", "a")], "outputs": "a"}, "reads 'a', which no earlier"),
        ({"nodes": [node("Neg", "x", "a"), node("Abs", "x", "a")], "outputs": "a"}, "makes 'a', which exists"),
        ({"nodes": [node("Neg", "x", "x")], "outputs": "x"}, "makes 'x', which exists"),
        ({"nodes": [], "outputs": "y"}, "has the output 'y', which no node makes"),
        ({"nodes": [node("Constant", "", "y")], "outputs": "y"}, "has 0 attributes"),
        ({"nodes": [node("Transpose", "x", "y", perm=np.ones(2))], "outputs": "y"}, None),
        ({"nodes": [node("MaxPool", "x", "y")], "outputs": "y"}, "has no attribute kernel_shape"),
    ],
)
def test_graphs_that_are_wrong(parts, words):
    data = file(*parts["nodes"], inputs="x", outputs=parts["outputs"])
    if words is None:  # a wrong type of an attribute is seen when the node runs
        with pytest.raises((RuntimeError, TypeError, ValueError), match="node"):
            load(data)(rushlight.ones(2, 2))
        return
    with pytest.raises(Damaged, match=words):
        load(data)


def test_unsupported_operators_are_named_together():
    nodes = [
        node("Nonsense", "x", "a", name="first"),
        node("Nonsense", "a", "b", name="second"),
        node("Fancy", "b", "c", domain="com.example", name="third"),
        node("Conv", "c c", "y", name="fourth", flavour=3),
    ]
    words = r"Nonsense \(node 'first'\), com.example.Fancy \(node 'third'\), Conv with flavour=3 \(node 'fourth'\)"
    with pytest.raises(NotImplementedError, match=words):
        load(file(*nodes, inputs="x", outputs="y"))


def test_a_newer_opset_is_refused():
    with pytest.raises(NotImplementedError, match="has opset 99"):
        load(file(node("Neg", "x", "y"), inputs="x", outputs="y", opset=99))


@pytest.mark.parametrize(("opset", "expected"), [(11, [[0.25, 0.25], [0.25, 0.25]]), (13, [[0.5, 0.5], [0.5, 0.5]])])
def test_the_opset_chooses_the_row(opset, expected):
    model = load(file(node("Softmax", "x", "y", axis=0), inputs="x", outputs="y", opset=opset))
    assert model(rushlight.ones(2, 2)).tolist() == expected


def test_functions_with_attributes():
    scaled = function(
        "Scaled", "a b", "c", node("Mul", "a b", "m"), node("Concat", "m m", "c", axis="@axis"), attributes="axis"
    )
    twice = function("Twice", "a", "c", node("Scaled", "a a", "t", domain="own", axis=0), node("Neg", "t", "c"))
    data = file(
        node("Twice", "x", "y", domain="own"),
        node("Scaled", "x w", "z", domain="own", axis=1),
        inputs="x",
        outputs="y z",
        weights={"w": np.float32([[2, 3]])},
        functions=[scaled, twice],
        domains={"own": 1},
    )
    model = load(data)
    y, z = model(rushlight.tensor([[1.0, 2.0]]))
    assert y.tolist() == [[-1, -4], [-1, -4]]
    assert z.tolist() == [[2, 6, 2, 6]]
    assert list(model.state_dict()) == ["w"]
    z.sum().backward()
    assert model.w.grad.tolist() == [[2, 4]]


def test_functions_that_call_themselves():
    own = function("F", "a", "c", node("G", "a", "c", domain="own"))
    other = function("G", "a", "c", node("F", "a", "c", domain="own"))
    with pytest.raises(Damaged, match="calls itself"):
        load(file(node("F", "x", "y", domain="own"), inputs="x", outputs="y", functions=[own, other]))


def test_functions_that_call_others_often_are_made_once():
    """Sixty functions, each of which calls the next twice: 2 ** 60 calls, and 60 programs."""
    chain = [
        function(
            f"F{i}", "a", "c", node(f"F{i + 1}", "a", "b", domain="own"), node(f"F{i + 1}", "b", "c", domain="own")
        )
        for i in range(60)
    ]
    last = function("F60", "a", "c", node("Neg", "a", "c"))
    load(file(node("F0", "x", "y", domain="own"), inputs="x", outputs="y", functions=[*chain, last]))


def branches():
    return {
        "then_branch": graph(node("Mul", "x w", "t"), outputs="t"),
        "else_branch": graph(node("Sub", "x one", "e"), outputs="e", weights={"one": np.float32([1, 1])}),
    }


def test_if_reads_the_values_around_it():
    data = file(node("If", "c", "y", **branches()), inputs="c x", outputs="y", weights={"w": np.float32([2, 3])})
    model, x = load(data), rushlight.tensor([1.0, 2.0])
    assert model(rushlight.tensor(True), x).tolist() == [2, 6]
    assert model(rushlight.tensor(False), x).tolist() == [0, 1]
    model(rushlight.tensor(True), x).sum().backward()
    assert model.w.grad.tolist() == [1, 2]


def test_loop():
    body = graph(node("Mul", "h w", "next"), node("Identity", "c", "going"), inputs="i c h", outputs="going next next")
    data = file(
        node("Loop", "n - x", "last all", body=body),
        inputs="x",
        outputs="last all",
        weights={"n": np.int64(3), "w": np.float32([2])},
    )
    last, every = load(data)(rushlight.tensor([1.0]))
    assert last.tolist() == [8]
    assert every.tolist() == [[2], [4], [8]]


def test_scan():
    body = graph(node("Add", "s v", "next"), inputs="s v", outputs="next next")
    data = file(node("Scan", "s x", "last all", body=body, num_scan_inputs=1), inputs="s x", outputs="last all")
    last, every = load(data)(rushlight.zeros(2), rushlight.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert (last.tolist(), every.tolist()) == ([4, 6], [[1, 2], [4, 6]])


def test_graphs_nested_too_deep():
    inner = last = graph(node("Neg", "x", "y0"), outputs="y0")
    for i in range(40):
        inner = graph(node("If", "c", f"y{i + 1}", then_branch=inner, else_branch=last), outputs=f"y{i + 1}")
    with pytest.raises(Damaged, match="nested over"):
        load(file(node("If", "c", "z", then_branch=inner, else_branch=last), inputs="c x", outputs="z"))


def test_initializers_of_one_name():
    data = file(
        node("Neg", "w", "y"),
        outputs="y",
        weights={"w": TensorProto(name="w", data_type=1), "v": TensorProto(name="w", data_type=1)},
    )
    with pytest.raises(Damaged):
        load(data)
