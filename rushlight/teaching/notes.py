"""Notes of the checks about tensors, modules and optimizers, without keeping them alive."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar
from weakref import ref
from zlib import crc32

import numpy as np

from rushlight.core.tensor import Tensor
from rushlight.optim.optimizer import Optimizer

T = TypeVar("T")


class Notes(Generic[T]):
    """A note for each object, found by identity: tensors cannot be compared as keys."""

    def __init__(self, new: Callable[[], T]):
        self.new = new
        self.known: dict[int, tuple[ref, T]] = {}

    def of(self, thing: Any) -> T:
        """The note of an object; a new one if it has none."""
        found = self.known.get(id(thing))
        if found is None or found[0]() is not thing:
            found = self.known[id(thing)] = ref(thing), self.new()
        return found[1]

    def items(self) -> Iterator[tuple[Any, T]]:
        """(object, note) of the objects that are still alive."""
        for number, (weak, note) in list(self.known.items()):
            thing = weak()
            if thing is None:
                del self.known[number]
            else:
                yield thing, note


def array_of(tensor: Tensor | None) -> np.ndarray | None:
    """The tensor's array; None for a tensor that has none, such as a sparse gradient."""
    if tensor is None or tensor.is_sparse:
        return None
    array = tensor._array
    return array if isinstance(array, np.ndarray) else None


def checksum(array: np.ndarray | None) -> int:
    """A number that is equal for equal elements."""
    return 0 if array is None else crc32(array.tobytes())


def gradient(p: Tensor) -> np.ndarray | None:
    return array_of(p._grad)


def nonzero(array: np.ndarray | None) -> bool:
    return array is not None and bool(array.any())


def rms(array: np.ndarray) -> float:
    """The root of the mean square, in float64."""
    wide = np.asarray(array, np.complex128 if array.dtype.kind == "c" else np.float64)
    return float(np.sqrt(np.mean(np.abs(wide) ** 2))) if wide.size else 0.0


def parameters_of(optimizer: Any) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def optimized() -> set[int]:
    """The identities of the parameters of all optimizers in the process. Slow: called only when a mistake is found."""
    # isinstance would read __class__ of lazy objects, which runs other libraries' code
    found = (o for o in gc.get_objects() if issubclass(type(o), Optimizer))
    return {id(p) for optimizer in found for p in parameters_of(optimizer)}


def listed(names: Iterable[str], most: int = 4) -> str:
    """'a, b, c and 7 more'."""
    names = list(names)
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def name_in(roots: Iterable[Any], parameter: Tensor) -> str:
    """The parameter's name in one of the modules; else its shape."""
    for root in roots:
        for name, p in root.named_parameters():
            if p is parameter:
                return name
    return f"a parameter of shape {tuple(parameter.shape)}"
