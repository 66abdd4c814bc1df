"""The future of a Work, for communication hooks."""

from __future__ import annotations

from typing import Any

from rushlight.base.futures import Future
from rushlight.comm.errors import DistBackendError
from rushlight.comm.work import Work


class WorkFuture(Future):
    """The future of a Work's tensors."""

    def __init__(self, work: Work):
        super().__init__()
        self.work = work

    def settle(self) -> None:
        """Take over the work's result or error."""
        if self._complete:
            return
        if self.work.error is not None:
            self.set_exception(self.work.error)
        else:
            self.set_result(self.work.outputs)

    def _drive(self) -> None:
        """Wait for the work, so that callbacks run."""
        if not self._complete:
            try:
                self.work.wait()
            except DistBackendError:
                self.settle()

    def done(self) -> bool:
        if self.work.is_completed():
            self.settle()
        return self._complete

    def value(self) -> Any:
        self.done()
        return super().value()
