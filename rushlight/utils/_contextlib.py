"""torch.utils._contextlib: contexts that are also decorators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any


def context_decorator(ctx: Any, func: Callable) -> Callable:
    """The function, each call of which runs inside the context `ctx()`; for a generator function, each step."""
    if isgeneratorfunction(func):

        @wraps(func)
        def steps(*args: Any, **kwargs: Any) -> Iterator[Any]:
            running = func(*args, **kwargs)
            try:
                with ctx():
                    value = next(running)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with ctx():
                            running.close()
                        raise
                    except BaseException as error:
                        with ctx():
                            value = running.throw(error)
                    else:
                        with ctx():
                            value = running.send(sent)
            except StopIteration as end:
                return end.value

        return steps

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with ctx():
            return func(*args, **kwargs)

    return call


class _DecoratorContextManager:
    """A base class of contexts: an instance decorates a function, and each call of the function enters a copy (`clone`)
    of the context."""

    def __call__(self, orig_func: Callable) -> Callable:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A new context of the same class, for classes without arguments."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without arguments, which decorates as `@context` and as `@context()`."""

    def __new__(cls, orig_func: Callable | None = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)


__all__ = ["context_decorator"]
