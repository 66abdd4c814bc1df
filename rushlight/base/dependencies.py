"""Packages that are used where they are installed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from sys import modules
from types import ModuleType

refused: list[Exception] = []  # why Numba could not be imported


@cache
def has_numba() -> bool:
    """Whether loops can be compiled. Asked when one could first be used: `importlib.util` takes 0.5
    ms of an import."""
    from importlib.util import find_spec

    return not refused and find_spec("numba") is not None


def numba_loads() -> bool:
    """Whether it is there and lets itself be imported. If not, as beside a newer NumPy than it
    knows, a warning says so once, and it is as if it were not installed."""
    if has_numba() and "numba" not in modules:
        try:
            import_module("numba")
        except Exception as error:
            from rushlight.base.errors import warn

            refused.append(error)
            has_numba.cache_clear()
            warn(
                f"Numba is installed, but cannot be imported: {error}; NumPy does its work, which "
                "takes longer for large "
                "tensors; hint: pip install --upgrade numba"
            )
    return has_numba()


def scipy_part(name: str, asked: str) -> ModuleType:
    """SciPy's module of that name, imported when first used; `asked` is what needs it, as the
    subject of the error."""
    try:
        import_module("scipy")  # not there, though a part of it may still be
        return import_module(f"scipy.{name}")
    except ImportError as error:
        raise ImportError(f"{asked} SciPy: pip install scipy") from error
