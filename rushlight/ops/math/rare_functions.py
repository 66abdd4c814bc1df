"""Rarely used elementwise ops: divisors, the parts of floating-point numbers, polar coordinates, powers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.base import dtypes
from rushlight.base.errors import describe, runtime_error, type_error
from rushlight.core.build import build, floating, general, inner, op, predicate
from rushlight.core.tensor import Tensor, method
from rushlight.core.worlds import adopt
from rushlight.kernels import rare_functions as kernels
from rushlight.ops.composites import composite, given
from rushlight.ops.linalg.arguments import check_tensor
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.arithmetic import Number, writing
from rushlight.ops.math.complex import check_pair
from rushlight.ops.shape.views import to

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import cast, cos, exp2, imag, real, sin, where, zeros_like

adopt(kernels)

# fmt: off
gcd = op(lambda x, y, /: gcd(x, y), numbers="", takes="ui")
lcm = op(lambda x, y, /: lcm(x, y), numbers="", takes="ui")
nextafter = op(lambda x, y, /: nextafter(x, y), x=lambda g, x, y: where(x == y, 0, g), y=lambda g: zeros_like(g),
    doc="The next floating-point number on the way to `other`.", numbers="", takes="f")
isreal = predicate(lambda x, /: isreal(x), doc="Whether the imaginary part is 0.", inplace=False)
frexp = general(lambda x, /: frexp(x), x=lambda gs, exponent: gs[0] / exp2(cast(exponent, gs[0])),
    doc="m and e with input = m 2^e and 1/2 <= |m| < 1.", outputs="mantissa exponent", batched="align", takes="f")
polar_parts = general(lambda x, y, /: polar(x, y), x=lambda g, y: real(g) * cos(y) - imag(g) * sin(y),
    y=lambda g, out: -(real(g) * imag(out) + imag(g) * real(out)),
    method=False, function=False, node="PolarBackward0", called="polar", batched="align", takes="f")
# 0.693... is log 2
times_power = floating(lambda x, y, /: x * exp2(y), x=lambda g, y: g * exp2(y),
    y=lambda g, out: g * out * 0.6931471805599453, method=False, function=False, node="LdexpBackward0", called="ldexp")
crossed = inner(lambda x, y, /, behind: crossed(x, y, behind), x=lambda g, y, behind: crossed(y, g, behind),
    y=lambda g, x, behind: crossed(g, x, behind),
    batched="align", node="LinalgCrossBackward0", called="linalg_cross", takes="uifc")
scaled_quotient = op(lambda x, y, z, /, value=1: x + y / z * value, x=lambda g: g, y=lambda g, z, value: g / z * value,
    z=lambda g, y, z, value: -g * y / (z * z) * value,
    promote="x y z", method=False, function=False, node="AddcdivBackward0", called="addcdiv")
# fmt: on

build(globals())


@composite(factors=("value",))
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor:
    """input + value * tensor1 / tensor2, broadcast; dtypes promote. RuntimeError for a division of integers by
    integers.

    >>> rushlight.addcdiv(rushlight.tensor([1., 2.]), rushlight.tensor([4., 6.]), rushlight.tensor([2., 2.]), value=0.5)
    tensor([2.0000, 3.5000])
    """
    tensors(addcdiv, input=input, tensor1=tensor1, tensor2=tensor2)
    if tensor1.dtype.category < dtypes.FLOATING and tensor2.dtype.category < dtypes.FLOATING:
        raise runtime_error(
            "Integer division with addcdiv is no longer supported",
            "convert one of the tensors: x.float(); or (input + value * torch.trunc(tensor1 / "
            "tensor2)).to(input.dtype)",
            tensor1=describe(tensor1),
            tensor2=describe(tensor2),
        )
    return given(out, scaled_quotient(input, tensor1, tensor2, value))


def tensors(function: Any, **args: Any) -> None:
    """TypeError if an argument is not a tensor."""
    for i, (name, value) in enumerate(args.items(), 1):
        check_tensor(value, function.__name__, name, i)


@composite(tensor=False)
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """abs (cos(angle) + i sin(angle)): the complex number at this distance and angle; one dtype, broadcast.

    >>> rushlight.polar(rushlight.tensor([1., 2.]), rushlight.tensor([0., 0.]))
    tensor([1.+0.j, 2.+0.j])
    """
    tensors(polar, abs=abs, angle=angle)
    check_pair(abs, angle, out)
    return given(out, polar_parts(abs, angle))


# the range of exponents of floating-point numbers of this many bytes
WIDEST = {2: 42, 4: 279, 8: 2100}


@composite()
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input * 2^other, broadcast; integers give floating-point numbers.

    >>> rushlight.ldexp(rushlight.tensor([1., 3.]), rushlight.tensor([4, -1]))
    tensor([16.0000,  1.5000])
    """
    tensors(ldexp, input=input, other=other)
    if input.dtype.is_floating_point and other.dtype.category < dtypes.FLOATING:
        most = WIDEST[input.dtype.numpy.itemsize if input.dtype is not dtypes.bfloat16 else 4]
        other = to(e.clamp_both(to(other, dtypes.int64), -most, most), input.dtype)
        # 2^other itself may overflow or underflow when the product does not
        third = e.trunc(e.div(other, 3))
        step = e.pow(2.0, third)
        return e.mul(e.mul(e.mul(input, step), step), e.pow(2.0, e.sub(other, e.mul(third, 2))), out=out)
    return given(out, times_power(input, other))


@composite()
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """input^exponent in double precision for all dtypes: float64, or complex128 if one is complex.

    >>> rushlight.float_power(rushlight.tensor([2, 3]), -1)
    tensor([0.5000, 0.3333], dtype=torch.float64)
    """
    if not (isinstance(input, Tensor) or isinstance(exponent, Tensor)):
        raise type_error(
            f"float_power() received an invalid combination of arguments - got ({type(input).__name__}, "
            f"{type(exponent).__name__})",
            "one of them must be a tensor",
        )
    wanted = result_of_power(input, exponent)
    check_power("the output given to float_power", out, wanted)
    base, power = (to(v, wanted) if isinstance(v, Tensor) and v.dtype is not wanted else v for v in (input, exponent))
    return e.pow(base, power, out=out)


def result_of_power(*values: Any) -> dtypes.dtype:
    is_complex = any(v.dtype.is_complex if isinstance(v, Tensor) else isinstance(v, complex) for v in values)
    return dtypes.complex128 if is_complex else dtypes.float64


def check_power(what: str, tensor: Tensor | None, wanted: dtypes.dtype) -> None:
    if tensor is not None and tensor.dtype is not wanted:
        raise runtime_error(
            f"{what} has dtype {tensor.dtype.scalar_type} but the operation's result requires dtype "
            f"{wanted.scalar_type}",
            f"convert it: x.to({wanted})",
        )


def float_power_(input: Tensor, exponent: Any) -> Tensor:
    """input = input^exponent, written back into the tensor, which must have double precision. Returns the tensor.

    >>> rushlight.tensor([2.], dtype=rushlight.float64).float_power_(3)
    tensor([8.], dtype=torch.float64)
    """
    check_power("the base given to float_power_", input, result_of_power(input, exponent))
    return input.pow_(exponent)


@composite()
def positive(input: Tensor) -> Tensor:
    """The tensor itself. RuntimeError for bool.

    >>> rushlight.positive(rushlight.tensor([-1., 2.]))
    tensor([-1.,  2.])
    """
    if input.dtype is dtypes.bool_:
        raise runtime_error("The `+` operator, on a bool tensor is not supported.", "convert it: x.int()")
    return input


def divided_by(self: Tensor, other: Any) -> Tensor:
    """other / self."""
    return e.div(other, self)


method(float_power_)
method(writing(addcdiv))
method(writing(ldexp))
method(divided_by, "__rdiv__")
