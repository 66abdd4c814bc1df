"""How many threads products of matrices and loops over large arrays use.

Products of middle size run on one thread (`alone`). BLAS shares them with its other threads, gains nothing, and waits: for a
whole slice of the scheduler when another program has the core. (128, 48) x (48, 200) takes 33 us on one thread and on two,
and 16 ms on two of a busy machine, on average.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.errors import explain

chosen: int | None = None                         # what `set_num_threads` was given


def cores() -> int:
    """In how many parts loops over large arrays run: as set_num_threads or OMP_NUM_THREADS say, else on all cores."""
    return available() if chosen is None else chosen


@cache
def available() -> int:
    """What the process was started with; asked once, since the system takes 1.6 us to answer."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Functions of the OpenBLAS that NumPy's wheels bring, which tell and set its threads; None if there is another BLAS."""
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
    """`f(*args)` with BLAS on one thread, as many as before afterwards; 0.9 us."""
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
    """The thread pools of the BLAS that NumPy has loaded."""
    try:
        from threadpoolctl import threadpool_info, threadpool_limits
    except ImportError as error:
        raise ImportError("thread counts need threadpoolctl: pip install threadpoolctl, or set OPENBLAS_NUM_THREADS "
                          "before starting Python") from error
    return threadpool_info, threadpool_limits


def get_num_threads() -> int:
    """How many threads BLAS uses.

    >>> rushlight.get_num_threads() >= 1
    True
    """
    info, _ = pools()
    return max((pool["num_threads"] for pool in info() if pool["user_api"] == "blas"), default=1)


def set_num_threads(n: int) -> None:
    """Let BLAS, and loops over large arrays, use n threads. Small products are faster with one: threads that wait for
    work take the cores.

    >>> rushlight.set_num_threads(1)
    >>> rushlight.get_num_threads()
    1
    """
    if not isinstance(n, int) or n < 1:
        raise RuntimeError(explain("set_num_threads expects a positive integer", f"the machine has {os.cpu_count()}",
                                   given=n))
    global chosen
    _, limits = pools()
    limits(limits=n, user_api="blas")
    chosen = n


def get_num_interop_threads() -> int:
    """1: ops run one after another.

    >>> rushlight.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(n: int) -> None:
    """Accepted: ops run one after another.

    >>> rushlight.set_num_interop_threads(4)
    """
