"""`torch.compiler`: compile, look at what was made, leave functions out, start anew."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from rushlight.autograd.grad_mode import mode
from rushlight.compile import CannotCompile, compile, explain, programs, source
from rushlight.compile.function import forget_all
from rushlight.compile.trace import Tracer


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


def reset() -> None:
    """Forget all programs: every compiled function is watched anew."""
    forget_all()


__all__ = ["CannotCompile", "compile", "disable", "explain", "is_compiling", "is_dynamo_compiling", "programs", "reset",
           "source"]
