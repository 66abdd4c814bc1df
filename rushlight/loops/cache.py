"""The cache of compiled loops: loops with equal text are compiled once, and later processes load them from files."""

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

from rushlight.base.dependencies import has_numba
from rushlight.base.text import define
from rushlight.loops.background import not_ready
from rushlight.loops.intrinsics import EXACT, FLAGS, backend
from rushlight.version import __version__

MAX_LOOPS, MAX_FILES = 2048, 1024
NOTICE_SECONDS = 2.0  # seconds of compiling in this process, after which a notice is logged
# attributes of Numba's caches that this module relies on
PRIVATE = ("_cache_file", "_impl", "_index_key")
LOOPS: dict[str, Callable] = {}
lock = Lock()

FILE = """from rushlight.loops.cache import {how}


@{how}
{text}"""


def loop(function: Callable) -> Callable:
    """The decorator of fused loops: compiles the function, unless a function of the same text was compiled before."""
    return compiled(text_of(function))


def text_of(function: Any) -> str:
    """The function's text, renamed to `kernel`. Faster than `inspect.getsource`, which tokenizes the text."""
    # co_firstlineno counts from 1 and is the decorator's line, so the slice begins at the `def`
    lines = linecache.getlines(function.__code__.co_filename)[function.__code__.co_firstlineno :]
    return "".join(
        ["def kernel" + lines[0][lines[0].index("(") :], *takewhile(lambda line: line.startswith(" "), lines[1:])]
    )


def joint(*loops: Any) -> Callable[[Callable], Callable]:
    """The decorator of a function that calls loops: compiles it, so that the calls do not go through Python."""

    def decorate(function: Any) -> Callable:
        names = {name: f for name, f in function.__globals__.items() if any([f is loop for loop in loops])}
        return calling(text_of(function), **names)

    return decorate


def calling(text: str, **loops: Any) -> Callable:
    """Compile the function `kernel` of this text, which calls loops by these names."""
    for name, loop in loops.items():
        bring(loop)
        text = re.sub(rf"\b{name}\(", f"loop_{loop.text_key}(", text)
    return compiled(text, callees={f"loop_{loop.text_key}": loop for loop in loops.values()})


def bring(loop: Any) -> None:
    """Load the cached machine code of a loop, before a function that calls the loop by its symbol is loaded."""
    cache = loop._cache  # loops compiled in memory have no _cache_file
    index = getattr(getattr(cache, "_cache_file", None), "_load_index", None)
    if index is not None:
        target = loop.targetctx.codegen()
        with suppress(EOFError, PickleError):  # a damaged index: see load_overload
            for key in index():
                if key == cache._index_key(key[0], target):
                    loop.compile(key[0])


def compiled(text: str, exact: bool = False, callees: Mapping[str, Callable] = MappingProxyType({})) -> Callable:
    """The function `kernel` of this text, compiled at its first call unless machine code is in the cache.

    `exact`: every operation rounds as NumPy's; else a product and a sum may be fused, with one rounding. `callees`:
    name in the text -> the loop that it calls."""
    key = key_of(text, exact)
    with lock:
        found = LOOPS.get(key)
        if found is None:
            if len(LOOPS) >= MAX_LOOPS:
                LOOPS.clear()
            found = LOOPS[key] = known_by(
                key,
                (text, exact, callees),
                from_file(text, key, exact, callees) or in_memory(text, key, exact, callees),
            )
    return found


def known_by(key: str, recipe: tuple, loop: Any) -> Callable:
    """Set `loop.text_key` and `loop.recipe`, the arguments of `compiled`; returns the loop."""
    loop.text_key, loop.recipe = key, recipe
    return loop


def key_of(text: str, exact: bool) -> str:
    return hashlib.sha256("\n".join((text, str(exact), FILE, *versions())).encode()).hexdigest()[:24]


def price(text: str, exact: bool = False) -> float:
    """Estimated seconds of a loop's first call: importing Numba, and compiling or reading machine code."""
    start = 0.0 if "numba" in sys.modules else 0.4
    place = folder()
    known = place is not None and any(place.glob(f"__pycache__/rushlight_loop_{key_of(text, exact)}*.nbi"))
    return start + (0.02 if known else 0.8)


@cache
def versions() -> tuple[str, ...]:
    """Everything besides the loop's text that machine code depends on: the versions of Numba and Python, scalar
    functions.
    """
    own = Path(__file__).parent
    sources = [
        (own / name).read_text()
        for name in ("scalar_math.py", "minimax_polynomials.py", "intrinsics.py", "simd.py", "matmul_tiles.py")
    ]
    return (metadata.version("numba") if has_numba() else "no Numba", sys.version, __version__, *sources)


@cache
def scope() -> dict[str, Any]:
    """The globals of a loop: exp, tanh, where... for float32, exp64... for float64, instructions for sums."""
    import numpy as np

    from rushlight.loops.matmul_tiles import tiles
    from rushlight.loops.scalar_math import bfloats, world
    from rushlight.loops.simd import functions

    b = backend()
    names: dict[str, Any] = {
        "f32": np.float32,
        "f64": np.float64,
        "i64": np.int64,
        "u64": np.uint64,  # negative indices do not count from the end
        "b1": np.bool_,
        "from_half": b.from_half,
        "to_half": b.to_half,
        **bfloats(),
        "empty": np.empty,
        "inf": np.inf,
        "nan": np.nan,
        "restrict": b.restrict,
        "wide": b.wide,
        "shaped": b.shaped,
        "plus": b.plus,
        "times": b.times,
        "largest": b.largest,
        "smallest": b.smallest,
    }
    names |= world("float32")
    names |= {f"{name}64": f for name, f in world("float64").items()}
    names |= functions() | tiles()
    del names["abs"]  # Python's own abs works for all types
    return names


def cached(function: FunctionType) -> Callable:
    """The decorator of a loop in a cache file: Numba stores the machine code beside the file."""
    return kept(function, FLAGS)


def exact(function: FunctionType) -> Callable:
    """`cached` for loops that round exactly as NumPy does."""
    return kept(function, EXACT)


def kept(function: FunctionType, flags: dict[str, Any]) -> Callable:
    """The function, compiled by Numba unless an earlier process has stored machine code.

    To read machine code, Numba would first load everything that it needs to compile, which takes most of the time. This
    is deferred until something must be compiled; so are the functions that loops call.
    """
    from rushlight.loops.ctrl_c import numba

    # A helper inside a loop's file is part of the loop's machine code. Cached by itself, it could refer to a loop's
    # symbol that no longer exists.
    if function.__name__ != "kernel":
        return once(numba.njit(**flags)(function))
    made = once(numba.njit(cache=True, **flags)(function))
    cache = made._cache  # private attributes: if another version of Numba lacks them, use Numba's own caching
    if not all([hasattr(cache, name) for name in PRIVATE]):
        function.__globals__.update(scope())
        return made

    def load_overload(signature: Any, target: Any) -> Any:
        numba.core.runtime.rtsys.initialize(target)
        found = read(signature, target)
        if found is None:
            not_ready(made, signature)
            for callee in made.recipe[2].values():
                bring(callee)  # another process has compiled it in the meantime
            found = read(signature, target)
        if found is None:
            function.__globals__.update(scope())
            target.refresh()
            wait.begins()
        return found

    def read(signature: Any, target: Any) -> Any:
        try:
            data = cache._cache_file.load(cache._index_key(signature, target.codegen()))
            if data is not None and (not function.__globals__.get("callees") or finds_its_loops(target, *data[0])):
                found = cache._impl.rebuild(target, data)
                by_name(found.library)
                return found
        except Exception:  # damaged files, as after a power cut
            with suppress(OSError):
                cache._cache_file.flush()
        return None

    def save_overload(signature: Any, found: Any) -> None:
        wait.ends()
        with suppress(OSError):  # the disk is full
            save(signature, found)
        by_name(found.library)

    save = cache.save_overload
    cache.load_overload, cache.save_overload = load_overload, save_overload
    return made


def once(function: Any) -> Any:
    """Make callers compile a function once for each type, and not again for each literal argument."""
    from numba.core.types import unliteral

    template = function.get_call_template
    function.get_call_template = lambda args, kws: template(
        tuple([unliteral(a) for a in args]), {name: unliteral(a) for name, a in kws.items()}
    )
    return function


class Wait:
    """Records the time that this process has spent compiling. After NOTICE_SECONDS the logger "rushlight" explains the
    wait, once.
    """

    def __init__(self) -> None:
        self.spent, self.since, self.told = 0.0, 0.0, False

    def begins(self) -> None:
        self.since = perf_counter()
        if self.spent > NOTICE_SECONDS and not self.told:
            from logging import getLogger

            self.told = True
            getLogger("rushlight").warning(
                "rushlight is compiling its loops for this machine. They are kept in %s; `rushlight warmup` compiles "
                "the usual ones beforehand.",
                folder(),
            )

    def ends(self) -> None:
        self.spent += perf_counter() - self.since


wait = Wait()


def finds_its_loops(target: Any, name: str, kind: str, data: Any) -> bool:
    """Whether all loops that a function's machine code calls are loaded, under the symbols that it uses."""
    from llvmlite.binding import parse_bitcode

    engine = getattr(target.codegen(), "_engine", None)
    return (
        engine is not None
        and kind == "object"
        and all(
            [
                engine.is_symbol_defined(f.name)
                for f in parse_bitcode(data[1]).functions
                if f.is_declaration and "rushlight_loop" in f.name
            ]
        )
    )


def by_name(library: Any) -> None:
    """Make functions that call this loop link to its symbol, instead of containing a copy of its code."""
    if hasattr(library, "_get_module_for_linking"):
        library._shared_module = None
        library.__class__ = known_by_name(library.__class__)


@cache
def known_by_name(own: type) -> type:
    from llvmlite.binding import parse_assembly

    return type("ByName", (own,), {"_get_module_for_linking": lambda self: parse_assembly("")})


def folder() -> Path | None:
    """The folder of compiled loops, in RUSHLIGHT_CACHE or the user's cache folder; None if it is not writable."""
    named = os.environ.get("RUSHLIGHT_CACHE")
    base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rushlight"
    try:
        place = base / "loops"
        place.mkdir(parents=True, exist_ok=True)
        return place if os.access(place, os.W_OK) else None
    except (OSError, RuntimeError):
        return None


def from_file(text: str, key: str, exact: bool, callees: Mapping[str, Callable]) -> Callable | None:
    """The loop from a file in the cache folder; writes the file if the loop is new. None without a folder."""
    place = folder()
    if place is None:
        return None
    path, whole = place / f"rushlight_loop_{key}.py", FILE.format(text=text, how="exact" if exact else "cached")
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        if not path.exists() or path.read_bytes() != whole.encode():
            prune(place)
            partial.write_text(whole)
            partial.replace(path)  # atomic: another process may be reading
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        sys.modules[path.stem] = module  # Numba looks up the globals of cached functions there
        try:
            spec.loader.exec_module(module)  # type: ignore[union-attr]
        except (EOFError, ImportError, TypeError, ValueError):  # the .pyc file is damaged
            exec(compile(whole, path, "exec"), vars(module))
        vars(module).update(callees, callees=callees)
        return module.kernel
    except OSError:
        with suppress(OSError):
            partial.unlink()
        return None


def in_memory(text: str, key: str, exact: bool, callees: Mapping[str, Callable]) -> Callable:
    # the decorator of helper functions in a loop's file
    names = {**scope(), **callees, "__name__": __name__, "cached": backend().numba.njit(**FLAGS)}
    kernel = define(text, "kernel", names, f"loop {key}")
    return backend().numba.njit(**EXACT if exact else FLAGS)(kernel)


def prune(place: Path) -> None:
    """Remove the oldest files if there are too many. (Not the least recently used: Numba compares file times, so
    reading must not change them.)"""
    files = sorted(place.glob("rushlight_loop_*.py"), key=lambda f: f.stat().st_mtime)
    for old in files[: max(0, len(files) - MAX_FILES)]:
        for part in (*place.glob(f"__pycache__/{old.stem}*"), old):
            part.unlink(missing_ok=True)
