"""`write`: a model as a .pt2 archive, which torch.export.load reads.

The model is recorded as `rushlight.compile` records it; `to_aten/` writes the record as calls of ATen's operators."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from rushlight.compile.export.model_folder import contiguous, parameter_names, tensors_of
from rushlight.compile.export.recorded import recorded
from rushlight.compile.run.compiled_function import CannotCompile
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.ops.grad_mode import no_grad
from rushlight.serialization import save
from rushlight.serialization.archive import Writer as ZipWriter
from rushlight.version import __version__

from .schema import MAJOR, MINOR, spec_text
from .to_aten.conversion import Conversion
from .to_aten.writer import NotExpressed, Symbol, Writer, argument, meta

FOLDER, OPSET = "archive", 10
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
            self._add(writer.value(f"p_{name}", p), name, True, {"parameter_name": name})
        for name, b in model.named_buffers():
            about = {"buffer_name": name, "persistent": name not in temporary}
            self._add(writer.value(f"b_{name}", b), name, False, about)

    def _add(self, symbol: Symbol, name: str, parameter: bool, about: dict[str, Any]) -> None:
        self.symbols[id(symbol.tensor._array)] = symbol
        self.named[name] = symbol.tensor, parameter
        self.specs.append({"parameter" if parameter else "buffer": {"arg": {"name": symbol.name}, **about}})


class Exported:
    """A model and an example of its arguments, as the JSON of a program."""

    def __init__(self, model: Callable, args: tuple, kwargs: dict[str, Any]):
        flat: list[Any] = []
        self.args = tuple([contiguous(a, flat) for a in args])
        self.kwargs = {key: contiguous(a, flat) for key, a in kwargs.items()}
        self.model, self.writer = model, Writer()
        self.names = parameter_names(model, len(self.args))
        self.weights = Weights(model, self.writer)
        self.inputs = self._inputs()
        graph, self.plan, expected = run(model, self.args, self.kwargs)
        self.conversion = Conversion(graph, self.writer, self.weights.symbols, self.inputs)
        with no_grad():
            self.conversion.write()
        if self.conversion.problems:
            listed = "\n".join([f"  {text}" for text in self.conversion.problems])
            raise NotExpressed(f"export: operators that .pt2 files cannot express:\n{listed}")
        self.result = structured(self.plan, self._result)
        check_equal([*leaves_of(self.result)], [*leaves_of(expected)])

    def _inputs(self) -> list[Symbol]:
        """A value for each tensor among the arguments."""
        pairs = tensors_of((*self.args, *self.kwargs.values()), (*self.names, *self.kwargs))
        return [
            self.writer.value("".join([c if c.isalnum() else "_" for c in path]).strip("_"), t) for t, path in pairs
        ]

    def _result(self, kind: str, what: Any) -> Any:
        """A leaf of the model's result."""
        if kind == "tensor":
            return self.conversion.symbol(self.conversion.graph.results[what[0]])
        if kind == "argument":
            return self.inputs[what]
        if isinstance(what, Tensor):
            found = self.weights.symbols.get(id(what._array))
            return self.writer.constant(np.asarray(what._array)) if found is None else found
        return what

    def constants(self) -> dict[str, Tensor]:
        """The tensors that the program contains, by their names."""
        return {name: symbol.tensor for name, symbol in self.writer.constants.items()}

    def json(self) -> dict[str, Any]:
        """The program."""
        writer, stores = self.writer, self.conversion.stores
        for target, value in stores:
            with no_grad():
                self._copy(target, value)
        results = [*leaves_of(self.result)]
        constants = [*writer.constants.values()]
        user = [self._user_input(a) for a in leaves_of((self.args, self.kwargs))]
        specs = [
            *self.weights.specs,
            *[{"tensor_constant": {"arg": {"name": c.name}, "tensor_constant_name": c.name}} for c in constants],
            *[{"user_input": {"arg": a}} for a in user],
        ]
        held = [{"as_tensor": {"name": s.name}} for s in (*self.weights.symbols.values(), *constants)]
        outs = [argument(r) for r in results]
        graph = {
            "inputs": [*held, *user], "outputs": outs, "nodes": writer.nodes, "tensor_values": writer.types,
            "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": False, "custom_obj_values": {},
            "sym_float_values": {},
        }  # fmt: skip
        signature = {
            "inputs": [], "outputs": [], "in_spec": spec_text((self.args, self.kwargs)),
            "out_spec": spec_text(self.result), "forward_arg_names": [*self.names, *self.kwargs],
        }  # fmt: skip
        return program_json(graph, specs, [{"user_output": {"arg": out}} for out in outs], signature)

    def _copy(self, target: Symbol, value: Symbol) -> None:
        """Write a value into a buffer when the program ends. The example's buffer stays as it was."""
        before = np.array(target.tensor._array)
        self.writer.call("copy_.default", target, value)
        target.tensor._array[...] = before

    def _user_input(self, value: Any) -> dict[str, Any]:
        """An argument of the user's: the name of a tensor, or a constant."""
        if not isinstance(value, Tensor):
            return argument(value)
        return {"as_tensor": {"name": next(s.name for s in self.inputs if s.tensor is value)}}


def run(model: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """(recorded graph, plan of the result, result) of a model. Buffers that the runs change hold their old values
    afterwards."""
    buffers = [b._array for b in model.buffers()] if isinstance(model, Module) else []
    before = [a.copy() for a in buffers]
    try:
        with no_grad():
            graph, plan = recorded(model, args, kwargs)
            for a, b in zip(buffers, before):
                a[...] = b
            return graph, plan, model(*args, **kwargs)
    except CannotCompile as error:
        raise NotExpressed(str(error)) from None
    finally:
        for a, b in zip(buffers, before):
            a[...] = b


def check_equal(got: list[Any], expected: list[Any]) -> None:
    """NotExpressed unless the operators compute the model's result, up to rounding."""
    for a, b in zip(got, expected, strict=True):
        if not isinstance(a, Symbol):
            continue
        x, y = a.tensor._array, b._array
        wide = np.abs(y[np.isfinite(y)]).max(initial=0) if y.dtype.kind in "fc" else 0
        share = ROUNDING if y.dtype.itemsize > 2 else COARSE
        if x.shape != y.shape or not np.allclose(x, y, share, share * wide, equal_nan=True):
            raise NotExpressed("export: a fault of this library: the operators compute another result than the model")


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


def structured(plan: Any, leaf: Callable[[str, Any], Any]) -> Any:
    """The model's result with leaf(kind, what) in place of each tensor or value."""
    kind, what = plan
    if kind in ("tensor", "argument", "value"):
        return leaf(kind, what)
    if kind == "placed":
        return structured(what[0], leaf)
    names, inside = what
    parts = [structured(part, leaf) for part in inside]
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
