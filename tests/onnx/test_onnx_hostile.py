"""Hostile files by hand: each is refused with a clear error, in 5 s and 500 MB, and no operator runs.

tests/fuzz/files.py writes random ones."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from rushlight.onnx import load, program
from rushlight.onnx.messages import (
    Dimension,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    SparseTensorProto,
    StringStringEntryProto,
    TensorProto,
    integer,
    read,
    written,
)
from rushlight.onnx.tensors import tensor_of
from rushlight.serialization.archive import Damaged
from tests.onnx.files import attribute, convnet, file, function, graph, node

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import files as fuzz_files

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
BIG = (2**31, 2**40, 2**60, 2**63 - 1, -1, -(2**63))


def weight(**fields):
    """A model with one weight."""
    tensor = TensorProto(**{"name": "w", "data_type": 1, "dims": [2], **fields})
    return file(node("Add", "x w", "y"), inputs="x", outputs="y", weights={"w": tensor})


def external(location, **about):
    entries = [StringStringEntryProto(key=k, value=str(v)) for k, v in {"location": location, **about}.items()]
    return weight(data_location=1, external_data=entries)


def sparse(**fields):
    made = graph(node("Neg", "s", "y"), outputs="y")
    values, indices = tensor_of(np.float32([1]), "s"), tensor_of(np.int64([0]))
    made.sparse_initializer = [SparseTensorProto(**{"values": values, "indices": indices, "dims": [2], **fields})]
    return model(made)


def model(made, **fields):
    return written(ModelProto(graph=made, opset_import=[OperatorSetIdProto(version=21)], **fields))


def length_before(data, position, size):
    """A copy of a file in which the length at a position is another one."""
    return data[:position] + integer(size) + data[position + 1 :]


def loop_of_nodes(count):
    """Nodes in a circle."""
    return [node("Neg", f"v{i}", f"v{(i + 1) % count}") for i in range(count)]


def endless_functions():
    first = function("A", "a", "b", node("B", "a", "b", domain="own"))
    second = function("B", "a", "b", node("A", "a", "b", domain="own"))
    return file(node("A", "x", "y", domain="own"), inputs="x", outputs="y", functions=[first, second])


def hostile():
    """(name, bytes) of the files."""
    good = convnet()
    yield from ((f"cut at {i}", good[: len(good) * i // 20]) for i in range(1, 20))
    yield from ((f"a size of {n}", weight(dims=[n], raw_data=b"12345678")) for n in BIG)
    yield from ((f"a size of {n}, floats", weight(dims=[n], float_data=np.float32([1]))) for n in BIG)
    yield from ((f"sizes of {n} and 0", weight(dims=[n, n, 0], raw_data=b"")) for n in BIG)
    yield from ((f"a sparse size of {n}", sparse(dims=[n])) for n in BIG if n != -1)
    yield from ((f"a sparse index of {n}", sparse(indices=tensor_of(np.array([n], np.int64)))) for n in BIG)
    paths = [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "..\\x",
        "C:\\x",
        "//host/x",
        "~/x",
        "",
        ".",
        "a\0b",
        "a" * 10**5,
        "/dev/zero",
    ]
    yield from ((f"external data at {path[:20]!r}", external(path)) for path in paths)
    yield from ((f"external data from {n}", external("model.onnx", offset=n)) for n in BIG)
    yield from ((f"external data of {n} bytes", external("model.onnx", length=n)) for n in BIG if n > 0)
    yield from ((f"{n} nodes in a circle", file(*loop_of_nodes(n), outputs="v0")) for n in (1, 2, 1000))
    yield "a function that calls itself", endless_functions()
    yield "a million nodes", model(GraphProto(node=[NodeProto()] * 10**6))
    yield "a node with a million inputs", file(NodeProto(op_type="Sum", input=["n"] * 10**6, output=["y"]), outputs="y")
    yield "a length of 2**60", b"\x3a" + integer(2**60) + b"abc"
    yield "a length of 2**64 - 1", b"\x3a" + integer(-1) + b"abc"
    yield "lengths in lengths", b"\x3a\x7f" * 1000
    yield "groups", b"\x0b" * 1000
    yield "an endless integer", b"\x08" + b"\xff" * 10**6
    yield "integers in 60 MB", written(ModelProto(graph=GraphProto(initializer=[])))[:-1] + packed_bomb()
    yield "text", b"hello, this is not a model"
    yield "a zip", b"PK\3\4" + bytes(1000)
    yield "a pickle", b"\x80\4cos\nsystem\nX\4\0\0\0true\x85R."
    yield "a type of elements that does not exist", weight(data_type=1000, raw_data=b"12345678")
    yield (
        "numbers as strings",
        file(node("Reshape", "x w", "y"), inputs="x", outputs="y", weights={"w": np.array(["a"], object)}),
    )
    yield (
        "nan as a size",
        file(node("Reshape", "x w", "y"), inputs="x", outputs="y", weights={"w": np.float32([np.nan])}),
    )
    yield (
        "a graph as a number",
        file(
            node("Transpose", "x", "y", perm=np.ones(1)),
            node("Softmax", "y", "z", axis=graph()),
            inputs="x",
            outputs="q",
        ),
    )
    yield "an attribute without a value", file(with_attribute(type=4), inputs="x", outputs="y")
    yield "an attribute of type 99", file(with_attribute(type=99), inputs="x", outputs="y")
    yield "text that is not UTF-8", file(with_attribute(type=3, s=b"\xff"), inputs="x", outputs="y")
    yield "a dtype that is a path", file(node("Cast", "x", "y", to="../x"), inputs="x", outputs="z")
    yield "no graph", written(ModelProto())
    yield "two weights of one name", twice()
    yield "an operator that does not exist", file(node("__import__", "x", "y"), inputs="x", outputs="y")
    yield "an operator of another domain", file(node("system", "x", "y", domain="os"), inputs="x", outputs="y")
    yield "opset 2**40", file(node("Neg", "x", "y"), inputs="x", outputs="y", opset=2**40)
    yield "a picture as an operator", file(node("ImageDecoder", "x", "y"), inputs="x", outputs="y")
    yield (
        "a pattern that takes years",
        file(node("RegexFullMatch", "x", "y", pattern="(a+)+$"), inputs="x", outputs="y"),
    )
    yield "an output that is missing", file(node("Neg", "x", "y"), inputs="x", outputs="z")


def packed_bomb():
    """A tensor whose integers take a byte in the file and eight in memory, 60 million of them."""
    tensor = b"\x3a" + integer(60 * 10**6) + bytes(60 * 10**6)
    graph_bytes = b"\x2a" + integer(len(tensor)) + tensor
    return b"\x3a" + integer(len(graph_bytes)) + graph_bytes


def with_attribute(**fields):
    made = node("Softmax", "x", "y")
    a = attribute("axis", 1)
    a.__dict__.clear()
    a.__dict__.update(name="axis", **fields)
    made.attribute = [a]
    return made


def twice():
    made = graph(node("Neg", "w", "y"), outputs="y", weights={"w": np.ones(1)})
    made.initializer = made.initializer * 2
    return model(made)


FILES = dict(hostile())


def test_there_are_a_hundred():
    assert len(FILES) >= 100


@LINUX
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused(name, monkeypatch, tmp_path):
    def ran(*_):
        pytest.fail("a step ran")

    monkeypatch.setattr(program.Step, "run", ran)
    path = tmp_path / "model.onnx"
    path.write_bytes(FILES[name])
    with fuzz_files.limited(), pytest.raises((Damaged, NotImplementedError)):
        load(path)


def test_dimensions_of_inputs_are_not_trusted():
    """Sizes of inputs are printed; no memory is made of them."""
    data = read(convnet())
    data.graph.input[0].type.tensor_type.shape.dim = [Dimension(dim_value=2**60)] * 3
    assert "1152921504606846976" in repr(load(written(data)))


@LINUX
@pytest.mark.parametrize("kind", ["nodes", "weights", "graphs"])
def test_time_grows_with_the_size_alone(kind):
    """Files near the limits that are right load within the limits of hostile ones."""
    if kind == "nodes":
        nodes = [NodeProto(op_type="Neg", input=[f"v{i}"], output=[f"v{i + 1}"]) for i in range(60_000)]
        data = file(*nodes, inputs="v0", outputs="v60000")
    elif kind == "weights":
        data = file(
            node("Neg", "x", "y"), inputs="x", outputs="y", weights={f"w{i}": np.ones(1, "f4") for i in range(30_000)}
        )
    else:
        inner = graph(node("Neg", "x", "t"), outputs="t")
        nodes = [node("If", "c", f"y{i}", then_branch=inner, else_branch=inner) for i in range(10_000)]
        data = file(*nodes, inputs="c x", outputs="y0")
    with fuzz_files.limited():
        assert load(data).output_names
