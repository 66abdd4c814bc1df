"""`write`: a model as a .pt2 archive, which torch.export.load reads.

The model is recorded as `rushlight.compile` records it, once for each of several sizes of its dynamic dimensions;
`to_aten/` writes the records as calls of ATen's operators."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from rushlight.compile.export.model_folder import tensors_of
from rushlight.compile.graph import Graph
from rushlight.compile.run.compiled_function import CannotCompile
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.onnx.to_onnx.dynamic_dims import resized
from rushlight.onnx.to_onnx.example import Example
from rushlight.onnx.to_onnx.sizes import NotExpressed, merged
from rushlight.onnx.to_onnx.traces import Sizes, Traces, deciding_sizes, traces_of
from rushlight.ops.grad_mode import no_grad
from rushlight.serialization import save
from rushlight.serialization.archive import Writer as ZipWriter
from rushlight.version import __version__

from .schema import MAJOR, MINOR, spec_text
from .to_aten.conversion import Conversion
from .to_aten.writer import Symbol, Writer, argument, meta

FOLDER, OPSET = "archive", 10
MAX_MORE = 12  # traces that decide between formulas
ROUNDING, COARSE = 1e-3, 2e-2  # of the largest element; for dtypes of 16 bits


class Weights:
    """The parameters and buffers of a model as values of the graph. `symbols`: {id of an array: symbol}."""

    def __init__(self, model: Any, writer: Writer):
        self.symbols: dict[int, Symbol] = {}
        self.specs: list[dict[str, Any]] = []
        self.named: dict[str, tuple[Tensor, bool]] = {}  # name -> (tensor, whether it is a parameter)
        if not isinstance(model, Module):
            return
        temporary = {*dict(model.named_buffers())} - {*model.state_dict()}
        for name, p in model.named_parameters():
            self._add(writer.fixed(f"p_{name}", p), name, True, {"parameter_name": name})
        for name, b in model.named_buffers():
            about = {"buffer_name": name, "persistent": name not in temporary}
            self._add(writer.fixed(f"b_{name}", b), name, False, about)

    def _add(self, symbol: Symbol, name: str, parameter: bool, about: dict[str, Any]) -> None:
        self.symbols[id(symbol.tensor._array)] = symbol
        self.named[name] = symbol.tensor, parameter
        self.specs.append({"parameter" if parameter else "buffer": {"arg": {"name": symbol.name}, **about}})


class Exported:
    """A model and an example of its arguments, as the JSON of a program. `dynamic_shapes`: the dimensions that may have
    other sizes than the example's."""

    def __init__(self, model: Callable, args: tuple, kwargs: dict[str, Any], dynamic_shapes: Any = None):
        self.example = Example(model, args, kwargs, None)
        self.model, self.args, self.kwargs = model, self.example.args, self.example.kwargs
        self.names = self.example.parameters
        self.dims = self.example.dimensions(dynamic_shapes)
        self.sizes: list[Sizes] = [()]  # of the dynamic dimensions, in each trace
        with kept_buffers(model), no_grad():
            self._trace()
            if self.conversion.problems:
                listed = "\n".join([f"  {text}" for text in self.conversion.problems])
                raise NotExpressed(f"export: operators that .pt2 files cannot express:\n{listed}")
            self.result = structured(self.plans, self._result)
            expected = [self._expected(sizes) for sizes in self.sizes]
            check_equal([*leaves_of(self.result)], [[*leaves_of(each)] for each in expected])

    def _trace(self) -> None:
        """Record the model, and write its steps; with more sizes while its traces leave a formula open."""
        more: list[Sizes] = []
        while True:
            now = self._written(more)
            if not now or len(more) == MAX_MORE:
                return
            more.append(now)

    def _written(self, more: list[Sizes]) -> Sizes | None:
        """Write the steps of the traces. The sizes of a further trace that decides between formulas, or None."""
        example, dims = self.example, self.dims
        graphs, traces = self._traces(more)
        self.plans = [example.trace(dims, sizes)[1] for sizes in self.sizes]
        named = {f"s{k}": dim_sizes for k, dim_sizes in enumerate(zip(*self.sizes))}
        self.writer = Writer(named, len(self.sizes))
        self.weights = Weights(self.model, self.writer)
        self.inputs = self._inputs()
        for name, dim in zip(named, dims):
            number, axis = dim.places[0]
            self.writer.dimensions[name] = self.inputs[number], axis
        self.conversion = Conversion(graphs, self.writer, self.weights.symbols, self.inputs)
        self.conversion.write()
        open_ = self.conversion.ambiguous
        return deciding_sizes(example, dims, traces, open_) if traces and open_ else None

    def _traces(self, more: list[Sizes]) -> tuple[list[Graph], Traces | None]:
        """The recorded graphs; `sizes` are the sizes of the dynamic dimensions in each."""
        try:
            if not self.dims:
                return [self.example.trace([], ())[0]], None
            traces = traces_of(self.example, self.dims, more)
        except CannotCompile as error:
            raise NotExpressed(str(error)) from None
        self.sizes = traces.sizes
        return traces.graphs, traces

    def _tensors(self, sizes: Sizes) -> list[Tensor]:
        """The tensors among the arguments, for these sizes of the dynamic dimensions."""
        if self.dims:
            return resized(self.example.arrays, self.dims, sizes)
        given = *self.args, *self.kwargs.values()
        return [t for t, _ in tensors_of(given, [""] * len(given))]

    def _expected(self, sizes: Sizes) -> Any:
        """The model's result for these sizes."""
        with kept_buffers(self.model):
            args, kwargs = self.example.with_tensors(self._tensors(sizes))
            return self.model(*args, **kwargs)

    def _inputs(self) -> list[Symbol]:
        """A value for each tensor among the arguments."""
        each = [self._tensors(sizes) for sizes in self.sizes]
        return [self.writer.value(name, tensors) for name, tensors in zip(self.example.names, zip(*each))]

    def _result(self, kind: str, each: list[Any]) -> Any:
        """A leaf of the model's result, given from each trace."""
        what = each[0]
        if kind == "tensor":
            graphs = self.conversion.graphs
            return self.conversion.symbol([g.results[place[0]] for g, place in zip(graphs, each)])
        if kind == "argument":
            return self.inputs[what]
        if isinstance(what, Tensor):
            found = self.weights.symbols.get(id(what._array))
            return self.writer.constant(np.asarray(what._array)) if found is None else found
        if isinstance(what, str):
            raise NotExpressed(f"export: the model returns the text {what[:100]!r}, which a .pt2 file cannot hold")
        return merged(each)

    def constants(self) -> dict[str, Tensor]:
        """The tensors that the program contains, by their names."""
        return {name: symbol.tensor for name, symbol in self.writer.constants.items()}

    def json(self) -> dict[str, Any]:
        """The program."""
        writer, stores = self.writer, self.conversion.stores
        for target, value in stores:
            with no_grad():
                self._copy(target, value)
        outs = [writer.argument(r) for r in leaves_of(self.result)]
        constants = [*writer.constants.values()]
        user = [self._user_input(a) for a in leaves_of((self.args, self.kwargs))]
        specs = [
            *self.weights.specs,
            *[{"tensor_constant": {"arg": {"name": c.name}, "tensor_constant_name": c.name}} for c in constants],
            *[{"user_input": {"arg": a}} for a in user],
        ]
        held = [{"as_tensor": {"name": s.name}} for s in (*self.weights.symbols.values(), *constants)]
        graph = {
            "inputs": [*held, *user], "outputs": outs, "nodes": writer.nodes, "tensor_values": writer.types,
            "sym_int_values": writer.integers, "sym_bool_values": {}, "is_single_tensor_return": False,
            "custom_obj_values": {}, "sym_float_values": {},
        }  # fmt: skip
        signature = {
            "inputs": [], "outputs": [], "in_spec": spec_text((self.args, self.kwargs)),
            "out_spec": spec_text(self.result), "forward_arg_names": [*self.names, *self.kwargs],
        }  # fmt: skip
        made = program_json(graph, specs, [{"user_output": {"arg": out}} for out in outs], signature)
        for k, dim in enumerate(self.dims):
            most = None if dim.most == float("inf") else int(dim.most)
            made["range_constraints"][f"s{k}"] = {"min_val": max(dim.least, 1), "max_val": most}
        return made

    def _copy(self, target: Symbol, value: Symbol) -> None:
        """Write a value into a buffer when the program ends. The example's buffer stays as it was."""
        with kept_buffers(self.model):
            self.writer.call("copy_.default", target, value)

    def _user_input(self, value: Any) -> dict[str, Any]:
        """An argument of the user's: the name of a tensor, or a constant."""
        if not isinstance(value, Tensor):
            return argument(value)
        return {"as_tensor": {"name": self.inputs[self.example.order[id(value)]].name}}


@contextmanager
def kept_buffers(model: Any) -> Iterator[None]:
    """Buffers that runs inside change hold their old values afterwards."""
    buffers = [b._array for b in model.buffers()] if isinstance(model, Module) else []
    before = [a.copy() for a in buffers]
    try:
        yield
    finally:
        for a, b in zip(buffers, before):
            a[...] = b


def check_equal(got: list[Any], expected: list[list[Any]]) -> None:
    """NotExpressed unless the operators compute the model's result, up to rounding. `expected`: for each example."""
    for a, *each in zip(got, *expected, strict=True):
        for k, b in enumerate(each):
            if isinstance(a, Symbol) and not close(a.tensors[k]._array, b._array):
                raise NotExpressed(
                    "export: a fault of this library: the operators compute another result than the model"
                )


def close(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two results are equal up to rounding."""
    wide = np.abs(y[np.isfinite(y)]).max(initial=0) if y.dtype.kind in "fc" else 0
    share = ROUNDING if y.dtype.itemsize > 2 else COARSE
    return x.shape == y.shape and np.allclose(x, y, share, share * wide, equal_nan=True)


def program_json(graph: Any, inputs: list[Any], outputs: list[Any], signature: Any) -> dict[str, Any]:
    """The JSON of a program."""
    return {
        "graph_module": {
            "graph": graph, "signature": {"input_specs": inputs, "output_specs": outputs},
            "module_call_graph": [{"fqn": "", "signature": signature}], "metadata": {},
            "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": OPSET}, "range_constraints": {}, "schema_version": {"major": MAJOR, "minor": MINOR},
        "verifiers": ["TRAINING"], "torch_version": f"rushlight {__version__}", "guards_code": [],
    }  # fmt: skip


def structured(plans: list[Any], leaf: Callable[[str, list[Any]], Any]) -> Any:
    """The model's result with leaf(kind, [what of each plan]) in place of each tensor or value."""
    kind, what = plans[0]
    each = [plan[1] for plan in plans]
    if any(plan[0] != kind for plan in plans):
        raise NotExpressed("the model's result has another structure for other sizes of its dynamic dimensions")
    if kind in ("tensor", "argument", "value"):
        return leaf(kind, each)
    if kind == "placed":
        return structured([plan[0] for plan in each], leaf)
    names, inside = what
    if any(len(parts) != len(inside) for _, parts in each):
        raise NotExpressed("the model's result has another structure for other sizes of its dynamic dimensions")
    parts = [structured([*several], leaf) for several in zip(*[parts for _, parts in each])]
    if kind == "dict":
        return dict(zip(names, parts))
    return list(parts) if names is list else tuple(parts)


def leaves_of(value: Any) -> Iterator[Any]:
    """The values inside tuples, lists and dicts."""
    if type(value) in (tuple, list, dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves_of(part)
    else:
        yield value


# -- the file ----------------------------------------------------------------------------------------


def write(
    file: IO[bytes], program: dict[str, Any], weights: dict[str, tuple[Tensor, bool]], constants: dict[str, Tensor],
    example: tuple[tuple, dict[str, Any]] | None, extra_files: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Write the records of an archive. `weights`: {name: (tensor, whether it is a parameter)}."""
    sample = io.BytesIO()
    if example is not None:
        save(example, sample)
    with ZipWriter(file, FOLDER) as archive:
        put_tensors(archive, "weights", "weight_", weights)
        put_tensors(archive, "constants", "tensor_", {name: (tensor, False) for name, tensor in constants.items()})
        archive.write("models/model.json", json.dumps(program, allow_nan=False).encode())
        archive.write("data/sample_inputs/model.pt", sample.getvalue())
        for name, content in (extra_files or {}).items():
            archive.write(f"extra/{name}", content.encode() if isinstance(content, str) else content)
        records = {"archive_format": b"pt2", "archive_version": b"0", ".data/version": b"6\n", "byteorder": b"little"}
        for name, text in records.items():
            archive.write(name, text)


def put_tensors(archive: ZipWriter, folder: str, stem: str, tensors: dict[str, tuple[Tensor, bool]]) -> None:
    """Write tensors, and their types as JSON."""
    config = {}
    for number, (name, (tensor, parameter)) in enumerate(tensors.items()):
        array = np.array(tensor._array, order="C")  # the memory of the whole tensor, and of nothing else
        archive.write(f"data/{folder}/{stem}{number}", array.tobytes())
        config[name] = {
            "path_name": f"{stem}{number}", "is_param": parameter, "use_pickle": False,
            "tensor_meta": meta(tensor, tensor.requires_grad),
        }  # fmt: skip
    archive.write(f"data/{folder}/model_{folder}_config.json", json.dumps({"config": config}).encode())
