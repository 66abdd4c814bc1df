"""`rushlight.compiler.export(model, example, folder)`: a model as a folder of Python that needs only NumPy.

The folder is a package. `__init__.py` has a function `model` and reads the weights from weights.safetensors; program.py
is a short page (compile/export/page_folder.py) or the compiled program's text (compile/export/module_text.py)."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from keyword import iskeyword
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.base.errors import explain, type_error, value_error
from rushlight.compile.capture.input_sources import keyed
from rushlight.compile.export.collect_source import CannotBundle
from rushlight.compile.export.dynamic_samples import dynamic_paths
from rushlight.compile.export.folder_text import ENDING, INIT, PACKED
from rushlight.compile.export.module_text import module
from rushlight.compile.export.recorded import STEADY, TENSORS, refused
from rushlight.compile.guards.pytree_signature import signature
from rushlight.compile.report import sequence_text
from rushlight.compile.run.compiled_function import CannotCompile, Compiled
from rushlight.compile.run.program import Program
from rushlight.core.tensor import Tensor, from_array
from rushlight.ops.grad_mode import no_grad
from rushlight.serialization import save_file
from rushlight.version import __version__

WEIGHTS = "weights.safetensors"
FORMATS = "numpy", "c", "wasm"
RESULTS = "results[{}]".format, "arg{}".format
MIN_STORED_BYTES = 1 << 10  # constants from this size on are stored among the weights
KINDS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
    "complex64": "C64",
}


def export(
    model: Callable,
    example: Any,
    folder: str | os.PathLike,
    *,
    kind: str = "numpy",
    dynamic: Any = None,
    cpu: str = "native",
    overwrite: bool = False,
) -> Path:
    """Write `model`, for inputs like `example`, to a folder that runs without rushlight.

    `kind`: "numpy" for Python that needs only NumPy; "c" for a shared library with a C header; "wasm" for a WebAssembly
    module with JavaScript.

        from folder import model
        y = model(x)                      # NumPy arrays in, NumPy arrays out

    `model`: a module, which is exported in evaluation mode, or a function of tensors. `example`: a tensor or NumPy
    array, or a tuple of arguments. Inputs must have the example's shapes and dtypes; arguments that are not tensors
    become part of the program. `dynamic`: the arguments with any number of samples, as {"x": {0: "samples"}}; True for
    all. `cpu`: for "c", "native" or a level of x86-64 such as "x86-64-v3". The folder is written under another name and
    then renamed. Returns its path. A folder "numpy" has a short page of NumPy; if the model writes to its buffers, draws
    random numbers, checks numbers or has 16-bit floats, the compiled program's text, which is longer.

    FileExistsError if the folder exists, unless `overwrite`; ValueError for a name that Python cannot import;
    CannotCompile with the lines if the model has graph breaks (it reads numbers by `item()` or `if`);
    NotImplementedError for bfloat16; TypeError for tensors in other objects than tuples, lists and dicts.

    >>> import tempfile
    >>> place = rushlight.compiler.export(rushlight.nn.Linear(2, 1), rushlight.ones(1, 2), tempfile.mkdtemp() + "/line")
    >>> sorted(f.name for f in place.iterdir())
    ['__init__.py', 'program.py', 'weights.safetensors']
    """
    place = Path(folder)
    if not place.name.isidentifier() or iskeyword(place.name):
        raise value_error(f"{place.name!r} is not a name that Python can import", "use letters, digits and _")
    if kind not in FORMATS:
        raise value_error(f"export: kind={kind!r}", f"use {', '.join(map(repr, FORMATS))}")
    if place.exists() and not overwrite:
        raise FileExistsError(explain(f"{place} exists", "choose another folder, or pass overwrite=True"))
    args = example if type(example) is tuple else (example,)
    flat: list[Any] = []
    args = tuple(contiguous(a, flat) for a in args)
    check(args, flat)
    tensors = [*tensors_of(args, parameter_names(model, len(args)))]
    sampled = dynamic_paths(dynamic, [path for _, path in tensors])
    given = [(path, t, any_size) for (t, path), any_size in zip(tensors, sampled)]
    with replacing(place, overwrite) as beside:
        write(model, args, given, place.name, beside, (kind, cpu))
    return place


def write(model: Callable, args: tuple, given: list[tuple], name: str, folder: Path, how: tuple[str, str]) -> None:
    """Write the files of an export. `given`: (name, tensor, any number of samples) of each tensor among `args`."""
    if how[0] in ("c", "wasm"):
        from rushlight.compile.export.library_folder import export_library

        with evaluating(model), no_grad():
            export_library(model, args, given, name, folder, how)
        return
    from rushlight.compile.export.page_folder import write_page

    with evaluating(model), no_grad():
        if write_page(model, args, given, name, folder):
            return
    if any(sampled for *_, sampled in given):
        which = "of a model that writes, draws, checks numbers, or has 16-bit floats"
        raise value_error(f"export: a folder {which} has static sizes", "export it without `dynamic`")
    write_package(model, args, [t for _, t, _ in given], name, folder)


def write_package(model: Callable, args: tuple, flat: list[Any], name: str, folder: Path) -> None:
    """Write the Python package of a model. `flat`: the tensors among `args`."""
    with evaluating(model), no_grad():
        program = program_of(model, args)
    store: dict[str, Any] = {}
    text = written(program, named(model), flat, store)
    init = beginning(program, model, args, flat, store, name)
    save_file({name: from_array(a) for name, a in store.items()}, folder / WEIGHTS)
    (folder / "program.py").write_text(text)
    (folder / "__init__.py").write_text(init)


@contextmanager
def loaded(folder: Path) -> Iterator[Any]:
    """The package in an exported folder; inside, it can be imported."""
    name = "rushlight_export" + folder.name.replace(".", "_")
    spec: Any = spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    package: Any = module_from_spec(spec)
    sys.modules[name] = package
    try:
        spec.loader.exec_module(package)
        yield package
    finally:
        for part in (name, f"{name}.program"):
            sys.modules.pop(part, None)
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)


def contiguous(a: Any, flat: list[Any]) -> Any:
    """The argument with each tensor replaced by a C-contiguous copy; the copies are appended to `flat`."""
    if isinstance(a, (Tensor, np.ndarray)):
        flat.append(from_array(np.array(a._array if isinstance(a, Tensor) else a, order="C")))
        return flat[-1]
    if isinstance(a, tuple) and hasattr(a, "_make"):
        return a._make([contiguous(x, flat) for x in a])
    if type(a) in (tuple, list):
        return type(a)(contiguous(x, flat) for x in a)
    return {k: contiguous(x, flat) for k, x in a.items()} if type(a) is dict else a


def check(args: tuple, flat: list[Any]) -> None:
    """TypeError if tensors are in other objects than tuples, lists and dicts: the folder's `model` could not take
    them."""
    known: list[Any] = []
    for a in args:
        signature(a, known, [])
    if [id(t) for t in known] != [id(t) for t in flat]:
        kinds = ", ".join(type(a).__name__ for a in args)
        raise type_error(
            f"export: there are tensors in objects of the example ({kinds})",
            "pass the model tensors, or tuples, lists and dicts of tensors",
        )


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Inside, a module and its children are in evaluation mode. Afterwards its buffers hold their old values."""
    modules = [m for m in model.modules() if m.training] if hasattr(model, "modules") else []
    buffers = [b._array for b in model.buffers()] if hasattr(model, "buffers") else []
    before = [a.copy() for a in buffers]
    for m in modules:
        m.training = False
    try:
        yield
    finally:
        for m in modules:
            m.training = True
        for a, b in zip(buffers, before):
            if a.tobytes() != b.tobytes():
                a[...] = b


def program_of(model: Callable, args: tuple) -> Program:
    """The program of the model's forward. CannotCompile with the lines of the graph breaks."""
    compiled = Compiled(model, True, {"fuse": False, "threads": False})
    try:
        for _ in range(4):
            compiled(*args)
            for known in compiled.programs.values():
                return known[0]
    except CannotCompile as error:
        raise refused(compiled, str(error), STEADY if compiled.unsteady else TENSORS) from None
    raise refused(compiled, f"{compiled.name} {compiled.unsteady or 'does something else in each run'}", STEADY)


def named(model: Any) -> dict[int, str]:
    """{id of an array: name} of a module's parameters and buffers."""
    if not hasattr(model, "named_parameters"):
        return {}
    return {id(t._array): name for name, t in (*model.named_buffers(), *model.named_parameters())}


def written(program: Program, names: dict[int, str], flat: list[Any], store: dict[str, Any]) -> str:
    """The text of program.py. Puts the arrays that it reads into `store`."""
    parts, sources = program.forward.parts, program.forward.sources
    if any(kind not in ("argument", "state") for kind, _ in sources):
        raise CannotBundle(explain("a model that computes with gradients or settings of optimizers is not exported"))
    if "bfloat16" in own_text(parts):
        what = "export: the model computes in bfloat16, which NumPy alone does not have"
        raise CannotBundle(explain(what, "convert the model, model.float(), and pass a float32 example"))
    weights, call = [], ["new"]
    for (kind, what), (name, _) in zip(sources, parts.inputs):
        if kind == "state":
            given = names.get(id(what._array), name)
            if what._array.dtype.name not in KINDS:
                wrong = f"{given} is {what._array.dtype.name}, which NumPy alone does not have"
                raise CannotBundle(explain(wrong, "convert the model: model.float()"))
            store[given] = what._array
            weights.append(f"{name} = WEIGHTS[{given!r}]")
        call.append(name if kind == "state" else f"arg{what}")
    written = {keyed(s) for s in program.written}
    changed = [
        name for source, (name, _) in zip(sources, parts.inputs) if source[0] == "state" and keyed(source) in written
    ]
    views = PACKED.format(bound=", ".join(parts.bound)) if f"def {parts.mark}bind(" in parts.functions else "VIEWS = []"
    ending = ENDING.format(
        weights="\n".join(weights),
        changed=", ".join(changed),
        views=views,
        arguments=", ".join(f"arg{i}" for i in range(len(flat))),
        call=", ".join([*call, "*VIEWS"]),
        result=result_text(program.plan, names, store),
    )
    return module(
        [parts._replace(title=f"What the model computes; see __init__.py. Made by rushlight {__version__}.")],
        ending,
        Stored(store),
    )


def own_text(parts: Any) -> str:
    """The statements of a program without comments, and the dtypes of its constants."""
    texts = "\n".join([*parts.loops.values(), parts.memory, parts.functions, *(str(np.dtype(d)) for _, d in parts.new)])
    constants = [str(getattr(a, "dtype", a)) for a in parts.constants.values() if not isinstance(a, str)]
    return re.sub(r"(?m)^ *#.*", "", "\n".join([texts, *constants]))


def beginning(program: Program, model: Any, args: tuple, flat: list[Any], store: dict[str, Any], folder: str) -> str:
    """The text of __init__.py."""
    paths = {id(t): path for t, path in tensors_of(args, parameter_names(model, len(args)))}
    inputs = [(paths[id(t)], t._array.shape, t._array.dtype.name) for t in flat]
    shown = [f"{path}: {dtype}{list(shape)}" for path, shape, dtype in inputs]
    signature = ", ".join(dict.fromkeys(path.partition("[")[0] for path, *_ in inputs))
    kinds = {KINDS[name]: name for name in sorted({a.dtype.name for a in store.values()})}
    return INIT.format(
        kind=type(model).__name__,
        version=__version__,
        folder=folder,
        shown=f"y = model({signature})",
        inputs=", ".join(map(repr, inputs)),
        kinds=kinds,
        signature=signature,
        doc=doc_of(program, model, shown),
        arguments="".join(f"{path}, " for path, *_ in inputs),
    )


class Stored:
    """Stores large constants among the weights."""

    def __init__(self, arrays: dict[str, Any]):
        self.arrays = arrays

    def __call__(self, name: str, value: Any) -> str | None:
        """The expression for a large constant, which is put into `arrays`; None for a small one."""
        if not isinstance(value, np.ndarray) or value.nbytes < MIN_STORED_BYTES or value.dtype.name not in KINDS:
            return None
        self.arrays[name] = np.asarray(value, order="C")
        return f"WEIGHTS[{name!r}]"


def parameter_names(model: Any, count: int) -> list[str]:
    """The names of the model's arguments."""
    function = getattr(model, "forward", model)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    known = [] if code is None else list(code.co_varnames[hasattr(function, "__func__") : code.co_argcount])
    return [*known[:count], *(f"x{i}" for i in range(len(known), count))]


def tensors_of(args: Any, names: Any) -> Iterator[tuple[Tensor, str]]:
    """Each tensor among the arguments, and the expression for it."""
    for a, path in zip(args, names):
        if isinstance(a, Tensor):
            yield a, path
        elif isinstance(a, (tuple, list)):
            yield from tensors_of(a, (f"{path}[{i}]" for i in range(len(a))))
        elif type(a) is dict:
            yield from tensors_of(a.values(), (f"{path}[{k!r}]" for k in a))


def result_text(
    plan: Any, names: dict[int, str], store: dict[str, Any], weights: str = "WEIGHTS", parts: tuple = RESULTS
) -> str:
    """The expression for the model's result. `weights`: the variable of the weights; `parts`: functions from numbers to
    the expressions for the results and the arguments."""
    kind, what = plan
    if kind == "tensor":
        return parts[0](what[0])
    if kind == "argument":
        return parts[1](what)
    if kind == "value":
        if isinstance(what, Tensor):
            name = names.get(id(what._array), f"result_{len(store)}")
            store[name] = what._array
            return f"{weights}[{name!r}]"
        return repr(what)
    cls, inside = what
    texts = [result_text(p, names, store, weights, parts) for p in inside]
    if kind == "object":  # a named tuple becomes a tuple, any other object a dict
        kind, cls = ("dict", cls.names) if cls.names else ("list", tuple)
    if kind == "dict":
        return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(cls, texts)) + "}"
    return sequence_text(cls, texts)


def doc_of(program: Program, model: Any, shown: list[str]) -> str:
    """The docstring of `model`: its inputs and outputs."""
    made = [f"{np.dtype(dtype).name}{list(shape)}" for shape, dtype in (new.args for new in program.forward.new)]
    return (
        f"{type(model).__name__}: arrays in, arrays out. ValueError for other shapes or dtypes.\n\n    "
        + "\n    ".join(shown)
        + f"\n    gives {', '.join(made) or 'no new arrays'}"
    )


@contextmanager
def replacing(place: Path, overwrite: bool) -> Iterator[Path]:
    """Yields a temporary folder beside `place`, and renames it to `place` at the end, replacing an older folder."""
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        yield beside
        beside.chmod(0o755)
        if place.exists():
            if not overwrite:
                raise FileExistsError(explain(f"{place} exists", "choose another folder, or pass overwrite=True"))
            old = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
            place.rename(old / place.name)
            beside.rename(place)
            shutil.rmtree(old, ignore_errors=True)
        else:
            beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
