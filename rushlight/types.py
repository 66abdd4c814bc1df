"""torch.types: names for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO

from rushlight.base.device import device as _device
from rushlight.base.dtypes import dtype as _dtype  # noqa: F401
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor

_bool, _int, _float, _complex = bool, int, float, complex
_size = Size | list[int] | tuple[int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
Number = int | float | bool
Device = _device | str | int | None


class SymInt:
    """torch's class of symbolic integers for compilers; sizes are ints here, so nothing is an instance.

    >>> isinstance(rushlight.ones(3).shape[0], rushlight.SymInt)
    False
    """


class SymFloat:
    """torch's class of symbolic numbers for compilers; nothing is an instance.

    >>> isinstance(0.5, rushlight.SymFloat)
    False
    """


class SymBool:
    """torch's class of symbolic bools for compilers; nothing is an instance.

    >>> isinstance(True, rushlight.SymBool)
    False
    """


class DeviceObjType:
    """torch's annotation for arguments that take a device; nothing is an instance, as in torch.

    >>> isinstance(rushlight.device("cpu"), rushlight.DeviceObjType)
    False
    """


FileLike = str | os.PathLike | IO[bytes]

__all__ = ["Device", "FileLike", "Number"]
