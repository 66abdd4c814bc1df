"""The ops: a table, a file a subject, and the families that make functions of its entries."""
from rushlight.ops import (
    arithmetic,
    casts,
    elementwise,
    index,
    indexing,
    matmul,
    operators,
    products,
    reduce,
    shape,
    shapes,
)


def __getattr__(name: str) -> object:
    if name != "aten":
        raise AttributeError(f"module 'rushlight.ops' has no attribute '{name}'")
    from importlib import import_module
    return import_module("rushlight.ops.aten")
