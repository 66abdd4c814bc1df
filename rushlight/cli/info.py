"""`rushlight info` and `rushlight cache`: versions and settings, and the folder of compiled loops."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rushlight.demo import BadInput
from rushlight.loops.cache import folder
from rushlight.version import __version__, torch_version

PACKAGES = {
    "numpy": "",
    "scipy": "scipy",
    "llvmlite": "jit",
    "ml_dtypes": "",
    "threadpoolctl": "",
    "matplotlib": "viz",
    "safetensors": "weights",
    "mpi4py": "mpi",
    "rich": "demo",
}  # package -> the extra of rushlight that installs it
VARIABLES = (
    "RUSHLIGHT_FAST",
    "RUSHLIGHT_LOOPS",
    "RUSHLIGHT_CACHE",
    "RUSHLIGHT_TRACEBACK",
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
)


def add_info(commands: argparse._SubParsersAction) -> None:
    info = commands.add_parser(
        "info",
        help="print versions, BLAS, threads and the cache",
        description="Print the facts for a bug report: versions, the BLAS library, the number of threads, the cache of "
        "compiled loops, and the environment variables that rushlight reads.",
        allow_abbrev=False,
    )
    info.set_defaults(run=run_info, command="info")


def add_cache(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "cache",
        help="the folder of compiled loops",
        description="Print the place and size of the folder of compiled loops, or empty it. A removed loop is "
        "compiled again when the loop is next used, mostly in 10 to 100 ms.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=("info", "clear"),
        default="info",
        help="info: print place and size (default); clear: remove all compiled loops",
    )
    parser.set_defaults(run=run_cache, command="cache")


def run_info(arguments: argparse.Namespace) -> int:
    for name, fact in facts():
        print(f"{name:<22} {fact}".rstrip())
    return 0


def facts() -> Iterator[tuple[str, str]]:
    """(name, fact) for each line of `rushlight info`."""
    yield "rushlight", f"{__version__}, with the API of torch {torch_version.partition('+')[0]}"
    yield "Python", f"{sys.version.split()[0]} ({platform.python_implementation()})"
    yield "system", platform.platform()
    yield "processor", f"{processor()}, {os.cpu_count()} cores"
    for package, extra in PACKAGES.items():
        yield package, installed(package, extra)
    yield from blas()
    from rushlight.base.threads import get_num_threads

    yield "threads", str(get_num_threads())
    place = folder()
    yield "cache", "not writable" if place is None else f"{place}, {megabytes(size(place))}"
    for name in VARIABLES:
        if name in os.environ:
            yield name, os.environ[name]


def installed(package: str, extra: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return f"not installed (extra: {extra})" if extra else "not installed"


def processor() -> str:
    """The name of the processor, if the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def blas() -> Iterator[tuple[str, str]]:
    """A line for each BLAS library that NumPy or SciPy has loaded."""
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        if library["user_api"] == "blas":
            kernels = f", {library['architecture']}" if library.get("architecture") else ""
            yield ("BLAS", f"{library['internal_api']} {library['version']}{kernels}, {library['num_threads']} threads")


def run_cache(arguments: argparse.Namespace) -> int:
    place = folder()
    if place is None:
        raise BadInput("the cache folder cannot be written; set RUSHLIGHT_CACHE to one that can")
    if arguments.action == "clear":
        freed = size(place)
        for file in sorted(place.rglob("*"), reverse=True):  # files before their folders
            file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
        print(f"removed {megabytes(freed)} from {place}")
    else:
        count = sum(1 for _ in place.glob("rushlight_loop_*.py"))
        print(f"{count} loops, {megabytes(size(place))}, in {place}")
    return 0


def size(place: Path) -> int:
    """The bytes of all files in the folder."""
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
