"""`torch.compiler`: compile, look at what was made, leave functions out, start anew."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from rushlight.autograd.grad_mode import mode
from rushlight.compile import CannotCompile, compile, explain, programs, source
from rushlight.compile.function import forget_all
from rushlight.compile.trace import Tracer

F = TypeVar("F")


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function, not to be compiled: whatever calls it runs as it is. Function and decorator.

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


def is_compiling() -> bool:
    """Whether the running code is being watched in order to be compiled."""
    return isinstance(mode().watch, Tracer)


is_dynamo_compiling = is_compiling


def allow_in_graph(fn: F) -> F:
    """The function itself: what it calls is watched as everything else."""
    return fn


assume_constant_result = allow_in_graph


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no graphs of GPUs."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """There is one compiler, which takes this name."""
    return ["inductor"]


def reset() -> None:
    """Forget all programs: every compiled function is watched anew."""
    forget_all()


__all__ = ["CannotCompile", "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
           "explain", "is_compiling", "is_dynamo_compiling", "list_backends", "programs", "reset", "source"]
