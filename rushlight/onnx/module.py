"""`load`: an ONNX file as a module."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rushlight.base.errors import type_error
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.serialization.archive import Damaged

from .build import FEW, Builder
from .messages import Message, ModelProto, read
from .program import Program, Values, bind, kinds_of_uses, own_tensor, tensor, tensors
from .tensors import ELEMENTS, has_tensors

# fields that do not change results; types of values between nodes make half of some files
UNREAD = ("value_info", "doc_string", "metadata_props", "quantization_annotation", "training_info")
NUMBERS = frozenset(("Ints", "Floats", "Scalar"))  # kinds of inputs whose numbers are read
MAX_LINES = 200  # nodes that repr shows


class OnnxModule(Module):
    """The module of an ONNX file, made by `rushlight.onnx.load`.

    Parameters: the file's weights of floating type, under the file's names (a dot makes a submodule, so that the
    state_dict has the file's names). Buffers: statistics of normalizations, scales of quantization, tables of integers.
    `input_names` and `output_names` are the file's, and so is `metadata`, a dict of texts, such as the letters that a
    reader of texts knows. Other attributes: `graph`, the program that `forward` runs.
    """

    graph: Program
    input_names: list[str]
    output_names: list[str]
    metadata: dict[str, str]

    def __init__(
        self, program: Program, constants: Values, described: dict[str, str], opset: int, metadata: dict[str, str]
    ):
        super().__init__()
        self.metadata = metadata
        self.graph, self._described, self.opset = program, described, opset
        self.input_names, self.output_names = program.inputs, program.outputs
        self._places: dict[str, tuple[tuple[str, ...], str]] = {}  # the file's name -> path of the module, and its name
        uses, known = kinds_of_uses(program), {}
        for name, array in constants.items():
            kinds = uses.get(name, set())
            if is_known(array, kinds):
                known[name] = array
            else:
                self._add(name, own_tensor(array), trained=not kinds & {"Fixed"} and array.ndim > 0)
        bind(program, known)

    def _add(self, name: str, value: Tensor, trained: bool) -> None:
        """Register a weight under the file's name."""
        home: Module = self
        *path, last = parts_of(name)
        for part in path:
            inner = home._modules.get(part)
            if inner is None:
                if hasattr(home, part):  # a name of Module, or of a weight
                    path, last, home = [], name.replace(".", "_"), self
                    break
                inner = Module()
                home.add_module(part, inner)
            home = inner
        while hasattr(home, last):
            last += "_"
        if trained and value.is_floating_point():
            home.register_parameter(last, Parameter(value))
        else:
            home.register_buffer(last, value)
        self._places[name] = (tuple(path), last)

    def _weight(self, name: str) -> Tensor:
        """The parameter or buffer for a name of the file."""
        path, last = self._places[name]
        home: Any = self
        for part in path:
            home = home._modules[part]
        return getattr(home, last)

    def forward(self, *args: Any, **inputs: Any) -> Any:
        """The output, or a tuple of the outputs; inputs in the file's order or by the file's names."""
        names = self.input_names
        if len(args) > len(names):
            raise type_error(f"the model takes {len(names)} inputs ({', '.join(names)}), and {len(args)} were given")
        values: Values = dict(zip(names, args))
        for name, value in inputs.items():
            if name not in names or name in values:
                what = "was given twice" if name in values else f"is not an input: the inputs are {', '.join(names)}"
                raise type_error(f"{name!r} {what}")
            values[name] = value
        missing = [name for name in names if name not in values]
        if missing:
            raise type_error(f"the model needs the inputs {', '.join(missing)}, too")
        outer = {name: self._weight(name) for name in self.graph.captured}
        found = self.graph.run((received(values[name]) for name in names), outer)
        outputs = [tensors(value) for value in found]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def code(self) -> str:
        """The model as a readable Python program with torch's API, which computes the same with the same state_dict.

        The program imports torch and NumPy alone, so that it runs with torch, or with `rushlight run`. Raises
        NotImplementedError for nodes on strings or on element types that tensors lack.
        """
        from .code import code_of

        return code_of(self)

    def extra_repr(self) -> str:
        """The inputs, the nodes and the outputs."""
        steps = [str(step) for step in self.graph.steps]
        if len(steps) > MAX_LINES:
            steps[MAX_LINES // 2 : -MAX_LINES // 2] = [f"... {len(steps) - MAX_LINES} more nodes ..."]
        inputs = ", ".join(f"{name}{self._described.get(name, '')}" for name in self.input_names)
        outputs = ", ".join(f"{name}{self._described.get(name, '')}" for name in self.output_names)
        return "\n".join([f"opset {self.opset}", f"inputs: {inputs}", *steps, f"outputs: {outputs}"])


def is_known(array: np.ndarray, kinds: set[str]) -> bool:
    """Whether a constant is a known value instead of a tensor of the module."""
    if kinds & NUMBERS or not has_tensors(array.dtype):
        return True
    return array.dtype.kind in "biu" and array.dtype.itemsize > 1 and array.size <= FEW and array.ndim < 2


def parts_of(name: str) -> list[str]:
    """`layer.0.weight` as ["layer", "0", "weight"]; a name with an empty part is one part, with underscores."""
    parts = name.split(".")
    return parts if all(parts) else [name.replace(".", "_") or "unnamed"]


def received(value: Any) -> Any:
    """An input of the model: a tensor, an array of strings or of a type that tensors lack, a list, or None."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return tensor(array) if has_tensors(array.dtype) else array
    if isinstance(value, list):
        return [received(item) for item in value]
    return value


def described(values: list[Message]) -> dict[str, str]:
    """{name: ": float32[N, 3, 224, 224]"} of inputs and outputs."""
    found = {}
    for value in values:
        kind = value.type.tensor_type if value.type is not None else None
        if kind is not None and kind.elem_type in ELEMENTS:
            dims = kind.shape.dim if kind.shape is not None else ()
            sizes = [dim.dim_param or (str(dim.dim_value) if dim.has("dim_value") else "?") for dim in dims]
            found[value.name] = f": {ELEMENTS[kind.elem_type].name}[{', '.join(sizes)}]"
    return found


def load(file: str | os.PathLike[str] | bytes) -> OnnxModule:
    """The module of an ONNX file: `file` is its path, or its bytes.

    The module runs with `model(x)`, or by the file's names, `model(input_ids=ids)`, and returns the output or a tuple
    of outputs. Weights of floating type are parameters: the module can be trained, compiled and saved as any other.
    Nothing but NumPy is needed. External data is read from the folder of the file.

    Raises `rushlight.serialization.archive.Damaged` for a damaged or hostile file, before memory is taken, and
    NotImplementedError with all operators that are not supported.

    >>> from rushlight.onnx.messages import *
    >>> from rushlight.onnx.tensors import tensor_of
    >>> import numpy as np
    >>> node = NodeProto(op_type="MatMul", input=["x", "layer.weight"], output=["y"])
    >>> graph = GraphProto(node=[node], initializer=[tensor_of(np.float32([[1], [2]]), "layer.weight")])
    >>> graph.input, graph.output = [ValueInfoProto(name="x")], [ValueInfoProto(name="y")]
    >>> file = written(ModelProto(ir_version=8, graph=graph, opset_import=[OperatorSetIdProto(version=17)]))
    >>> model = rushlight.onnx.load(file)
    >>> model(rushlight.tensor([[3.0, 4.0]]))
    tensor([[11.]], grad_fn=<MmBackward0>)
    >>> list(model.state_dict())
    ['layer.weight']
    """
    if isinstance(file, (bytes, bytearray, memoryview)):
        data, folder = file, None
    else:
        path = os.fspath(file)
        with open(path, "rb") as opened:
            data = opened.read()
        folder = os.path.dirname(os.path.abspath(path))
    with no_collections():
        model = read(data, without=UNREAD)
        if model.graph is None:
            raise Damaged("the file has no graph: it is not an ONNX model")
        builder = Builder(model, folder)
        program, constants = builder.main(model.graph)
        about = described([*model.graph.input, *model.graph.output])
        return OnnxModule(program, constants, about, builder.opsets[""], metadata_of(data))


def metadata_of(data: bytes | bytearray | memoryview) -> dict[str, str]:
    """The texts of a file's `metadata_props`. The texts of nodes and tensors are not read."""
    others = set(ModelProto.names) - {"metadata_props"}
    return {entry.key: entry.value for entry in read(data, without=others).metadata_props}


@contextmanager
def no_collections() -> Iterator[None]:
    """Without the garbage collector, which takes half of the time in which a large file is read, and finds nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
