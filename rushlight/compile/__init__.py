"""`rushlight.compile(f)`: the same results from a program made of what `f` did, in one readable Python text."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from rushlight.compile.function import CannotCompile, Compiled


def compile(model: Callable | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = "numba", mode: str | None = None, options: dict | None = None, disable: bool = False) -> Any:
    """f compiled: watched in its first runs, then run as fused loops and BLAS calls on planned memory.

    Works for whole training steps (forward, backward, update in place) and for functions without gradients. A call
    with other shapes, dtypes, Python values or reachable Python state is watched anew. What cannot be a program (numbers
    read by `item()`, `if` or `print`, random numbers, writes through views) leaves `f` as it is, with a warning that
    names the line; with `fullgraph=True` it raises CannotCompile.

    `backend`: "numba" (fused loops; needs Numba), "numpy" (calls of NumPy only), "eager" (nothing is compiled).
    `mode`, `dynamic` and `options` are accepted as torch's; shapes are always static.

    >>> f = rushlight.compile(lambda x: (x * 2).sum())
    >>> f(rushlight.ones(3))
    tensor(6.)
    """
    if model is None:
        return lambda f: compile(f, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                                 disable=disable)
    if not callable(model):
        raise TypeError(f"compile() needs a function or a module, not {type(model).__name__}")
    if backend not in ("numba", "numpy", "eager", "inductor"):
        raise ValueError(f"unknown backend {backend!r}: there are 'numba' (also as 'inductor'), 'numpy' and 'eager'")
    if disable or backend == "eager":
        return model
    fuse = backend != "numpy"
    if fuse and find_spec("numba") is None:
        warnings.warn("rushlight.compile: Numba is not installed, so nothing is fused: pip install rushlight[jit]",
                      stacklevel=2)
        fuse = False
    return Compiled(model, fullgraph, fuse)


def programs(f: Any) -> list[Any]:
    """The programs that a compiled function has made so far, oldest first."""
    if not isinstance(f, Compiled):
        raise TypeError("not a compiled function: give what rushlight.compile returned")
    return [p for known in f.programs.values() for p in known]


def source(f: Any) -> str:
    """The text of the newest program of a compiled function. RuntimeError while there is none, saying why."""
    made = programs(f)
    if not made:
        raise RuntimeError(f"no program yet: it {f.given_up}" if f.given_up else
                           "no program yet: a function is compiled after two calls that do the same")
    return made[-1].source


class CallableModule(ModuleType):
    """`rushlight.compile(f)` and `rushlight.compile.source(f)`: the package is the function, too."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return compile(*args, **kwargs)


sys.modules[__name__].__class__ = CallableModule

__all__ = ["CannotCompile", "compile", "programs", "source"]
