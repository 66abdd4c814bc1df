"""Python's operators on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.docstring import introduce
from rushlight.base.errors import type_error
from rushlight.core import families
from rushlight.core.arguments import constant
from rushlight.core.build import inplace
from rushlight.core.table import FLOATING
from rushlight.core.tensor import Tensor, from_array, method
from rushlight.ops.linalg.matmul_api import matmul
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.arithmetic import writing
from rushlight.ops.tensor.node_names import called

# names of nodes: for 1 - x, and for 1 / x, which is a multiple of the reciprocal
OF_NUMBERS = {"__rsub__": "RsubBackward1", "__rtruediv__": "MulBackward0"}


def reflected(function: Callable, name: str, commutes: bool) -> Callable:
    """The operator other - x, from the function for x - other. If the op commutes, 2 * x is x * 2, as in torch."""
    floating = function.op.result == FLOATING  # type: ignore[attr-defined]
    shown = OF_NUMBERS.get(name)

    def operator(self: Tensor, other: Any) -> Any:
        if not isinstance(self, Tensor):  # Tensor.__radd__(1, x)
            raise type_error(
                f"descriptor '{operator.__name__}' for 'torch._C.TensorBase' objects doesn't apply to a "
                f"'{type(self).__name__}' object"
            )
        if commutes:
            return function(self, other)
        if self.__class__ is Tensor and (other.__class__ is float or other.__class__ is int):
            d = self._array.dtype
            # a Python number is passed without making an array
            number = None if floating and d.kind in "iu" else constant(other, d)
            other = other if number is None else number
            made = function(other, self)
            return made if made._node is None or shown is None else called(made, shown)
        return function(other, self)

    operator.__name__ = operator.__qualname__ = name
    return operator


def operator(function: Callable) -> Callable:
    """The function that Python calls for an operator: it returns NotImplemented for an operand of another type."""
    op = function.op  # type: ignore[attr-defined]
    made = families.binary(op, as_operator=True)
    introduce(made, op)
    return made


def squaring(power: Callable) -> Callable:
    """x ** 2 and x.pow(2) as `square`, whose derivative is two products; the derivative of `pow` also tests for
    exponents of 0.
    """

    def operator(self: Tensor, exponent: Any, **options: Any) -> Any:
        if exponent.__class__ in (int, float) and exponent == 2 and not options and self._array.dtype.kind in "fcV":
            return e.square(self)
        return power(self, exponent, **options)

    introduce(operator, e.pow.op)
    return operator


def matrix_product(self: Tensor, other: Any) -> Any:
    """`matmul`, also for NumPy arrays."""
    if other.__class__ is not Tensor and not isinstance(other, Tensor):
        if not isinstance(other, np.ndarray):
            return NotImplemented
        other = from_array(other)
    return matmul(self, other)


def matrix_product_from_left(self: Tensor, other: Any) -> Any:
    """`matmul` with an array, or a tensor, on the left."""
    left = from_array(other) if isinstance(other, np.ndarray) else other
    return matmul(left, self) if isinstance(left, Tensor) else NotImplemented


OPERATORS = {
    "add": e.add,
    "sub": e.sub,
    "mul": e.mul,
    "truediv": e.div,
    "pow": e.pow,
    "floordiv": e.floor_divide,
    "mod": e.remainder,
    "and": e.bitwise_and,
    "or": e.bitwise_or,
    "xor": e.bitwise_xor,
    "lshift": e.bitwise_left_shift,
    "rshift": e.bitwise_right_shift,
}
COMMUTING = ("add", "mul", "and", "or", "xor")
for name, function in OPERATORS.items():
    made = operator(function)
    method(made, f"__{name}__")
    method(reflected(made, f"__r{name}__", name in COMMUTING), f"__r{name}__")
    method(inplace(function.op), f"__i{name}__")
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    method(operator(getattr(e, name)), f"__{name}__")
for name in ("pow", "__pow__"):
    method(squaring(getattr(Tensor, name)), name)
method(matrix_product, "__matmul__")
method(matrix_product_from_left, "__rmatmul__")
method(writing(matmul), "__imatmul__")
method(e.neg, "__neg__")
method(e.abs, "__abs__")
method(e.bitwise_not, "__invert__")
method(lambda self: self, "__pos__")
