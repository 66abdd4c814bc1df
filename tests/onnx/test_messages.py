"""Messages in protobuf's wire format, beside the onnx package where it is installed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from rushlight.onnx import messages
from rushlight.onnx.messages import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, read, written
from rushlight.serialization.archive import Damaged

LENGTH = messages.LENGTH


def key(number, wire):
    return messages.integer(number << 3 | wire)


def nested(depth):
    """A graph in an attribute of a node of a graph ..."""
    data = b""
    for _ in range(depth):
        for number in (6, 5, 1):  # g of an attribute, attribute of a node, node of a graph
            data = key(number, LENGTH) + messages.integer(len(data)) + data
    return data


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)])
def test_integers(value):
    assert read(written(AttributeProto(i=value)), AttributeProto).i == value
    assert read(written(AttributeProto(ints=[value, 5])), AttributeProto).ints == [value, 5]
    assert read(written(TensorProto(int64_data=[value, 5])), TensorProto).int64_data.tolist() == [value, 5]


def test_packed_and_single_numbers_are_both_read():
    singles = b"".join(key(8, 0) + messages.integer(v) for v in (1, 300, -2))
    body = b"".join(map(messages.integer, (1, 300, -2)))
    packed = key(8, LENGTH) + messages.integer(len(body)) + body
    for data in (singles, packed):
        assert read(data, AttributeProto).ints == [1, 300, -2]
    floats = key(4, 5) + np.float32(1.5).tobytes() + key(4, LENGTH) + b"\x08" + np.float32([2, 3]).tobytes()
    assert read(floats, TensorProto).float_data.tolist() == [1.5, 2, 3]


def test_absent_fields():
    node = NodeProto()
    assert (node.name, node.input, node.has("name")) == ("", [], False)
    node.output.append("y")
    assert node == NodeProto(output=["y"])
    assert ModelProto().graph is None
    assert TensorProto().float_data.dtype == np.float32
    with pytest.raises(AttributeError, match="has no field 'colour'"):
        node.colour
    with pytest.raises(TypeError, match="has no field 'colour'"):
        NodeProto(colour=1)


def test_a_zero_that_is_set_is_written():
    assert read(written(AttributeProto(i=0)), AttributeProto).has("i")
    assert not read(written(AttributeProto(name="a")), AttributeProto).has("i")


def test_raw_data_is_a_view_of_the_file():
    data = written(TensorProto(raw_data=b"abcd"))
    assert np.shares_memory(np.frombuffer(read(data, TensorProto).raw_data, "u1"), np.frombuffer(data, "u1"))


def test_fields_that_are_left_out():
    model = ModelProto(graph=GraphProto(name="g", value_info=[messages.ValueInfoProto(name="v")]))
    assert read(written(model), without=["value_info"]) == ModelProto(graph=GraphProto(name="g"))


def test_unknown_fields_are_skipped():
    unknown = key(99, 0) + b"\x05" + key(98, LENGTH) + b"\x02ab" + key(97, 5) + b"abcd" + key(96, 1) + b"abcdefgh"
    assert read(unknown + written(NodeProto(name="n")), NodeProto) == NodeProto(name="n")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x3a\xff\xff\xff\xff\x7f", "truncated"),
        (b"\x3a" + b"\xff" * 9 + b"\x01", "truncated"),
        (b"\x08", "ends inside an integer"),
        (b"\x08" + b"\x80" * 11, "over ten bytes"),
        (b"\x0b", "wire type 3"),
        (b"\x00\x01", "number 0"),
        (b"\x12\x02\xff\xff", "not UTF-8"),
        (b"\x12\x02\xff", "truncated"),
        (b"\x38\x01", "the field graph has wire type 0"),
        (key(7, LENGTH) + messages.integer(len(nested(40))) + nested(40), "nested over 100"),
    ],
)
def test_damaged_messages(data, words):
    with pytest.raises(Damaged, match=words):
        read(data)


def test_damaged_arrays():
    for body, words in ((b"\x80", "inside an integer"), (b"\x80" * 10 + b"\x01", "over ten bytes")):
        with pytest.raises(Damaged, match=words):
            read(key(7, LENGTH) + messages.integer(len(body)) + body, TensorProto)
    with pytest.raises(Damaged, match="3 bytes"):
        read(key(4, LENGTH) + b"\x03abc", TensorProto)


def test_a_million_nodes_are_refused_in_seconds():
    data = (key(1, LENGTH) + b"\0") * 10**6
    start = time.process_time()
    with pytest.raises(Damaged, match="over 200,000 messages"):
        read(key(7, LENGTH) + messages.integer(len(data)) + data)
    assert time.process_time() - start < 50


def test_many_items_are_refused_in_seconds():
    names = (key(1, LENGTH) + b"\1a") * (2**20 + 1)
    numbers = b"\1" * (2**20 + 1)
    packed = key(8, LENGTH) + messages.integer(len(numbers)) + numbers
    for data, kind in ((names, NodeProto), (packed, AttributeProto)):
        with pytest.raises(Damaged, match="over 1,048,576 items"):
            read(data, kind)


def test_files_of_the_onnx_package_are_written_as_they_were():
    onnx = pytest.importorskip("onnx")
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    files = sorted(folder.rglob("model.onnx"))
    assert len(files) > 100
    for file in files:
        data = file.read_bytes()
        before, after = onnx.ModelProto(), onnx.ModelProto()
        before.ParseFromString(data)
        after.ParseFromString(written(read(data)))
        assert before == after, os.path.relpath(file, folder)
