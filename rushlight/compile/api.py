"""`torch.compiler`: compile, inspect programs, exclude functions, reset."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from rushlight.compile import CannotCompile, compile, explain, programs, source
from rushlight.compile.capture.trace import Tracer
from rushlight.compile.run.compiled_function import EVERYONE, STANCE, forget_all
from rushlight.core.mode import mode

F = TypeVar("F")
STANCES = ("default", "eager_then_compile", "force_eager", "eager_on_recompile", "fail_on_recompile")


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is not compiled: it runs eagerly, even when a compiled function calls it. Also a decorator.

    >>> @rushlight.compiler.disable
    ... def noisy(x):
    ...     print("called")
    ...     return x
    """
    if fn is None:
        return lambda f: disable(f, recursive, reason=reason)

    @wraps(fn)
    def apart(*args: Any, **kwargs: Any) -> Any:
        watch = mode().watch
        if isinstance(watch, Tracer):
            watch.stop(f"calls {getattr(fn, '__name__', 'a function')}, which is marked with compiler.disable")
        return fn(*args, **kwargs)

    return apart


class set_stance:
    """Sets the stance of compiled functions: from now on by a call, inside a `with` block, or inside a decorated
    function.

    "force_eager": run eagerly. "eager_on_recompile": run eagerly if there is no program for the arguments yet;
    "fail_on_recompile": RuntimeError in this case. "default" and "eager_then_compile": make programs. RuntimeError for
    other values.

    >>> f = rushlight.compile(lambda x: x + 1)
    >>> with rushlight.compiler.set_stance("force_eager"):
    ...     f(rushlight.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None):
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        self.stance, self.before = stance, STANCE[0]
        take(stance)

    def __enter__(self) -> None:
        take(self.stance)

    def __exit__(self, *exc: object) -> None:
        take(self.before)

    def __call__(self, fn: Callable) -> Callable:
        take(self.before)  # the stance applies only inside the decorated function

        @wraps(fn)
        def called(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return called


def take(stance: str) -> None:
    """Make all compiled functions read the stance at their next call."""
    if stance != STANCE[0]:
        STANCE[0] = stance
        for compiled in [*EVERYONE]:
            compiled.enter = None


def is_compiling() -> bool:
    """True while a tracer records the running code for compilation.

    >>> rushlight.compiler.is_compiling()
    False
    """
    return isinstance(mode().watch, Tracer)


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Always False: `export` calls the model in the ordinary way.

    >>> rushlight.compiler.is_exporting()
    False
    """
    return False


def allow_in_graph(fn: F) -> F:
    """The function itself: calls inside it are traced like all others.

    >>> rushlight.compiler.allow_in_graph(len)("abc")
    3
    """
    return fn


assume_constant_result = allow_in_graph


def cudagraph_mark_step_begin() -> None:
    """Does nothing: there are no CUDA graphs.

    >>> rushlight.compiler.cudagraph_mark_step_begin()
    """


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """["inductor"]: the name of this compiler in torch programs.

    >>> rushlight.compiler.list_backends()
    ['inductor']
    """
    return ["inductor"]


def reset() -> None:
    """Forget all programs: every compiled function is traced again.

    >>> f = rushlight.compile(lambda x: x + 1)
    >>> _ = f(rushlight.ones(2)), f(rushlight.ones(2))
    >>> rushlight.compiler.reset()
    >>> len(rushlight.compiler.programs(f))
    0
    """
    forget_all()


__all__ = [
    "CannotCompile", "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "explain", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "programs", "reset",
    "set_stance", "source",
]  # fmt: skip
