"""Loops compiled once: equal text is the same function, in this process and, through files, in the next one."""
from __future__ import annotations

import hashlib
import importlib.util
import linecache
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from itertools import takewhile
from pathlib import Path
from pickle import PickleError
from threading import Lock
from time import perf_counter
from types import FunctionType, MappingProxyType
from typing import Any

from rushlight.base.text import define
from rushlight.compile.intrinsics import EXACT, FLAGS, backend
from rushlight.optional import has_numba
from rushlight.version import __version__

MOST_LOOPS, MOST_FILES = 2048, 1024
LONG = 2.0                                        # seconds of compiling after which people want to know
PRIVATE = ("_cache_file", "_impl", "_index_key")  # what Numba's caches have
LOOPS: dict[str, Callable] = {}
lock = Lock()

FILE = '''from rushlight.compile.cache import {how}


@{how}
{text}'''


def loop(function: FunctionType) -> Callable:
    """The decorator of fused loops: the function compiled, or the one compiled earlier from the same text."""
    return compiled(text_of(function))


def text_of(function: FunctionType) -> str:
    """The function's text, under the name that all loops have; `inspect.getsource` reads all of it word by word."""
    lines = linecache.getlines(function.__code__.co_filename)[function.__code__.co_firstlineno:]        # after the decorator
    return "".join(["def kernel" + lines[0][lines[0].index("("):], *takewhile(lambda line: line.startswith(" "), lines[1:])])


def joint(*loops: Any) -> Callable[[FunctionType], Callable]:
    """The decorator of a function that calls loops: as machine code, so that there is no Python between them."""
    def decorate(function: FunctionType) -> Callable:
        names = {name: f for name, f in function.__globals__.items() if any([f is loop for loop in loops])}
        return calling(text_of(function), **names)
    return decorate


def calling(text: str, **loops: Any) -> Callable:
    """The function `kernel` with this text as machine code, which calls loops by these names."""
    for name, loop in loops.items():
        bring(loop)
        text = re.sub(rf"\b{name}\(", f"loop_{loop.text_key}(", text)
    return compiled(text, callees={f"loop_{loop.text_key}": loop for loop in loops.values()})


def bring(loop: Any) -> None:
    """Load what the cache folder has of a loop before a function that calls it, whose machine code knows it by its name."""
    cache = loop._cache                           # without files, it has none of these names
    index = getattr(getattr(cache, "_cache_file", None), "_load_index", None)
    if index is not None:
        target = loop.targetctx.codegen()
        with suppress(EOFError, PickleError):     # an index that is no longer whole: see load_overload
            for key in index():
                if key == cache._index_key(key[0], target):
                    loop.compile(key[0])


def compiled(text: str, exact: bool = False, callees: Mapping[str, Callable] = MappingProxyType({})) -> Callable:
    """The function `kernel` with this text as machine code, compiled at its first call unless that was done earlier.

    `exact`: every operation rounds as NumPy's does, to the last bit; else a product and a sum may round once.
    `callees`: loops that it calls, by the names that the text has for them.
    """
    key = key_of(text, exact)
    with lock:
        found = LOOPS.get(key)
        if found is None:
            if len(LOOPS) >= MOST_LOOPS:
                LOOPS.clear()
            found = LOOPS[key] = known_by(key, from_file(text, key, exact, callees) or in_memory(text, key, exact, callees))
    return found


def known_by(key: str, loop: Any) -> Callable:
    """The loop, which knows its key."""
    loop.text_key = key
    return loop


def key_of(text: str, exact: bool) -> str:
    return hashlib.sha256("\n".join((text, str(exact), FILE, *versions())).encode()).hexdigest()[:24]


def price(text: str, exact: bool = False) -> float:
    """How many seconds the first call of a loop takes: to import Numba, and to compile or to read what was compiled."""
    start = 0.0 if "numba" in sys.modules else 0.4
    place = folder()
    known = place is not None and any(place.glob(f"__pycache__/rushlight_loop_{key_of(text, exact)}*.nbi"))
    return start + (0.02 if known else 0.8)


@cache
def versions() -> tuple[str, ...]:
    """What makes old machine code wrong: another Numba, another Python, other scalar functions."""
    own = Path(__file__).parent
    sources = [(own / name).read_text() for name in ("scalars.py", "minimax.py", "intrinsics.py", "vectors.py", "tiles.py")]
    return (metadata.version("numba") if has_numba() else "no Numba", sys.version, __version__, *sources)


@cache
def scope() -> dict[str, Any]:
    """The globals of a loop: exp, tanh, where... for float32, exp64... for float64, and how sums are added up."""
    import numpy as np

    from rushlight.compile.scalars import bfloats, world
    from rushlight.compile.tiles import tiles
    from rushlight.compile.vectors import functions
    b = backend()
    names: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "b1": np.bool_,
                             "from_half": b.from_half, "to_half": b.to_half, **bfloats(), "empty": np.empty,
                             "inf": np.inf, "nan": np.nan,
                             "restrict": b.restrict, "wide": b.wide, "shaped": b.shaped, "plus": b.plus,
                             "largest": b.largest, "smallest": b.smallest}
    names |= world("float32")
    names |= {f"{name}64": f for name, f in world("float64").items()}
    names |= functions() | tiles()
    del names["abs"]                              # Python's own serves all types
    return names


def cached(function: FunctionType) -> Callable:
    """The decorator in the files: machine code is kept beside them."""
    return kept(function, FLAGS)


def exact(function: FunctionType) -> Callable:
    """The decorator in the files of loops that round as NumPy does."""
    return kept(function, EXACT)


def kept(function: FunctionType, flags: dict[str, Any]) -> Callable:
    """The function, which Numba compiles unless it finds the machine code of an earlier process.

    To read that it would first load all it needs to compile: 0.7 s of the 1.2 that a compiled step took to begin. So that is
    put off until something has to be compiled, as are the functions that loops call.
    """
    from rushlight.interrupts import numba
    if function.__name__ != "kernel":             # a part of a loop, whose machine code holds it: kept by itself, it could
        return once(numba.njit(**flags)(function))         # know a loop by a name that is no more
    made = once(numba.njit(cache=True, **flags)(function))
    cache = made._cache                           # of no public name; where it has changed, Numba's own way is taken
    if not all([hasattr(cache, name) for name in PRIVATE]):
        function.__globals__.update(scope())
        return made

    def load_overload(signature: Any, target: Any) -> Any:
        numba.core.runtime.rtsys.initialize(target)
        try:
            data = cache._cache_file.load(cache._index_key(signature, target.codegen()))
            if data is not None and (not function.__globals__.get("callees") or finds_its_loops(target, *data[0])):
                found = cache._impl.rebuild(target, data)
                by_name(found.library)
                return found
        except Exception:                         # files that are no longer whole, as after a power cut
            with suppress(OSError):
                cache._cache_file.flush()
        function.__globals__.update(scope())
        target.refresh()
        wait.begins()
        return None

    def save_overload(signature: Any, found: Any) -> None:
        wait.ends()
        with suppress(OSError):                   # the disk is full
            save(signature, found)
        by_name(found.library)
    save = cache.save_overload
    cache.load_overload, cache.save_overload = load_overload, save_overload
    return made


def once(function: Any) -> Any:
    """Numba's function, which those that call it have compiled once, not anew for each constant that they give it."""
    from numba.core.types import unliteral
    template = function.get_call_template
    function.get_call_template = lambda args, kws: template(
        tuple([unliteral(a) for a in args]), {name: unliteral(a) for name, a in kws.items()})
    return function


class Wait:
    """How long this process has compiled for the cache folder. Once that is LONG it is told, once, what the wait is for, by
    the logger "rushlight": those of a small ResNet take 9 s, and 0.6 s from a full folder.
    """

    def __init__(self) -> None:
        self.spent, self.since, self.told = 0.0, 0.0, False

    def begins(self) -> None:
        self.since = perf_counter()
        if self.spent > LONG and not self.told:
            from logging import getLogger
            self.told = True
            getLogger("rushlight").warning(
                "rushlight is compiling its loops for this machine. They are kept in %s; `rushlight warmup` compiles the "
                "usual ones beforehand.", folder())

    def ends(self) -> None:
        self.spent += perf_counter() - self.since


wait = Wait()


def finds_its_loops(target: Any, name: str, kind: str, data: Any) -> bool:
    """Whether all loops are there that a function calls, under the names by which its machine code knows them."""
    from llvmlite.binding import parse_bitcode
    engine = getattr(target.codegen(), "_engine", None)
    return engine is not None and kind == "object" and all([
        engine.is_symbol_defined(f.name) for f in parse_bitcode(data[1]).functions
        if f.is_declaration and "rushlight_loop" in f.name])


def by_name(library: Any) -> None:
    """Let functions that call this loop find it by its name instead of holding copies of it: these took a tenth of the time
    of a first step, and its parsed code 0.4 MB."""
    if hasattr(library, "_get_module_for_linking"):
        library._shared_module = None
        library.__class__ = known_by_name(library.__class__)


@cache
def known_by_name(own: type) -> type:
    from llvmlite.binding import parse_assembly
    return type("ByName", (own,), {"_get_module_for_linking": lambda self: parse_assembly("")})


def folder() -> Path | None:
    """Where compiled loops are kept: RUSHLIGHT_CACHE, or the user's cache folder; None if it cannot be written."""
    named = os.environ.get("RUSHLIGHT_CACHE")
    base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rushlight"
    try:
        place = base / "loops"
        place.mkdir(parents=True, exist_ok=True)
        return place if os.access(place, os.W_OK) else None
    except (OSError, RuntimeError):
        return None


def from_file(text: str, key: str, exact: bool, callees: Mapping[str, Callable]) -> Callable | None:
    """The loop from the cache folder, put there if it is new; None where there is no folder."""
    place = folder()
    if place is None:
        return None
    path, whole = place / f"rushlight_loop_{key}.py", FILE.format(text=text, how="exact" if exact else "cached")
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        if not path.exists() or path.read_bytes() != whole.encode():
            prune(place)
            partial.write_text(whole)
            partial.replace(path)                 # whole or not at all: another process may be reading
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        sys.modules[path.stem] = module           # Numba looks there for the globals of what it has kept
        try:
            spec.loader.exec_module(module)  # type: ignore[union-attr]
        except (EOFError, ImportError, TypeError, ValueError):             # Python's own file of it is no longer whole
            exec(compile(whole, path, "exec"), vars(module))
        vars(module).update(callees, callees=callees)
        return module.kernel
    except OSError:
        with suppress(OSError):
            partial.unlink()
        return None


def in_memory(text: str, key: str, exact: bool, callees: Mapping[str, Callable]) -> Callable:
    names = {**scope(), **callees, "__name__": __name__,
             "cached": backend().numba.njit(**FLAGS)}      # the decorator of functions beside the loop
    kernel = define(text, "kernel", names, f"loop {key}")
    return backend().numba.njit(**EXACT if exact else FLAGS)(kernel)


def prune(place: Path) -> None:
    """Make room: the oldest files go first. (When one was last used nobody notes: Numba compares the time in it.)"""
    files = sorted(place.glob("rushlight_loop_*.py"), key=lambda f: f.stat().st_mtime)
    for old in files[:max(0, len(files) - MOST_FILES)]:
        for part in (*place.glob(f"__pycache__/{old.stem}*"), old):
            part.unlink(missing_ok=True)
