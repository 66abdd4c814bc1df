"""`torch.onnx.export`: a model as an ONNX file.

The model is traced as `rushlight.compile` traces it, once for each of several sizes of its dynamic dimensions.
`to_onnx/` writes the traces as ONNX nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rushlight.base.errors import explain, not_implemented_error, value_error
from rushlight.base.tracebacks import hide_frames
from rushlight.onnx.messages import GraphProto, written
from rushlight.onnx.tensors import move_data
from rushlight.ops.grad_mode import no_grad
from rushlight.serialization.atomic_write import replacing

DEFAULT_OPSET, OPSETS = 20, range(18, 25)
MAX_FILE = 2**31 - 1  # bytes of a protobuf message
RUNNING = ContextVar("RUNNING", default=False)


class OnnxExporterError(RuntimeError):
    """A model that cannot be an ONNX file; the message names the operators and the user's lines."""


class ONNXProgram:
    """An exported model: `model_proto` is the file's message, `save` writes the file.

    >>> program = rushlight.onnx.export(rushlight.nn.ReLU(), (rushlight.ones(2, 3),))
    >>> [node.op_type for node in program.model_proto.graph.node]
    ['Relu']
    """

    def __init__(self, model_proto: Any):
        self.model_proto = model_proto

    def save(
        self, destination: str | os.PathLike, *, include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False, external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Write the file. With `external_data`, tensors from 1 kB on stand in `destination` + ".data"; a model of over
        2 GB always does so, because a protobuf message cannot be larger."""
        from rushlight.onnx.to_onnx.model_file import info

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


def read_again(model: Any) -> Any:
    """A copy of the message whose tensors may be changed; their data is shared."""
    graph: Any = GraphProto(**model.graph.__dict__)
    graph.initializer = [type(t)(**t.__dict__) for t in graph.initializer]
    copy = type(model)(**model.__dict__)
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
    from rushlight.compile.export.model_folder import evaluating
    from rushlight.onnx.to_onnx.example import Example
    from rushlight.onnx.to_onnx.model_file import model_of
    from rushlight.onnx.to_onnx.sizes import NotExpressed

    opset = DEFAULT_OPSET if opset_version is None else opset_version
    check(opset, custom_translation_table or custom_opsets or export_modules_as_functions)
    model = model.module() if hasattr(model, "graph_module") and hasattr(model, "module") else model
    example = Example(model, args, kwargs or {}, input_names)
    if dynamic_shapes is None and dynamic_axes:
        dims = example.of_axes(dynamic_axes)
    else:
        dims = example.dimensions(dynamic_shapes)
    try:
        with evaluating(model), no_grad(), exporting():
            program = ONNXProgram(model_of(example, dims, output_names, opset))
    except NotExpressed as error:
        hide_frames()
        raise OnnxExporterError(explain(f"export: {error}")) from None
    if f is not None:
        options = {"keep_initializers_as_inputs": keep_initializers_as_inputs, "include_initializers": export_params}
        program.save(f, external_data=external_data, **options)
    return program


def check(opset: int, custom: Any) -> None:
    """Errors for arguments without a meaning here."""
    if opset not in OPSETS:
        raise value_error(f"export: opset_version={opset}", f"use {OPSETS[0]} to {OPSETS[-1]}")
    if custom:
        raise not_implemented_error(
            "export: there are no custom operators and no functions of modules",
            "leave out custom_translation_table, custom_opsets and export_modules_as_functions",
        )


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
