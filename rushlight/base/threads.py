"""The number of threads for matrix products and for loops over large arrays.

Products of medium size run on one thread (`alone`). BLAS would divide them over its threads without any gain, and if
another program occupied a core, BLAS would wait for that thread for a whole time slice of the scheduler.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error

chosen: int | None = None  # the number given to `set_num_threads`


def cores() -> int:
    """The number of parts of a loop over large arrays: from set_num_threads or OMP_NUM_THREADS, else the number of
    cores."""
    return available() if chosen is None else chosen


@cache
def available() -> int:
    """The number of threads with which the process was started; cached, since the system call is slow."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return process_cores()


def process_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """(get, set) functions for the number of threads of the OpenBLAS in NumPy's wheels; None for another BLAS, or
    without ctypes.
    """
    try:
        import ctypes
    except ImportError:
        return None
    package = Path(np.__file__).parent
    for path in (*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")):
        try:
            library = ctypes.PyDLL(str(path))
            get, put = (getattr(library, f"scipy_openblas_{verb}_num_threads64_") for verb in ("get", "set"))
        except (OSError, AttributeError):
            continue
        put.argtypes, put.restype = [ctypes.c_int], None
        return get, put
    return None


def alone(f: Callable, *args: Any) -> Any:
    """`f(*args)` with BLAS on one thread; restores the number of threads afterwards."""
    found = openblas()
    threads = 1 if found is None else found[0]()
    if found is None or threads == 1:
        return f(*args)
    found[1](1)
    try:
        return f(*args)
    finally:
        found[1](threads)


def pools() -> Any:
    """threadpoolctl's functions that read and set the thread pools of loaded BLAS libraries; None without threads, as
    in a browser, or without ctypes."""
    try:
        from threadpoolctl import threadpool_info, threadpool_limits
    except ImportError as error:
        if sys.platform == "emscripten" or (error.name or "").endswith("ctypes"):
            return None
        raise ImportError(
            "thread counts need threadpoolctl: pip install threadpoolctl, or set OPENBLAS_NUM_THREADS before starting "
            "Python"
        ) from None
    return threadpool_info, threadpool_limits


def get_num_threads() -> int:
    """The number of threads that BLAS uses.

    >>> rushlight.get_num_threads() >= 1
    True
    """
    found = pools()
    if found is None:
        return 1
    info, _ = found
    return max((pool["num_threads"] for pool in info() if pool["user_api"] == "blas"), default=1)


def set_num_threads(n: int) -> None:
    """Use n threads in BLAS and in loops over large arrays. Small products are faster with one thread.

    >>> rushlight.set_num_threads(1)
    >>> rushlight.get_num_threads()
    1
    """
    if not isinstance(n, int) or n < 1:
        raise runtime_error(
            "set_num_threads expects a positive integer", f"this machine has {os.cpu_count()} cores", given=n
        )
    global chosen
    found = pools()
    if found is not None:
        found[1](limits=n, user_api="blas")
    chosen = n


def get_num_interop_threads() -> int:
    """1: ops run sequentially.

    >>> rushlight.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(n: int) -> None:
    """Accepted without effect: ops run sequentially.

    >>> rushlight.set_num_interop_threads(4)
    """
