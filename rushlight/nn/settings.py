"""What modules without parameters share: settings kept as attributes and shown in their line of `repr`."""
from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from rushlight import dtypes, torch_names
from rushlight.creation import blank
from rushlight.device import on_meta
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import from_array


class Settled(Module):
    """A module that is a function with settings; `_shown` names those in its `repr`, all if it is None.

    `inplace` is shown where it is true.
    """

    _shown: tuple[str, ...] | None = None

    def __init__(self, **settings: Any):
        super().__init__()
        self.__dict__.update(settings)
        self.__dict__["_names"] = tuple(settings)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        if "_names" not in state:                 # a module of torch's: its settings are what its class is made with
            cls = next(c for c in type(self).__mro__ if torch_names.home(c).startswith("rushlight."))
            self.__dict__["_names"] = tuple(name for name in inspect.signature(cls).parameters if name in state)

    def extra_repr(self) -> str:
        names = self._names if self._shown is None else self._shown
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names if name != "inplace" or self.inplace)


def uninitialized(*shape: int, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter of that shape with arbitrary contents, for `reset_parameters` to fill."""
    if min(shape, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    d = dtypes.or_default(dtype)
    return Parameter(from_array(blank(shape, d.numpy) if on_meta(device) else np.empty(shape, d.numpy)))
