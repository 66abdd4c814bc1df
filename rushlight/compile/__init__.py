"""`rushlight.compile(f)`: the same results from a program made of what `f` did, in one readable Python text."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rushlight.errors import warn
from rushlight.optional import has_numba

if TYPE_CHECKING:                                 # read when first needed: the loops of large arrays do without
    from rushlight.compile.function import CannotCompile, Compiled
    from rushlight.compile.report import Explanation

RUNS = 8                                          # of `explain`: pieces of pieces take two more each
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def compile(model: Callable | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = "numba", mode: str | None = None, options: dict | None = None, disable: bool = False) -> Any:
    """f compiled: watched in its first runs, then run as fused loops and BLAS calls on planned memory.

    Works for whole training steps (forward, backward, update in place) and for functions without gradients, with
    dropout and other random numbers (eager's, drawn anew), buffers, writes through views, clipping and schedules. A call
    with other shapes, dtypes, Python values or reachable Python state is watched anew. Every step of a program is compared
    with eager before the program is used. Statements that cannot be in a program (numbers read by `item()`, `if` or `print`)
    stay Python, those between them are compiled in pieces; where that is not possible `f` runs as it is, with a warning
    that names the line. `compiler.explain` names all such statements; with `fullgraph=True` they raise CannotCompile.
    A module gives an `OptimizedModule` around it.

    `backend`: "numba" (fused loops; needs Numba), "numpy" (calls of NumPy only), "eager" (nothing is compiled).
    `options`: passes can be switched off one by one, {"extend": False}, "narrow", "decompose", "tables", "products",
    "simplify", "fuse", "threads"; "show": a function given the program before and after each pass, as text: {"show": print}.
    Others, torch's `mode` and `dynamic` are accepted and change nothing: shapes are always static. RuntimeError for a mode
    that torch does not have, or one beside options.

    >>> f = rushlight.compile(lambda x: (x * 2).sum())
    >>> f(rushlight.ones(3))
    tensor(6.)
    """
    from rushlight.compile.function import Compiled
    from rushlight.compile.module import Module, OptimizedModule
    if model is None:
        return lambda f: compile(f, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                                 disable=disable)
    if not callable(model):
        raise TypeError(f"compile() needs a function or a module, not {type(model).__name__}")
    if backend not in ("numba", "numpy", "eager", "inductor"):
        raise ValueError(f"unknown backend {backend!r}: there are 'numba' (also as 'inductor'), 'numpy' and 'eager'")
    if disable or backend == "eager":
        return OptimizedModule(model, model) if isinstance(model, Module) and not disable else model
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    fuse = backend != "numpy"
    if fuse and not has_numba():
        warn("rushlight.compile: Numba is not installed, so nothing is fused: pip install numba scipy")
        fuse = False
    model = unwrapped(model)
    made = Compiled(model, fullgraph, {**(options or {}), "fuse": fuse and (options or {}).get("fuse", True)})
    return OptimizedModule(model, made) if isinstance(model, Module) else made


def unwrapped(f: Any) -> Any:
    """The module that a compiled module was made of; anything else itself."""
    from rushlight.compile.module import OptimizedModule
    return f._orig_mod if isinstance(f, OptimizedModule) else f


def programs(f: Any) -> list[Any]:
    """The programs that a compiled function has made so far, oldest first.

    >>> f = rushlight.compile(lambda x: x + 1)
    >>> _ = f(rushlight.ones(2)), f(rushlight.ones(2))
    >>> len(rushlight.compiler.programs(f))
    1
    """
    f = compiled_of(f)
    return [p for part in f.parts() for known in part.programs.values() for p in known]


def compiled_of(f: Any) -> Compiled:
    """What runs when a compiled function or module is called."""
    from rushlight.compile.function import Compiled
    from rushlight.compile.module import OptimizedModule
    f = f.__dict__["compiled"] if isinstance(f, OptimizedModule) else f
    if not isinstance(f, Compiled):
        raise TypeError("not a compiled function: give what rushlight.compile returned")
    return f


def source(f: Any) -> str:
    """The text of the newest program of a compiled function. RuntimeError while there is none, saying why.

    >>> f = rushlight.compile(lambda x: x + 1)
    >>> _ = f(rushlight.ones(2)), f(rushlight.ones(2))
    >>> "def " in rushlight.compiler.source(f)
    True
    """
    f = compiled_of(f)
    made = programs(f)
    if not made:
        raise RuntimeError(f"no program yet: it {f.given_up}" if f.given_up else
                           "no program yet: a function is compiled after two calls that do the same")
    return made[-1].source


def explain(f: Callable, *args: Any, **kwargs: Any) -> Explanation:
    """What becomes of f with these arguments: its program, or each statement that stands in the way of one, and why.

    f really runs, up to eight times, as it would before it is compiled.

    >>> print(rushlight.compiler.explain(lambda x: x + 1, rushlight.ones(2)))
    compiled: 1 ops became 1 statements, no graph breaks
    """
    from rushlight.compile.function import Compiled
    from rushlight.compile.report import Explanation
    f = unwrapped(f)
    watched = Compiled(f.function if isinstance(f, Compiled) else f, options={"fuse": has_numba()})
    breaks: dict[Any, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(RUNS):
            watched(*args, **kwargs)
            breaks.update(dict.fromkeys(b for part in watched.whole() for b in part.breaks))
            if all(part.programs or part.given_up for part in watched.parts()):
                break
    made = programs(watched)
    why = watched.given_up or ("" if made else watched.unsteady)
    return Explanation([*breaks], why, sum(part.steps for part in watched.parts()), made)


class CallableModule(ModuleType):
    """`rushlight.compile(f)` and `rushlight.compile.source(f)`: the package is the function, too."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return compile(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        home = {"CannotCompile": "function", "Compiled": "function", "Explanation": "report",
                "OptimizedModule": "module"}.get(name)
        if home is None:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        found = getattr(import_module(f"{__name__}.{home}"), name)
        setattr(self, name, found)
        return found


sys.modules[__name__].__class__ = CallableModule

__all__ = ["CannotCompile", "compile", "explain", "programs", "source"]
