"""How much the program of a file may compute: a file of a stranger may contain endless loops and huge sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any, NamedTuple

from rushlight.core.tensor import Tensor

MAX_STEPS = 10**6  # calls, and turns of loops, in one call of the model
MAX_BYTES, PER_BYTE = (
    2**28,
    64,
)  # of one new tensor: a constant, plus a number for each byte of the model and its inputs
MAX_LENGTH = 10**6  # elements of a list, characters of a text


class LimitExceeded(RuntimeError):
    """A model of a file computes more than its limits allow."""


class Limits(NamedTuple):
    """What one call of a model may use."""

    steps: int
    bytes: int


USUAL = Limits(MAX_STEPS, MAX_BYTES)
LIMITS: ContextVar[Limits] = ContextVar("LIMITS", default=USUAL)


@contextmanager
def limits(steps: int = MAX_STEPS, bytes: int = MAX_BYTES) -> Iterator[None]:
    """Inside, one call of a file's model may make `steps` calls and turns of loops, and new tensors of `bytes` bytes.

    >>> with rushlight.archives.limits(steps=10**9):
    ...     pass  # model(hours_of_sound)
    """
    token = LIMITS.set(Limits(steps, bytes))
    try:
        yield
    finally:
        LIMITS.reset(token)


class Allowance:
    """The rest of the limits in one call of a model. `kept`: bytes of tensors that lists may still take."""

    __slots__ = ("bytes", "depth", "kept", "steps")

    def __init__(self, given: int):
        allowed = LIMITS.get()
        self.steps, self.bytes, self.depth = allowed.steps, allowed.bytes + PER_BYTE * given, 0
        self.kept = 2 * self.bytes

    def step(self) -> None:
        """Count a call, or a turn of a loop."""
        self.steps -= 1
        if self.steps < 0:
            raise LimitExceeded(
                f"the model makes more than {LIMITS.get().steps:,} calls and turns of loops; if you trust it, run it "
                "in `with rushlight.archives.limits(steps=...):`"
            )

    def new(self, shape: Sequence[int], itemsize: int) -> None:
        """LimitExceeded if a new tensor would be too large."""
        if prod(shape) * itemsize > self.bytes:
            raise LimitExceeded(
                f"the model makes a tensor of {prod(shape):,} elements; if you trust it, run it in "
                "`with rushlight.archives.limits(bytes=...):`"
            )

    def keep(self, value: Any) -> None:
        """Count a tensor that goes into a list."""
        if isinstance(value, Tensor):
            self.kept -= value._array.nbytes
            if self.kept < 0:
                raise LimitExceeded(
                    "the model collects tensors without end; if you trust it, run it in "
                    "`with rushlight.archives.limits(bytes=...):`"
                )


UNLIMITED = Allowance(1 << 60)
RUNNING: ContextVar[Allowance] = ContextVar("RUNNING", default=UNLIMITED)


@contextmanager
def running(tensors: Iterable[Any]) -> Iterator[None]:
    """One call of a model, with weights and inputs. Inner calls share the budget of the outer call."""
    if RUNNING.get() is not UNLIMITED:
        yield
        return
    given = sum([t._array.nbytes for t in tensors if isinstance(t, Tensor)])
    token = RUNNING.set(Allowance(given))
    try:
        yield
    except RecursionError:
        raise LimitExceeded("the calls of the model are nested too deeply") from None
    except MemoryError:
        raise LimitExceeded("the model takes more memory than there is") from None
    finally:
        RUNNING.reset(token)


def new_tensor(shape: Sequence[int], itemsize: int = 4) -> None:
    """LimitExceeded if the running model may not make a tensor of this shape."""
    RUNNING.get().new(shape, itemsize)
