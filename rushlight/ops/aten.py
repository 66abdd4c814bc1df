"""torch.ops.aten: the functions of torch by their names there, `torch.ops.aten.add.Tensor(x, y)`.

Those are there that have the same arguments as torch's functions or methods; all overloads of one are the same function.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rushlight.tensor import Tensor


class Overload:
    """A function, by the name of one of its overloads."""

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


def __getattr__(name: str) -> Packet:
    if name.startswith("__"):
        raise AttributeError(name)
    function = getattr(sys.modules["rushlight"], name, None) or getattr(Tensor, name, None)
    if isinstance(function, type) or not callable(function):
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'", name=name)
    found = globals()[name] = Packet(name, function)
    return found
