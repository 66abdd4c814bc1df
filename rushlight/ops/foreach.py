"""torch._foreach_add and the like: an op on each tensor of a list, as optimizers of one's own call it."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.errors import explain
from rushlight.ops.build import MORE
from rushlight.tensor import Tensor

ALONE = ["abs", "acos", "asin", "atan", "ceil", "clone", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
         "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign",
         "sin", "sinh", "sqrt", "tan", "tanh", "trunc"]
WITH_OTHERS = ["add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_max", "clamp_min", "addcmul",
               "addcdiv", "lerp", "norm", "max", "copy"]
METHODS = {"max": "amax", "maximum": "clamp_min", "minimum": "clamp_max",          # which take numbers, too
           "maximum_": "clamp_min_", "minimum_": "clamp_max_"}


def foreach(name: str) -> Callable[..., Any]:
    """torch._foreach_<name>: the method of that name of each tensor, with the n-th of each list that is given."""
    def call(self: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        found = [getattr(x, METHODS.get(name, name))(*others, **kwargs) for x, others in zip(self, each(self, args))]
        return None if name.endswith("_") else tuple(found)
    call.__name__ = call.__qualname__ = f"_foreach_{name}"
    call.__doc__ = f"x.{name}(...) for each x of a list; lists among the arguments give each its own."
    return call


def each(tensors: Sequence[Tensor], args: Sequence[Any]) -> list[list[Any]]:
    """The arguments for each tensor. RuntimeError for lists of another length."""
    for a in args:
        if isinstance(a, (list, tuple)) and len(a) != len(tensors):
            raise RuntimeError(explain("Tensor lists must have the same number of tensors, got "
                                       f"{len(tensors)} and {len(a)}"))
    return [[a[i] if isinstance(a, (list, tuple)) else a for a in args] for i in range(len(tensors))]


MORE.update((f"_foreach_{name}", foreach(name)) for name in ALONE + WITH_OTHERS if name != "copy")
MORE.update((f"_foreach_{name}_", foreach(name + "_")) for name in [*ALONE, *WITH_OTHERS, "zero"]
            if name not in ("clone", "norm", "max"))
