"""A model as a folder with a C library, or a WebAssembly module (`rushlight.compiler.export(kind="c")` or "wasm")."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.base.errors import value_error
from rushlight.compile.export.dynamic_samples import with_samples
from rushlight.compile.export.library_text import HEADER, JAVASCRIPT
from rushlight.compile.export.linkers import shared_library, wasm_module
from rushlight.compile.export.native_library import HINT, Array, Library, answers, library, processor
from rushlight.compile.export.recorded import recorded, results_of
from rushlight.core.tensor import Tensor, from_array
from rushlight.loops.llvm import WASM
from rushlight.version import __version__

ENDINGS = {"darwin": "dylib", "win32": "dll"}
CHECKED_SAMPLES = 3
TOLERANCE = 1e-4  # of the largest number of a result
C_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"}
JS_TYPES = {"bool": "Uint8Array", "int64": "BigInt64Array"}


def export_library(
    model: Callable, args: tuple, tensors: Sequence[tuple[str, Tensor, bool]], name: str, folder: Path, how: tuple
) -> None:
    """Write the files of a library `name`. `tensors`: (name, tensor, any number of samples) of each argument. `how`:
    the kind, "c" or "wasm", and the processor of a C library."""
    kind, cpu = how
    target = WASM if kind == "wasm" else processor(cpu)
    short = {id(t): from_array(t._array[:1].copy()) for _, t, sampled in tensors if sampled}
    graph, plan = recorded(model, replaced(args, short))
    given = [
        Array(identifier(path), t._array.dtype.name, t._array.shape[sampled:], sampled) for path, t, sampled in tensors
    ]
    results = [(f"y_{name}" if name else "y", number) for name, number in results_of(plan)]
    if short and any(graph.results[number].shape[:1] != (1,) for _, number in results):
        raise value_error(
            "export: a result of one sample has no first dimension of size 1", "let the model return samples"
        )
    made = library(graph, given, results, name, type(model).__name__, target)
    code = made.module.object_code()  # before `verify`: the module drops its functions when it is compiled
    verify(made, model, args, tensors)
    if kind == "c":
        shared_library(code, folder / f"lib{name}.{ENDINGS.get(sys.platform, 'so')}")
        (folder / f"{name}.h").write_text(header(made, target.cpu))
    else:
        wasm_module(code, folder / f"{name}.wasm", name)
        (folder / f"{name}.mjs").write_text(javascript(made))


def replaced(args: Any, by: dict[int, Any]) -> Any:
    """The arguments with other tensors. `by`: id of a tensor -> the tensor in its place."""
    if isinstance(args, Tensor):
        return by.get(id(args), args)
    if type(args) in (tuple, list):
        return type(args)([replaced(a, by) for a in args])
    if type(args) is dict:
        return {k: replaced(a, by) for k, a in args.items()}
    return args._make([replaced(a, by) for a in args]) if hasattr(args, "_make") else args


def verify(made: Library, model: Callable, args: tuple, tensors: Sequence[tuple[str, Tensor, bool]]) -> None:
    """Compare the function with the model, run eagerly on the example, or on three samples. ValueError if they
    differ."""
    count = CHECKED_SAMPLES if made.samples else 1
    arrays = [with_samples(t._array, count, k) if sampled else t._array for k, (_, t, sampled) in enumerate(tensors)]
    by = {id(t): from_array(a) for (_, t, _), a in zip(tensors, arrays)}
    want = [t._array for t in flat(model(*replaced(args, by)))]
    found = answers(made, arrays, count)
    for a, y, wanted in zip(made.outputs, found, want):
        scale = max(float(np.max(np.abs(wanted), initial=0)), 1e-30) if wanted.dtype.kind == "f" else 1
        if y.shape != wanted.shape or not np.allclose(y, wanted, TOLERANCE, TOLERANCE * scale, equal_nan=True):
            hint = "a sample's result may depend on other samples: export without `dynamic`" if made.samples else HINT
            raise value_error(f"export: {a.name} of {count} samples differs from the model's", hint)


def flat(result: Any) -> list[Tensor]:
    """The tensors of a result."""
    if isinstance(result, Tensor):
        return [result]
    inside = result.values() if isinstance(result, dict) else result if isinstance(result, (tuple, list)) else ()
    return [t for part in inside for t in flat(part)]


def identifier(path: str) -> str:
    """`pair[0]` as `pair_0`."""
    return "".join([c if c.isalnum() else "_" for c in path.replace("]", "").replace("'", "")])


# -- texts ---------------------------------------------------------------------------------------------------------


def header(made: Library, cpu: str) -> str:
    """The text of NAME.h."""
    parameters = ["int64_t samples"] * made.samples
    parameters += [f"const {c_type(a)} *{a.name}" for a in made.inputs]
    parameters += [f"{c_type(a)} *{a.name}" for a in made.outputs]
    told = [f"   {a.name}: {a}" for a in (*made.inputs, *made.outputs)]
    return HEADER.format(
        title=made.title,
        version=__version__,
        cpu=cpu,
        name=made.name,
        upper=made.name.upper(),
        fills=", ".join([a.name for a in made.outputs]),
        shapes="\n".join(told),
        workspace=made.workspace,
        returns="1 if an index is out of range, else 0" if made.fails else "0",
        parameters=", ".join([*parameters, "void *workspace"]),
    )


def c_type(a: Array) -> str:
    return C_TYPES.get(a.dtype, f"{a.dtype}_t")


def javascript(made: Library) -> str:
    """The text of NAME.mjs."""
    arrays = [
        f'  ["{a.name}", {JS_TYPES.get(a.dtype, a.dtype.capitalize() + "Array")}, {prod(a.shape)}, '
        f"{str(a.sampled).lower()}], // {a}"
        for a in (*made.inputs, *made.outputs)
    ]
    names = [a.name for a in made.inputs]
    return JAVASCRIPT.format(
        title=made.title,
        version=__version__,
        name=made.name,
        given=", ".join(["samples"] * made.samples + names),
        arrays="\n".join(arrays),
        inputs=len(names),
        results=", ".join([a.name for a in made.outputs]),
        workspace=made.workspace,
        samples="BigInt(samples), " if made.samples else "",
        count="samples" if made.samples else "1",
        parameters=", ".join(["samples"] * made.samples + ["...inputs"]),
    )
