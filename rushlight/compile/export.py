"""`rushlight.export(model, example, folder)`: a model as a folder of Python that needs NumPy alone.

The folder is a package: `__init__.py` is the compiled program's text (standalone.py) with a function `model`, beside it lie
the weights, in weights.safetensors, which a dozen lines of the text read.
"""
from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.autograd.grad_mode import no_grad
from rushlight.compile.bundle import CannotBundle
from rushlight.compile.function import CannotCompile, Compiled
from rushlight.compile.program import Program
from rushlight.compile.standalone import module
from rushlight.errors import explain
from rushlight.optional import has_numba
from rushlight.serialization import save_file
from rushlight.tensor import Tensor, from_array
from rushlight.version import __version__

WEIGHTS = "weights.safetensors"
STORED = 1 << 10                                  # bytes from which a constant stands among the weights
KINDS = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16",
         "int8": "I8", "uint8": "U8", "bool": "BOOL", "complex64": "C64"}

READING = '''
def read(path):
    """Arrays by name from a safetensors file: 8 bytes that say how long the header is, the header as JSON, the numbers."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        numbers = np.frombuffer(bytearray(file.read()), np.uint8)
    header.pop("__metadata__", None)
    return {{name: numbers[slice(*x["data_offsets"])].view(KINDS[x["dtype"]]).reshape(x["shape"])
            for name, x in header.items()}}


KINDS = {kinds}
WEIGHTS = read(Path(__file__).with_name({file!r}))
'''

MODEL = '''

LOCK = Lock()
STATE = [{state}]
{views}


def given(x, name, shape, dtype):
    """The argument as the program wants it; ValueError where it is of another shape or dtype."""
    x = np.asarray(x, order="C")
    if x.shape != shape or x.dtype != dtype:
        raise ValueError(f"{{name}} is {{x.dtype}}{{list(x.shape)}}, but the model was exported for {{dtype}}{{list(shape)}}"
                         "; export it again with an example of that kind")
    return x.copy() if any(x is a for a in STATE) else x


def model({signature}):
    """{doc}
    """
{checks}
    with LOCK, np.errstate(all="ignore"):
        results, _ = run({call})
    return {result}
'''

PACKED = '''

def packed(a):
    """A weight the way round in which products read it; large ones stay. With 64 rows, products with 784x128 and 128x64
    turned weights took 1.3 and 1.4 times as long; with 1024x1024 nothing is won."""
    return np.asarray(a, order="C") if a.nbytes <= 1 << 19 else a


VIEWS = [packed(v) for v in bind({bound})]'''


def export(model: Callable, example: Any, folder: str | os.PathLike, *, overwrite: bool = False) -> Path:
    """Write `model`, as it answers inputs like `example`, to a folder that runs with NumPy alone, with Numba faster.

        from folder import model
        y = model(x)                      # NumPy arrays in, NumPy arrays out

    `model`: a module, which is exported in evaluation mode, or a function of tensors. `example`: a tensor or a tuple of
    arguments; inputs must have their shapes and dtypes, what is no tensor is part of the program. The folder is written
    beside its place and moved there whole; the path is returned.

    FileExistsError if the folder exists, unless `overwrite`; ValueError for a name that Python cannot import; CannotCompile
    where no program can do what the model does (numbers read by `item()`, `if`, `print`), with the lines.

    >>> import tempfile
    >>> place = rushlight.export(rushlight.nn.Linear(2, 1), rushlight.ones(1, 2), tempfile.mkdtemp() + "/line")
    >>> sorted(f.name for f in place.iterdir())
    ['__init__.py', 'weights.safetensors']
    """
    place = Path(folder)
    if not place.name.isidentifier():
        raise ValueError(explain(f"{place.name!r} is no name that Python can import", "take letters, digits and _"))
    if place.exists() and not overwrite:
        raise FileExistsError(explain(f"{place} exists", "give another folder, or overwrite=True"))
    args = example if isinstance(example, tuple) else (example,)
    flat: list[Any] = []
    args = tuple(contiguous(a, flat) for a in args)
    with evaluating(model), no_grad():
        program = program_of(model, args)
    names = named(model)
    store: dict[str, Any] = {}
    text = written(program, model, args, flat, names, store)
    with replacing(place, overwrite) as beside:
        (beside / "__init__.py").write_text(text)
        save_file({name: from_array(a) for name, a in store.items()}, beside / WEIGHTS)
    return place


def contiguous(a: Any, flat: list[Any]) -> Any:
    """The argument with its tensors in order in memory, apart from all others; they are collected in `flat`."""
    if isinstance(a, Tensor):
        flat.append(from_array(a.array.copy(order="C")))
        return flat[-1]
    if type(a) in (tuple, list):
        return type(a)(contiguous(x, flat) for x in a)
    return {k: contiguous(x, flat) for k, x in a.items()} if type(a) is dict else a


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Inside, a module and its parts are in evaluation mode."""
    modules = [m for m in model.modules() if m.training] if hasattr(model, "modules") else []
    for m in modules:
        m.training = False
    try:
        yield
    finally:
        for m in modules:
            m.training = True


def program_of(model: Callable, args: tuple) -> Program:
    """The compiled forward. CannotCompile with the lines that stand in its way."""
    compiled = Compiled(model, True, {"fuse": has_numba(), "threads": False})
    try:
        for _ in range(4):
            compiled(*args)
            for known in compiled.programs.values():
                return known[0]
    except CannotCompile as error:
        lines = [f"  {b.where}\n    {b.reason}" for b in compiled.breaks]
        cure = "  cure: let the model compute with tensors alone, and do what needs numbers outside"
        raise CannotCompile("\n".join([f"export: {error}", *lines, cure])) from None
    raise CannotCompile(f"export: {compiled.name} {compiled.unsteady or 'does something else in each run'}")


def named(model: Any) -> dict[int, str]:
    """The names of a module's parameters and buffers, by the ids of their arrays."""
    if not hasattr(model, "named_parameters"):
        return {}
    return {id(t.array): name for name, t in (*model.named_buffers(), *model.named_parameters())}


def written(program: Program, model: Any, args: tuple, flat: list[Any], names: dict[int, str], store: dict[str, Any]) -> str:
    """The text; the arrays that it reads are put into `store`."""
    parts, sources = program.forward.parts, program.forward.sources
    if any(kind not in ("argument", "state") for kind, _ in sources):
        raise CannotBundle(explain("a model that computes with gradients or settings of optimizers is not exported"))
    paths = {id(t): path for t, path in tensors_of(args, parameter_names(model, len(args)))}
    shown, signature, checks, state, call = [], [], [], [], ["new"]
    for (kind, what), (name, _) in zip(sources, parts.inputs):
        if kind == "state":
            given = names.get(id(what.array), name)
            if what.array.dtype.name not in KINDS:
                raise CannotBundle(explain(f"{given} is {what.array.dtype.name}, which NumPy alone does not have",
                                           "convert the model: model.float()"))
            store[given] = what.array
            state.append(f"WEIGHTS[{given!r}]")
            call.append(f"STATE[{len(state) - 1}]")
        else:
            call.append(name)
    for i, t in enumerate(flat):
        path, a = paths[id(t)], t.array
        shown.append(f"{path}: {a.dtype.name}{list(a.shape)}")
        signature.append(path.partition("[")[0])
        checks.append(f"    arg{i} = given({path}, {path!r}, {a.shape}, {a.dtype.name!r})")
    # a program names its inputs by their place among all; arguments by theirs
    renamed = {name: f"arg{what}" for (kind, what), (name, _) in zip(sources, parts.inputs) if kind == "argument"}
    call = [renamed.get(c, c) for c in call]
    bound = [c for c, (kind, _) in zip(call[1:], sources) if kind == "state"]
    has_views = f"def {parts.mark}bind(" in parts.functions
    ending = MODEL.format(
        state=", ".join(state), views=PACKED.format(bound=", ".join(bound)) if has_views else "VIEWS = []",
        signature=", ".join(dict.fromkeys(signature)), checks="\n".join(checks), call=", ".join([*call, "*VIEWS"]),
        doc=doc_of(program, model, shown), result=result_text(program.plan, names, store))
    title = f"Made by rushlight.export {__version__} from {type(model).__name__}; weights in {WEIGHTS}."
    before = READING.format(kinds={short: kind for kind, short in KINDS.items()}, file=WEIGHTS)
    return module([parts._replace(title=title)], ending, Stored(store, before))


class Stored:
    """Constants that go among the weights; `text` reads them."""

    imports = ("import json", "from pathlib import Path", "from threading import Lock")

    def __init__(self, arrays: dict[str, Any], text: str):
        self.arrays, self.text = arrays, text

    def __call__(self, name: str, value: Any) -> str | None:
        """What stands for a large constant."""
        if not isinstance(value, np.ndarray) or value.nbytes < STORED or value.dtype.name not in KINDS:
            return None
        self.arrays[name] = np.asarray(value, order="C")
        return f"WEIGHTS[{name!r}]"


def parameter_names(model: Any, count: int) -> list[str]:
    """How the model calls its arguments."""
    function = getattr(model, "forward", model)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    known = [] if code is None else list(code.co_varnames[:code.co_argcount])
    known = known[1:] if known[:1] == ["self"] else known
    return [*known[:count], *(f"x{i}" for i in range(len(known), count))]


def tensors_of(args: Any, names: Any) -> Iterator[tuple[Tensor, str]]:
    """Each tensor among the arguments, and the expression for it."""
    for a, path in zip(args, names):
        if isinstance(a, Tensor):
            yield a, path
        elif type(a) in (tuple, list):
            yield from tensors_of(a, (f"{path}[{i}]" for i in range(len(a))))
        elif type(a) is dict:
            yield from tensors_of(a.values(), (f"{path}[{k!r}]" for k in a))


def result_text(plan: Any, names: dict[int, str], store: dict[str, Any]) -> str:
    """What the model returns, as an expression."""
    kind, what = plan
    if kind == "tensor":
        return f"results[{what[0]}]"
    if kind == "argument":
        return f"arg{what}"
    if kind == "value":
        if isinstance(what, Tensor):
            name = names.get(id(what.array), f"result_{len(store)}")
            store[name] = what.array
            return f"WEIGHTS[{name!r}]"
        return repr(what)
    cls, inside = what
    parts = [result_text(p, names, store) for p in inside]
    if kind == "object":                          # a named tuple is a tuple there, another object a dict
        kind, cls = ("dict", cls.names) if cls.names else ("list", tuple)
    if kind == "dict":
        return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(cls, parts)) + "}"
    return f"[{', '.join(parts)}]" if cls is list else f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def doc_of(program: Program, model: Any, shown: list[str]) -> str:
    """What goes in and what comes out."""
    made = [f"{np.dtype(dtype).name}{list(shape)}" for shape, dtype in (new.args for new in program.forward.new)]
    return (f"{type(model).__name__}: arrays in, arrays out. ValueError for other shapes or dtypes.\n\n    "
            + "\n    ".join(shown) + f"\n    gives {', '.join(made) or 'no new arrays'}")


@contextmanager
def replacing(place: Path, overwrite: bool) -> Iterator[Path]:
    """A new folder beside the place, which is moved there when all is written; an older one leaves only then."""
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        yield beside
        beside.chmod(0o755)
        if place.exists():
            if not overwrite:
                raise FileExistsError(explain(f"{place} exists", "give another folder, or overwrite=True"))
            old = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
            place.rename(old / place.name)
            beside.rename(place)
            shutil.rmtree(old, ignore_errors=True)
        else:
            beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
