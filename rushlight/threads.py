"""How many threads products of matrices use."""
from __future__ import annotations

import os
from typing import Any

from rushlight.errors import explain


def pools() -> Any:
    """The thread pools of the BLAS that NumPy has loaded."""
    try:
        from threadpoolctl import threadpool_info, threadpool_limits
    except ImportError as error:
        raise ImportError("thread counts need threadpoolctl: pip install threadpoolctl, or set OPENBLAS_NUM_THREADS "
                          "before starting Python") from error
    return threadpool_info, threadpool_limits


def get_num_threads() -> int:
    """How many threads BLAS uses."""
    info, _ = pools()
    return max((pool["num_threads"] for pool in info() if pool["user_api"] == "blas"), default=1)


def set_num_threads(n: int) -> None:
    """Let BLAS use n threads. Small products are faster with one: threads that wait for work take the cores.

    >>> rushlight.set_num_threads(1)
    >>> rushlight.get_num_threads()
    1
    """
    if not isinstance(n, int) or n < 1:
        raise RuntimeError(explain("set_num_threads expects a positive integer", f"the machine has {os.cpu_count()}",
                                   given=n))
    _, limits = pools()
    limits(limits=n, user_api="blas")


def get_num_interop_threads() -> int:
    """1: ops run one after another."""
    return 1


def set_num_interop_threads(n: int) -> None:
    """Accepted: ops run one after another."""
