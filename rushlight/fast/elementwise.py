"""Elementwise ops on large arrays: a compiled loop, generated from the op's rule, in place of NumPy's passes.

The text of the loop is the rule, of the forward or of a derivative, run on symbols (fast/rule_text.py), so a new op
needs no extra code. Every element is read once and written once, on all cores, and results reuse memory of the buffer
pool. NumPy is used if a loop is impossible or not faster: for other dtypes and layouts, for broadcast arrays (except
those with one number for each channel or each element of a row), and for functions of libm.

A loop of arithmetic gives NumPy's results to the last bit and is compiled once NumPy's passes have cost as much as
compiling (loops/tiering.py). A loop with exp, tanh and so on differs in the last bits
(tests/loops/test_scalar_math.py). Its use depends on the size, and for smaller arrays of slow ops on the amount of work
so far (fast/policy.py), never on the clock, so that a repeated program gives the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.base.dependencies import has_llvmlite
from rushlight.base.faster import NotReady
from rushlight.core.table import BOOL, TABLE, Op
from rushlight.fast.float16_loops import BITS, WORDS, knows_float16
from rushlight.fast.index import (
    BROADCAST_ROW_ELEMENTS,
    ELEMENTWISE_ELEMENTS,
    FRESH_ELEMENTS,
    HALF_ELEMENTS,
    HALF_PASSES,
    PARALLEL_COST,
)
from rushlight.fast.policy import charge
from rushlight.fast.reductions import shared
from rushlight.fast.softmax_norm import in_full
from rushlight.kernels.float16 import APART, is_half, singly
from rushlight.loops.scalar_math import PLAIN

TYPES = {np.dtype(np.float32): "f4", np.dtype(np.float64): "f8", np.dtype(np.bool_): "b1"}
TYPES_OF_HALVES = {np.dtype(np.float16): "f2", np.dtype(np.bool_): "b1"}
# type of 16-bit floats -> the functions that convert them to float32 and back
HALVES = {"f2": WORDS[True], "b2": WORDS[False]}
EXACT = {*PLAIN.split(), "f32", "f64", "hypot"}  # functions that give NumPy's results to the last bit
CONVERTING = {*HALVES["f2"], *HALVES["b2"]}
# ufuncs for which loops are several times faster
SLOW = {np.log1p, np.log2, np.log10, np.deg2rad, np.rad2deg, np.hypot}
# ufuncs for which loops are faster if rows or columns broadcast
BROADCASTING = {np.add, np.subtract, np.multiply, np.true_divide}
UNKNOWN, MOST_PLANS = object(), 2048
# shapes and dtypes of the arguments -> the result of `planned`
PLANS: dict[tuple, Any] = {}
LONGEST = 4000  # most characters of an expression


class Loop:
    """An elementwise computation: `call(arrays, shape)` returns the result, or None if NumPy should do it."""

    def __init__(self, text: str, kinds: tuple, dtype: np.dtype, names: set[str], passes: int):
        self.dtype, self.passes = dtype, passes
        self.how = (1,) + tuple([1 if kind[1] == "each" else 0 for kind in kinds if kind[0] != "value"])
        self.cost = 1 + passes // 4 + 8 * len(names - EXACT)
        self.text = text
        self.paid: Any = None  # the account of a loop that gives NumPy's results to the last bit
        self.function: Any = None
        given = [kind for kind in kinds if kind[0] != "value"]
        each = (0,) + (1,) * (len(place_of(kinds)) - 1)
        shapes = {"each": each, "channel": (1,), "row": (1,), "one": ()}
        self.example = (
            np.empty(each, dtype),
            *(np.empty(shapes[kind[1]], BITS if kind[0] in HALVES else kind[0]) for kind in given),
        )
        self.like = next((i for i, kind in enumerate(given) if kind[1] == "each"), 0)
        if names <= EXACT:
            from rushlight.loops.tiering import Loop as Paid

            self.paid = Paid(lambda: text, passes, lambda: self.example)

    def build(self) -> None:
        """Compile it now."""
        if self.paid is None:
            self.read()(*self.example)
        else:
            self.paid.build()

    def read(self) -> Callable:
        """The loop; its first call compiles it."""
        from rushlight.loops.cache import compiled

        self.function = compiled(self.text)
        return self.function

    def call(self, arrays: list[ndarray], shape: tuple[int, ...]) -> ndarray | None:
        function, size = self.function, prod(shape)
        if function is None and self.paid is not None:
            function = self.paid.function
            if function is None:
                self.paid.pay(size if size < FRESH_ELEMENTS else 12 * size)
                return None
        if function is None:
            if not charge(self.passes, size, ELEMENTWISE_ELEMENTS):
                return None
            function = self.read()
        out = memory.take(shape, self.dtype)
        shared(function, (out.reshape(arrays[self.like].shape), *arrays), self.how, size * self.cost, PARALLEL_COST)
        return out


def run(op: Op, of: str, kernel: Callable, *args: Any) -> ndarray:
    """`kernel(*args)`: the op's forward (`of` is ""), or the derivative by the input `of`."""
    if of:
        args = in_full(args[0]), *args[1:]
    if any([is_half(a) for a in args]):
        made = halves_at_once(op, of, args) if args[0].size >= HALF_ELEMENTS else None
        return singly(op.name, kernel, args) if made is None else made
    if hasattr(args[0], "through"):  # a deferred gradient (fast/backward_chains.py)
        return args[0].through(op, of, kernel, args)
    number = op is TABLE["pow"] and not of and not args[1].ndim  # x^3 has its own loop
    seen = looked_at((args[0], args[1].item()) if number else args)
    if seen is None:
        return kernel(*args)
    kinds, arrays, shape = seen
    ufunc = getattr(kernel, "ufunc", kernel)
    plain = isinstance(ufunc, np.ufunc) and ufunc not in SLOW
    if plain and all([kind[1] in ("each", "one") for kind in kinds]):
        return in_turns(op, kernel, kinds, arrays, shape)
    if plain and ufunc not in BROADCASTING:
        return kernel(*args)
    try:
        loop = loop_of(op.name, of, kinds)
    except TypeError:  # a setting that is not a number
        return kernel(*args)
    made = None if loop is None else loop.call(arrays, shape)
    return kernel(*args) if made is None else made


def few_loop(op: Op, dtype: np.dtype, *settings: Any) -> tuple[Callable, np.dtype] | None:
    """The compiled loop for one array and settings, and the dtype of the results; None if NumPy should do it. NotReady
    while the loop is being compiled.
    """
    if dtype not in TYPES or any([isinstance(setting, np.generic) for setting in settings]):
        return None
    kinds = ((TYPES[dtype], "each"), *[("value", setting) for setting in settings])
    loop = loop_of(op.name, "", kinds)
    if loop is None:
        return None
    loop.build()
    function = loop.function if loop.paid is None else loop.paid.function
    if function is None:
        raise NotReady
    return function, loop.dtype


def halves_at_once(op: Op, of: str, args: tuple) -> ndarray | None:
    """The loop's result for half precision, computed in float32 number by number: 51,200 sums take 6 us, with
    conversions of whole arrays 40. None if there is no such loop, or if it is not compiled yet; large arrays with
    functions that round in their own way have a separate loop.
    """
    seen = None if op.name in APART else looked_at(args, TYPES_OF_HALVES)
    if seen is None or len(place_of(seen[0])) > 1:
        return None
    kinds, arrays, shape = seen
    try:
        loop = loop_of(op.name, of, kinds)
    except TypeError:
        return None
    if loop is None or loop.paid is None and prod(shape) < ELEMENTWISE_ELEMENTS:
        return None
    made = loop.call([a.view(BITS) if is_half(a) else a for a in arrays], shape)
    return made if made is None or made.dtype is not BITS else made.view(next(a.dtype for a in arrays if is_half(a)))


def looked_at(args: tuple, types: Any = TYPES) -> tuple[tuple, list[ndarray], tuple[int, ...]] | None:
    """The kinds of the arguments, the arrays in the loop's form, and the result's shape; None if no loop supports them.
    Cached by shapes and dtypes, which takes a third of the time.
    """
    key = (
        types is TYPES,
        *[(a.shape, a.strides, a.dtype, a.flags.aligned) if a.__class__ is ndarray else a for a in args],
    )
    try:
        plan = PLANS.get(key, UNKNOWN)
    except TypeError:  # a setting is not hashable
        return None
    if plan is UNKNOWN:
        if len(PLANS) >= MOST_PLANS:
            PLANS.clear()
        plan = PLANS[key] = planned(args, types)
    if plan is None:
        return None
    kinds, forms, shape = plan
    given = [a for a in args if a.__class__ is ndarray]
    arrays = [np.asarray(a[(0,) * a.ndim]) if form is None else a.reshape(form) for a, form in zip(given, forms)]
    return kinds, arrays, shape


def planned(args: tuple, types: Any) -> tuple[tuple, list[tuple | None], tuple[int, ...]] | None:
    """The kinds of the arguments, the form of each array in the loop (None: its first number), and the result's shape.
    An array's kind is its dtype and one of: "each" (a number for each element), "channel" (a number for each channel;
    other arrays then have three dimensions, channels in the middle), "row" (a number for each element of a row; other
    arrays have two dimensions), "one" (one number for all).
    """
    whole = [a for a in args if a.__class__ is ndarray and not all_alike(a)]
    if not whole or not all([a.flags.c_contiguous and a.flags.aligned for a in whole]):
        return None
    shape = whole[0].shape
    found = {channels_of(a, shape) for a in whole if a.shape != shape}
    if None in found or len(found) > 1:
        return None
    channels = found.pop() if found else None
    kinds = [kind_of(a, types, shape, channels) for a in args]
    if None in kinds or not all([fits(a, kind, shape) for a, kind in zip(args, kinds)]):
        return None
    own = () if channels is None else channels if channels[1] > 1 else channels[:1]
    forms = {"each": (-1, *own), "channel": (-1,), "row": (-1,), "one": None}
    return tuple(kinds), [forms[kind[1]] for kind in kinds if kind[0] != "value"], shape


def all_alike(a: ndarray) -> bool:
    """True for a single number, or one number repeated by broadcasting."""
    return a.size == 1 or not any(a.strides)


def kind_of(a: Any, types: dict, shape: tuple[int, ...], channels: tuple[int, int] | None) -> Any:
    """The kind of an argument, as described in `planned`; None if no loop supports it."""
    if a.__class__ is not ndarray:
        return "value", a
    dtype = type_of(a, types)
    if dtype is None:
        return None
    if all_alike(a):
        return dtype, "one"
    if channels is None or a.shape == shape:
        return dtype, "each"
    return dtype, "row" if channels[1] == 1 else "channel"


def type_of(a: ndarray, types: dict) -> str | None:
    """The type of the array's elements in a loop; None if no loop supports them, or the array is empty."""
    if not a.size:
        return None
    return "b2" if types is TYPES_OF_HALVES and a.dtype.kind == "V" else types.get(a.dtype)


def fits(a: Any, kind: tuple, shape: tuple[int, ...]) -> bool:
    """True if an argument of this kind broadcasts to the shape."""
    if a.__class__ is not ndarray or kind[1] in ("channel", "row"):
        return True
    return a.ndim <= len(shape) and (a.size <= 1 or a.shape == shape)


def channels_of(a: ndarray, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """(numbers, run length): the array has this many numbers, and each applies to a run of adjacent elements of an
    array of this shape. (1, C, 1, 1) beside (N, C, H, W) gives (C, H W); a row of C gives (C, 1). None for other
    arrays, or if the runs are too short for a loop.
    """
    lead = len(shape) - a.ndim
    own = [lead + d for d, n in enumerate(a.shape) if n > 1]
    if lead < 0 or not own or a.shape[own[0] - lead : own[-1] + 1 - lead] != shape[own[0] : own[-1] + 1]:
        return None
    together = prod(shape[own[-1] + 1 :])
    many = a.size if together == 1 and a.size < prod(shape) else together
    return (a.size, together) if many >= BROADCAST_ROW_ELEMENTS else None


def place_of(kinds: tuple) -> str:
    """The indices of an element: with channels, with rows, or flat."""
    broadcast = {kind[1] for kind in kinds if kind[0] != "value"}
    return "bci" if "channel" in broadcast else "bi" if "row" in broadcast else "i"


def in_turns(op: Op, ufunc: Callable, kinds: tuple, arrays: list[ndarray], shape: tuple[int, ...]) -> ndarray:
    """The result of a NumPy function that runs on all cores."""
    out = memory.take(shape, np.dtype(np.bool_) if op.result == BOOL else next(a.dtype for a in arrays if a.ndim))
    how = tuple([1 if kind[1] == "each" else 0 for kind in kinds])
    shared(lambda *given: ufunc(*given[:-1], out=given[-1]), (*arrays, out.reshape(-1)), (*how, 1), out.size * 4)
    return out


@lru_cache(maxsize=1024)
def loop_of(name: str, of: str, kinds: tuple) -> Loop | None:
    """The loop for arguments of these kinds; None if NumPy should do it."""
    if not has_llvmlite():
        return None
    from rushlight.fast.rule_text import NotFused, expression_of

    dtypes = {kind[0] for kind in kinds if kind[0] in ("f4", "f8", *HALVES)}
    half = next((HALVES[dtype] for dtype in dtypes if dtype in HALVES), None)
    if len(dtypes) != 1 or half is HALVES["f2"] and not knows_float16():
        return None
    given, parameters = symbols_of(kinds)
    try:
        made = expression_of(TABLE[name], of, given)
    except (NotFused, TypeError, AttributeError, ValueError):
        return None
    if made is None or len(made.text) > LONGEST:
        return None
    names = {found.removesuffix("64") for found in re.findall(r"(\w+)\(", made.text)} - CONVERTING
    if not worth_while(names, "f8" in dtypes):
        return None
    formula, dtype, passes = made.text, made.dtype, 0
    if half is not None:
        passes = HALF_PASSES
        if dtype == np.float32:
            formula, dtype = f"{half[1]}({formula})", BITS
    text = text_of(parameters, [kind[1] for kind in kinds if kind[0] != "value"], formula)
    passes += len(re.findall(r"[-+*/<>=(]", made.text)) + 10 * len(re.findall("where|hypot", made.text))
    return Loop(text, kinds, dtype, names, passes)


def symbols_of(kinds: tuple) -> tuple[list[Any], list[str]]:
    """The arguments as symbols and settings, and the loop's parameters x0, x1, ..."""
    from rushlight.fast.rule_text import Scalar

    given: list[Any] = []
    parameters: list[str] = []
    at = ", ".join(place_of(kinds))
    for kind in kinds:
        if kind[0] == "value":
            given.append(kind[1])
            continue
        x = f"x{len(parameters)}"
        parameters.append(x)
        element = {"each": f"{x}[{at}]", "row": f"{x}[i]"}.get(kind[1], f"{x}_")
        if kind[0] in HALVES:
            given.append(Scalar(f"{HALVES[kind[0]][0]}({element})", np.dtype("f4")))
        else:
            given.append(Scalar(element, np.dtype(kind[0])))
    return given, parameters


def text_of(names: list[str], counts: list[str], formula: str) -> str:
    """The function: a loop over all elements, channel by channel if some arrays have a number for each channel."""
    ones, channels = ([x for x, count in zip(names, counts) if count == wanted] for wanted in ("one", "channel"))
    lines = [
        f"def kernel(out, {', '.join(names)}):",
        "    restrict()",
        "    wide()",
        *(f"    {x}_ = {x}[()]" for x in ones),
    ]
    if channels:
        lines += [
            "    for b in range(out.shape[0]):",
            "        for c in range(out.shape[1]):",
            *(f"            {x}_ = {x}[c]" for x in channels),
            "            for i in range(out.shape[2]):",
            f"                out[b, c, i] = {formula}",
        ]
    elif "row" in counts:
        lines += [
            "    for b in range(out.shape[0]):",
            "        for i in range(out.shape[1]):",
            f"            out[b, i] = {formula}",
        ]
    else:
        lines += ["    for i in range(out.shape[0]):", f"        out[i] = {formula}"]
    return "\n".join(lines) + "\n"


def worth_while(names: set[str], wide: bool) -> bool:
    """True if a loop is faster than NumPy. False for sines, and if the loop would call libm for each number."""
    from rushlight.loops.scalar_math import LIBM

    slow = {*LIBM, "sin", "cos", "tan", "pow"} | ({"erf", "erfc", "hypot", "lgamma"} if wide else set())
    return not names & slow
