"""torch.futures: futures, based on Python's concurrent.futures.

>>> future = Future()
>>> twice = future.then(lambda f: f.value() * 2)
>>> future.set_result(21)
>>> twice.wait()
42
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """result = future.wait(): a result that is set once, and that others wait for. `devices` has no
    effect.

    >>> future = rushlight.futures.Future()
    >>> twice = future.then(lambda f: 2 * f.value())
    >>> future.set_result(21)
    >>> twice.wait()
    42
    """

    def __init__(self, *, devices: Any = None):
        self.inner: futures.Future = futures.Future()

    def done(self) -> bool:
        """Whether there is a result or an exception."""
        return self.inner.done()

    def wait(self) -> T:
        """Wait for the result; an exception is raised."""
        return self.inner.result()

    def value(self) -> T:
        """The result. RuntimeError if there is none yet."""
        if not self.inner.done():
            raise RuntimeError("the future has no value yet; hint: call wait() first")
        return self.inner.result()

    def set_result(self, result: T) -> None:
        """Set the result. RuntimeError if it is already set."""
        if self.inner.done():
            raise RuntimeError(
                "Future can only be marked completed once, but this one is completed already"
            )
        self.inner.set_result(result)

    def set_exception(self, result: Exception) -> None:
        """Set an exception, which `wait()` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self.inner.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call `callback(self)` when the future is done, or now if it is."""
        self.inner.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of `callback(self)`, which is called when this future is done."""
        after: Future = Future()

        def run(_: Any) -> None:
            try:
                after.set_result(callback(self))
            except Exception as error:
                after.set_exception(error)

        self.inner.add_done_callback(run)
        return after


def collect_all(futures: Sequence[Future]) -> Future[list[Future]]:
    """A future of all futures, done when all are done.

    >>> first, second = rushlight.futures.Future(), rushlight.futures.Future()
    >>> both = rushlight.futures.collect_all([first, second])
    >>> first.set_result(1)
    >>> second.set_result(2)
    >>> [future.value() for future in both.wait()]
    [1, 2]
    """
    together: Future[list[Future]] = Future()
    left = len(futures)
    if not futures:
        together.set_result([])

    def one_more(_: Future) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            together.set_result(list(futures))

    for future in futures:
        future.add_done_callback(one_more)
    return together


def wait_all(futures: Sequence[Future]) -> list:
    """[future.wait() for each future]: the results, once all are done; the first exception is
    raised.

    >>> future = rushlight.futures.Future()
    >>> future.set_result(1)
    >>> rushlight.futures.wait_all([future])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
