"""torch.futures: results that are set later.

A completed future calls its callbacks, which may complete other futures, and so on. Pending calls are in a list, so
chains may have any length, without recursion.

>>> future = Future()
>>> twice = future.then(lambda f: f.value() * 2)
>>> future.set_result(21)
>>> twice.wait()
42
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import Condition
from typing import Any, Generic, TypeVar

from rushlight.base.errors import runtime_error, type_error

T = TypeVar("T")
# A function to call when a future is completed. It returns the future that the call has completed, or None.
Callback = Callable[[], "Future | None"]
FAILED = "Got the following error when running the callback: "


def callback_failed(error: BaseException) -> str:
    """torch's text of an error in a callback."""
    return f"{FAILED}{type(error).__name__}: {error}"


class Future(Generic[T]):
    """result = future.wait(): a value that is set once and that others wait for. `devices` is accepted for
    compatibility and ignored.

    >>> future = rushlight.futures.Future()
    >>> twice = future.then(lambda f: 2 * f.value())
    >>> future.set_result(21)
    >>> twice.wait()
    42
    """

    def __init__(self, *, devices: Any = None):
        self._sources: Sequence[Future] = ()  # the futures that this one waits for
        self._changed = Condition()
        self._complete = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callback] = []

    def _drive(self) -> None:
        """Let the operation behind the result make progress, if it needs the waiting thread for that."""

    def _drive_all(self) -> None:
        """Call `_drive` of this future and of those that it waits for."""
        todo, seen = [self], {id(self)}
        for future in todo:  # the list `todo` grows in the loop
            if not future._complete:
                new = [f for f in future._sources if id(f) not in seen]
                seen.update(map(id, new))
                todo += new
        for future in reversed(todo):
            future._drive()

    def _settle(self, value: Any, error: BaseException | None = None) -> None:
        """Set the value or the error. RuntimeError if it is set already."""
        with self._changed:
            if self._complete:
                raise runtime_error(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be "
                    "marked completed once."
                )
            self._value, self._error, self._complete = value, error, True
            self._sources = ()
            self._changed.notify_all()

    def _call(self, callback: Callback) -> None:
        """Call `callback()` when this future is completed; at once if it is completed already."""
        with self._changed:
            if not self._complete:
                self._callbacks.append(callback)
                return
        if (completed := callback()) is not None:
            completed._call_back()

    def _call_back(self) -> None:
        """Call the callbacks of this future, depth first: a future that a callback completes calls its own callbacks
        next."""
        todo = self._taken()
        while todo:
            if (completed := todo.pop()()) is not None:
                todo += completed._taken()

    def _taken(self) -> list[Callback]:
        """Remove the callbacks and return them, the last one first."""
        callbacks, self._callbacks = self._callbacks[::-1], []
        return callbacks

    def done(self) -> bool:
        """Whether there is a result or an exception."""
        return self._complete

    def wait(self) -> T:
        """Wait for the result and return it; raises the error if there was one."""
        if not self._complete:
            self._drive_all()
            with self._changed:
                self._changed.wait_for(lambda: self._complete)
        return self.value()

    def value(self) -> T:
        """The result, which must exist already: RuntimeError otherwise. Raises the error if there was one."""
        if not self._complete:
            raise runtime_error("the future has no value yet", "wait()")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: T) -> None:
        """Set the result, and call the callbacks. RuntimeError if there is one already."""
        self._settle(result)
        self._call_back()

    def set_exception(self, result: Exception) -> None:
        """Set an exception, which `wait` will raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._settle(None, result)
        self._call_back()

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call `callback(self)` when this future is completed; at once if it is completed already. An error of the
        callback is printed.
        """
        check_callable("add_done_callback", callback)

        def run() -> None:
            try:
                callback(self)
            except Exception as error:
                print(callback_failed(error), file=sys.stderr)

        self._call(run)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A new future, whose value is the result of `callback(self)` once this future is completed. An error of the
        callback becomes a RuntimeError of the new future.
        """
        check_callable("then", callback)
        after: Future = Future()
        after._sources = (self,)

        def run() -> Future:
            try:
                after._settle(callback(self))
            except BaseException as error:
                failed = RuntimeError(callback_failed(error))
                failed.__cause__ = error
                after._settle(None, failed)
            return after

        self._call(run)
        return after


def check_callable(name: str, callback: Any) -> None:
    """TypeError unless the callback can be called."""
    if not callable(callback):
        raise type_error(f"{name}(): the callback must be callable, but got {type(callback).__name__}")


def collect_all(futures: Sequence[Future]) -> Future[list[Future]]:
    """result = all futures, completed when all of them are; raises the first error.

    >>> first, second = rushlight.futures.Future(), rushlight.futures.Future()
    >>> both = rushlight.futures.collect_all([first, second])
    >>> first.set_result(1)
    >>> second.set_result(2)
    >>> [future.value() for future in both.wait()]
    [1, 2]
    """
    every = list(futures)
    for future in every:
        if not isinstance(future, Future):
            raise type_error(f"collect_all takes Futures, but got {type(future).__name__}")
    together: Future[list[Future]] = Future()
    together._sources = every
    left = len(every)

    def one_more() -> Future | None:
        nonlocal left
        with together._changed:
            left -= 1
            if left:
                return None
        errors = [future._error for future in every if future._error is not None]
        together._settle(every, errors[0] if errors else None)
        return together

    if not every:
        together.set_result([])
    for future in every:
        future._call(one_more)
    return together


def wait_all(futures: Sequence[Future]) -> list:
    """[future.wait() for each future]: the results, once all are completed; raises the first error.

    >>> future = rushlight.futures.Future()
    >>> future.set_result(1)
    >>> rushlight.futures.wait_all([future])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
