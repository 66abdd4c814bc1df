"""The dtypes of tensors and torch's rules between them: promotion, casting, limits, the default dtype.

A `dtype` is a singleton: compare with `is`. `float32.numpy` is NumPy's dtype of the arrays behind tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache, reduce
from typing import Any

import numpy as np

from rushlight.base.errors import describe, not_implemented_error, runtime_error, type_error, value_error

BOOL, INTEGER, FLOATING, COMPLEX = range(4)  # dtype.category, in the order of promotion


class dtype:
    """The type of a tensor's elements, such as `rushlight.float32`.

    Attributes: `name` ('float32'), `numpy` (NumPy's dtype), `itemsize` (bytes), `category` (0 bool, 1 integer, 2
    floating, 3 complex), `is_floating_point`, `is_complex`, `is_signed`, and `scalar_type` (torch's name in messages
    and `Tensor.type()`: 'Float'). There is one object per dtype, also after pickling and copying.

    >>> rushlight.float32, rushlight.float32.itemsize, rushlight.complex64.to_real()
    (torch.float32, 4, torch.float32)
    """

    __slots__ = ("name", "numpy", "itemsize", "category", "scalar_type", "is_floating_point", "is_complex", "is_signed")

    def __init__(self, name: str, scalar_type: str, category: int, itemsize: int, is_signed: bool = True):
        self.name = name
        self.scalar_type = scalar_type
        self.category = category
        self.itemsize = itemsize
        self.is_floating_point = category == FLOATING
        self.is_complex = category == COMPLEX
        self.is_signed = is_signed
        # __getattr__ fills the slot of bfloat16, which NumPy lacks, on first access
        if hasattr(np, name):
            self.numpy = np.dtype(name)

    def __getattr__(self, attribute: str) -> Any:
        # Runs only for an empty slot or an unknown name, so that reading `numpy` stays fast.
        if attribute != "numpy":
            raise AttributeError(f"'torch.dtype' object has no attribute '{attribute}'")
        if self.name != "bfloat16":
            raise not_implemented_error(
                f"tensors of torch.{self.name} do not exist here, only its name does: convert to another dtype"
            )
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError("torch.bfloat16 needs the package ml_dtypes: pip install ml_dtypes") from None
        self.numpy = np.dtype(ml_dtypes.bfloat16)
        return self.numpy

    def to_complex(self) -> dtype:
        """The complex dtype with parts of this dtype: float32 -> complex64; RuntimeError if torch has none."""
        if self.is_complex:
            return self
        if self is float16:
            raise runtime_error(
                "torch.complex32, the complex of torch.float16, does not exist here, as NumPy has none: convert "
                "to torch.float32 first"
            )
        if not self.is_floating_point:
            raise runtime_error(
                f"Unknown Complex ScalarType for {self.scalar_type}: convert {self} to a floating-point dtype first"
            )
        return complex128 if self is float64 else complex64

    def to_real(self) -> dtype:
        """The dtype of the real part: complex64 -> float32; for a real dtype, the dtype itself."""
        if not self.is_complex:
            return self
        return {"complex32": float16, "complex64": float32}.get(self.name, float64)

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> str:
        # The name of a global: unpickling and copying give the singleton.
        return "bool_" if self is bool_ else self.name


bool_ = dtype("bool", "Bool", BOOL, 1, is_signed=False)
uint8 = dtype("uint8", "Byte", INTEGER, 1, is_signed=False)
int8 = dtype("int8", "Char", INTEGER, 1)
int16 = dtype("int16", "Short", INTEGER, 2)
int32 = dtype("int32", "Int", INTEGER, 4)
int64 = dtype("int64", "Long", INTEGER, 8)
uint16 = dtype("uint16", "UInt16", INTEGER, 2, is_signed=False)
uint32 = dtype("uint32", "UInt32", INTEGER, 4, is_signed=False)
uint64 = dtype("uint64", "UInt64", INTEGER, 8, is_signed=False)
float16 = dtype("float16", "Half", FLOATING, 2)
bfloat16 = dtype("bfloat16", "BFloat16", FLOATING, 2)
float32 = dtype("float32", "Float", FLOATING, 4)
float64 = dtype("float64", "Double", FLOATING, 8)
complex64 = dtype("complex64", "ComplexFloat", COMPLEX, 8)
complex128 = dtype("complex128", "ComplexDouble", COMPLEX, 16)

HALVES = "eE"  # dtype.char of float16 and bfloat16, which ops compute in float32
DTYPES = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip

# Dtypes without tensors; they exist so that programs can compare with them.
NAMED_ONLY = (
    dtype("complex32", "ComplexHalf", COMPLEX, 4),
    *(
        dtype("float8_" + kind, "Float8_" + kind, FLOATING, 1, is_signed=kind != "e8m0fnu")
        for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
    ),
    dtype("qint8", "QInt8", INTEGER, 1),
    dtype("quint8", "QUInt8", INTEGER, 1, is_signed=False),
    dtype("qint32", "QInt32", INTEGER, 4),
    dtype("quint4x2", "QUInt4x2", INTEGER, 1, is_signed=False),
    dtype("quint2x4", "QUInt2x4", INTEGER, 1, is_signed=False),
    dtype("float4_e2m1fn_x2", "Float4_e2m1fn_x2", FLOATING, 1),
    *(dtype(f"int{n}", f"Int{n}", INTEGER, 1) for n in range(1, 8)),
    *(dtype(f"uint{n}", f"UInt{n}", INTEGER, 1, is_signed=False) for n in range(1, 8)),
    *(
        dtype(f"bits{kind}", f"Bits{kind}", INTEGER, 2 if kind == "16" else 1, is_signed=False)
        for kind in ("1x8", "2x4", "4x2", "8", "16")
    ),
)

# Every name under which the package exports a dtype.
NAMES: dict[str, dtype] = {d.name: d for d in DTYPES + NAMED_ONLY} | {
    "short": int16,
    "int": int32,
    "long": int64,
    "half": float16,
    "float": float32,
    "double": float64,
    "chalf": NAMED_ONLY[0],
    "cfloat": complex64,
    "cdouble": complex128,
}

_BY_NUMPY: dict[np.dtype, dtype] = {d.numpy: d for d in DTYPES if d is not bfloat16}
_BY_PYTHON: dict[type, dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}
_BAREBONES = frozenset((uint16, uint32, uint64))  # torch promotes these with floating dtypes only


def of(numpy_dtype: Any) -> dtype:
    """The dtype of arrays of `numpy_dtype`; TypeError if torch has none.

    >>> of(np.dtype("float32"))
    torch.float32
    """
    found = _BY_NUMPY.get(numpy_dtype)
    return _of_any(np.dtype(numpy_dtype)) if found is None else found


def _of_any(numpy_dtype: np.dtype) -> dtype:
    if numpy_dtype.name == "bfloat16":
        return bfloat16
    if numpy_dtype in _BY_NUMPY:
        return _BY_NUMPY[numpy_dtype]
    native = numpy_dtype.newbyteorder("=")
    if native in _BY_NUMPY:
        raise type_error(
            f"NumPy dtype {numpy_dtype.str} has a foreign byte order, which tensors cannot hold: convert the "
            f"array with .astype('{native.name}')"
        )
    raise type_error(
        f"NumPy dtype {numpy_dtype} has no torch dtype: convert the array with .astype() to one of "
        + ", ".join(d.name for d in DTYPES)
    )


def as_dtype(value: Any) -> dtype:
    """The dtype given by an argument `dtype=`: a dtype, or as in torch Python's bool, int, float, complex.

    >>> as_dtype(float)
    torch.float64
    """
    if isinstance(value, dtype):
        return value
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    raise type_error(
        f"argument 'dtype' must be torch.dtype, not {value!r} of type {type(value).__name__}: use one such as "
        "torch.float32"
    )


def or_default(value: Any) -> dtype:
    """The dtype given by an argument `dtype=`; the default dtype for None."""
    return get_default_dtype() if value is None else as_dtype(value)


def of_scalar(value: Any) -> dtype:
    """The dtype with which a Python or NumPy number promotes: bool, int64, the default dtype or its complex dtype."""
    if isinstance(value, (float, np.floating)):  # the most frequent case first
        return _default
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (complex, np.complexfloating)):
        return _default.to_complex()
    raise type_error(
        f"a number is needed, not {value!r} of type {type(value).__name__}: pass a bool, int, float or complex"
    )


# -- promotion -------------------------------------------------------------------------------------


def holding(numbers: Any, d: dtype) -> np.ndarray:
    """Python numbers as an array of this dtype. RuntimeError for values that it cannot hold: imaginary parts, integers
    out of range. (For an unsigned dtype of n bits, a negative k becomes 2^n + k.)
    """
    kind, python = d.numpy.kind, numbers.__class__
    if python is float and kind == "f" and -6e4 < numbers < 6e4 or python is int and -(kind in "if") <= numbers < 128:
        return np.array(numbers, d.numpy)  # without checks, for speed
    a, wrong = np.asarray(numbers), False
    if a.dtype == d.numpy:
        return a
    a_complex = a.dtype.kind == "c" and kind not in "cb"
    if a_complex:
        wrong, a = bool(a.imag.any()), a.real
    if kind in "iu" and a.dtype.kind in "iufO" and a.dtype != d.numpy:
        wrong = wrong or not in_range(a, d.numpy)
        if wrong and python is int and not -(2**63) <= numbers < 2**64:  # in Python's words
            too = "int too big to convert", "can't convert negative int to unsigned"
            raise OverflowError(too[numbers < 0])
    elif a.dtype.kind == "O":  # integers of more than 64 bits
        a = a.astype(complex if kind == "c" else float)
    if wrong:
        raise runtime_error(
            f"value cannot be converted to type {str(d).removeprefix('torch.')} without overflow",
            "take the real part first" if a_complex else "use a dtype with a larger range",
        )
    with np.errstate(all="ignore"):
        return a.astype(d.numpy)


def in_range(a: np.ndarray, integers: np.dtype) -> bool:
    """Whether an integer dtype holds all numbers; -k counts as 2^n - k for an unsigned one."""
    limits = np.iinfo(integers)
    lowest = -int(limits.max) if integers.kind == "u" and a.dtype.kind != "f" else limits.min
    return bool(((a >= lowest) & (a <= limits.max)).all())


@cache
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The dtype to which both convert, by torch's table: int64, float16 -> float16; uint8, int8 -> int16.

    RuntimeError for uint16, uint32 and uint64 with another bool, integer or complex dtype, as in torch.

    >>> rushlight.promote_types(rushlight.int64, rushlight.float16)
    torch.float16
    """
    if not (isinstance(type1, dtype) and isinstance(type2, dtype)):
        raise type_error(f"promote_types(): two dtypes are needed, not {type1!r} and {type2!r}")
    if type1 is type2:
        return type1
    low, high = sorted((type1, type2), key=lambda d: (d.category, d.itemsize))
    if not _BAREBONES.isdisjoint((low, high)) and not high.is_floating_point:
        raise runtime_error(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{type1.scalar_type} and {type2.scalar_type}: use .to(dtype)"
        )
    if high is complex64 and low is float64:
        return complex128
    # uint8, int8 or float16, bfloat16
    if (low.category, low.itemsize) == (high.category, high.itemsize):
        return float32 if high.is_floating_point else int16
    return high


def result_dtype(pairs: Iterable[tuple[dtype, int]]) -> dtype:
    """The dtype of an operation on operands given as pairs of (dtype, kind).

    Kinds: 0 a tensor with dimensions, 1 a 0-d tensor, 2 a Python number. Operands of one kind promote together; a
    higher kind changes the result of a lower one only when it is of a higher category.

    >>> result_dtype([(float32, 0), (float64, 1)]), result_dtype([(int32, 0), (float64, 1)])
    (torch.float32, torch.float64)
    """
    kinds: list[dtype | None] = [None, None, None]
    for operand, kind in pairs:
        seen = kinds[kind]
        kinds[kind] = operand if seen is None else promote_types(seen, operand)
    return _of_kinds(*kinds)


@cache  # at most 16^3 results
def _of_kinds(*kinds: dtype | None) -> dtype:
    found = [d for d in kinds if d is not None]
    if not found:
        raise value_error("result_dtype(): at least one operand is needed")
    return reduce(lambda later, first: _combine(first, later), reversed(found))


def _combine(first: dtype, later: dtype) -> dtype:
    """The dtype `first`, or a dtype of the category of `later` if that is higher. `later`: of the later kinds."""
    if first.is_floating_point and later.is_complex:
        return first.to_complex()
    if first is bool_:
        return promote_types(first, later)
    return later if later.category > max(first.category, INTEGER) else first


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether torch's rules allow the conversion in type promotion: never to a lower category.

    >>> rushlight.can_cast(rushlight.float64, rushlight.float16), rushlight.can_cast(rushlight.float32, rushlight.int64)
    (True, False)
    """
    for name, given in (("from_", from_), ("to", to)):
        if not isinstance(given, dtype):
            raise type_error(
                f"can_cast(): argument '{name}' must be torch.dtype, not {describe(given)}", "a tensor has one: x.dtype"
            )
    return from_.category <= to.category


# -- the default dtype -----------------------------------------------------------------------------

_default = float32


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats, and of quotients of integers: float32 by default.

    >>> rushlight.get_default_dtype()
    torch.float32
    """
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the default dtype for the whole process, as in torch (a single assignment, so it is safe with threads).

    TypeError unless `d` is a floating-point dtype.

    >>> rushlight.set_default_dtype(rushlight.float64)
    >>> rushlight.tensor(1.).dtype
    torch.float64
    >>> rushlight.set_default_dtype(rushlight.float32)
    """
    global _default
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise type_error(
            f"set_default_dtype(): only floating-point types are supported as the default type, not {d!r}: use "
            "one such as torch.float32"
        )
    _default = d


# -- limits ----------------------------------------------------------------------------------------

# eps, max, min, tiny of 8-bit floating-point dtypes, which lack some infinities and nans
_EIGHT_BITS = {
    "float8_e4m3fn": (0.125, 448.0, -448.0, 2.0**-6),
    "float8_e4m3fnuz": (0.125, 240.0, -240.0, 2.0**-7),
    "float8_e5m2": (0.25, 57344.0, -57344.0, 2.0**-14),
    "float8_e5m2fnuz": (0.125, 57344.0, -57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 2.0**-127),
}
_MANTISSA_EXPONENT_BITS = {float16: (10, 5), bfloat16: (7, 8), float32: (23, 8), float64: (52, 11)}


class finfo:
    """The limits of a floating-point dtype, of the parts of a complex dtype, or by default of the default dtype.

    With m stored mantissa bits and largest exponent e: eps = 2^-m, max = (2 - eps) 2^e, tiny = 2^(1-e), resolution =
    10^-floor(m log10 2). TypeError for other dtypes.

    >>> rushlight.finfo(rushlight.float16).max, rushlight.finfo(rushlight.float32).eps
    (65504.0, 1.1920928955078125e-07)
    """

    __slots__ = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")

    def __init__(self, type: dtype | None = None) -> None:
        real = _default if type is None else _checked(type, "finfo").to_real()
        if not real.is_floating_point:
            raise type_error(
                f"torch.finfo() requires a floating point input type, not {type}. Use torch.iinfo to handle it"
            )
        if real.name in _EIGHT_BITS:
            self.eps, self.max, self.min, self.tiny = _EIGHT_BITS[real.name]
        else:
            mantissa, exponent = _MANTISSA_EXPONENT_BITS[real]
            largest = 2 ** (exponent - 1) - 1
            self.eps, self.tiny = 2.0**-mantissa, 2.0 ** (1 - largest)
            self.max = (2 - self.eps) * 2.0**largest
            self.min = -self.max
        self.bits, self.dtype, self.smallest_normal = 8 * real.itemsize, real.name, self.tiny
        self.resolution = float(f"1e-{math.floor(-math.log10(self.eps))}")

    def __repr__(self) -> str:
        return _limits(self, "resolution", "min", "max", "eps", "smallest_normal", "tiny")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """The limits of an integer dtype: bits, min, max, dtype. TypeError for other dtypes, including bool.

    >>> rushlight.iinfo(rushlight.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ("bits", "max", "min", "dtype")

    def __init__(self, type: dtype) -> None:
        type = _checked(type, "iinfo")
        if type.category != INTEGER:
            hint = "Cast to torch.uint8" if type is bool_ else "Use torch.finfo to handle it"
            raise type_error(f"torch.iinfo() requires an integer input type, not {type}. {hint}")
        self.bits = 8 * type.itemsize
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.min = -self.max - 1 if type.is_signed else 0
        self.dtype = type.name

    def __repr__(self) -> str:
        return _limits(self, "min", "max")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


def _checked(value: Any, function: str) -> dtype:
    value = {float: float64, complex: complex128, int: int64}.get(value, value)
    if not isinstance(value, dtype):
        raise type_error(f"{function}(): argument 'type' (position 1) must be torch.dtype, not {type(value).__name__}")
    return value


def _limits(info: finfo | iinfo, *attributes: str) -> str:
    values = ", ".join(f"{attribute}={getattr(info, attribute):g}" for attribute in attributes)
    return f"{type(info).__name__}({values}, dtype={info.dtype})"


def plain(array: np.ndarray) -> np.ndarray:
    """The array in a dtype that NumPy has: bfloat16 is converted to float32."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def check_differentiable(d: dtype) -> None:
    """RuntimeError unless tensors of this dtype can require gradients."""
    if not (d.is_floating_point or d.is_complex):
        raise runtime_error(
            "only Tensors of floating point and complex dtype can require gradients",
            "convert it first: x.float()",
            dtype=d,
        )
