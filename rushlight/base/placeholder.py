"""Objects that replace a tensor's array: a batch of vmap, a shape without numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

from rushlight.base.errors import Touched

F = TypeVar("F", bound=Callable)


class Placeholder:
    """An object in place of an array: a batch of vmap (func/batching.py), or a shape on the device "meta"
    (ops/meta/meta_tensors.py). Code that tries to compute with it gets the error returned by `touched`, given the
    requested operation.
    """

    __slots__ = ()
    touched: Callable[[str], Touched]

    def __getattr__(self, name: str) -> Any:
        raise self.touched(name)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self.touched("NumPy")

    def __iter__(self) -> Iterator:
        raise self.touched("iteration")

    def _refuse(self, *args: Any) -> Any:
        raise self.touched("arithmetic of arrays")

    __hash__ = object.__hash__
    __eq__ = __ne__ = _refuse
    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __invert__ = __matmul__ = __rmatmul__ = __index__ = _refuse
    __and__ = __or__ = __abs__ = __pow__ = __mod__ = __float__ = __int__ = _refuse


def sample_by_sample(f: F) -> F:
    """The function, extended to batches of vmap: it is called for each sample if it cannot handle all at once."""

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return f(*args, **kwargs)
        except Touched as touched:
            return touched.batch.one_by_one(call, args, kwargs)

    return call  # type: ignore[return-value]
