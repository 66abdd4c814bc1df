"""Helpers of layers: modules that apply a function with settings, and new parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base import dtypes, shown_names
from rushlight.base.device import on_meta
from rushlight.core.arguments import integer
from rushlight.core.tensor import from_array
from rushlight.creation.factories import blank, check_sizes, room
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter


class FunctionModule(Module):
    """A module that applies a function, with settings that are attributes.

    `_shown_settings`: the settings in `repr`; None: the parameters of the constructor, in their order. `repr` shows
    `inplace` only if it is true."""

    _function: Callable  # a subclass wraps it in staticmethod
    _shown_settings: tuple[str, ...] | None = None

    def __init__(self, **settings: Any):
        super().__init__()
        self.__dict__.update(settings)

    def extra_repr(self) -> str:
        names = self._shown_settings
        if names is None:  # a user's subclass may have a constructor of its own
            cls = next(c for c in type(self).__mro__ if shown_names.home(c).startswith("rushlight."))
            constructor: Any = cls.__init__  # type: ignore[misc]
            settings = inspect.signature(constructor).parameters
            names = tuple(name for name in settings if name in self.__dict__)
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names if name != "inplace" or self.inplace)


def uninitialized(*shape: int, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter with arbitrary contents; `reset_parameters` fills it."""
    for size in shape:
        integer(size, "size")  # TypeError for a word
    if shape:
        check_sizes(shape)
    d = dtypes.or_default(dtype)
    return Parameter(from_array(blank(shape, d.numpy) if on_meta(device) else room(np.empty, shape, d.numpy)))
