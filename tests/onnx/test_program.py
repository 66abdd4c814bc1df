"""How programs run: known values, memory, uses of weights."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.onnx import load
from rushlight.onnx.program import Constant, kinds_of_uses, tensors
from tests.onnx.files import file, graph, node


def values_of(data, *inputs):
    """{name: value} of all steps' outputs, while the model runs."""
    model, found = load(data), {}
    for step in model.graph.steps:
        step.last = []
    run = model.graph.steps[-1].run

    def last(values):
        run(values)
        found.update(values)

    model.graph.steps[-1].run = last
    model(*inputs)
    return found


def test_arithmetic_on_sizes_is_known():
    data = file(
        node("Shape", "x", "s"),
        node("Gather", "s one", "n"),
        node("Mul", "n two", "m"),
        node("Unsqueeze", "m axis", "u"),
        node("Concat", "u minus", "c", axis=0),
        node("Cast", "c", "f", to=1),
        node("Floor", "f", "g"),
        node("Cast", "g", "i", to=7),
        node("Reshape", "x i", "r"),
        node("Add", "r n", "y"),
        inputs="x",
        outputs="y",
        weights={"one": np.int64(1), "two": np.int64(2), "axis": np.int64([0]), "minus": np.int64([-1])},
    )
    values = values_of(data, rushlight.zeros(4, 3))
    assert {name: type(values[name]).__name__ for name in "snmucfgi"} == dict.fromkeys("snmucfgi", "ndarray")
    assert values["i"].tolist() == [6, -1]
    assert values["r"].shape == (6, 2)
    assert values["y"].tolist() == [[3, 3]] * 6


def pad_of_torch_exporter():
    """The pads of a Pad as torch.onnx.export(dynamo=False) computes them."""
    return file(
        node("ConstantOfShape", "count", "zeros", value=np.int64([0])),
        node("Concat", "given zeros", "all", axis=0),
        node("Reshape", "all pairs", "p"),
        node("Slice", "p minus far axis minus", "q"),
        node("Transpose", "q", "t", perm=[1, 0]),
        node("Reshape", "t minus", "flat"),
        node("Cast", "flat", "pads", to=7),
        node("Pad", "x pads", "y"),
        inputs="x",
        outputs="y",
        weights={
            "count": np.int64([2]),
            "given": np.int64([1, 2]),
            "pairs": np.int64([-1, 2]),
            "minus": np.int64([-1]),
            "far": np.int64([-(2**63) + 1]),
            "axis": np.int64([0]),
        },
    )


def test_pads_that_are_computed_do_not_break_the_graph():
    model, x = load(pad_of_torch_exporter()), rushlight.ones(1, 3)
    assert model(x).tolist() == [[0, 1, 1, 1, 0, 0]]
    assert rushlight.compiler.explain(model, x).graph_break_count == 0


def test_a_large_constant_of_shape_is_a_tensor():
    data = file(
        node("ConstantOfShape", "s", "c"),
        node("Add", "x c", "y"),
        inputs="x",
        outputs="y",
        weights={"s": np.int64([50, 50])},
    )
    assert isinstance(values_of(data, rushlight.ones(50))["c"], rushlight.Tensor)


def test_values_are_freed_after_their_last_use():
    model = load(
        file(
            node("Neg", "x", "a"),
            node("Abs", "a", "b"),
            node("Add", "a b", "c"),
            node("Neg", "c", "y"),
            inputs="x",
            outputs="y",
        )
    )
    assert [step.last for step in model.graph.steps] == [["x"], [], ["a", "b"], ["c"]]


def test_values_of_inner_graphs_are_kept_for_them():
    then, other = graph(node("Neg", "a", "t"), outputs="t"), graph(node("Abs", "a", "e"), outputs="e")
    data = file(
        node("Exp", "x", "a"),
        node("If", "c", "y", then_branch=then, else_branch=other),
        node("Neg", "y", "z"),
        inputs="c x",
        outputs="z",
    )
    model = load(data)
    assert [step.last for step in model.graph.steps] == [["x"], ["c", "a"], ["y"]]
    assert model(rushlight.tensor(True), rushlight.zeros(1)).item() == 1


def test_constants_are_converted_once():
    model = load(file(node("Reshape", "x s", "y"), inputs="x", outputs="y", weights={"s": np.int64([2, 2])}))
    _, constant = model.graph.steps[0].sources
    assert isinstance(constant, Constant)
    assert constant.value == [2, 2]


def test_uses_are_found_in_inner_graphs():
    then, other = graph(node("Add", "x w", "t"), outputs="t"), graph(node("Reshape", "x s", "e"), outputs="e")
    model = load(file(node("If", "c", "y", then_branch=then, else_branch=other), inputs="c x s w", outputs="y"))
    assert kinds_of_uses(model.graph) == {"c": {"Scalar"}, "x": {"Tensor"}, "w": {"Tensor"}, "s": {"Ints"}}


def test_strings_and_small_types_stay_arrays():
    data = file(node("StringConcat", "a b", "y"), node("Cast", "x", "z", to=17), inputs="a b x", outputs="y z")
    y, z = load(data)(np.array(["a"], object), np.array(["b"], object), rushlight.ones(2))
    assert y.tolist() == ["ab"]
    assert z.dtype.name == "float8_e4m3fn"
    assert tensors([np.ones(2)])[0].tolist() == [1, 1]


def test_operators_on_types_that_tensors_lack_are_refused():
    data = file(node("Cast", "x", "z", to=17), node("Softmax", "z", "y"), inputs="x", outputs="y")
    with pytest.raises(NotImplementedError, match="float8_e4m3fn are not supported"):
        load(data)(rushlight.ones(2))


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_unsigned_integers(dtype):
    data = file(node("Max", "a b", "y"), node("Mul", "a b", "z"), inputs="a b", outputs="y z")
    y, z = load(data)(np.array([1, 7], dtype), np.array([3, 2], dtype))
    assert (y.tolist(), z.tolist()) == ([3, 7], [3, 14])
    assert str(y.dtype) == f"torch.{dtype}"
