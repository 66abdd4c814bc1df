"""Functions that describe objects and tensors without running an op: is_tensor, is_complex, result_type, numel."""

from __future__ import annotations

from typing import Any

from rushlight.base import dtypes
from rushlight.core.tensor import Tensor


def is_tensor(obj: Any) -> bool:
    """True if the object is a tensor.

    >>> rushlight.is_tensor(rushlight.zeros(2)), rushlight.is_tensor([0, 0])
    (True, False)
    """
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """True if the elements are floating-point numbers.

    >>> rushlight.is_floating_point(rushlight.tensor([1.])), rushlight.is_floating_point(rushlight.tensor([1]))
    (True, False)
    """
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """True if the elements are complex numbers.

    >>> rushlight.is_complex(rushlight.tensor([1j])), rushlight.is_complex(rushlight.tensor([1.]))
    (True, False)
    """
    return input.is_complex()


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an operation on two operands, tensors or numbers.

    >>> rushlight.result_type(rushlight.tensor([1], dtype=rushlight.int32),
    ...     1.0)  # a number changes the category only
    torch.float32
    """
    return dtypes.result_dtype(
        [
            (t.dtype, 0 if t._array.ndim else 1) if isinstance(t, Tensor) else (dtypes.of_scalar(t), 2)
            for t in (tensor1, tensor2)
        ]
    )


def numel(input: Tensor) -> int:
    """The number of elements: the product of the sizes.

    >>> rushlight.numel(rushlight.zeros(2, 3))
    6
    """
    return input.numel()
