"""Branches, loops and checks as functions, for torch's compiler; here they run as plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.base.dtypes import bool_
from rushlight.base.errors import explain, runtime_error, type_error
from rushlight.core.tensor import Tensor
from rushlight.ops.tensor.torch_function import handle_torch_function, has_torch_function


def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: Sequence[Any] = ()) -> Any:
    """true_fn(*operands) if pred else false_fn(*operands). `pred`: a bool, or a tensor of one bool.

    >>> rushlight.cond(rushlight.tensor(True), lambda x: x + 1, lambda x: x - 1, (rushlight.ones(2),))
    tensor([2., 2.])
    """
    if isinstance(pred, Tensor) and pred._array.size != 1:
        raise runtime_error(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise runtime_error("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise runtime_error(f"Expect operands to be a tuple of possibly nested dict/list/tuple, but got {operands}.")
    return (true_fn if pred else false_fn)(*operands)


def check_as(kind: type[Exception], cond: Any, message: Callable[[], str] | None) -> None:
    if not isinstance(cond, bool):
        raise type_error(f"cond must be a bool, but got {type(cond)}")
    if message is not None and not callable(message):
        raise type_error("message must be a callable")
    if not cond:
        raise kind(explain(str(message()) if message is not None else "Expected cond to be True, but got False."))


def checking(name: str, kind: type[Exception]) -> Callable[..., None]:
    def check(cond: Any, message: Callable[[], str] | None = None) -> None:
        check_as(kind, cond, message)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"""Raise {kind.__name__} with the text `message()` unless cond is True."""
    return check


_check = checking("_check", RuntimeError)
_check_index = checking("_check_index", IndexError)
_check_value = checking("_check_value", ValueError)
_check_type = checking("_check_type", TypeError)
_check_not_implemented = checking("_check_not_implemented", NotImplementedError)


def _check_tensor_all(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError with the text `message()` unless all elements of a bool tensor are True."""
    if not isinstance(cond, Tensor) or cond.dtype is not bool_:
        raise type_error(
            f"cond must be a tensor of bool, but got {cond.dtype if isinstance(cond, Tensor) else type(cond)}"
        )
    check_as(RuntimeError, bool(cond.all()), message)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise an error of this class with the text `message()` unless cond is True."""
    check_as(error_type, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Callable[[], str] | None = None) -> None:
    """`_check_tensor_all` with an error of another class."""
    if not isinstance(cond, Tensor):
        raise type_error(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise type_error(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    check_as(error_type, bool(cond.all()), message)


def _check_is_size(i: int, message: Callable[[], str] | None = None) -> None:
    """RuntimeError for a negative number."""
    check_as(RuntimeError, i >= 0, message)


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: Sequence[Any]) -> Any:
    """values = body_fn(*values), while cond_fn(*values) is true. Returns the last values.

    >>> rushlight.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (rushlight.tensor(0), rushlight.ones(1)))
    (tensor(3), tensor([8.]))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise runtime_error("Expect cond_fn and body_fn to be callable.")
    values = tuple(carried_inputs)
    while cond_fn(*values):
        values = tuple(body_fn(*values))
    return values


# -- symbolic numbers: here plain Python numbers ---------------------------------------------------


def sym_int(a: Any) -> int:
    """int(a).

    >>> rushlight.sym_int(2.5)
    2
    """
    return int(a)


def sym_float(a: Any) -> float:
    """float(a).

    >>> rushlight.sym_float(2)
    2.0
    """
    return float(a)


def sym_not(a: Any) -> bool:
    """not a.

    >>> rushlight.sym_not(2 > 1)
    False
    """
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """max(a, b); a float if either is.

    >>> rushlight.sym_max(2, 1.0)
    2.0
    """
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """min(a, b); a float if either is.

    >>> rushlight.sym_min(2, 3.0)
    2.0
    """
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_sum(args: Sequence[Any]) -> Any:
    """sum(args).

    >>> rushlight.sym_sum([1, 2, 3])
    6
    """
    return sum(args)


def sym_sqrt(a: Any) -> float:
    """math.sqrt(a).

    >>> rushlight.sym_sqrt(9)
    3.0
    """
    return math.sqrt(a)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b else f.

    >>> rushlight.sym_ite(2 > 1, "then", "else")
    'then'
    """
    return t if b else f


def _assert(condition: Any, message: str) -> Any:
    """AssertionError with the message unless the condition holds."""
    if type(condition) is not Tensor and has_torch_function((condition,)):  # a proxy records the check
        return handle_torch_function(_assert, (condition,), condition, message)
    if not condition:
        raise AssertionError(message)
    return None
