"""`rushlight.compile(f)`: traces `f`, and runs a program that gives the same results. The program is readable Python
text."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from rushlight.base.dependencies import has_llvmlite
from rushlight.base.errors import warn

# imported on first use, since the loops for large arrays import this package and need neither
if TYPE_CHECKING:
    from rushlight.compile.report import Explanation
    from rushlight.compile.run.compiled_function import CannotCompile, Compiled

F = TypeVar("F", bound=Callable)

# how often `explain` runs the function at most; each level of nested graph breaks takes two more runs
EXPLAIN_RUNS = 8
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


@overload
def compile(model: F, **settings: Any) -> F: ...
@overload
def compile(model: None = None, **settings: Any) -> Callable[[F], F]: ...
def compile(  # type: ignore[misc]  # the overloads leave the settings to this signature
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict | None = None,
    disable: bool = False,
) -> Any:
    """f compiled: the first calls are traced; later calls run fused loops and BLAS calls on planned memory.

    Works for whole training steps (forward, backward, update in place) and for functions without gradients, with
    dropout and other random numbers (new ones in each call, the same as eager's), buffers, writes through views,
    clipping and schedules. A call with other shapes, dtypes, Python values or reachable Python state is traced again.
    Every step of a program is compared with eager before the program is used. A statement that cannot be in a program
    (it reads numbers by `item()`, `if` or `print`) is a graph break: the statement stays Python, and the statements
    between graph breaks are compiled. If that is impossible, `f` runs eagerly, with a warning that names the line.
    `compiler.explain` names all graph breaks; with `fullgraph=True` they raise CannotCompile. For a module, the result
    is an `OptimizedModule` around it.

    `backend`: "inductor" (a function without gradients becomes one function of machine code where that is possible;
    otherwise fused loops; needs llvmlite), "loops" (fused loops), "numpy" (calls of NumPy only), "eager" (nothing is
    compiled).
    `options`: {"extend": False} switches off the pass "extend"; the same for "narrow", "decompose", "tables",
    "products", "simplify", "fuse", "threads", "native". {"show": print} calls print with the program's text before and
    after each pass. Other options, torch's `mode` and `dynamic` are accepted and change nothing: each shape has its own
    program, and the programs of several batch sizes or lengths share one function of machine code where possible.
    RuntimeError for a mode that torch does not have, or for a mode together with options.

    >>> f = rushlight.compile(lambda x: (x * 2).sum())
    >>> f(rushlight.ones(3))
    tensor(6.)
    """
    from rushlight.compile.run.compiled_function import Compiled
    from rushlight.compile.run.compiled_module import Module, OptimizedModule

    if model is None:
        return lambda f: compile(
            f, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise TypeError(f"compile() needs a function or a module, not {type(model).__name__}")
    if backend not in ("loops", "numpy", "eager", "inductor"):
        raise ValueError(f"unknown backend {backend!r}: use 'inductor', 'loops', 'numpy' or 'eager'")
    if disable or backend == "eager":
        return OptimizedModule(model, model) if isinstance(model, Module) and not disable else model
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    fuse = backend != "numpy"
    if fuse and not has_llvmlite():
        warn("rushlight.compile: llvmlite is not installed, so nothing is fused: pip install llvmlite")
        fuse = False
    model = unwrapped(model)
    given = options or {}
    how = {"fuse": fuse and given.get("fuse", True), "native": backend == "inductor" and given.get("native", True)}
    made = Compiled(model, fullgraph, {**given, **how})
    return OptimizedModule(model, made) if isinstance(model, Module) else made


def unwrapped(f: Any) -> Any:
    """The original module of a compiled module; any other `f` unchanged."""
    from rushlight.compile.run.compiled_module import OptimizedModule

    return f._orig_mod if isinstance(f, OptimizedModule) else f


def programs(f: Any) -> list[Any]:
    """The programs of a compiled function, oldest first.

    >>> f = rushlight.compile(lambda x: x + 1)
    >>> _ = f(rushlight.ones(2)), f(rushlight.ones(2))
    >>> len(rushlight.compiler.programs(f))
    1
    """
    f = compiled_of(f)
    return [p for part in f.parts() for known in part.programs.values() for p in known]


def compiled_of(f: Any) -> Compiled:
    """The `Compiled` of a compiled function or module. TypeError for other values."""
    from rushlight.compile.run.compiled_function import Compiled
    from rushlight.compile.run.compiled_module import OptimizedModule

    f = f.__dict__["compiled"] if isinstance(f, OptimizedModule) else f
    if not isinstance(f, Compiled):
        raise TypeError("not a compiled function: pass the result of rushlight.compile")
    return f


def source(f: Any, *, full: bool = False) -> str:
    """The newest program of a compiled function, as Python text. RuntimeError with the reason if there is no program.

    By default a page for reading: parameters have their names in the model, values the names of your variables, loops
    the names of the ops that they compute, and your lines appear above the statements. `full=True`: the same program as
    a module that needs only NumPy; its function `call` takes the arrays.

    >>> import rushlight as torch
    >>> def area(width, height):
    ...     total = (width * height).exp().sum()
    ...     return total
    >>> f = torch.compile(area)
    >>> _ = f(torch.ones(9), torch.ones(9)), f(torch.ones(9), torch.ones(9))
    >>> "def area(width, height):" in torch.compiler.source(f)
    True
    >>> "def call(" in torch.compiler.source(f, full=True)
    True
    """
    from rushlight.compile.export.program_page import program_page

    f = compiled_of(f)
    made = programs(f)
    if not made:
        raise RuntimeError(
            f"no program yet: it {f.given_up}"
            if f.given_up
            else "no program yet: a function is compiled after two calls that do the same"
        )
    if full or any(part.parts.page is None for part in made[-1].parts):
        return made[-1].source
    part, kind = next((part, kind) for part in f.parts() for kind, known in part.programs.items() if made[-1] in known)
    return program_page(made[-1], part.function, kind)


def explain(f: Callable, *args: Any, **kwargs: Any) -> Explanation:
    """Compile f for these arguments and report the result: programs, and each graph break with its reason.

    Calls f up to eight times, with all side effects.

    >>> print(rushlight.compiler.explain(lambda x: x + 1, rushlight.ones(2)))
    compiled: 1 ops became 1 statements, no graph breaks
    """
    from rushlight.compile.report import Explanation
    from rushlight.compile.run.compiled_function import Compiled

    f = unwrapped(f)
    watched = Compiled(f.function if isinstance(f, Compiled) else f, options={"fuse": has_llvmlite()})
    breaks: dict[Any, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(EXPLAIN_RUNS):
            watched(*args, **kwargs)
            breaks.update(dict.fromkeys(b for part in watched.whole() for b in part.breaks))
            if all(part.programs or part.given_up for part in watched.parts()):
                break
    made = programs(watched)
    why = watched.given_up or ("" if made else watched.unsteady)
    return Explanation([*breaks], why, sum(part.steps for part in watched.parts()), made)


class CallableModule(ModuleType):
    """A module that can be called: `rushlight.compile(f)` and `rushlight.compile.source(f)` both work."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return compile(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        home = {
            "CannotCompile": "run.compiled_function",
            "Compiled": "run.compiled_function",
            "Explanation": "report",
            "OptimizedModule": "run.compiled_module",
        }.get(name)
        if home is None:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        found = getattr(import_module(f"{__name__}.{home}"), name)
        setattr(self, name, found)
        return found


sys.modules[__name__].__class__ = CallableModule

__all__ = ["CannotCompile", "compile", "explain", "programs", "source"]
