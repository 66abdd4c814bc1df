"""`no_grad`, `enable_grad`, `set_grad_enabled` and `inference_mode`: context managers and decorators that change the
mode (core/mode.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, overload

from rushlight.base.errors import warn
from rushlight.core.mode import Setting, current, mode

F = TypeVar("F", bound=Callable)


class Decorator(Setting):
    """A context manager that is a decorator, too."""

    def again(self) -> Setting:
        """A new setting with the same changes, because a decorated function may run in several threads at once."""
        fresh = object.__new__(type(self))
        fresh.changes = self.changes
        return fresh

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly "
                "decorate the `__init__` method and nothing else.",
                FutureWarning,
            )

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.again():
                return function(*args, **kwargs)

        made: Any = _each_step(function, self.again) if _is_generator(function) else inside
        return made


def _is_generator(function: Callable) -> bool:
    GENERATOR = 0x20  # inspect.CO_GENERATOR, without importing inspect
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & GENERATOR)


def _each_step(function: Callable, setting: Callable[[], Setting]) -> Callable:
    """A generator function whose body runs inside the setting; the code that iterates over it does not."""

    @wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with setting():
            generator = function(*args, **kwargs)
        resume, value = generator.send, None
        while True:
            try:
                with setting():
                    item = resume(value)
            except StopIteration as end:
                return end.value
            try:
                value = yield item
                resume = generator.send
            except GeneratorExit:
                with setting():
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error

    return inside


class no_grad(Decorator):
    """Ops inside are not recorded: their results do not require grad. Context manager and decorator.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> with rushlight.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    changes = {"grad": False}

    @overload
    def __new__(cls, function: None = None) -> no_grad: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: Callable | None = None) -> Any:
        self = object.__new__(cls)
        return self if function is None else self(function)  # `@no_grad` without brackets


class enable_grad(no_grad):
    """Ops inside are recorded, also within `no_grad`, but not within `inference_mode`.

    Context manager and decorator.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> with rushlight.no_grad():
    ...     with rushlight.enable_grad():
    ...         y = x * 2
    >>> y.requires_grad
    True
    """

    @property
    def changes(self) -> dict[str, Any]:  # type: ignore[override]
        return {"grad": mode().inference <= 0}

    def again(self) -> Setting:
        return object.__new__(type(self))


class set_grad_enabled(Decorator):
    """Turn recording on or off: at once when called, and until the end of the block when used as a context.

    >>> with rushlight.set_grad_enabled(False):
    ...     rushlight.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool):
        self.changes = {"grad": bool(mode)}
        self.before = current.set(current.get().but(**self.changes))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        current.reset(self.before)

    def again(self) -> Setting:
        return type(self)(self.changes["grad"])

    def __call__(self, function: F) -> F:
        # used as a decorator: the setting holds inside the function only
        current.reset(self.before)
        return super().__call__(function)


class inference_mode(Decorator):
    """Ops inside are not recorded, and their results are never differentiated. Context manager and decorator.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> with rushlight.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    on: bool

    @overload
    def __new__(cls, mode: bool = True) -> inference_mode: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        self = object.__new__(cls)
        self.on = bool(mode)
        return self(mode) if callable(mode) else self

    @property
    def changes(self) -> dict[str, Any]:  # type: ignore[override]
        return {"grad": False, "inference": abs(mode().inference) + 1} if self.on else {"grad": True, "inference": 0}

    def again(self) -> Setting:
        return inference_mode(self.on)


def is_grad_enabled() -> bool:
    """True if grad mode is on: ops are recorded.

    >>> with rushlight.no_grad():
    ...     rushlight.is_grad_enabled()
    False
    """
    return mode().grad


def is_inference_mode_enabled() -> bool:
    """True inside `inference_mode`.

    >>> with rushlight.inference_mode():
    ...     rushlight.is_inference_mode_enabled()
    True
    """
    return mode().inference > 0
