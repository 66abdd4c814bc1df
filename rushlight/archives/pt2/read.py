"""`read`: a .pt2 archive as a program.

An archive has a program as JSON (models/model.json), weights and constants as bytes (data/weights, data/constants) with
their sizes in JSON, and example inputs as a file of `torch.save`."""

from __future__ import annotations

import io
import pickle
from typing import Any, NamedTuple

from rushlight.archives.records import Opened, Records
from rushlight.base.errors import first_line
from rushlight.core.tensor import Tensor
from rushlight.serialization import load
from rushlight.serialization.name_map import StorageType
from rushlight.serialization.rebuild import storage_on, tensor_on

from .program import Input, Plan, Program, Reader
from .schema import MAJOR, MAX_JSON, Malformed, at, dtype_of, member, of_type, parsed, rows, size, structure

MODEL, SAMPLE = "models/model.json", "data/sample_inputs/model.pt"
FOLDERS = {
    "weights": "data/weights/model_weights_config.json",
    "constants": "data/constants/model_constants_config.json",
}


DAMAGE = Malformed, RecursionError, TypeError, ValueError, LookupError, AttributeError, OverflowError


class Pt2Records(Records):
    """The records of a .pt2 archive."""

    needed = (MODEL, FOLDERS["weights"])
    kind = "a .pt2 archive"


class Archive(NamedTuple):
    """The contents of an archive: the program, the JSON of the graph, an example of the arguments or None."""

    program: Program
    json: dict[str, Any]
    example: Any


def read(f: Any, extra_files: dict[str, Any] | None = None) -> Archive:
    """The program of an archive: a path, or a binary file that can seek. RuntimeError for a damaged archive;
    NotImplementedError names operators that are missing."""
    with Opened(f) as (file, name):
        records = Pt2Records(file, name)
        if extra_files:
            extra_files.update({key: records.text(f"extra/{key}", MAX_JSON) for key in extra_files})
        try:
            return archive(records)
        except DAMAGE as error:
            raise records.damaged(first_line(error)) from None


def archive(records: Records) -> Archive:
    """The program of open records."""
    model = parsed(records.text(MODEL, MAX_JSON))
    tensors = {**payloads(records, "weights"), **payloads(records, "constants")}
    return Archive(program_of(model, tensors, records.name), model, example(records))


def example(records: Records) -> Any:
    """(args, kwargs) of the example; None if there are none, or if they hold more than tensors and containers."""
    if SAMPLE not in records.infos or not records.infos[SAMPLE].file_size:
        return None
    try:
        return load(io.BytesIO(records.read(SAMPLE).data))
    except (RuntimeError, pickle.UnpicklingError, EOFError):
        return None


def program_of(model: Any, tensors: dict[str, Tensor], name: str) -> Program:
    """The program of its JSON and its tensors. `name`: of the file, for messages."""
    major = at(model, "schema_version", "major")
    if major != MAJOR:
        raise NotImplementedError(f"{name}: a program of schema {major}; this version reads schema {MAJOR}")
    program = Program()
    graph = at(model, "graph_module", "graph")
    names = [name_of(each) for each in rows(graph, "inputs")]
    specs = rows(model, "graph_module", "signature", "input_specs")
    if len(specs) != len(names):
        raise Malformed("the signature has another number of inputs than the graph")
    for spec in specs:
        take_input(program, spec, tensors, at(graph, "tensor_values"))
    reader, plan = Reader(()), program._plan
    plan.steps = reader.graph(graph)
    if reader.missing:
        raise NotImplementedError(f"{name}: operators that are not supported: {', '.join(sorted(reader.missing))}")
    take_outputs(plan, rows(model, "graph_module", "signature", "output_specs"))
    take_signature(plan, rows(model, "graph_module", "module_call_graph"))
    return program


def name_of(argument: Any) -> str | None:
    """The name of an input of the graph; None for a constant."""
    kind, value = member(argument)
    if kind == "as_tensor":
        return of_type(at(value, "name"), str, "a name")
    if kind in ("as_sym_int", "as_sym_float", "as_sym_bool") and isinstance(value, dict) and "as_name" in value:
        return of_type(value["as_name"], str, "a name")
    if kind in ("as_none", "as_int", "as_float", "as_bool", "as_string", "as_sym_int"):
        return None
    raise NotImplementedError(f"inputs of the kind {kind} are not supported")


def take_input(program: Program, spec: Any, tensors: dict[str, Tensor], metas: Any) -> None:
    """An input of the graph: a parameter, a buffer, a constant, or the user's."""
    (kind, found), plan = member(spec), program._plan
    if kind in ("parameter", "buffer", "tensor_constant"):
        path = of_type(
            at(found, f"{kind}_name" if kind != "tensor_constant" else "tensor_constant_name"), str, "a name"
        )
        value = of_type(at(found, "arg", "name"), str, "a name")
        if path not in tensors:
            raise Malformed(f"the tensor {path[:100]!r} is missing")
        stays = kind == "parameter" or kind == "buffer" and found.get("persistent") is not False
        program._add(value, path, tensors[path], kind, stays)
    elif kind == "user_input":
        name = name_of(at(found, "arg"))
        argument, value = member(found["arg"])
        shape = None
        if argument == "as_tensor":
            shape = tuple([size(n) for n in rows(metas, str(name), "sizes")])
        constant = None if name is not None or argument == "as_none" else value
        plan.user_inputs.append(Input(name, shape, constant))
    elif kind == "constant_input":
        argument, value = member(at(found, "value"))
        plan.user_inputs.append(Input(None, None, None if argument == "as_none" else value))
    else:
        raise NotImplementedError(f"inputs of the kind {kind} are not supported")


WRITTEN = {
    "buffer_mutation": "buffer_name", "user_input_mutation": "user_input_name", "parameter_mutation": "parameter_name",
}  # fmt: skip


def take_outputs(plan: Plan, specs: list[Any]) -> None:
    """Which results are the user's, and which are written into buffers and inputs."""
    if len(specs) != len(plan.steps.results):
        raise Malformed("the signature has another number of results than the graph")
    of_path = {".".join([*way, last]): value for value, (way, last) in plan.places.items()}
    inputs = {wanted.name for wanted in plan.user_inputs}
    for number, spec in enumerate(specs):
        kind, found = member(spec)
        if kind in WRITTEN:
            target = of_type(at(found, WRITTEN[kind]), str, "a name")
            value = target if kind == "user_input_mutation" else of_path.get(target)
            if value is None or kind == "user_input_mutation" and value not in inputs:
                raise Malformed(f"the program writes {target[:100]!r}, which is missing")
            plan.changed.append((number, value))
        elif kind != "user_output":
            raise NotImplementedError(f"results of the kind {kind} are not supported")


def take_signature(plan: Plan, entries: list[Any]) -> None:
    """The structure of the arguments and of the result."""
    signature: Any = next((entry["signature"] for entry in entries if at(entry, "fqn") == ""), None)
    plan.in_spec, plan.out_spec = structure(at(signature, "in_spec")), structure(at(signature, "out_spec"))
    plan.argument_names = [str(name) for name in signature.get("forward_arg_names") or []]
    spec = plan.in_spec
    if len(getattr(spec, "parts", ())) != 2 or getattr(spec.parts[0], "kind", "") != "builtins.tuple":
        raise Malformed("the arguments are a tuple and a dict")
    if count(spec) != len(plan.user_inputs) or count(plan.out_spec) != len(plan.steps.results) - len(plan.changed):
        raise Malformed("the structures have another number of tensors than the graph")


def count(spec: Any) -> int:
    """The number of leaves of a structure."""
    parts = getattr(spec, "parts", None)
    return 1 if parts is None else sum(map(count, parts))


# -- weights -----------------------------------------------------------------------------------------


def payloads(records: Records, folder: str) -> dict[str, Tensor]:
    """The tensors of a folder by their names. Tensors in one record share its memory."""
    config = FOLDERS[folder]
    if config not in records.infos:
        return {}
    memories: dict[str, Any] = {}
    found = {}
    for name, payload in of_type(at(parsed(records.text(config, MAX_JSON)), "config"), dict, "config").items():
        path = of_type(at(payload, "path_name"), str, "a path")
        if payload.get("use_pickle") is not False or not path.startswith(("weight_", "tensor_")):
            raise NotImplementedError(f"{records.name}: {name[:100]!r} is a pickle, not a tensor of bytes")
        if path not in memories:
            memories[path] = records.read(f"data/{folder}/{path}")
        found[name] = rebuilt(memories[path], at(payload, "tensor_meta"), name)
    return found


def rebuilt(memory: Any, meta: Any, name: str) -> Tensor:
    """A tensor on memory. Malformed if it reaches outside."""
    dtype = dtype_of(at(meta, "dtype"))
    sizes, strides = [[size(n) for n in rows(meta, key)] for key in ("sizes", "strides")]
    offset = size(at(meta, "storage_offset"))
    if None in sizes or None in strides or offset is None:
        raise Malformed(f"the tensor {name[:100]!r} has no sizes")
    whole = len(memory) - len(memory) % dtype.itemsize
    try:
        storage = storage_on(memory[:whole], StorageType(dtype))
        return tensor_on(storage, dtype, offset, sizes, strides, at(meta, "requires_grad") is True, None)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise Malformed(f"the tensor {name[:100]!r} does not fit its memory: {error}") from None
