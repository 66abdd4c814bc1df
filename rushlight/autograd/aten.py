"""torch.ops.aten: torch's functions by their names in ATen, `torch.ops.aten.add.Tensor(x, y)`.

Available are the functions with the same arguments as torch's public functions or methods, and those in `OWN`. All
overloads of a name are the same function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from rushlight.base.errors import not_implemented_error
from rushlight.core.tensor import Tensor


class Overload:
    """A function under the name of one of its overloads."""

    def __init__(self, packet: Packet, overload: str):
        self.overloadpacket, self._overloadname, self._function = packet, overload, packet._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def name(self) -> str:
        """aten::add.Tensor, or aten::add of the default overload."""
        return self.overloadpacket._qualified_op_name + f".{self._overloadname}" * (self._overloadname != "default")

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class Packet:
    """A function with its overloads as attributes."""

    def __init__(self, name: str, function: Callable):
        self.__name__, self._function, self._qualified_op_name = name, function, f"aten::{name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> Overload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        found = self.__dict__[overload] = Overload(self, overload)
        return found

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


def slices(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """x[..., start:end:step, ...] along `dim`."""
    before: tuple = (slice(None),) * (dim % self._array.ndim)
    return self[before + (slice(start, end, step),)]


def copied(
    self: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool | None = None,
    non_blocking: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A copy, of another dtype if one is given."""
    kept = {} if memory_format is None else {"memory_format": memory_format}
    return self.to(device=device, dtype=dtype, copy=True, **kept)


def pinned(self: Tensor, device: Any = None) -> Tensor:
    """`Tensor.pin_memory`."""
    return self.pin_memory()


def sparse_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`torch.sparse.addmm`."""
    from rushlight.sparse import addmm

    return addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def sparse_mm_reduce(self: Tensor, other: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """NotImplementedError: products whose terms are not added are not supported."""
    raise not_implemented_error(
        f"aten._sparse_mm_reduce_impl with {reduce!r} is not supported", "torch.sparse.mm computes the sum"
    )


def unavailable(name: str) -> Callable:
    """A function that raises NotImplementedError: the name is a key of the counts of torch.utils.flop_counter."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise not_implemented_error(f"aten.{name} is not supported", "call the public function, and its backward")

    return call


# functions without a public name in torch; some are for certain overloads only
OWN: dict[str, Callable] = {
    "slice": slices,
    "_to_copy": copied,
    "_pin_memory": pinned,
    "_sparse_addmm": sparse_addmm,
    "_sparse_mm_reduce_impl": sparse_mm_reduce,
    "alias": lambda self: self.view_as(self),
    "index": lambda self, indices: self[tuple(slice(None) if i is None else i for i in indices)],
    "_unsafe_view": lambda self, size: self.reshape(size),
    **{
        name: unavailable(name)
        for name in (
            "convolution_backward",
            "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_flash_attention_backward",
        )
    },
}


@cache
def __getattr__(name: str) -> Packet:  # not a global: `slice` and `sum` are Python's in this file
    if name.startswith("__"):
        raise AttributeError(name)
    function = OWN.get(name) or getattr(sys.modules["rushlight"], name, None) or getattr(Tensor, name, None)
    if isinstance(function, type) or not callable(function):
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'", name=name)
    return Packet(name, function)
