"""ReduceOp: the reductions of the ranks' values, and the array that MPI reduces."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, type_error


class ReduceOp(Enum):
    """A reduction of the values of several ranks."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # in torch the class of the members

BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
# the reductions of bools, which are the bytes 0 and 1 for MPI
OF_BOOLS = {ReduceOp.SUM: ReduceOp.MAX, ReduceOp.PRODUCT: ReduceOp.MIN}
MPI_NAMES = {ReduceOp.PRODUCT: "PROD", ReduceOp.AVG: "SUM"}


def check_op(op: Any, array: np.ndarray) -> None:
    """Raise torch's error if the dtype does not support this reduction."""
    if not isinstance(op, ReduceOp):
        raise type_error(f"op is {op!r}, not a torch.distributed.ReduceOp")
    dtype = dtypes.of(array.dtype)
    if op is ReduceOp.PREMUL_SUM:
        raise runtime_error("Cannot use ReduceOp.PREMUL_SUM with Gloo", "multiply, then use SUM")
    if dtype.is_complex and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"all_reduce does not support {op.name} on complex tensors")
    if op in BITS and (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is ReduceOp.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise runtime_error(f"Cannot use ReduceOp.AVG with {dtype}", "use SUM, or a floating-point dtype")


def reducible(array: np.ndarray) -> np.ndarray:
    """A contiguous array that MPI can reduce; a view if MPI supports the dtype. 16-bit floats become float32, so that
    the sum is rounded once."""
    if array.dtype == np.bool_:
        return np.ascontiguousarray(array).view(np.uint8)
    if array.dtype.kind == "V" or (array.dtype.kind == "f" and array.dtype.itemsize < 4):
        return array.astype(np.float32, order="C")
    return np.ascontiguousarray(array)


def op_for(op: ReduceOp, array: np.ndarray) -> str:
    """MPI's name of the reduction for this array's dtype."""
    if array.dtype == np.bool_:
        op = OF_BOOLS.get(op, op)
    return MPI_NAMES.get(op, op.name)
