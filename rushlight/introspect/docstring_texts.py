"""A sentence on each op, for the docstring (introspect/op_docstrings.py). An entry may have the
sentence in `doc=` instead.

Only facts that the entry does not contain: no formula that the forward prints, and no shape, dtype
or error that follows from the family.
"""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """A sentence or two; `formula`, `shape`, `dtype`, `errors` if those of the family are wrong or
    incomplete.
    """

    says: str = ""
    formula: str = ""
    example: str = ""  # a program; the docstring shows the value of its last line
    data: tuple[str, ...] = ()  # or, for an elementwise op, numbers for its inputs
    shape: str = ""
    dtype: str = ""
    errors: str = ""


NO_TEXT = Text()
SORTED = "`input`'s for the values, int64 for the indices"
WHOLE = "whole numbers or bool"
COUNTED = "`input`'s; bool and integers give int64"
INDEXED = "IndexError for an index that is not there"
EMPTY = "RuntimeError if there are no elements"
NONE_LEFT = "IndexError if there are no elements"
INTS = ("[12, 10]", "[10, 3]")
TRUTHS = ("[True, True, False]", "[True, False, False]")
MATRIX = "x = rushlight.tensor([[1, 2, 3], [4, 5, 6]])\n"

ARITHMETIC = {
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
}

FUNCTIONS = {
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
}

CHOICES = {
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
}

REDUCTIONS = {
    "sum": Text("The sum of the elements.", "out = sum over `dim` of input", dtype=COUNTED),
    "mean": Text(
        "The sum of the elements divided by their number.",
        "out = (sum over `dim` of input) / n",
        errors="RuntimeError for integers and bool",
    ),
    "prod": Text(
        "The product of the elements; the gradient is right where some are 0 too.",
        "out = product over `dim` of input",
        example=MATRIX + "NAME(x, 1)",
        dtype=COUNTED,
    ),
    "amax": Text(
        "The largest element; nan if one is nan. Ties share the gradient.",
        "out = largest over `dim` of input",
        errors=EMPTY,
    ),
    "amin": Text(
        "The smallest element; nan if one is nan. Ties share the gradient.",
        "out = smallest over `dim` of input",
        errors=EMPTY,
    ),
    "logsumexp": Text(
        "The logarithm of the sum of the exponentials; nothing overflows.",
        "out = log(sum over `dim` of exp(input))",
    ),
    "all": Text(
        "Whether all elements are true; numbers are true unless 0.",
        "out = whether all of input over `dim`",
        dtype="bool",
    ),
    "any": Text(
        "Whether some element is true; numbers are true unless 0.",
        "out = whether any of input over `dim`",
        dtype="bool",
    ),
    "argmax": Text(
        "The index of the largest element, the first of equal ones; without `dim` among all "
        "elements.",
        example=MATRIX + "NAME(x, 1)",
        dtype="int64",
        shape="the input's without `dim`",
        errors=NONE_LEFT,
    ),
    "argmin": Text(
        "The index of the smallest element, the first of equal ones; without `dim` among all "
        "elements.",
        example=MATRIX + "NAME(x, 1)",
        dtype="int64",
        shape="the input's without `dim`",
        errors=NONE_LEFT,
    ),
    "sort": Text(
        "The elements in order along `dim`, and where each of them was.",
        dtype=SORTED,
        shape="the input's",
        formula="values, indices = sort(input, dim, descending), values[i] = input[indices[i]]",
        example="NAME(rushlight.tensor([3., 1., 2.]))",
    ),
    "topk": Text(
        "The k largest (or smallest) elements along `dim`, and where they were.",
        dtype=SORTED,
        shape="the input's, with k along `dim`",
        example="NAME(rushlight.tensor([3., 1., 2.]), 2)",
        formula="values, indices = topk(input, k, dim, largest, sorted)",
        errors="RuntimeError if there are fewer than k",
    ),
    "cumsum": Text(
        "Sums of the elements up to each, along `dim`.",
        formula="out_i = input_0 + ... + input_i",
        example="NAME(rushlight.tensor([1., 2., 3.]), 0)",
        dtype=COUNTED,
        shape="the input's",
    ),
    "cumprod": Text(
        "Products of the elements up to each, along `dim`.",
        formula="out_i = input_0 * ... * input_i",
        example="NAME(rushlight.tensor([2., 3., 4.]), 0)",
        dtype=COUNTED,
        shape="the input's",
    ),
}

SHAPES = {
    "reshape": Text(
        "The elements, in their order, in another shape; -1 stands for what is left.",
        example=MATRIX + "NAME(x, 3, -1)",
        errors="RuntimeError if the number of elements differs",
    ),
    "flatten": Text(
        "The dimensions from `start_dim` to `end_dim` as one.", example=MATRIX + "NAME(x)"
    ),
    "unflatten": Text(
        "One dimension as several; -1 stands for what is left.",
        example="NAME(rushlight.arange(6), 0, (2, 3))",
    ),
    "squeeze": Text(
        "The tensor without dimensions of length 1: all, or those in `dim` that are.",
        example="NAME(rushlight.ones(1, 2, 1)).shape",
    ),
    "unsqueeze": Text(
        "The tensor with a dimension of length 1 put in at `dim`.",
        example="NAME(rushlight.ones(2, 3), 1).shape",
    ),
    "transpose": Text("Two dimensions swapped.", example=MATRIX + "NAME(x, 0, 1)"),
    "permute": Text(
        "The dimensions in another order.",
        example="NAME(rushlight.ones(2, 3, 4), (2, 0, 1)).shape",
        errors="RuntimeError unless each dimension stands once",
    ),
    "expand": Text(
        "Dimensions of length 1 repeated to `size`, without a copy; -1 leaves a length as it is.",
        example="rushlight.tensor([[1], [2]]).expand(2, 3)",
    ),
    "narrow": Text(
        "`length` slices along `dim`, from `start` on.",
        example=MATRIX + "NAME(x, 1, 1, 2)",
        errors="RuntimeError if there are not as many",
    ),
    "select": Text(
        "The slice at `index` along `dim`, without that dimension.",
        example=MATRIX + "NAME(x, 1, 2)",
        errors=INDEXED,
    ),
    "diagonal": Text(
        "The elements whose indices along `dim2` are `offset` more than along `dim1`; they come "
        "last.",
        example="NAME(rushlight.tensor([[1, 2], [3, 4]]))",
    ),
    "contiguous": Text(
        "The tensor in memory in the order of its indices; itself if it is so already.",
        example="rushlight.ones(2, 3).T.contiguous().stride()",
    ),
    "flip": Text(
        "The order along `dims` turned around; a copy.",
        example=MATRIX + "NAME(x, (1,))",
        shape="the input's",
        dtype="the input's",
    ),
    "tril": Text(
        "The lower triangle of a matrix, up to the diagonal that `diagonal` names; 0 elsewhere.",
        example="NAME(rushlight.ones(3, 3))",
    ),
    "triu": Text(
        "The upper triangle of a matrix, from the diagonal that `diagonal` names; 0 elsewhere.",
        example="NAME(rushlight.ones(3, 3))",
    ),
    "repeat": Text(
        "The tensor laid side by side with itself, `repeats` times along each dimension.",
        example="rushlight.tensor([1, 2]).repeat(2, 2)",
        shape="the input's times `repeats`",
    ),
    "cat": Text(
        "Tensors joined along a dimension that they have.",
        dtype="promoted as in torch",
        shape="lengths along `dim` add up, the others agree",
        example="NAME((rushlight.tensor([1, 2]), rushlight.tensor([3])))",
    ),
    "stack": Text(
        "Tensors joined along a new dimension.",
        dtype="promoted as in torch",
        shape="the tensors', with how many they are at `dim`",
        example="NAME((rushlight.tensor([1, 2]), rushlight.tensor([3, 4])), 1)",
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
}

PRODUCTS = {
    "mm": Text(
        "The product of matrices.",
        example="NAME(rushlight.tensor([[1., 2.]]), rushlight.tensor([[3.], [4.]]))",
    ),
    "dot": Text(
        "The sum of the products of two vectors' elements.",
        shape="two vectors of a length give one number",
        formula="out = sum over i of input_i * tensor_i",
        example="NAME(rushlight.tensor([1., 2.]), rushlight.tensor([3., 4.]))",
    ),
    "mv": Text(
        "The product of a matrix and a vector.",
        shape="(n, k) and (k) give (n)",
        formula="out_i = sum over k of input_ik * vec_k",
        example="NAME(rushlight.tensor([[1., 2.], [3., 4.]]), rushlight.tensor([1., 10.]))",
    ),
    "linear": Text(
        "What a layer of weights computes; `input` may have any leading shape.",
        formula="out = input @ weight.mT + bias",
        shape="(..., n), (m, n) and (m) give (..., m)",
    ),
}

INDICES = {
    "gather": Text(
        "For each place in `index`, the element of `input` there along `dim`.",
        shape="that of `index`",
        formula="out[i][j] = input[index[i][j]][j] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.tensor([[1, 2], [3, 4]]), 1, rushlight.tensor([[0], [1]]))",
    ),
    "scatter": Text(
        "A copy of `input` with the elements of `src` (or one number) written at `index` along "
        "`dim`.",
        formula="out = input, but out[index[i][j]][j] = src[i][j] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.zeros(3), 0, rushlight.tensor([2, 0]), rushlight.tensor([5., 6.]))",
    ),
    "scatter_add": Text(
        "A copy of `input` with the elements of `src` added at `index` along `dim`.",
        formula="out = input, but out[index[i][j]][j] += src[i][j] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.zeros(2), 0, rushlight.tensor([1, 1]), rushlight.tensor([5., 6.]))",
    ),
    "index_select": Text(
        "The slices at `index` along `dim`, a copy.",
        shape="the input's, with those slices along `dim`",
        formula="out[i] = input[index[i]] for dim 0, and so on",
        errors=INDEXED,
        example=MATRIX + "NAME(x, 1, rushlight.tensor([2, 0]))",
    ),
    "index_add": Text(
        "A copy of `input` with the slices of `source` added at `index` along `dim`.",
        formula="out = input, but out[index[i]] += source[i] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.zeros(3), 0, rushlight.tensor([0, 0]), rushlight.tensor([1., 2.]))",
    ),
    "index_copy": Text(
        "A copy of `input` with the slices of `source` written at `index` along `dim`.",
        formula="out = input, but out[index[i]] = source[i] for dim 0, and so on",
        errors=INDEXED,
        example="NAME(rushlight.zeros(3), 0, rushlight.tensor([0, 2]), rushlight.tensor([1., 2.]))",
    ),
}

# Functions of nn.functional.
NETWORKS = {
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
    "mse_loss": Text("The squared difference.", data=("[1., 2., 3.]", "[1., 1., 1.]")),
    "huber_loss": Text(
        "Half the squared difference up to `delta`, a straight line beyond.",
        data=("[1., 1.5, 3.]", "[1., 1., 1.]"),
    ),
    "smooth_l1_loss": Text(
        "The absolute difference, rounded off below `beta`.", data=("[1., 1.5, 3.]", "[1., 1., 1.]")
    ),
    "binary_cross_entropy": Text(
        "Minus the logarithm of the probability `input` that `target` gives, which is 0 or 1; "
        "a logarithm below -100 counts as -100.",
        data=("[0.25, 0.5, 0.75]", "[0., 1., 1.]"),
    ),
    "convolution": Text(
        "Each filter laid over each place of the input, as in torch's conv1d, conv2d and conv3d.",
        formula="out[n, o, p] = sum over c, k of input[n, c, p stride - padding + k dilation] "
        "weight[o, c, k] + bias[o]",
    ),
}

# Inner ops, if their kernel has no docstring.
PARTS = {
    "unpermute": Text("`permute` undone."),
    "getitem": Text("Indexing by integers, slices, None and `...`.", formula="out = input[key]"),
    "embed": Text("Zeros of the size, with x at `key`."),
    "to": Text("The tensor in another dtype."),
    "clone": Text("A copy with its own memory."),
    "unbind": Text("The slices along `dim`, without it."),
    "split_sizes": Text("Parts of the given lengths along `dim`."),
    "real_part": Text("The real part of a complex tensor."),
    "imag_part": Text("The imaginary part of a complex tensor."),
    "write_at": Text("A copy of `input` with `other` written, or added, at `key`."),
    "var_core": Text("The variance over `axes`, which are kept with length 1."),
    "softmax": Text(
        "Exponentials along `dim`, divided by their sum.",
        formula="out_i = exp(input_i) / sum_j exp(input_j)",
    ),
    "log_softmax": Text(
        "The logarithm of softmax.", formula="out_i = input_i - log(sum_j exp(input_j))"
    ),
    "max_dim": Text("The largest elements along `dim`, and where they are."),
    "min_dim": Text("The smallest elements along `dim`, and where they are."),
}

TEXTS: dict[str, Text] = {
    **ARITHMETIC,
    **FUNCTIONS,
    **CHOICES,
    **REDUCTIONS,
    **SHAPES,
    **PRODUCTS,
    **INDICES,
    **NETWORKS,
    **PARTS,
}
