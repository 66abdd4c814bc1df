"""Argument checks for functions of matrices, with torch's messages, and helpers shared by these functions."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, type_error
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, holder


def with_names(function: Callable, name: str, **names: str) -> Callable:
    """A copy of the function with another name and torch's parameter names."""

    def renamed(values: dict | None) -> dict:
        return {names.get(k, k): v for k, v in (values or {}).items()}

    variables = tuple(names.get(n, n) for n in function.__code__.co_varnames)
    code = function.__code__.replace(co_varnames=variables, co_name=name)
    made = FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    made.__kwdefaults__, made.__annotations__ = renamed(function.__kwdefaults__), renamed(function.__annotations__)
    made.__doc__, made.__module__, made.__qualname__ = function.__doc__, function.__module__, name
    return made


def check_tensor(x: Any, name: str, argument: str = "A", position: int = 1) -> None:
    """TypeError if `x` is not a tensor."""
    if not isinstance(x, Tensor):
        raise type_error(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(x).__name__}",
            "make it a tensor: torch.tensor(...)",
        )


def check_numbers(x: Tensor, name: str, low: bool = False) -> None:
    """RuntimeError unless the elements are floating-point or complex; 16-bit floats are allowed only if `low`."""
    if x.dtype.category < dtypes.FLOATING:
        raise runtime_error(
            f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_type}",
            "convert it: x.float()",
        )
    if not low and x._array.dtype.itemsize < 4:
        raise runtime_error(
            f"{name}: Low precision dtypes not supported. Got {x.dtype.scalar_type}", "convert it: x.float()"
        )


def check_matrix(x: Tensor, name: str, argument: str = "A", numbers: bool = True) -> None:
    """RuntimeError unless x is a matrix, or a stack of matrices, of floating-point or complex numbers."""
    check_tensor(x, name, argument)
    if x._array.ndim < 2:
        raise runtime_error(
            f"{name}: The input tensor {argument} must have at least 2 dimensions.", shape=tuple(x.shape)
        )
    if numbers:
        check_numbers(x, name)


def check_square(x: Tensor, name: str, argument: str = "A", numbers: bool = True) -> None:
    """RuntimeError unless `x` is a square matrix or a stack of square matrices."""
    check_matrix(x, name, argument, numbers)
    m, n = x._array.shape[-2:]
    if m != n:
        raise runtime_error(
            f"{name}: {argument} must be batches of square matrices, but they are {m} by {n} matrices",
            shape=tuple(x.shape),
        )


def check_same(a: Tensor, b: Tensor, name: str, names: tuple[str, str] = ("A", "B")) -> None:
    """RuntimeError unless both have the same dtype."""
    check_tensor(b, name, names[1], 2)
    if a._array.dtype != b._array.dtype:
        p, q = names
        raise runtime_error(
            f"{name}: Expected {p} and {q} to have the same dtype, but found {p} of type {a.dtype.scalar_type} "
            f"and {q} of type {b.dtype.scalar_type} instead",
            "convert one with .to(dtype)",
        )


def check_equation(a: Tensor, b: Tensor, left: bool, name: str) -> None:
    """RuntimeError unless the shapes fit a X = b (X a = b if not `left`)."""
    if a._array.shape[-2] != b._array.shape[-2 if left else -1]:
        sizes = " and ".join("x".join(map(str, t._array.shape[-2:])) for t in (a, b))
        raise runtime_error(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({sizes})"
        )


def first_failure(info: Tensor) -> tuple[int, str]:
    """The first code that is not 0, and torch's description of its position in the batch; (0, "") if all are 0."""
    if info.is_meta:  # a meta tensor has no values to check
        return 0, ""
    info = holder(info)
    codes = np.atleast_1d(info._array).ravel()
    wrong = np.flatnonzero(codes)
    if (watch := mode().watch) is not None:
        watch.on_assert(info == 0)
    if not wrong.size:
        return 0, ""
    return int(codes[wrong[0]]), f"(Batch element {wrong[0]}): " if info._array.ndim else ""
