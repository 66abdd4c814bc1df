"""torch.distributed.elastic.multiprocessing.errors: a worker's error as a file."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from rushlight.base.missing_names import tell as _tell

F = TypeVar("F", bound=Callable)


def record(fn: F, error_handler: Any = None) -> F:
    """A decorator for a program's `main`: an error is written to the file named by the environment variable
    TORCHELASTIC_ERROR_FILE, and raised again.

    The file is JSON, as torch's: message, traceback and time. `error_handler`: an object with `initialize()` and
    `record_exception(error)` that writes the error in place of that.

    >>> from rushlight.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main():
    ...     return 3
    >>> main()
    3
    """

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if error_handler is not None:
            error_handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise
        except BaseException as error:
            (write if error_handler is None else error_handler.record_exception)(error)
            raise

    return call  # type: ignore[return-value]


class ChildFailedError(Exception):
    """A rank has failed. `failures`: {rank: its exit code}."""

    def __init__(self, name: str, failures: dict[int, Any]):
        self.name, self.failures = name, failures
        ranks = ", ".join(f"rank {rank} with exit code {code}" for rank, code in failures.items())
        super().__init__(f"{name} FAILED: {ranks}; see the error of the rank above")


def write(error: BaseException) -> None:
    """Write the error to the file named by TORCHELASTIC_ERROR_FILE, if the variable is set."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    content = {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {"py_callstack": "".join(traceback.format_exception(error)), "timestamp": str(int(time.time()))},
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"message": content}, file)


__all__ = ["ChildFailedError", "record"]

_tell(__name__)
