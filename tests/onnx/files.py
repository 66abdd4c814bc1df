"""Small ONNX files for tests, made from rows: `file(node("Add", "x y", "z"), inputs="x y", outputs="z")`."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.onnx.messages import (
    AttributeProto,
    Dimension,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TensorShapeProto,
    TensorType,
    TypeProto,
    ValueInfoProto,
    written,
)
from rushlight.onnx.tensors import code_of, tensor_of

FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS = 1, 2, 3, 4, 5, 6, 7, 8


def attribute(name: str, value: Any) -> Any:
    """An attribute of the value's type; "@name" refers to an attribute of a function."""
    a = AttributeProto(name=name)
    if isinstance(value, str) and value.startswith("@"):
        a.ref_attr_name = value[1:]
        a.type = INT
    elif isinstance(value, int):
        a.i, a.type = value, INT
    elif isinstance(value, float):
        a.f, a.type = value, FLOAT
    elif isinstance(value, str):
        a.s, a.type = value.encode(), STRING
    elif isinstance(value, np.ndarray):
        a.t, a.type = tensor_of(value), TENSOR
    elif isinstance(value, GraphProto):
        a.g, a.type = value, GRAPH
    elif isinstance(value[0], str):
        a.strings, a.type = [text.encode() for text in value], STRINGS
    elif isinstance(value[0], float):
        a.floats, a.type = value, FLOATS
    else:
        a.ints, a.type = value, INTS
    return a


def node(op: str, inputs: str, outputs: str, domain: str = "", name: str = "", **attributes: Any) -> Any:
    """A node; `-` stands for an input that is left out."""
    made = NodeProto(op_type=op, input=["" if n == "-" else n for n in inputs.split()], output=outputs.split())
    made.attribute = [attribute(key, value) for key, value in attributes.items()]
    made.name = name or f"{op}_{outputs}"
    if domain:
        made.domain = domain
    return made


def value(name: str, dtype: Any = None, shape: tuple[Any, ...] = ()) -> Any:
    if dtype is None:
        return ValueInfoProto(name=name)
    dims = [Dimension(dim_param=n) if isinstance(n, str) else Dimension(dim_value=n) for n in shape]
    kind = TensorType(elem_type=code_of(np.dtype(dtype)), shape=TensorShapeProto(dim=dims))
    return ValueInfoProto(name=name, type=TypeProto(tensor_type=kind))


def graph(*nodes: Any, inputs: Any = "", outputs: str = "", weights: dict[str, Any] | None = None) -> Any:
    """A graph; an input is a name or (name, dtype, shape)."""
    rows = inputs.split() if isinstance(inputs, str) else inputs
    tensors = [t if isinstance(t, TensorProto) else tensor_of(t, name) for name, t in (weights or {}).items()]
    return GraphProto(
        name="g",
        node=list(nodes),
        input=[value(row) if isinstance(row, str) else value(*row) for row in rows],
        output=[value(name) for name in outputs.split()],
        initializer=tensors,
    )


def file(
    *nodes: Any, opset: int = 21, functions: Any = (), domains: dict[str, int] | None = None, **parts: Any
) -> bytes:
    """The bytes of a model with one graph."""
    opsets = [OperatorSetIdProto(domain=d, version=v) for d, v in {"": opset, **(domains or {})}.items()]
    made = graph(*nodes, **parts)
    return written(ModelProto(ir_version=10, graph=made, opset_import=opsets, functions=list(functions)))


def function(name: str, inputs: str, outputs: str, *nodes: Any, attributes: str = "") -> Any:
    """A function of the domain "own"."""
    return FunctionProto(
        name=name,
        domain="own",
        input=inputs.split(),
        output=outputs.split(),
        attribute=attributes.split(),
        node=list(nodes),
        opset_import=[OperatorSetIdProto(domain="", version=21), OperatorSetIdProto(domain="own", version=1)],
    )


def convnet() -> bytes:
    """A small convolutional network for images [N, 1, 8, 8] and three classes, with a Reshape to a computed shape."""
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    return file(
        node("Conv", "x conv.weight conv.bias", "c", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        node("BatchNormalization", "c norm.weight norm.bias norm.running_mean norm.running_var", "n"),
        node("Relu", "n", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Shape", "p", "sizes"),
        node("Gather", "sizes zero", "batch"),
        node("Unsqueeze", "batch axes", "batch1"),
        node("Concat", "batch1 rest", "shape", axis=0),
        node("Reshape", "p shape", "f"),
        node("Gemm", "f head.weight head.bias", "y", transB=1),
        inputs=[("x", "f4", ("N", 1, 8, 8))],
        outputs="y",
        weights={
            "conv.weight": weight(4, 1, 3, 3),
            "conv.bias": weight(4),
            "norm.weight": np.ones(4, np.float32),
            "norm.bias": weight(4),
            "norm.running_mean": weight(4),
            "norm.running_var": np.ones(4, np.float32),
            "zero": np.int64(0),
            "axes": np.int64([0]),
            "rest": np.int64([-1]),
            "head.weight": weight(3, 64),
            "head.bias": weight(3),
        },
    )
