"""Python's operators on tensors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.ops import elementwise as e
from rushlight.ops.arithmetic import writing
from rushlight.ops.products import matmul
from rushlight.tensor import Tensor, method


def reflected(function: Callable) -> Callable:
    """other + x from x + other."""
    def operator(self: Tensor, other: Any) -> Any:
        return function(other, self)
    return operator


def guarded(function: Callable) -> Callable:
    """The operator for types that rushlight does not know: Python asks the other operand next."""
    def operator(self: Tensor, other: Any) -> Any:
        try:
            return function(self, other)
        except TypeError:
            if isinstance(other, (Tensor, int, float, complex, np.ndarray, np.generic)):
                raise
            return NotImplemented
    return operator


OPERATORS = {"add": e.add, "sub": e.sub, "mul": e.mul, "truediv": e.div, "pow": e.pow, "floordiv": e.floor_divide,
             "mod": e.remainder, "and": e.bitwise_and, "or": e.bitwise_or, "xor": e.bitwise_xor, "matmul": matmul,
             "lshift": e.bitwise_left_shift, "rshift": e.bitwise_right_shift}
for name, function in OPERATORS.items():
    method(function, f"__{name}__")
    method(reflected(function), f"__r{name}__")
    method(writing(matmul) if function is matmul else getattr(Tensor, function.__name__ + "_"), f"__i{name}__")
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    method(guarded(getattr(e, name)), f"__{name}__")
method(e.neg, "__neg__")
method(e.abs, "__abs__")
method(e.bitwise_not, "__invert__")
method(lambda self: self, "__pos__")
