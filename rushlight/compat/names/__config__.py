"""torch.__config__: how this library was built."""

from __future__ import annotations

import platform

import numpy as np

from rushlight.base.threads import get_num_threads
from rushlight.version import __version__


def show() -> str:
    """A few lines about the versions in use."""
    return (
        f"rushlight built with:\n  - Python {platform.python_version()}\n  - NumPy {np.__version__}\n"
        f"  - rushlight {__version__}, for CPU\n"
    )


def parallel_info() -> str:
    """The number of threads."""
    return f"ATen/Parallel:\n\tat::get_num_threads() : {get_num_threads()}\n"


__all__ = ["parallel_info", "show"]
