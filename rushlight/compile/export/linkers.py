"""Links object files: a shared library by the system's C compiler, a WebAssembly module by wasm-ld, or both by the
package ziglang, which brings its own compiler and linkers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from rushlight.base.errors import explain


def shared_library(code: bytes, to: Path) -> None:
    """Link an object file to a shared library. RuntimeError without a C compiler."""
    found = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    tool = next(([path] for name in found if name and (path := shutil.which(name))), None) or zig("cc")
    if tool is None:
        raise missing("no C compiler (cc, gcc or clang)", "install one")
    run(tool, code, ["-shared", "-o", str(to)], ["-lm"])


def wasm_module(code: bytes, to: Path, name: str) -> None:
    """Link a WebAssembly object file to a module that exports the function `name`, its memory, and the first free
    byte. RuntimeError without a linker."""
    path = shutil.which("wasm-ld")
    tool = [path] if path else zig("wasm-ld")
    if tool is None:
        raise missing("no linker for WebAssembly (wasm-ld)", "install LLVM's lld")
    run(tool, code, ["--no-entry", f"--export={name}", "--export=__heap_base", "--strip-all", "-o", str(to)], [])


def zig(command: str) -> list[str] | None:
    """A command of the package ziglang, if installed."""
    return [sys.executable, "-m", "ziglang", command] if find_spec("ziglang") else None


def missing(what: str, hint: str) -> RuntimeError:
    return RuntimeError(explain(f"export: there is {what}", f"{hint}, or: pip install ziglang"))


def run(tool: list[str], code: bytes, before: list[str], after: list[str]) -> None:
    """Run a linker on an object file, which is written beside the result and deleted afterwards."""
    place = Path(before[-1]).with_suffix(".o")
    place.write_bytes(code)
    try:
        done = subprocess.run([*tool, *before, str(place), *after], capture_output=True, text=True)
    finally:
        place.unlink()
    if done.returncode:
        raise RuntimeError(explain(f"export: {' '.join(tool)} failed", said=done.stderr.strip()))
