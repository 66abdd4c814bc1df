"""The cache of compiled loops: loops with equal text are compiled once, and later processes load them from files."""

from __future__ import annotations

import hashlib
import json
import linecache
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock, RLock
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple

from rushlight.base.dependencies import llvmlite_version
from rushlight.loops.background import not_ready
from rushlight.version import __version__

MAX_LOOPS, MAX_FILES = 2048, 2048
NOTICE_SECONDS = 2.0  # seconds of compiling in this process, after which a notice is logged
DIGEST_BYTES = 32  # at the beginning of a file: the SHA-256 of the rest
LOOPS: dict[str, Callable] = {}
lock = Lock()


def loop(function: Callable) -> Callable:
    """The decorator of fused loops: compiles the function, unless a function of the same text was compiled before."""
    return compiled(text_of(function))


def text_of(function: Any, name: str = "kernel") -> str:
    """The function's text under another name, without decorators. Faster than `inspect.getsource`, which tokenizes the
    text."""
    lines = linecache.getlines(function.__code__.co_filename)
    first = function.__code__.co_firstlineno - 1
    while not lines[first].lstrip().startswith("def "):
        first += 1
    depth = len(lines[first]) - len(lines[first].lstrip())
    taken = [re.sub(r"def \w+\(", f"def {name}(", lines[first][depth:])]
    for line in lines[first + 1 :]:
        inside = line[: depth + 1].isspace() or line[depth : depth + 1] == ")"  # ")" ends a signature of many lines
        if not inside:
            break
        taken.append(line[depth:] if line.strip() else "\n")
    return "".join(taken)


def joint(*loops: Any) -> Callable[[Callable], Callable]:
    """The decorator of a function that calls loops: compiles it, so that the calls do not go through Python."""

    def decorate(function: Any) -> Callable:
        names = {name: f for name, f in function.__globals__.items() if any([f is loop for loop in loops])}
        return calling(text_of(function), **names)

    return decorate


def calling(text: str, **loops: Any) -> Callable:
    """Compile the function `kernel` of this text, which calls loops by these names."""
    for name, loop in loops.items():
        text = re.sub(rf"\b{name}\(", f"loop_{of(loop).text_key}(", text)
    return compiled(text, callees={f"loop_{of(loop).text_key}": loop for loop in loops.values()})


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
            found = LOOPS[key] = Loop(text, exact, callees, key).function
    return found


def of(function: Any) -> Loop:
    """The Loop of a function that `compiled` has returned."""
    return function if isinstance(function, Loop) else function.__self__


class Code(NamedTuple):
    """Machine code for arguments of some kinds. `symbol`: its name for other loops; `call`: as a Python function;
    `result`: the name of the result's type, or "". `engine`: owns the code."""

    symbol: str
    call: Callable
    result: str
    engine: Any


class Loop:
    """A loop: `function(*arguments)` runs it, compiled for each combination of types of its arguments.

    `recipe`: the arguments of `compiled`. `waits`: whether this process compiles it at once, although the program could
    continue without it."""

    waits = False

    def __init__(self, text: str, exact: bool, callees: Mapping[str, Callable], key: str):
        from rushlight.loops import entry

        self.recipe, self.text_key = (text, exact, callees), key
        self.codes: dict[tuple, Code] = {}
        self.lock = RLock()
        self.function: Callable = self
        if entry.supported():
            self.function, self.definition = entry.python_function(self)

    def __call__(self, *args: Any) -> Any:
        """A call with arguments of other types than in the call before."""
        from rushlight.loops.entry import signature

        return self.compile(signature(args)).call(*args)

    def compile(self, kinds: tuple) -> Code:
        """The machine code for arguments of these kinds. NotReady if another process compiles it."""
        found = self.codes.get(kinds)
        if found is None:
            with self.lock:
                found = self.codes.get(kinds) or self.made(kinds)
                self.codes[kinds] = found
        return found

    def job(self) -> tuple:
        """The recipe for another process: (text, exact, {name: recipe of a loop that it calls})."""
        text, exact, callees = self.recipe
        return text, exact, {name: of(callee).job() for name, callee in callees.items()}

    def made(self, kinds: tuple) -> Code:
        symbol = f"rushlight_{self.text_key}_{digest(repr(kinds).encode())[:12]}"
        known = load(symbol)
        if known is None:
            if not self.waits:
                not_ready(self, kinds)
            known = load(symbol)  # another process may have compiled it in the meantime
        if known is None:
            wait.begins()
            known = self.written(symbol, kinds)
            wait.ends()
            save(symbol, *known)
        about, code = known
        for name, own in about["callees"]:
            of(self.recipe[2][name]).compile(tupled(own))
        return self.linked(symbol, kinds, about["result"], code)

    def written(self, symbol: str, kinds: tuple) -> tuple[dict[str, Any], bytes]:
        """(facts about the machine code, the machine code as an object file)."""
        from rushlight.loops import entry, loop_code, loop_kinds
        from rushlight.loops.llvm import Module, host
        from rushlight.loops.scope import scope

        text, exact, callees = self.recipe
        used: list[tuple[str, tuple]] = []

        def callee(name: str, own: tuple) -> tuple[str, Any]:
            code = of(callees[name]).compile(own)
            used.append((name, own))
            return code.symbol, loop_kinds.KINDS.get(code.result)

        module = Module(host())
        f = loop_code.write(module, symbol, text, kinds, scope(), exact, callee)
        if entry.supported():
            entry.write_entry(module, f"{symbol}_entry", symbol, kinds, f.result)
        result = loop_kinds.NAMES[f.result] if f.result else ""
        return {"result": result, "callees": list(dict.fromkeys(used))}, module.optimized()

    def linked(self, symbol: str, kinds: tuple, result: str, code: bytes) -> Code:
        """The object file in this process."""
        from rushlight.loops import entry
        from rushlight.loops.llvm import binding, engine_of
        from rushlight.loops.loop_kinds import KINDS

        if entry.supported():
            entry.link()
            binding().add_symbol(f"{symbol}_entry_miss", self.definition.code)  # the entry for other kinds
        engine = engine_of(code)
        address = engine.get_function_address(symbol)
        binding().add_symbol(symbol, address)
        if entry.supported():
            self.definition.code = engine.get_function_address(f"{symbol}_entry")
        return Code(symbol, entry.c_function(address, kinds, KINDS.get(result)), result, engine)


def tupled(kinds: Any) -> Any:
    """JSON's lists as tuples."""
    return tuple(map(tupled, kinds)) if isinstance(kinds, (list, tuple)) else kinds


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def key_of(text: str, exact: bool) -> str:
    return digest("\n".join((text, str(exact), compiler())).encode())[:24]


@cache
def compiler() -> str:
    """A digest of `versions()`."""
    return digest("\n".join(versions()).encode())


def price(text: str, exact: bool = False) -> float:
    """Estimated seconds of a loop's first call: importing llvmlite, and compiling or reading machine code."""
    start = 0.0 if "llvmlite.binding" in sys.modules else 0.1
    place = folder()
    known = place is not None and any(place.glob(f"rushlight_{key_of(text, exact)}*"))
    return start + (0.005 if known else 0.06)


@cache
def versions() -> tuple[str, ...]:
    """Everything besides the loop's text that machine code depends on: the versions of llvmlite and Python, the
    compiler of loops, the processor."""
    from rushlight.loops.llvm import host

    own = Path(__file__).parent
    names = (
        "llvm.py", "loop_kinds.py", "loop_arithmetic.py", "loop_code.py", "scope.py", "entry.py", "scalar_math.py",
        "llvm_math.py", "minimax_polynomials.py", "simd.py", "matmul_tiles.py",
    )  # fmt: skip
    sources = [(own / name).read_text() for name in names]
    machine = [repr(host())] if llvmlite_version() else []
    return (llvmlite_version(), sys.version, __version__, *sources, *machine)


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


def load(symbol: str) -> tuple[dict[str, Any], bytes] | None:
    """(facts, object file) from the cache; None if there is no file, or a damaged one."""
    place = folder()
    try:
        data = (place / f"{symbol}.o").read_bytes() if place else b""
    except OSError:
        return None
    if hashlib.sha256(data[DIGEST_BYTES:]).digest() != data[:DIGEST_BYTES] or not data:
        return None
    about, _, code = data[DIGEST_BYTES:].partition(b"\n")
    return json.loads(about), code


def save(symbol: str, about: dict[str, Any], code: bytes) -> None:
    """Write a file into the cache, if that is possible."""
    place = folder()
    if place is None:
        return
    data = json.dumps(about).encode() + b"\n" + code
    partial = place / f"{symbol}.{os.getpid()}"
    try:
        partial.write_bytes(hashlib.sha256(data).digest() + data)
        partial.replace(place / f"{symbol}.o")  # atomic: another process may be reading
        prune(place)
    except OSError:  # the disk is full
        with suppress(OSError):
            partial.unlink()


def prune(place: Path) -> None:
    """Remove the oldest files if there are too many."""
    names = os.listdir(place)
    if len(names) <= MAX_FILES:
        return
    files = sorted(place.glob("rushlight_*"), key=lambda f: f.stat().st_mtime)
    for old in files[: len(files) - MAX_FILES]:
        old.unlink(missing_ok=True)
