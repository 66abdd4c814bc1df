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
    """torch's class of whole numbers that a compiler does not know yet; sizes are numbers here, so
    that none is one.

    >>> isinstance(rushlight.ones(3).shape[0], rushlight.SymInt)
    False
    """


class SymFloat:
    """torch's class of numbers that a compiler does not know yet; none is one here.

    >>> isinstance(0.5, rushlight.SymFloat)
    False
    """


class SymBool:
    """torch's class of truths that a compiler does not know yet; none is one here.

    >>> isinstance(True, rushlight.SymBool)
    False
    """


class DeviceObjType:
    """torch's name in annotations of what takes a device; none is one there either.

    >>> isinstance(rushlight.device("cpu"), rushlight.DeviceObjType)
    False
    """


FileLike = str | os.PathLike | IO[bytes]

__all__ = ["Device", "FileLike", "Number"]
