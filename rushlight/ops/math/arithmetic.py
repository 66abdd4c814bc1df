"""Arithmetic composed of ops, with torch's signatures (alpha, rounding modes, bounds)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import ndarray

from rushlight.base import dtypes
from rushlight.base.errors import not_implemented_error, runtime_error, type_error, warn_once
from rushlight.core.arguments import check_taken, integer, promoted
from rushlight.core.build import before_write, inplace, recorded, unrecorded
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor, method
from rushlight.core.views import assign, copy_with_node, into, wrote
from rushlight.kernels.elementwise import add_multiple
from rushlight.ops.composites import composite
from rushlight.ops.math import elementwise as e
from rushlight.ops.shape.views import to
from rushlight.ops.tensor.node_names import called

Number = int | float | complex | bool


def writing(function: Callable, onto: bool = False) -> Callable:
    """The in-place form (name_) of a function composed of ops. `onto`: the function writes at positions, and gets the
    tensor as `out`.
    """
    name = function.__name__ + "_"
    entry = TABLE.get(function.__name__)
    inputs = () if entry is None else entry.inputs
    at_once = inplace(entry) if entry is not None and entry.elementwise else None

    def written(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        # the case that the entry handles itself
        if at_once is not None and not kwargs and len(args) < len(inputs):
            return at_once(input, *args)
        if at_once is not None and [*kwargs] == ["alpha"] and unrecorded(input, args):
            alpha, others = kwargs["alpha"], args[1:]
            if not others and not (args[0] is input or alpha is True):  # x += alpha y
                if function.__name__ == "add" and added_multiple(input, args[0], alpha):
                    return input
                return at_once(input, args[0] if alpha == 1 else scaled(input, args[0], alpha))
        if onto and unrecorded(input, (*args, *kwargs.values())):
            return function(input, *args, out=input, **kwargs)
        before = before_write(input, (*args, *kwargs.values()))
        if before is input and recorded(input, (*args, *kwargs.values())):
            before = copy_with_node(input)  # a copy, because the function's nodes may save it
        return assign(input, function(before, *args, **kwargs), name)

    written.__name__ = written.__qualname__ = name
    written.__doc__ = in_place_text(function)
    return written


def added_multiple(input: Tensor, other: Any, alpha: Any) -> bool:
    """True after alpha * other was added to the input's memory without an array for the product: for float32 or float64
    tensors of the same dtype and shape.
    """
    if not (isinstance(other, Tensor) and isinstance(alpha, (int, float))) or other.is_sparse:
        return False
    a, b = input._array, other._array
    plain = a.__class__ is ndarray and b.__class__ is ndarray and input.dtype is other.dtype
    if not plain or a.dtype.char not in "fd" or a.shape != b.shape:
        return False
    try:
        add_multiple(a, b, alpha)
    except (TypeError, ValueError):  # read-only memory: the general path raises the error
        return False
    wrote(input)
    return True


def in_place_text(function: Callable) -> str:
    """The docstring of the in-place form. Its example is the function's own, with f(x, y) as x.f_(y)."""
    name = function.__name__
    says = f"input = {name}(input, ...), written back into the tensor, which is returned."
    _, example, rest = (function.__doc__ or "").partition(">>> ")
    line, _, shown = rest.partition("\n")
    # an example of several statements cannot be rewritten
    if not example or shown.lstrip().startswith(">>>"):
        return says
    if line.startswith(f"rushlight.{name}("):
        first, comma, others = line.removeprefix(f"rushlight.{name}(").partition("), ")
        first, others = (f"{first})", others) if comma else (line.removeprefix(f"rushlight.{name}(")[:-1], ")")
    else:
        first, call, others = line.partition(f".{name}(")
        if not call:
            return says
    shown = shown.partition("\n\n")[0].rstrip()
    return f"{says}\n\n    >>> x = {first}\n    >>> x.{name}_({others}\n{shown}\n    "


# -- sums with a factor, quotients with a rounding -------------------------------------------------


def add(input: Tensor, other: Any, *older: Any, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """input + alpha * other, broadcast; dtypes promote.

    >>> rushlight.add(rushlight.tensor([1., 2.]), 10, alpha=2)
    tensor([21., 22.])
    """
    if older:
        alpha, other = factor_first(add, other, *older)
    return e.add(input, other if alpha == 1 and alpha is not True else scaled(input, other, alpha), out=out)


def sub(input: Tensor, other: Any, *older: Any, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """input - alpha * other, broadcast; dtypes promote. Bool tensors have no difference.

    >>> rushlight.sub(rushlight.tensor([1., 2.]), 10, alpha=2)
    tensor([-19., -18.])
    """
    if older:
        alpha, other = factor_first(sub, other, *older)
    if alpha == 1 and alpha is not True:
        return e.sub(input, other, out=out)
    check_difference(input, other)
    return e.sub(input, scaled(input, other, alpha), out=out)


def check_difference(*operands: Any) -> None:
    """RuntimeError for a bool tensor, which has no difference."""
    dense = [t for t in operands if isinstance(t, Tensor) and t._dense]
    check_taken(TABLE["sub"], *dense)


def factor_first(function: Callable, *given: Any) -> tuple[Any, ...]:
    """(alpha, other) from torch's old positional form: older optimizers write m.mul_(b).add_(1 - b, g). TypeError for
    anything else.
    """
    if len(given) == 2 and not isinstance(given[0], Tensor):
        name = function.__name__
        warn_once(
            f"This overload of {name} is deprecated: name the factor, as in {name}(..., other, alpha=2)", "overload"
        )
        return given
    raise type_error(
        f"{function.__name__}() takes 2 positional arguments but {len(given) + 1} were given",
        "name the factor: alpha=2",
    )


def scaled(input: Any, other: Any, alpha: Number) -> Any:
    """alpha * other in the common dtype of both. RuntimeError for a float factor of an integer result."""
    if not isinstance(other, Tensor):
        return other * alpha
    if other.is_sparse:  # for a sparse tensor, the dtype of its values
        beside = input._of if isinstance(input, Tensor) and input.is_sparse else input  # type: ignore[attr-defined]
        return other.to(scaled(beside, other._of, alpha).dtype) * alpha  # type: ignore[attr-defined]
    same = isinstance(input, Tensor) and input.dtype is other.dtype
    common = other.dtype if same else promoted(TABLE["add"], (input, other))[0].dtype
    if isinstance(alpha, float) and common.category < dtypes.FLOATING:
        raise runtime_error(
            "For integral input tensors, argument alpha must not be a floating point number.",
            "convert the tensor: x.float()",
            dtype=other.dtype,
        )
    if isinstance(alpha, complex) and not common.is_complex:
        raise runtime_error(
            "For non-complex input tensors, argument alpha must not be a complex number.",
            "convert the tensor: x.cfloat()",
            dtype=other.dtype,
        )
    if isinstance(alpha, bool) and common is not dtypes.bool_:
        raise runtime_error("Boolean alpha only supported for Boolean results.", "pass 1 or 0", dtype=other.dtype)
    # small integers would wrap around in their own dtype
    product = times(other if same else to(other, common), alpha)
    return to(product, common) if common is dtypes.bool_ else product  # bool times 2 is int64


def times(x: Tensor, factor: Any) -> Tensor:
    """x * factor. For a Python number the node saves no tensor, so that backward can run a second time."""
    recorded = x._node is not None and factor.__class__ in (int, float)
    return e.multiple(x, factor) if recorded else e.mul(x, factor)


def over(x: Tensor, divisor: Any) -> Tensor:
    """x / divisor. If the divisor is a Python number other than 0, the node saves no tensor."""
    recorded = x._node is not None and divisor.__class__ in (int, float) and divisor
    return e.fraction(x, divisor) if recorded else e.div(x, divisor)


def rsub(input: Tensor, other: Any, *, alpha: Number = 1) -> Tensor:
    """other - alpha * input.

    >>> rushlight.rsub(rushlight.tensor([1., 2.]), 10)
    tensor([9., 8.])
    """
    if not isinstance(input, Tensor):
        raise type_error(
            f"rsub() received an invalid combination of arguments - got ({type(input).__name__}, "
            f"{type(other).__name__})",
            "the first argument is a tensor",
        )
    if alpha != 1:
        check_difference(input, other)
    made = e.sub(other, input if alpha == 1 and alpha is not True else scaled(other, input, alpha))
    return called(made, f"RsubBackward{0 if isinstance(other, Tensor) else 1}")


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
        r = e.trunc_divide(a, b) if a.dtype.category > dtypes.INTEGER else truncated(a, b)
    else:
        raise runtime_error(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return r if out is None else into(out, r)


def truncated(a: Tensor, b: Tensor) -> Tensor:
    """The quotient of integers, rounded toward 0: a minus its remainder (with a's sign) divides exactly."""
    if a._array.dtype.kind == "b":
        raise not_implemented_error("\"div_trunc_cpu\" not implemented for 'Bool'", "convert: x.long()")
    return e.floor_divide(e.sub(a, e.fmod(a, b)), b)


for function, names in ((add, ()), (sub, ("subtract",)), (div, ("divide", "true_divide"))):
    for name in (function.__name__, *names):
        composite(name)(function)
        method(writing(function), name + "_")
composite()(rsub)


@composite(factors=("value",))
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor:
    """input + value * tensor1 * tensor2, broadcast; dtypes promote.

    >>> rushlight.addcmul(rushlight.tensor([1., 2.]), rushlight.tensor([3., 4.]), rushlight.tensor([5., 6.]), value=10)
    tensor([151., 242.])
    """
    return e.addcmul(input, tensor1, tensor2, value, out=out)


method(writing(addcmul))


@composite()
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest integer, or the nearest number with `decimals` decimals; ties go to the even number.

    >>> rushlight.round(rushlight.tensor([0.5, 1.5, 2.5]))
    tensor([0., 2., 2.])
    """
    if integer(decimals, "decimals") == 0:
        return e.round(input, out=out)
    if input.dtype.category < dtypes.FLOATING:
        raise not_implemented_error(
            f"\"round\" with decimals not implemented for '{input.dtype.scalar_type}'", "convert it: x.float()"
        )
    ten = 10.0 ** abs(decimals)
    r = over(e.round(times(input, ten)), ten) if decimals > 0 else times(e.round(over(input, ten)), ten)
    return r if out is None else into(out, r)


method(writing(round))

# -- bounds ----------------------------------------------------------------------------------------


def stays(input: Tensor, number: Any) -> bool:
    """True if the tensor keeps its dtype in an op with this Python number."""
    kind, dtype = number.__class__, input.dtype
    return (kind is float or kind is int) and dtype.is_floating_point or kind is int and dtype is dtypes.int64


def among(input: Tensor, bounds: list) -> Tensor:
    """An integer tensor in the common dtype of itself and its bounds. RuntimeError for a number that this dtype cannot
    hold.
    """
    made = input if all([stays(input, b) for b in bounds]) else promoted(TABLE["clamp_min"], (input, *bounds))[0]
    for bound in bounds:
        if not isinstance(bound, Tensor):
            dtypes.holding(bound, made.dtype)
    return made


@composite("clamp", "clip")
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """min(max(input, lower), upper); bounds are numbers or tensors. If lower > upper, the result is upper.

    >>> rushlight.clamp(rushlight.tensor([-1., 0.5, 3.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise runtime_error("torch.clamp: At least one of 'min' or 'max' must not be None")
    if stays(input, min) and stays(input, max):
        r = e.clamp_both(input, min, max)
    else:
        if input.dtype.category < dtypes.FLOATING:
            input = among(input, [bound for bound in (min, max) if bound is not None])
        r = input if min is None else e.clamp_min(input, min)
        r = r if max is None else e.clamp_max(r, max)
        called(r, f"ClampBackward{0 if isinstance(min, Tensor) or isinstance(max, Tensor) else 1}")
    return r if out is None else into(out, r)


written_back = writing(clamp)


def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """input = clamp(input, min, max), written back into the tensor, which is returned.

    >>> x = rushlight.tensor([-3., 0.5, 9.])
    >>> x.clamp_(0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    a = input._array
    plain = a.__class__ is ndarray and a.dtype.char in "fd"
    if plain and stays(input, min) and stays(input, max) and unrecorded(input, ()):
        try:
            a.clip(min, max, out=a)  # in place, without a copy
        except ValueError:
            pass  # several elements share memory: the general path raises torch's error
        else:
            wrote(input)
            return input
    return written_back(input, min, max)


method(clamp_, "clamp_", "clip_")
