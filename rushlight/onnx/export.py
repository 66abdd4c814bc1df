"""`torch.onnx.export`: a model as an ONNX file.

The model is traced as `rushlight.compile` traces it, once for each of several sizes of its dynamic dimensions.
`to_onnx/` writes the traces as ONNX nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import CO_VARARGS
from typing import Any

import numpy as np

from rushlight.base.errors import explain, not_implemented_error, value_error
from rushlight.base.tracebacks import hide_frames
from rushlight.compile.export.model_folder import contiguous, evaluating, named, parameter_names, tensors_of
from rushlight.compile.export.recorded import recorded
from rushlight.compile.graph import Graph
from rushlight.compile.run.compiled_function import CannotCompile
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
from rushlight.onnx.tensors import code_of, move_data, tensor_of
from rushlight.onnx.to_onnx import dynamic_dims
from rushlight.onnx.to_onnx.onnx_graph import Node, NotExpressed, Symbol
from rushlight.onnx.to_onnx.sizes import Size
from rushlight.ops.grad_mode import no_grad
from rushlight.serialization.atomic_write import replacing
from rushlight.version import __version__

DEFAULT_OPSET, OPSETS = 20, range(18, 25)
SPARE = 4  # traces in place of those that cannot be compared
IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}
MAX_FILE = 2**31 - 1  # bytes of a protobuf message
RUNNING = ContextVar("RUNNING", default=False)


class OnnxExporterError(RuntimeError):
    """A model that cannot be an ONNX file; the message names the operators and the user's lines."""


class Model(ModelProto):  # type: ignore[valid-type, misc]
    """The message of the file, with the one method of protobuf that the onnx package calls."""

    def SerializeToString(self) -> bytes:
        """The bytes of the file."""
        return written(self)


class ONNXProgram:
    """An exported model: `model_proto` is the file's message, `save` writes the file.

    >>> program = rushlight.onnx.export(rushlight.nn.ReLU(), (rushlight.ones(2, 3),))
    >>> [node.op_type for node in program.model_proto.graph.node]
    ['Relu']
    """

    def __init__(self, model_proto: Model):
        self.model_proto = model_proto

    def save(
        self, destination: str | os.PathLike, *, include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False, external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Write the file. With `external_data`, tensors from 1 kB on stand in `destination` + ".data"; a model of over
        2 GB always does so, because a protobuf message cannot be larger."""
        model = read_again(self.model_proto)
        graph = model.graph
        if keep_initializers_as_inputs:
            graph.input = [*graph.input, *[info(t.name, t.data_type, [*t.dims]) for t in graph.initializer]]
        if not include_initializers:
            graph.initializer = []
        size = sum(len(tensor.raw_data) for tensor in graph.initializer)
        place = os.fspath(destination)
        if external_data or size > MAX_FILE:
            move_data(graph, f"{place}.data")
        with replacing(place) as file:
            file.write(written(model))

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        shown = ", ".join([value.name for value in graph.input]), ", ".join([value.name for value in graph.output])
        return f"ONNXProgram({shown[0]} -> {shown[1]}, {len(graph.node)} nodes)"


def read_again(model: Model) -> Any:
    """A copy of the message whose tensors may be changed; their data is shared."""
    graph: Any = GraphProto(**model.graph.__dict__)
    graph.initializer = [type(t)(**t.__dict__) for t in graph.initializer]
    copy = Model(**model.__dict__)
    copy.graph = graph
    return copy


def export(
    model: Callable, args: tuple = (), f: str | os.PathLike | None = None, *, kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None, input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
    opset_version: int | None = None, dynamo: bool = True, external_data: bool = True, dynamic_shapes: Any = None,
    custom_translation_table: Any = None, report: bool = False, optimize: bool = True, verify: bool = False,
    profile: bool = False, dump_exported_program: bool = False, artifacts_dir: Any = ".", export_params: bool = True,
    keep_initializers_as_inputs: bool = False, dynamic_axes: Mapping[str, Any] | None = None, training: Any = None,
    operator_export_type: Any = None, do_constant_folding: bool = True, custom_opsets: Any = None,
    export_modules_as_functions: Any = False, autograd_inlining: bool = True,
) -> ONNXProgram:  # fmt: skip
    """Write a model as an ONNX file, and return it as an `ONNXProgram`.

    `model`: a module, which is exported in evaluation mode, or a function of tensors. `args`, `kwargs`: an example of
    its arguments; arguments that are not tensors become part of the file. `f`: the file to write; None writes none.
    `dynamic_shapes`: the dimensions that may have any size, `{"x": {0: "batch"}}` or `({0: "batch"},)`; `dynamic_axes`:
    the same by `input_names`. Other sizes are the example's. `opset_version`: 18 to 24, 20 if None.
    `external_data`: tensors from 1 kB on stand in a file `f` + ".data". torch's further arguments have no effect.

    OnnxExporterError with the user's lines: for operators that ONNX lacks, for models that read numbers of tensors, and
    for models that compute differently for other sizes.

    >>> import tempfile
    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(4, 3), rushlight.nn.Softmax(-1))
    >>> place = tempfile.mkdtemp() + "/model.onnx"
    >>> program = rushlight.onnx.export(model, (rushlight.ones(1, 4),), place, dynamic_shapes={"input": {0: "batch"}})
    >>> program
    ONNXProgram(input -> output, 2 nodes)
    """
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    if opset not in OPSETS:
        raise value_error(f"export: opset_version={opset}", f"use {OPSETS[0]} to {OPSETS[-1]}")
    if custom_translation_table or custom_opsets or export_modules_as_functions:
        what = "export: there are no custom operators and no functions of modules"
        raise not_implemented_error(what, "leave out custom_translation_table, custom_opsets and the like")
    model = model.module() if hasattr(model, "graph_module") and hasattr(model, "module") else model
    example = Example(model, args, kwargs or {}, input_names)
    if dynamic_shapes is None and dynamic_axes:
        dims = example.of_axes(dynamic_axes)
    else:
        dims = example.dimensions(dynamic_shapes)
    try:
        with evaluating(model), no_grad(), exporting():
            program = program_of(example, dims, output_names, opset)
    except NotExpressed as error:
        hide_frames()
        raise OnnxExporterError(explain(f"export: {error}")) from None
    if f is not None:
        options = {"keep_initializers_as_inputs": keep_initializers_as_inputs, "include_initializers": export_params}
        program.save(f, external_data=external_data, **options)
    return program


@contextmanager
def exporting() -> Iterator[None]:
    """Inside, `is_in_onnx_export()` is True."""
    token = RUNNING.set(True)
    try:
        yield
    finally:
        RUNNING.reset(token)


def is_in_onnx_export() -> bool:
    """Whether `export` runs the model now: a model may compute differently for a file.

    >>> rushlight.onnx.is_in_onnx_export()
    False
    """
    return RUNNING.get()


class Example:
    """The arguments of a model: the tensors among them, and the names of the inputs."""

    def __init__(self, model: Callable, args: Any, kwargs: dict[str, Any], names: Sequence[str] | None):
        args = args if isinstance(args, tuple) else (args,)
        flat: list[Any] = []
        self.model = model
        self.args = tuple([contiguous(a, flat) for a in args])
        self.kwargs = {key: contiguous(a, flat) for key, a in kwargs.items()}
        self.parameters = parameter_names(model, len(self.args))
        pairs = [*tensors_of((*self.args, *self.kwargs.values()), (*self.paths(), *self.kwargs))]
        self.arrays = [t._array for t, _ in pairs]
        self.order = {id(t): k for k, (t, _) in enumerate(pairs)}
        paths = [path for _, path in pairs]
        self.names = unique([*(names or ())] + paths[len(names or ()) :])

    def dimensions(self, dynamic_shapes: Any) -> list[dynamic_dims.Dimension]:
        """The dynamic dimensions of `dynamic_shapes`."""
        if dynamic_shapes is None:
            return []
        specs = dynamic_dims.specifications(
            dynamic_shapes, [*zip(self.parameters, self.args), *self.kwargs.items()], self.variadic()
        )
        return dynamic_dims.dimensions(specs, self.arrays, self.names)

    def variadic(self) -> list[str]:
        """The names of the arguments; with the name of `*args` in place of the first of them."""
        number, name = starred(self.model)
        return [*self.parameters[:number], name] if name and len(self.parameters) > number else self.parameters

    def paths(self) -> list[str]:
        """The names of the arguments; `*caches` has `caches_0`, `caches_1`, ..."""
        number, name = starred(self.model)
        rest = len(self.parameters) - number if name else 0
        return [*self.parameters[: number if name else None], *[f"{name}_{k}" for k in range(rest)]]

    def of_axes(self, axes: Mapping[str, Any]) -> list[dynamic_dims.Dimension]:
        """The dynamic dimensions of `dynamic_axes`: {name of an input: {axis: name}}, or a list of axes."""
        specs = []
        for number, name in enumerate(self.names):
            spec = axes.get(name)
            if isinstance(spec, (list, tuple)):
                spec = {axis: f"{name}_dim_{axis}" for axis in spec}
            specs.append((number, spec))
        return dynamic_dims.dimensions(iter(specs), self.arrays, self.names)

    def with_tensors(self, tensors: Sequence[Tensor]) -> tuple[tuple, dict[str, Any]]:
        """The arguments with other tensors."""
        place = lambda a: self.filled(a, tensors)
        return tuple(map(place, self.args)), {key: place(a) for key, a in self.kwargs.items()}

    def filled(self, a: Any, tensors: Sequence[Tensor]) -> Any:
        if isinstance(a, Tensor):
            return tensors[self.order[id(a)]]
        if isinstance(a, tuple) and hasattr(a, "_make"):
            return a._make([self.filled(x, tensors) for x in a])
        if type(a) in (tuple, list):
            return type(a)([self.filled(x, tensors) for x in a])
        return {key: self.filled(x, tensors) for key, x in a.items()} if type(a) is dict else a

    def run(self, dims: Sequence[dynamic_dims.Dimension], sizes: Sequence[int]) -> Any:
        """The model's result for other sizes."""
        args, kwargs = self.with_tensors(dynamic_dims.resized(self.arrays, dims, sizes))
        return self.model(*args, **kwargs)

    def trace(self, dims: Sequence[dynamic_dims.Dimension], sizes: Sequence[int]) -> tuple[Graph, Any]:
        """(the recorded graph, the plan of the result) for other sizes."""
        args, kwargs = self.with_tensors(dynamic_dims.resized(self.arrays, dims, sizes))
        try:
            return recorded(self.model, args, kwargs)
        except CannotCompile as error:
            raise NotExpressed(str(error).removeprefix("export: ")) from None


def starred(model: Callable) -> tuple[int, str]:
    """(the number of arguments with own names, the name of `*args`) of a model; "" if it has none."""
    function = getattr(model, "forward", model)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return 1 << 30, ""
    several = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & CO_VARARGS else ""
    return code.co_argcount - hasattr(function, "__func__"), several


def unique(paths: Sequence[str]) -> list[str]:
    """A name for each input: `x`, `pair_0`; no two are equal."""
    names: list[str] = []
    for path in paths:
        name = stem = "_".join(re.findall(r"\w+", path)) or "input"
        number = 1
        while name in names:
            name, number = f"{stem}_{number}", number + 1
        names.append(name)
    return names


# -- traces of several sizes -------------------------------------------------------------------------


def program_of(
    example: Example, dims: list[dynamic_dims.Dimension], output_names: Sequence[str] | None, opset: int
) -> ONNXProgram:
    """The program of a model."""
    from rushlight.onnx.to_onnx.conversion import Conversion

    sizes, graphs, plan = traces_of(example, dims)
    made = Conversion(graphs, example.names, named(example.model), opset)
    inputs = inputs_of(made, example, dims, sizes)
    made.write()
    outputs = outputs_of(made, plan, inputs, output_names)
    if made.problems:
        listed = "\n".join(f"  {text}" for text in made.problems)
        raise NotExpressed(f"{len(made.problems)} operators cannot be expressed in ONNX (opset {opset}):\n{listed}")
    symbols = {now: dim.name for dim, now in zip(dims, zip(*sizes))} if dims else {}
    return assembled(made, inputs, outputs, symbols, type(example.model).__name__)


def traces_of(example: Example, dims: list[dynamic_dims.Dimension]) -> tuple[list[tuple[int, ...]], list[Graph], Any]:
    """(sizes, graphs, the plan of the result) of the traces. A trace in which a resizing does nothing is left out."""
    from rushlight.onnx.to_onnx.conversion import resized_alike

    count = len(dims) + 3 if dims else 1
    found: dict[int, list[tuple]] = {}  # number of resizings -> traces
    for now in sizes_of(example, dims, count):
        graph, plan = example.trace(dims, now)
        alike = found.setdefault(resized_alike(graph), [])
        alike.append((now, graph, plan))
        if len(alike) == count:
            break
    best = max(found.values(), key=len)
    if len(best) < min(3, count):
        raise NotExpressed("the model resizes differently for other sizes of its dynamic dimensions")
    return [now for now, *_ in best], [graph for _, graph, _ in best], best[0][2]


def sizes_of(example: Example, dims: list[dynamic_dims.Dimension], count: int) -> Iterator[tuple[int, ...]]:
    """The sizes of the dynamic dimensions in each of `count` traces, with which the model runs, and some further
    ones."""
    if not dims:
        yield ()
        return
    if not fit(dims, count) or not works(example, dims, [dim.sizes(k, count)[1] for k, dim in enumerate(dims)]):
        example.run([], [])  # an error of the example itself
        for number, dim in enumerate(dims):
            choose_step(example, dims, number, dim, count)
    for k in range(count + SPARE):
        now = tuple([dim.sizes(number, k + 1)[k] for number, dim in enumerate(dims)])
        if k < count or fit(dims, k + 1) and works(example, dims, now):
            yield now


def fit(dims: list[dynamic_dims.Dimension], count: int) -> bool:
    return all(dim.fits(k, count) for k, dim in enumerate(dims))


def choose_step(
    example: Example, dims: list[dynamic_dims.Dimension], number: int, dim: dynamic_dims.Dimension, count: int
) -> None:
    """Set `dim.step` to the first step with which the model runs: a U-Net may need multiples of 4, an embedding of
    positions may allow only smaller sizes."""
    others = [max(d.size, dynamic_dims.SMALLEST) for d in dims]
    for step in dynamic_dims.STEPS:
        dim.step = step
        if not dim.fits(number, count):
            continue
        found = sorted({*dim.sizes(number, count)} - {others[number]})
        trials = [[*others[:number], size, *others[number + 1 :]] for size in (found[0], found[-1])]
        if all(works(example, dims, sizes) for sizes in trials):
            return
    reason = problem(example, dims, [*others[:number], others[number] + 1, *others[number + 1 :]])
    raise NotExpressed(
        f"the model takes no other size of {dim.name!r} than {dim.size}; for {others[number] + 1}: {reason}"
    )


def works(example: Example, dims: list[dynamic_dims.Dimension], sizes: Sequence[int]) -> bool:
    """Whether the model runs with these sizes."""
    return not problem(example, dims, sizes)


def problem(example: Example, dims: list[dynamic_dims.Dimension], sizes: Sequence[int]) -> str:
    """The error that the model raises with these sizes; "" if there is none."""
    try:
        example.run(dims, sizes)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return ""


def inputs_of(made: Any, example: Example, dims: list[dynamic_dims.Dimension], sizes: list[tuple]) -> list[Symbol]:
    """The symbols of the inputs."""
    shapes: list[list[Any]] = [[*a.shape] for a in example.arrays]
    for k, dim in enumerate(dims):
        for number, axis in dim.places:
            shapes[number][axis] = Size(tuple([now[k] for now in sizes]))
    if any(a.dtype.kind == "c" for a in example.arrays):
        raise NotExpressed("an input is complex: pass its parts, and make it by torch.complex in the model")
    symbols = [
        made.onnx.learned(Symbol(made.onnx, name, a.dtype, shape))
        for name, a, shape in zip(example.names, example.arrays, shapes)
    ]
    for v in made.graphs[0].inputs:
        if v.source[0] == "argument":
            made.of[v] = symbols[v.source[1]]
    return symbols


# -- outputs -----------------------------------------------------------------------------------------


def outputs_of(made: Any, plan: Any, inputs: list[Symbol], names: Sequence[str] | None) -> list[tuple[str, Symbol]]:
    """(name, symbol) of each output: the model's result, flattened."""
    parts = [*parts_of(plan, "")]
    if not parts:
        raise NotExpressed("the model returns no tensors")
    paths = [path or "output" for path, *_ in parts]
    if len(paths) > 1:
        paths = [f"output_{path}" if path.isdigit() else path for path in paths]
    found = [*(names or ())] + unique(paths)[len(names or ()) :]
    results = []
    for name, (_, kind, what) in zip(found, parts):
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
    made: Any, inputs: list[Symbol], outputs: list[tuple[str, Symbol]], symbols: dict[tuple, str], title: str
) -> ONNXProgram:
    """The message of the file."""
    onnx = made.onnx
    onnx.alone([value.name for _, value in outputs])
    kept = {value.name for value in inputs} | {*onnx.initializers}
    renamed: dict[str, str] = {}
    for name, value in outputs:
        if value.name in kept or value.name in renamed:
            source = renamed.get(value.name, value.name)
            onnx.nodes.append(Node("Identity", (source,), (name,), {}))
        else:
            renamed[value.name] = name
    taken = {name for name, _ in outputs} - {*renamed}  # values inside the graph that have an output's name
    renamed |= {name: f"{name}_inside" for name in taken if name not in renamed and name not in kept}
    last = [k for k, node in enumerate(onnx.nodes) if node.operator == "Identity" and node.outputs[0] in dict(outputs)]
    nodes = [node_message(node if k in last else renamed_node(node, renamed)) for k, node in enumerate(onnx.nodes)]
    graph = GraphProto(
        node=nodes, name=title,
        initializer=[tensor_of(array, name) for name, array in onnx.initializers.items()],
        input=[value_info(value.name, value, symbols) for value in inputs],
        output=[value_info(name, value, symbols) for name, value in outputs],
    )  # fmt: skip
    return ONNXProgram(Model(
        ir_version=IR_VERSIONS[onnx.opset], producer_name="rushlight", producer_version=__version__, graph=graph,
        opset_import=[OperatorSetIdProto(version=onnx.opset)],
    ))  # fmt: skip


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
