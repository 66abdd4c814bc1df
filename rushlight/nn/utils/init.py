"""Create modules without initial values, for example before loading a state dict."""

from __future__ import annotations

import inspect
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.nn.module import Module
from rushlight.random import default_generator


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """`module_cls(*args, **kwargs)` with arbitrary values of the parameters; the random generator is not used.

    RuntimeError unless the class is a module whose constructor takes `device`.

    >>> rushlight.nn.utils.skip_init(rushlight.nn.Linear, 2, 3).weight.shape
    torch.Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise runtime_error(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise runtime_error("Module must support a 'device' arg to skip initialization")
    state = default_generator.get_state()
    try:
        return module_cls(*args, **kwargs)
    finally:
        default_generator.set_state(state)
