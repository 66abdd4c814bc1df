"""The ops: a table, a file a subject, and the families that make functions of its entries."""

from rushlight.ops.index import getitem, index_tensors
from rushlight.ops.linalg import matmul, matmul_api
from rushlight.ops.math import arithmetic, elementwise, operators
from rushlight.ops.reduce import reduce
from rushlight.ops.shape import view_functions, views
from rushlight.ops.tensor import casts


def __getattr__(name: str) -> object:
    if name != "aten":
        raise AttributeError(f"module 'rushlight.ops' has no attribute '{name}'")
    from importlib import import_module

    return import_module("rushlight.ops.tensor.aten")
