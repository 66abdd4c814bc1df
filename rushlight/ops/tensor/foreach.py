"""torch._foreach_add and so on: an op on each tensor of a list. Optimizers outside torch call these functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.base.public_function import MORE
from rushlight.core.tensor import Tensor

UNARY = """abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg
           reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"""
WITH_OTHERS = "add sub mul div pow maximum minimum clamp_max clamp_min addcmul addcdiv lerp copy"
REDUCED = "norm powsum max mm"  # ops without in-place forms
METHODS = {
    "max": "amax",
    "maximum": "clamp_min",
    "minimum": "clamp_max",  # clamp_min and clamp_max also accept numbers
    "maximum_": "clamp_min_",
    "minimum_": "clamp_max_",
}
# torch's names of the arguments after the list, in order; all can be given by position
OPERANDS = "other src tensor1 tensors1 mat2 exponent ord scalar tensor2 weight weights value scalars"


def one(name: str) -> Callable[..., Any]:
    """The function that _foreach_<name> applies to one tensor and its operands: the method `name`, with exceptions."""

    def addc(x: Tensor, first: Tensor, second: Tensor, value: Any = 1) -> Tensor:
        return getattr(x, name)(first, second, value=value)

    def norm(x: Tensor, ord: Any = 2, dtype: Any = None) -> Tensor:
        return x.norm(ord, dtype=dtype)

    def powsum(x: Tensor, ord: Any = 2, dtype: Any = None) -> Tensor:
        return x.abs().pow(ord).sum(dtype=dtype)

    def method(x: Any, *operands: Any, **settings: Any) -> Any:
        return getattr(x, METHODS.get(name, name))(*operands, **settings)

    return {"norm": norm, "powsum": powsum}.get(name, addc if name.startswith("addc") else method)


def foreach(name: str) -> Callable[..., Any]:
    """torch._foreach_<name>: the op on each tensor, with the n-th element of each list argument."""
    apply = one(name)

    def call(self: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        operands = [*args, *(kwargs.pop(k) for k in OPERANDS.split() if k in kwargs)] if kwargs else [*args]
        if name == "pow" and not isinstance(self, (list, tuple)):  # pow(2, tensors): 2 ** each
            return tuple([self**x for x in operands[0]])
        found = [apply(x, *others, **kwargs) for x, others in zip(self, each(self, operands))]
        return self if name.endswith("_") else tuple(found)

    call.__name__ = call.__qualname__ = f"_foreach_{name}"
    call.__doc__ = f"x.{name}(...) for each x of a list; a list among the arguments has one element for each x."
    return call


def each(tensors: Sequence[Tensor], operands: list[Any]) -> list[list[Any]]:
    """The operands of each tensor. If the third operand is a tensor, it has one number for each tensor of the list.

    RuntimeError for an empty list and for lists of another length.
    """
    if not tensors:
        raise runtime_error("Tensor list must have at least one tensor.")
    operands = [*operands[:2], *(a.tolist() if isinstance(a, Tensor) else a for a in operands[2:])]
    for a in operands:
        if isinstance(a, (list, tuple)) and len(a) != len(tensors):
            raise runtime_error(f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(a)}")
    return [[a[i] if isinstance(a, (list, tuple)) else a for a in operands] for i in range(len(tensors))]


for name in f"{UNARY} {WITH_OTHERS} {REDUCED} zero".split():
    if name not in ("copy", "zero"):
        MORE[f"_foreach_{name}"] = foreach(name)
    if name != "clone" and name not in REDUCED.split():
        MORE[f"_foreach_{name}_"] = foreach(name + "_")
