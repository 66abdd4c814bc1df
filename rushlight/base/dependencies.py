"""Optional packages."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from sys import modules
from types import ModuleType

from rushlight.base.errors import warn

refused: list[Exception] = []  # the reason why llvmlite could not be imported


@cache
def has_llvmlite() -> bool:
    """True if loops can be compiled. Tested on first use: `importlib.util` is slow to import."""
    from importlib.util import find_spec

    return not refused and find_spec("llvmlite") is not None and importable("_ctypes")


@cache
def llvmlite_version() -> str:
    """The version of llvmlite; "" without it."""
    from importlib import metadata

    return metadata.version("llvmlite") if has_llvmlite() else ""


def importable(name: str) -> bool:
    """True if a small module of the standard library exists: some builds lack a few."""
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def llvmlite_loads() -> bool:
    """True if llvmlite can be imported. An installed llvmlite that fails is not used; a warning is shown once."""
    if has_llvmlite() and "llvmlite.binding" not in modules:
        try:
            import_module("llvmlite.binding")
        except Exception as error:
            refused.append(error)
            has_llvmlite.cache_clear()
            warn(
                f"llvmlite is installed, but cannot be imported: {error}; NumPy is used instead, which is slower for "
                "large tensors; hint: pip install --upgrade llvmlite"
            )
    return has_llvmlite()


def scipy_part(name: str, asked: str) -> ModuleType:
    """The module `scipy.name`, imported on first use. `asked`: the beginning of the error, such as "products of sparse
    matrices need"."""
    try:
        import_module("scipy")  # scipy itself: submodules of an uninstalled SciPy may still be importable
        return import_module(f"scipy.{name}")
    except ImportError as error:
        raise ImportError(f"{asked} SciPy: pip install scipy") from error
