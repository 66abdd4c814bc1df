"""Arithmetic, activations, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight.core.tensor import Tensor

from .table import dtype_of, operator

F = torch.nn.functional


@operator("add")
def add(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    return torch.add(x, y, alpha=alpha) if alpha != 1 else torch.add(x, y)


@operator("sub")
def sub(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    return torch.sub(x, y, alpha=alpha) if alpha != 1 else torch.sub(x, y)


@operator("rsub")
def rsub(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    return y - x * alpha if alpha != 1 else y - x


@operator("mul")
def mul(x: Any, y: Any) -> Tensor:
    return x * y


@operator("div", "divide")
def div(x: Any, y: Any, rounding_mode: str | None = None) -> Tensor:
    return torch.div(x, y, rounding_mode=rounding_mode) if rounding_mode else torch.div(x, y)


def binary(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """An operator of Python, which ATen has under a name with underscores."""
    return lambda x, y: function(x, y)


operator("__and__")(binary(torch.bitwise_and))
operator("__or__")(binary(torch.bitwise_or))
operator("__xor__")(binary(torch.bitwise_xor))
operator("__lshift__")(binary(torch.bitwise_left_shift))
operator("__rshift__")(binary(torch.bitwise_right_shift))


# -- activations -------------------------------------------------------------------------------------


@operator("gelu")
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return F.gelu(x, approximate=approximate)


@operator("elu")
def elu(x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    if scale == input_scale == 1:
        return F.elu(x, alpha)
    return scale * torch.where(x > 0, x, alpha * torch.expm1(x * input_scale))


@operator("hardtanh")
def hardtanh(x: Tensor, low: float = -1.0, high: float = 1.0) -> Tensor:
    return F.hardtanh(x, low, high)


@operator("threshold")
def threshold(x: Tensor, limit: float, value: float) -> Tensor:
    return F.threshold(x, limit, value)


operator("hardswish")(lambda x: F.hardswish(x))
operator("log_sigmoid")(lambda x: F.logsigmoid(x))
operator("rrelu", "rrelu_with_noise")(
    lambda x, lower=1 / 8, upper=1 / 3, training=False: F.rrelu(x, lower, upper, training)
)


@operator("softmax", "special_softmax")
def softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return F.softmax(x, dim, dtype=dtype_of(dtype))


@operator("log_softmax", "special_log_softmax")
def log_softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return F.log_softmax(x, dim, dtype=dtype_of(dtype))


operator("_softmax", "_safe_softmax")(lambda x, dim, *half, **dtype: F.softmax(x, dim))
operator("_log_softmax")(lambda x, dim, half: F.log_softmax(x, dim))


# -- casts and copies --------------------------------------------------------------------------------


@operator("to")
def to(x: Tensor, *args: Any, dtype: Any = None, copy: bool = False) -> Tensor:
    """`to(dtype)`, `to(device, dtype)`, `to(other)`: numbers are dtypes, bools are `non_blocking` and `copy`."""
    flags = [a for a in args if isinstance(a, bool)]
    for a in args:
        if isinstance(a, Tensor):
            dtype = a.dtype
        elif isinstance(a, torch.dtype) or isinstance(a, int) and not isinstance(a, bool):
            dtype = dtype_of(a)
    dtype, copy = dtype_of(dtype), copy or flags[1:2] == [True]
    made = x if dtype is None or dtype == x.dtype else x.to(dtype)
    return made.clone() if copy and made is x else made


@operator("_to_copy")
def to_copy(x: Tensor, dtype: Any = None) -> Tensor:
    return to(x, dtype=dtype, copy=True)


operator("type_as")(lambda x, y: to(x, y))
operator("clone", "lift_fresh_copy", "lift_fresh")(lambda x, memory_format=None: x.clone())
operator("contiguous")(lambda x, memory_format=None: x.contiguous())
operator("alias", "cpu", "lift")(lambda x: x)
operator("requires_grad_")(lambda x, flag=True: x.requires_grad_(flag))
for _name in ("float", "double", "int", "long", "half", "bool"):
    operator(f"_cast_{_name.capitalize()}")(lambda x, non_blocking=False, _name=_name: getattr(x, _name)())


@operator("copy_")
def copy_(x: Tensor, y: Any, non_blocking: bool = False) -> Tensor:
    return x.copy_(y)


operator("copy")(lambda x, y, non_blocking=False: y.to(x.dtype).expand(x.shape).clone())
operator("fill_")(lambda x, value: x.fill_(value))
operator("fill")(
    lambda x, value: torch.full_like(x, value) if not isinstance(value, Tensor) else value.expand(x.shape).clone()
)
operator("zero_")(lambda x: x.zero_())


# -- checks of programs, which change nothing --------------------------------------------------------

operator("_assert_tensor_metadata", "_assert_async", "sym_constrain_range", "sym_constrain_range_for_size")(
    lambda *args, **kwargs: None
)


@operator("_assert_scalar")
def assert_scalar(condition: Any, message: str) -> None:
    if not condition:
        raise RuntimeError(message)
