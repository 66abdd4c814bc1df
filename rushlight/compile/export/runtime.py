"""The runtime of a standalone program (compile/export/module_text.py): replaces parts of rushlight that the program's
text needs.

Compiles loops with Numba. Without Numba the scalar functions (loops/scalar_math.py) work on whole arrays: the same
polynomials, the same arithmetic on bits."""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from rushlight.loops.intrinsics import EXACT, FLAGS, instructions
from rushlight.loops.loop_names import scope

try:
    import numba
except ImportError:  # loops then work on whole arrays
    numba = None  # type: ignore[assignment]


def define(text, name, scope, title):
    """The function `name` of the text, run in `scope` (the part of rushlight.base.text needed here)."""
    exec(compile(text, f"<rushlight {title}>", "exec"), scope)
    return scope.pop(name)


def machine_code(function, text="", flags=FLAGS):
    """A loop, compiled at its first call; its machine code is cached on disk if this module is a file."""
    if numba is None:
        return function
    made = numba.njit(**flags)(function)
    if "__file__" in globals() and (text or "<locals>" not in function.__qualname__):
        # a private attribute: other versions of Numba may ignore it
        made._cache = Kept(text or function.__qualname__)
    return made


def loop(whole):
    """The decorator of loops: compiles the loop; without Numba returns `whole`, its version for whole arrays."""
    return machine_code if numba is not None else lambda function: whole or function


def calling(text, **loops):
    """`compiled` for a text that calls these loops."""
    return compiled(text, callees=loops)


def compiled(text, exact=False, callees=()):
    """The function `kernel` of a text as machine code."""
    flags, callees = EXACT if exact else FLAGS, dict(callees)
    # globals of the functions called by a loop
    names = {**scope(), **callees, "cached": numba.njit(**flags), "__name__": __name__}
    kernel = define(text, "kernel", names, "loop")
    made_of = (text, exact, *(f"{name}: {getattr(f._cache, 'text', '')}" for name, f in callees.items()))
    return machine_code(kernel, repr(made_of), flags)


def site(way, from_elements):
    """The decorator of a kernel with a faster way. The way returns None if it does not apply."""

    def decorator(reference):
        if way is None:
            return reference

        def run(*args):
            large = not from_elements or args[0].size >= from_elements
            made = way(*args) if large else None
            return reference(*args) if made is None else made

        return run

    return decorator


class Kept:
    """The cache of a function's machine code, for Numba: files named by a digest of everything that the code depends
    on.

    Numba's own cache compares the times of source files, and needs a writable folder. A text has no time, and copying a
    folder changes times."""

    def __init__(self, text):
        self.text = text

    def file(self, signature, target):
        """The file name for a signature and a processor."""
        made_of = (self.text, __name__, str(signature), numba.__version__, sys.version, target.codegen().magic_tuple())
        return f"{digest(repr(made_of).encode())}.code"

    def load_overload(self, signature, target):
        """Machine code of an earlier process, or None. Does not load Numba's compiler, which takes longer."""
        numba.core.runtime.rtsys.initialize(target)
        for place in places():
            try:
                stored = (place / self.file(signature, target)).read_bytes()
                if stored[:32] == digest(stored[32:]).encode():  # the file is complete
                    return numba.core.compiler.CompileResult._rebuild(target, *pickle.loads(stored[32:]))
            except Exception:  # no such file, or unreadable: compile
                continue
        target.refresh()
        return None

    def save_overload(self, signature, made):
        """Store machine code in the first writable folder, atomically."""
        if made.library.has_dynamic_globals:  # the code contains addresses of this process
            return
        code = pickle.dumps(made._reduce())
        for place in places():
            file = place / self.file(signature, made.target_context)
            partial = file.with_suffix(f".{os.getpid()}")
            try:
                place.mkdir(parents=True, exist_ok=True)
                partial.write_bytes(digest(code).encode() + code)
                partial.replace(file)
                return
            except OSError:  # read-only, or full
                with suppress(OSError):
                    partial.unlink()


@cache
def places():
    """Folders for machine code: the folder of this file, and the user's (RUSHLIGHT_CACHE), which is used if the first
    cannot be written."""
    here = Path(__file__)
    own = f"{here.parent.name}-{digest(here.read_bytes())}"
    base = os.environ.get("RUSHLIGHT_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "rushlight"
    )
    return here.parent / "__pycache__" / own, Path(base) / "exports" / own


def digest(data):
    return hashlib.sha256(data).hexdigest()[:32]


def kept():
    """Whether an earlier process has stored machine code."""
    return any(next(place.glob("*.code"), None) for place in places())


@cache
def backend():
    """The instructions that scalar functions are built from."""
    if numba is None:
        return on_arrays()
    from numba.extending import intrinsic

    return instructions(numba, intrinsic)


def on_arrays() -> SimpleNamespace:
    """The instructions as NumPy functions: `jit` is the identity, `select` is np.where, a cast of bits is a view."""
    names = "sin cos tan asin acos atan atan2 hypot sinh cosh asinh acosh atanh pow"
    libm: dict[str, Any] = {name: getattr(np, name) for name in names.split()}
    libm |= {f.__name__: np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc, lgamma)}
    return SimpleNamespace(
        numba=np,
        jit=lambda function: function,
        inlined=lambda function: function,
        libm=SimpleNamespace(**libm),
        select=np.where,
        cast_bits=lambda frm, to: lambda x: np.asarray(x, frm).view(to),
        plus=np.add,
        times=np.multiply,
        scaled=None,
        largest=np.maximum,
        smallest=np.minimum,
        restrict=lambda: None,
        wide=lambda: None,
    )


def lgamma(x: float) -> float:
    """math.lgamma, infinite at 0, -1, -2..."""
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def of(kind: Any) -> SimpleNamespace:
    """The attributes of a dtype that kernels use."""
    kind = np.dtype(kind)
    return SimpleNamespace(
        numpy=kind,
        name=kind.name,
        itemsize=kind.itemsize,
        scalar_type=kind.name.capitalize(),
        is_floating_point=kind.kind == "f",
        is_complex=kind.kind == "c",
    )


def explain(what: str, hint: str = "", **facts: object) -> str:
    """An error message: a sentence, a line for each fact, the hint."""
    lines = [what, *(f"  {name.replace('_', ' ')}: {fact}" for name, fact in facts.items() if fact is not None)]
    return "\n".join([*lines, f"  hint: {hint}"] if hint else lines)


class Loop:
    """Replaces loops that rushlight compiles when they pay: here NumPy does the work, with the same bits."""

    def __init__(self, *made_of: Any, **named: Any):
        self.function = self.compiled = None

    def __call__(self, n: int) -> None:
        return None

    def ready(self, elements: int) -> None:
        """NumPy does the work."""


LOOPS = SimpleNamespace()  # name -> row loop
WRITTEN: dict[tuple, Callable] = {}  # (op, derivative, layout) -> loop


def loop_of(name, of, layout):
    """The loop of an op along a dimension."""
    return WRITTEN[name, of, layout]


def mode() -> SimpleNamespace:
    """A mode without grad mode, watcher and vmap."""
    return SimpleNamespace(batch=None, watch=None, grad=False)


def has_llvmlite():
    """Whether loops are compiled."""
    return numba is not None


def may_fall_back():
    """Whether NumPy does the work of a loop that is still being compiled. Always False: a program waits for the
    loop."""
    return False


class Paid:
    """Replaces rushlight's JIT budget: a program uses loops at once."""

    def charge(self, cost):
        return numba is not None

    def charge_passes(self, passes, size):
        return numba is not None and size > 0


much = Paid()


class Spent(Paid):
    """Replaces the budget for small tensors: an exported folder's `model` decides for all loops
    (compile/export/model_folder.py)."""

    def __init__(self, price, loading=0.0):
        self.left = math.inf if numba is None else 0


class Touched(RuntimeError):
    """Raised by vmap only, so never here."""


Tensor = np.ndarray


def from_array(array: Any) -> Any:
    """The array itself: a standalone program has no tensors."""
    return array


def by_rows(rows: Callable | None, kernel: Callable) -> Callable:
    """A kernel that runs the row loop `rows` on large arrays, if Numba is installed."""

    def kernel_by_rows(*args: Any) -> Any:
        found = rows(*args) if rows is not None and numba is not None and args[0].size >= 1 << 16 else None
        return kernel(*args) if found is None else found

    return kernel_by_rows


def staying(kernel: Callable, last: int) -> Callable:
    """The kernel, with its result converted to the dtype of input number `last`."""
    return lambda *args: np.asarray(kernel(*args)).astype(args[last].dtype, copy=False)
