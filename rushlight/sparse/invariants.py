"""torch.sparse.check_sparse_tensor_invariants. The constructors of rushlight always check their arguments."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from rushlight.base.errors import runtime_error

checked: ContextVar[bool] = ContextVar("checked", default=False)


class check_sparse_tensor_invariants:
    """A context and a decorator that switches torch's checks of sparse tensors on or off.

    The constructors of rushlight always check their arguments, so the switch changes only the result of `is_enabled`.

    >>> with rushlight.sparse.check_sparse_tensor_invariants():
    ...     rushlight.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable: bool = True):
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether the checks are on."""
        return checked.get()

    @staticmethod
    def enable() -> None:
        """Switch the checks on."""
        checked.set(True)

    @staticmethod
    def disable() -> None:
        """Switch the checks off."""
        checked.set(False)

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise runtime_error(
                "This context manager instance is already activated.",
                "use a different context manager instance for context nesting",
            )
        self.saved_state = self.is_enabled()
        checked.set(self.state)

    def __exit__(self, *exc: object) -> None:
        checked.set(bool(self.saved_state))
        self.saved_state = None

    def __call__(self, function: Callable) -> Callable:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return call
