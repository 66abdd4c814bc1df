"""The message of an ONNX file, made from a finished graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import value_error
from rushlight.compile.export.model_folder import named
from rushlight.core.tensor import Tensor
from rushlight.onnx.messages import (
    AttributeProto,
    Dimension,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorShapeProto,
    TensorType,
    TypeProto,
    ValueInfoProto,
    written,
)
from rushlight.onnx.tensors import code_of, tensor_of
from rushlight.onnx.to_onnx.conversion import Conversion
from rushlight.onnx.to_onnx.dynamic_dims import Dimension as DynamicDimension
from rushlight.onnx.to_onnx.example import Example, unique
from rushlight.onnx.to_onnx.onnx_graph import Node, NotExpressed, Symbol
from rushlight.onnx.to_onnx.sizes import Size
from rushlight.onnx.to_onnx.traces import deciding_sizes, traces_of
from rushlight.version import __version__

IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}  # opset -> version of the messages
MAX_MORE = 12  # traces that decide between formulas


class Model(ModelProto):  # type: ignore[valid-type, misc]
    """The message of the file, with the one method of protobuf that the onnx package calls."""

    def SerializeToString(self) -> bytes:
        """The bytes of the file."""
        return written(self)


def model_of(example: Example, dims: list[DynamicDimension], output_names: Sequence[str] | None, opset: int) -> Model:
    """The message of a model's file. The model is traced with more sizes while its traces leave a formula open."""
    more: list[Any] = []
    while True:
        traces = traces_of(example, dims, more)
        names = output_names_of(traces.plan, example.names, [*(output_names or ())])
        made = Conversion(traces.graphs, [*example.names, *names], named(example.model), opset)
        inputs = made.inputs(example, dims, traces.sizes)
        made.write()
        now = made.ambiguous and deciding_sizes(example, dims, traces, made.ambiguous)
        if not now or len(more) == MAX_MORE:
            break
        more.append(now)
    outputs = outputs_of(made, traces.plan, inputs, names)
    if made.problems:
        listed = "\n".join(f"  {text}" for text in made.problems)
        raise NotExpressed(f"{len(made.problems)} operators cannot be expressed in ONNX (opset {opset}):\n{listed}")
    symbols = {each: dim.name for dim, each in zip(dims, zip(*traces.sizes))}
    return assembled(made, inputs, outputs, symbols, type(example.model).__name__)


def output_names_of(plan: Any, inputs: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names of the outputs: the user's `names`, then `output`, or the keys of a dict."""
    paths = [path or "output" for path, *_ in parts_of(plan, "")]
    if len(paths) > 1:
        paths = [f"output_{path}" if path.isdigit() else path for path in paths]
    if not paths:
        raise NotExpressed("the model returns no tensors")
    for name in names:
        if [*inputs, *names].count(name) > 1:
            raise value_error(f"export: several inputs or outputs are named {name!r}", "pass other names")
    return [*names, *unique([*inputs, *names, *paths[len(names) :]])[len(inputs) + len(names) :]][: len(paths)]


def outputs_of(made: Conversion, plan: Any, inputs: list[Symbol], names: list[str]) -> list[tuple[str, Symbol]]:
    """(name, symbol) of each output: the model's result, flattened."""
    results = []
    for name, (_, kind, what) in zip(names, parts_of(plan, "")):
        if kind == "tensor":
            value = made.symbol([graph.results[what[0]] for graph in made.graphs])
        else:
            value = inputs[what] if kind == "argument" else made.weight(what._array)
        if value.dtype.kind == "c":
            raise NotExpressed(f"the output {name} is complex: return view_as_real of it")
        results.append((name, value))
    return results


def parts_of(plan: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """(path, kind, what) of each tensor in a plan of a result."""
    kind, what = plan
    if kind in ("tensor", "argument") or kind == "value" and isinstance(what, Tensor):
        yield path, kind, what
    elif kind == "placed":
        yield from parts_of(what[0], path)
    elif kind != "value":
        cls, inside = what
        names = cls if kind == "dict" else getattr(cls, "names", None) or range(len(inside))
        for name, part in zip(names, inside):
            yield from parts_of(part, f"{path}_{name}" if path else str(name))


def assembled(
    made: Conversion, inputs: list[Symbol], outputs: list[tuple[str, Symbol]], symbols: dict[tuple, str], title: str
) -> Model:
    """The message of the file."""
    onnx = made.onnx
    onnx.alone([value.name for _, value in outputs])
    kept = {value.name for value in inputs} | {*onnx.initializers}
    renamed: dict[str, str] = {}  # values that become outputs
    for name, value in outputs:
        if value.name in kept or value.name in renamed:
            onnx.nodes.append(Node("Identity", (value.name,), (name,), {}))
        else:
            renamed[value.name] = name
    nodes = [node_message(renamed_node(node, renamed)) for node in onnx.nodes]
    graph = GraphProto(
        node=nodes, name=title,
        initializer=[tensor_of(array, name) for name, array in onnx.initializers.items()],
        input=[value_info(value.name, value, symbols) for value in inputs],
        output=[value_info(name, value, symbols) for name, value in outputs],
    )  # fmt: skip
    return Model(
        ir_version=IR_VERSIONS[onnx.opset],
        producer_name="rushlight",
        producer_version=__version__,
        graph=graph,
        opset_import=[OperatorSetIdProto(version=onnx.opset)],
    )


def renamed_node(node: Node, names: dict[str, str]) -> Node:
    """The node with other names of values."""
    place = lambda several: tuple([names.get(name, name) for name in several])
    return node._replace(inputs=place(node.inputs), outputs=place(node.outputs))


def node_message(node: Node) -> Any:
    attributes = [attribute(name, value) for name, value in node.attributes.items()]
    return NodeProto(
        name=node.outputs[0], op_type=node.operator, input=[*node.inputs], output=[*node.outputs], attribute=attributes
    )


def attribute(name: str, value: Any) -> Any:
    """An attribute's message: a number, a text, an array, or a list of one kind."""
    if isinstance(value, np.ndarray):
        return AttributeProto(name=name, type=4, t=tensor_of(value))
    if isinstance(value, str):
        return AttributeProto(name=name, type=3, s=value.encode())
    if isinstance(value, float):
        return AttributeProto(name=name, type=1, f=value)
    if isinstance(value, int):
        return AttributeProto(name=name, type=2, i=value)
    if value and isinstance(value[0], str):
        return AttributeProto(name=name, type=8, strings=[text.encode() for text in value])
    if value and isinstance(value[0], float):
        return AttributeProto(name=name, type=6, floats=[*value])
    return AttributeProto(name=name, type=7, ints=[int(n) for n in value])


def value_info(name: str, value: Symbol, symbols: dict[tuple, str]) -> Any:
    """The type of an input or output. A dynamic size has the name of its dimension."""
    return info(name, code_of(value.dtype), [symbols.get(n.values) if isinstance(n, Size) else n for n in value.shape])


def info(name: str, element: int, shape: Sequence[int | str | None]) -> Any:
    """A ValueInfoProto. A size is a number, the name of a dimension, or None."""
    dims = [
        Dimension(dim_param=n) if isinstance(n, str) else Dimension() if n is None else Dimension(dim_value=n)
        for n in shape
    ]
    return ValueInfoProto(
        name=name, type=TypeProto(tensor_type=TensorType(elem_type=element, shape=TensorShapeProto(dim=dims)))
    )
