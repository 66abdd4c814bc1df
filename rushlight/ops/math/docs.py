"""What the ops of this folder do, for their docstrings. Loaded when a docstring is read."""

from __future__ import annotations

from rushlight.ops.doc_text import Text

WHOLE = "whole numbers or bool"
INTS = ("[12, 10]", "[10, 3]")
TRUTHS = ("[True, True, False]", "[True, False, False]")

TEXTS = {
    "add": Text("The sum."),
    "sub": Text("The difference."),
    "mul": Text("The product."),
    "div": Text("The quotient; of integers too a floating-point number."),
    "pow": Text(
        "`input` to the power of `exponent`; its gradient for an exponent of 0 is 0, and for a "
        "base of 0 too."
    ),
    "neg": Text("The number with the opposite sign.", errors="RuntimeError for bool"),
    "abs": Text(
        "The absolute value; of a complex number its distance from 0. The gradient at 0 is 0."
    ),
    "square": Text("The square."),
    "reciprocal": Text("1 divided by the number.", data=("[0.5, 2., 4.]",)),
    "sqrt": Text("The square root; nan for negative numbers.", data=("[1., 4., 9.]",)),
    "rsqrt": Text(
        "The reciprocal of the square root; nan for negative numbers.", data=("[1., 4., 16.]",)
    ),
    "remainder": Text(
        "What is left of `input` after division by `other`, with the sign of `other`, as Python's "
        "%.",
        data=("[-3., 3., 5.]", "[2., 2., -3.]"),
    ),
    "fmod": Text(
        "What is left of `input` after division by `other`, with the sign of `input`, as C's fmod.",
        data=("[-3., 3., 5.]", "[2., 2., -3.]"),
    ),
    "floor_divide": Text(
        "The quotient rounded down, as Python's //.", data=("[-3., 3., 5.]", "[2., 2., -3.]")
    ),
    "hypot": Text(
        "The length of the hypotenuse of a right triangle with these legs.",
        data=("[3., 5.]", "[4., 12.]"),
    ),
    "lerp": Text(
        "The point at `weight` on the way from `input` (0) to `end` (1).",
        data=("[0., 10.]", "[10., 20.]", "[0.5, 0.25]"),
    ),
    "exp": Text("e to the power of the number."),
    "exp2": Text("2 to the power of the number.", data=("[0., 1., 3.]",)),
    "expm1": Text("exp(input) - 1, exact also near 0.", data=("[1e-10, 1.]",)),
    "log": Text("The natural logarithm; -inf for 0, nan for negative numbers."),
    "log2": Text(
        "The logarithm to base 2; -inf for 0, nan for negative numbers.", data=("[1., 2., 8.]",)
    ),
    "log10": Text(
        "The logarithm to base 10; -inf for 0, nan for negative numbers.",
        data=("[1., 10., 1000.]",),
    ),
    "log1p": Text("log(1 + input), exact also near 0.", data=("[1e-10, 1.]",)),
    "logaddexp": Text(
        "The logarithm of a sum of exponentials; nothing overflows.",
        data=("[1000., 1.]", "[1000., 2.]"),
    ),
    "logaddexp2": Text(
        "The same to base 2; nothing overflows.", data=("[1000., 1.]", "[1000., 2.]")
    ),
    "xlogy": Text(
        "input * log(other), and 0 where `input` is 0.", data=("[0., 1., 2.]", "[0., 2., 3.]")
    ),
    "sin": Text("The sine of an angle in radians."),
    "cos": Text("The cosine of an angle in radians."),
    "tan": Text("The tangent of an angle in radians."),
    "asin": Text("The angle, from -pi/2 to pi/2, with this sine; nan outside [-1, 1]."),
    "acos": Text("The angle, from 0 to pi, with this cosine; nan outside [-1, 1]."),
    "atan": Text("The angle, from -pi/2 to pi/2, with this tangent."),
    "atan2": Text(
        "The angle, from -pi to pi, of the point with height `input` and width `other`.",
        data=("[1., 1., -1.]", "[1., -1., -1.]"),
    ),
    "sinh": Text("The hyperbolic sine."),
    "cosh": Text("The hyperbolic cosine."),
    "tanh": Text("The hyperbolic tangent."),
    "asinh": Text("The inverse of sinh."),
    "acosh": Text(
        "The inverse of cosh: the number of at least 0; nan below 1.", data=("[1., 2., 3.]",)
    ),
    "atanh": Text("The inverse of tanh; nan outside [-1, 1]."),
    "sinc": Text("sin(pi input) / (pi input), and 1 at 0.", data=("[0., 0.25, 0.5]",)),
    "deg2rad": Text("An angle in degrees, in radians.", data=("[90., 180.]",)),
    "rad2deg": Text("An angle in radians, in degrees.", data=("[1., 3.1415927]",)),
    "sigmoid": Text("The logistic function, from 0 to 1.", data=("[-2., 0., 2.]",)),
    "relu": Text("The number where it is positive, 0 elsewhere; the gradient at 0 is 0."),
    "silu": Text("The number times its sigmoid, also called swish.", data=("[-2., 0., 2.]",)),
    "softplus": Text(
        "A smooth relu; simply the number where input * beta is above `threshold`.",
        data=("[-2., 0., 2.]",),
    ),
    "leaky_relu": Text("The number where it is positive, a small multiple elsewhere."),
    "elu": Text(
        "The number where it is positive, a saturating exponential elsewhere; the scales make it "
        "selu or celu.",
        data=("[-2., 0., 2.]",),
    ),
    "erf": Text(
        "The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `input`. "
        "Needs SciPy."
    ),
    "erfc": Text("1 - erf(input), exact also where that is tiny. Needs SciPy."),
    "erfinv": Text("The inverse of erf; inf and -inf at 1 and -1, nan outside. Needs SciPy."),
    "lgamma": Text(
        "The logarithm of the absolute value of the gamma function. Needs SciPy.",
        data=("[0.5, 1., 5.]",),
    ),
    "digamma": Text("The derivative of lgamma. Needs SciPy.", data=("[0.5, 1., 5.]",)),
    "polygamma": Text(
        "The n-th derivative of digamma. Needs SciPy.",
        example="NAME(1, rushlight.tensor([0.5, 1.]))",
    ),
    "floor": Text("The largest whole number that is not larger.", data=("[-1.5, 0.5, 2.]",)),
    "ceil": Text("The smallest whole number that is not smaller.", data=("[-1.5, 0.5, 2.]",)),
    "trunc": Text("The number without its fraction.", data=("[-1.5, 0.5, 2.]",)),
    "round": Text("The nearest whole number, of two the even one.", data=("[-1.5, 0.5, 2.2]",)),
    "frac": Text("The fraction, with the number's sign.", data=("[-1.5, 0.5, 2.25]",)),
    "sign": Text("-1, 0 or 1: the sign."),
    "sgn": Text("The sign; of a complex number the number of length 1 in its direction."),
    "heaviside": Text(
        "The step from 0 to 1 at 0, where it is `values`.",
        data=("[-1.5, 0., 2.]", "[0.5, 0.5, 0.5]"),
    ),
    "maximum": Text("The larger one; nan if one is nan. Ties share the gradient."),
    "minimum": Text("The smaller one; nan if one is nan. Ties share the gradient."),
    "clamp_min": Text("The number, or `min` where it is smaller.", data=("[-1.5, 0., 2.]", "0.5")),
    "clamp_max": Text("The number, or `max` where it is larger.", data=("[-1.5, 0., 2.]", "0.5")),
    "fmax": Text(
        "The larger one; the number if the other is nan.", data=("[1., rushlight.nan]", "[2., 2.]")
    ),
    "fmin": Text(
        "The smaller one; the number if the other is nan.", data=("[3., rushlight.nan]", "[2., 2.]")
    ),
    "copysign": Text(
        "The size of `input` with the sign of `other`.", data=("[1., 2.]", "[-1., 1.]")
    ),
    "where": Text(
        "`input` where the condition is true, `other` elsewhere.",
        data=("[True, False]", "[1., 2.]", "[10., 20.]"),
        dtype="that of `input` and `other`, promoted as in torch",
    ),
    "nan_to_num": Text(
        "nan, inf and -inf replaced by `nan`, `posinf` and `neginf`, or by the largest numbers.",
        data=("[rushlight.nan, rushlight.inf, 1.]",),
    ),
    "conj": Text("The complex conjugate; a real number is its own.", data=("[1 + 2j]",)),
    "angle": Text(
        "The angle of a complex number; 0 or pi for a real one.", data=("[1j, -1., 1.]",)
    ),
    "eq": Text("Whether they are equal."),
    "ne": Text("Whether they differ."),
    "lt": Text("Whether `input` is less."),
    "le": Text("Whether `input` is less or equal."),
    "gt": Text("Whether `input` is greater."),
    "ge": Text("Whether `input` is greater or equal."),
    "isnan": Text("Whether it is nan.", data=("[rushlight.nan, 1.]",)),
    "isinf": Text("Whether it is inf or -inf.", data=("[rushlight.inf, 1.]",)),
    "isfinite": Text("Whether it is neither nan nor inf nor -inf.", data=("[rushlight.inf, 1.]",)),
    "isposinf": Text("Whether it is inf.", data=("[rushlight.inf, 1.]",)),
    "isneginf": Text("Whether it is -inf.", data=("[-rushlight.inf, 1.]",)),
    "signbit": Text("Whether the sign is a minus, that of -0 too.", data=("[-0., 0., -1.]",)),
    "logical_and": Text("Whether both are true; numbers are true unless 0.", data=TRUTHS),
    "logical_or": Text("Whether one is true; numbers are true unless 0.", data=TRUTHS),
    "logical_xor": Text("Whether just one is true; numbers are true unless 0.", data=TRUTHS),
    "logical_not": Text("Whether it is false, or 0.", data=("[True, False]",)),
    "gcd": Text(
        "The greatest whole number that divides both; of 0 and 0 it is 0.", data=INTS, dtype=WHOLE
    ),
    "lcm": Text("The least whole number that both divide.", data=INTS, dtype=WHOLE),
    "bitwise_and": Text("The bits that both have; for bool: and.", data=INTS, dtype=WHOLE),
    "bitwise_or": Text("The bits that one has; for bool: or.", data=INTS, dtype=WHOLE),
    "bitwise_xor": Text("The bits that just one has; for bool: xor.", data=INTS, dtype=WHOLE),
    "bitwise_not": Text("The other bits; for bool: not.", data=("[True, False]",), dtype=WHOLE),
    "bitwise_left_shift": Text(
        "The bits moved up by `other` places.", data=("[1, 3]", "[4, 1]"), dtype=WHOLE
    ),
    "bitwise_right_shift": Text(
        "The bits moved down by `other` places.", data=("[16, 6]", "[4, 1]"), dtype=WHOLE
    ),
    "view_as_real": Text(
        "A complex tensor as pairs of real and imaginary part.",
        example="NAME(rushlight.tensor([1 + 2j]))",
        dtype="real",
    ),
    "view_as_complex": Text(
        "Pairs of real and imaginary part as a complex tensor.",
        example="NAME(rushlight.tensor([[1., 2.]]))",
        dtype="complex",
    ),
    "mish": Text("A smooth relu that dips below 0.", data=("[-2., 0., 2.]",)),
    "hardtanh": Text("The number, but `min_val` where it is less and `max_val` where it is more."),
    "hardsigmoid": Text("A sigmoid of three straight pieces."),
    "hardswish": Text("The number times its hardsigmoid.", data=("[-2., 0., 2.]",)),
    "hardshrink": Text("The number, but 0 from -lambd to lambd."),
    "softshrink": Text("The number moved towards 0 by `lambd`; 0 where that would pass 0."),
    "threshold": Text("The number where it is above `threshold`, `value` elsewhere."),
    "prelu_core": Text(
        "The number where it is positive, `weight` times the number elsewhere.",
        data=("[-2., 0., 2.]", "0.25"),
    ),
    "real_part": Text("The real part of a complex tensor."),
    "imag_part": Text("The imaginary part of a complex tensor."),
}
