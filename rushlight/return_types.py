"""torch.return_types: the tuples with names that ops return, `isinstance(x.max(0), torch.return_types.max)`."""

from __future__ import annotations

from rushlight.base import lazy
from rushlight.base.return_types import RETURN_TYPES
from rushlight.core.call import result_type
from rushlight.core.table import TABLE


def __getattr__(name: str) -> type:
    if not name.startswith("__"):
        lazy.complete()
        for op in [*TABLE.values()]:  # result classes are made on the first call of an op
            result_type(op)
    if name not in RETURN_TYPES:
        raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
    return RETURN_TYPES[name]
