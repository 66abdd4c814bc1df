"""Arithmetic that is made of ops: torch's signatures (alpha, rounding modes, bounds), copies and casts."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.autograd.views import as_it_is, assign, detached, wrote
from rushlight.errors import explain
from rushlight.ops import elementwise as e
from rushlight.ops.arguments import promoted
from rushlight.ops.build import composite, inplace, recorded, unrecorded
from rushlight.ops.families import into
from rushlight.ops.shape import clone, overwrite, to
from rushlight.ops.table import TABLE
from rushlight.tensor import Tensor, from_array, method

Number = int | float | complex | bool


def writing(function: Callable) -> Callable:
    """The form with an underscore of a function made of ops."""
    name = function.__name__ + "_"
    entry = TABLE.get(function.__name__)
    at_once = inplace(entry) if entry is not None and entry.elementwise else None

    def written(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if at_once is not None and not kwargs and len(args) < len(entry.inputs):   # what the entry does itself
            return at_once(input, *args)
        before = as_it_is(input) if recorded(input, (*args, *kwargs.values())) else input
        return assign(input, function(before, *args, **kwargs), name)
    written.__name__ = written.__qualname__ = name
    written.__doc__ = f"`{function.__name__}`, written back into the tensor. Returns the tensor."
    return written


# -- sums with a factor, quotients with a rounding -----------------------------------------------------------------

def add(input: Tensor, other: Any, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """input + alpha * other, broadcast; dtypes promote.

    >>> rushlight.add(rushlight.tensor([1., 2.]), 10, alpha=2)
    tensor([21., 22.])
    """
    return e.add(input, other if alpha == 1 else scaled(input, other, alpha), out=out)


def sub(input: Tensor, other: Any, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """input - alpha * other, broadcast; dtypes promote. Bool tensors have no difference.

    >>> rushlight.sub(rushlight.tensor([1., 2.]), 10, alpha=2)
    tensor([-19., -18.])
    """
    return e.sub(input, other if alpha == 1 else scaled(input, other, alpha), out=out)


def scaled(input: Any, other: Any, alpha: Number) -> Any:
    """alpha * other in the dtype that both promote to; RuntimeError for a factor that would change an integer's."""
    if isinstance(other, Tensor) and isinstance(alpha, float) and other.dtype.category < dtypes.FLOATING:
        raise RuntimeError(explain("For integral input tensors, argument alpha must not be a floating point number.",
                                   "convert the tensor: x.float()", dtype=other.dtype))
    product = other * alpha
    if isinstance(other, Tensor) and other.dtype is dtypes.bool_:                # bool times 2 is int64
        return to(product, promoted(TABLE["add"], (input, other))[0].dtype)
    return product


def rsub(input: Tensor, other: Any, *, alpha: Number = 1) -> Tensor:
    """other - alpha * input."""
    return e.sub(other, input if alpha == 1 else scaled(other, input, alpha))


def div(input: Tensor, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """input / other, broadcast; integers give floats. `rounding_mode`: None, 'trunc' (toward 0) or 'floor'.

    >>> rushlight.div(rushlight.tensor([-7, 7]), 2, rounding_mode="trunc")
    tensor([-3,  3])
    """
    if rounding_mode is None:
        return e.div(input, other, out=out)
    if rounding_mode == "floor":
        r = e.floor_divide(input, other)
    elif rounding_mode == "trunc":
        a, b = promoted(TABLE["mul"], (input, other))
        r = e.div(a, b).trunc() if a.dtype.category > dtypes.INTEGER else truncated(a, b)  # type: ignore[attr-defined]
    else:
        raise RuntimeError(explain("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                                   f"'{rounding_mode}'"))
    return r if out is None else into(out, r)


def truncated(a: Tensor, b: Tensor) -> Tensor:
    """Whole quotients toward 0."""
    if (b.array == 0).any():
        raise RuntimeError(explain("ZeroDivisionError"))
    q = np.abs(a.array) // np.abs(b.array)
    return from_array((q * np.sign(a.array) * np.sign(b.array)).astype(a.array.dtype))


for function, names in ((add, ()), (sub, ("subtract",)), (div, ("divide", "true_divide"))):
    for name in (function.__name__, *names):
        composite(name)(function)
        method(writing(function), name + "_")
composite()(rsub)


@composite()
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest whole number, or number with that many decimals; halves go to the even one.

    >>> rushlight.round(rushlight.tensor([0.5, 1.5, 2.5]))
    tensor([0., 2., 2.])
    """
    if decimals == 0:
        return e.round(input, out=out)
    ten = 10.0 ** abs(decimals)
    r = e.div(e.round(e.mul(input, ten)), ten) if decimals > 0 else e.mul(e.round(e.div(input, ten)), ten)
    return r if out is None else into(out, r)


method(writing(round))

# -- bounds ----------------------------------------------------------------------------------------------------------

@composite("clamp", "clip")
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """min(max(input, lower), upper); bounds are numbers or tensors. Where they cross, the upper one wins.

    >>> rushlight.clamp(rushlight.tensor([-1., 0.5, 3.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError(explain("torch.clamp: At least one of 'min' or 'max' must not be None"))
    r = input if min is None else e.clamp_min(input, min)
    r = r if max is None else e.clamp_max(r, max)
    return r if out is None else into(out, r)


method(writing(clamp), "clamp_", "clip_")


# -- copies, casts, detaching ------------------------------------------------------------------------------------------

@composite(function=False)
def detach(input: Tensor) -> Tensor:
    """The same memory outside the graph; a write to either is noticed by both."""
    return detached(input)


@composite(function=False)
def detach_(input: Tensor) -> Tensor:
    """Take this tensor out of the graph."""
    if input.viewing is not None:
        raise RuntimeError(explain("Can't detach views in-place. Use detach() instead"))
    input.node = None
    return input


def clone_tensor(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with its own memory, in the graph."""
    return clone(input)


composite("clone")(clone_tensor)


@composite(function=False)
def copy_(input: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Write the elements of `source`, broadcast and converted, into this tensor."""
    if not isinstance(source, Tensor):
        raise TypeError(explain(f"copy_(): argument 'other' must be Tensor, not {type(source).__name__}"))
    if unrecorded(input, (source,)):
        try:
            np.copyto(input.array, source.array, casting="unsafe")
        except ValueError as error:
            raise RuntimeError(explain(f"copy_(): shapes {list(input.shape)} and {list(source.shape)} do not fit",
                                       "the source must broadcast to the tensor")) from error
        wrote(input)
        return input
    if source.array.dtype != input.array.dtype:
        source = to(source, input.dtype)
    return assign(input, overwrite(input, source))


@composite(function=False)
def fill_(input: Tensor, value: Any) -> Tensor:
    """Write one number everywhere."""
    value = value if isinstance(value, Tensor) else from_array(np.asarray(value).astype(input.array.dtype))
    return copy_(input, value)


@composite(function=False)
def zero_(input: Tensor) -> Tensor:
    """Write 0 everywhere."""
    return fill_(input, 0)


def convert(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False,
            copy: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor in another dtype: `x.to(torch.float64)`, `x.to('cpu')`, `x.to(other)`; itself if nothing changes.

    >>> rushlight.tensor([1, 2]).to(rushlight.float64)
    tensor([1., 2.], dtype=torch.float64)
    """
    for arg in args:
        if isinstance(arg, Tensor):
            dtype = arg.dtype
        elif isinstance(arg, dtypes.dtype) or arg in (float, int, bool, complex):
            dtype = dtypes.as_dtype(arg)
        elif isinstance(arg, bool):
            copy = copy or (arg and args.index(arg) > 1)
        elif arg is not None:
            device = arg
    if device is not None:
        type(self.device)(device)                 # says what is wrong with it
    dtype = self.dtype if dtype is None else dtypes.as_dtype(dtype)
    if dtype is not self.dtype:
        return to(self, dtype)
    return clone(self) if copy else self


def caster(d: dtypes.dtype) -> Callable:
    """x.float() and its like."""
    def cast(self: Tensor, memory_format: Any = None) -> Tensor:
        return self if self.array.dtype == d.numpy else to(self, d)
    cast.__doc__ = f"The tensor as {d}; itself if it is that already."
    return cast


method(convert, "to")
for name, d in dtypes.NAMES.items():
    if name in ("float", "double", "half", "bfloat16", "long", "int", "short", "bool", "cfloat", "cdouble"):
        method(caster(d), name)
method(caster(dtypes.uint8), "byte")
method(caster(dtypes.int8), "char")


@composite(function=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another."""
    return convert(input, other.dtype)


def type_of(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """torch's name of the tensor's type; with a dtype, the tensor converted."""
    return f"torch.{self.dtype.scalar_type}Tensor" if dtype is None else convert(self, dtype)


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself: it lives on the CPU."""
    return self


def cuda(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """RuntimeError: there is only the CPU."""
    raise RuntimeError(explain("Torch not compiled with CUDA enabled", "leave .cuda() away, or use "
                               ".to('cuda' if torch.cuda.is_available() else 'cpu')"))


for f, name in ((type_of, "type"), (cpu, "cpu"), (cuda, "cuda")):
    method(f, name)
