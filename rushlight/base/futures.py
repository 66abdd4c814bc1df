"""torch.futures: results that come later, on Python's own futures.

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

from rushlight.base.errors import explain

T = TypeVar("T")


class Future(Generic[T]):
    """result = future.wait(): a value that is set once and awaited by others. `devices` means
    nothing here.

    >>> future = rushlight.futures.Future()
    >>> twice = future.then(lambda f: 2 * f.value())
    >>> future.set_result(21)
    >>> twice.wait()
    42
    """

    def __init__(self, *, devices: Any = None):
        self.inner: futures.Future = futures.Future()
        self.source: Future | None = None  # the future that this one waits for

    def drive(self) -> None:
        """Let what makes the result go on, where it needs the waiting thread for that."""
        if self.source is not None:
            self.source.drive()

    def done(self) -> bool:
        """Whether there is a result or an exception."""
        return self.inner.done()

    def wait(self) -> T:
        """The result, once it is there; what went wrong is raised."""
        self.drive()
        return self.inner.result()

    def value(self) -> T:
        """The result, which must be there: RuntimeError if not."""
        if not self.inner.done():
            raise RuntimeError(explain("the future has no value yet", "wait()"))
        return self.inner.result()

    def set_result(self, result: T) -> None:
        """Give the result. RuntimeError if there is one already."""
        if self.inner.done():
            raise RuntimeError(
                explain(
                    "Future can only be marked completed once, but this one is completed already"
                )
            )
        self.inner.set_result(result)

    def set_exception(self, result: Exception) -> None:
        """Give an exception, which waiting will raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self.inner.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call `callback(self)` when it is done, at once if it is."""
        self.inner.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of what `callback(self)` returns when this one is done."""
        after: Future = Future()
        after.source = self

        def run(_: Any) -> None:
            try:
                after.set_result(callback(self))
            except Exception as error:
                after.set_exception(error)

        self.inner.add_done_callback(run)
        return after


class All(Future):
    """The future of several."""

    def __init__(self, sources: Sequence[Future]):
        super().__init__()
        self.sources = sources

    def drive(self) -> None:
        for source in self.sources:
            source.drive()


def collect_all(futures: Sequence[Future]) -> Future[list[Future]]:
    """result = all futures, done when all are.

    >>> first, second = rushlight.futures.Future(), rushlight.futures.Future()
    >>> both = rushlight.futures.collect_all([first, second])
    >>> first.set_result(1)
    >>> second.set_result(2)
    >>> [future.value() for future in both.wait()]
    [1, 2]
    """
    together: Future[list[Future]] = All(futures)
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
    """[future.wait() for each]: their results, once all are done; the first that went wrong is
    raised.

    >>> future = rushlight.futures.Future()
    >>> future.set_result(1)
    >>> rushlight.futures.wait_all([future])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
