"""The compiler of loops: the same numbers as plain Python gives for the same text, and errors for other texts."""

from __future__ import annotations

import math
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from rushlight.loops.cache import Loop, calling, key_of, of
from rushlight.loops.loop_kinds import NotALoop
from rushlight.loops.source_text import program, whole_text

NUMPY = SimpleNamespace(float32=np.float32, float64=np.float64, int32=np.int32, uint64=np.uint64, empty=np.empty)
NAMES = {
    "f32": np.float32, "f64": np.float64, "i64": np.int64, "u64": np.uint64, "i32": np.int32, "math": math, "np": NUMPY,
    "where": lambda c, a, b: a if c else b, "empty": np.empty, "restrict": lambda: None, "wide": lambda: None,
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    """Loops of these tests are not kept."""
    place, before = tmp_path_factory.mktemp("loops"), os.environ.get("RUSHLIGHT_CACHE")
    os.environ["RUSHLIGHT_CACHE"] = str(place)
    yield place
    os.environ.pop("RUSHLIGHT_CACHE")
    if before is not None:
        os.environ["RUSHLIGHT_CACHE"] = before


def loop(text, exact=True):
    """The loop of a text, which no other test has."""
    return Loop(text, exact, {}, key_of(text, exact)).function


def python(text):
    """The text as plain Python."""
    names = dict(NAMES)
    exec(text, names)
    return names["kernel"]


class Plain:
    """An array whose integers and float64 are Python's: operations do not wrap at 8 or 32 bits."""

    def __init__(self, array):
        self.array, self.shape, self.size = array, array.shape, array.size

    def __len__(self):
        return len(self.array)

    def __getitem__(self, place):
        found = self.array[place]
        return Plain(found) if isinstance(found, np.ndarray) else found if found.itemsize == 4 else found.item()

    def __setitem__(self, place, value):
        self.array[place] = np.asarray(value).astype(self.array.dtype)


def plain(value):
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return Plain(value) if isinstance(value, np.ndarray) else value


def copied(value):
    """The arguments again, with the same strides."""
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    if not isinstance(value, np.ndarray):
        return value
    base = value if value.base is None else value.base
    own = base.copy(order="K")
    start = value.ctypes.data - base.ctypes.data
    return np.ndarray(value.shape, value.dtype, own, start, value.strides)


def arrays_in(values):
    return [
        a for v in values for a in (arrays_in(v) if isinstance(v, tuple) else [v] if isinstance(v, np.ndarray) else [])
    ]


def agree(text, *args, exact=True):
    """Compare the result and all arrays of the loop and of plain Python; by the first call, and by a later one."""
    expected_args = copied(args)
    expected = python(text)(*map(plain, expected_args))
    run = loop(text, exact)
    for _ in range(2):
        own = copied(args)
        result = run(*own)
        np.testing.assert_equal(result, expected)
        for a, b in zip(arrays_in(own), arrays_in(expected_args), strict=True):
            np.testing.assert_array_equal(a, b)


# -- expressions ---------------------------------------------------------------------------------------------------

EXPRESSIONS = (
    "a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "-a", "+a", "~a", "not a", "a & b", "a | b", "a ^ b",
    "a << 3", "a >> 2", "a ** 3", "a ** 0", "a < b", "a <= b", "a > b", "a >= b", "a == b", "a != b", "a < b < 100",
    "-1 <= a <= b != 7", "a and b", "a or b", "a and b or 3", "not (a or b)", "a if a > b else b", "min(a, b)",
    "max(a, b, 3)", "abs(a)", "(a, b)[1]", "(a, b, 5)[-1]", "(10, 20, 30)[a % 3]", "(0.5, 2, -1)[b % 3]", "len((a, b))",
    "float(a)", "int(a / b)", "bool(a)", "a + True", "(a > 0) + (b > 0)", "(a > 0) & (b > 0)", "(a > 0) ^ (b > 0)",
    "~(a > 0) + 2 if False else 1", "2 ** 10 + a", "a // 7", "a % 7", "a // -7", "a % -7", "7 // b", "7 % b", "-7 % b",
    "a * 2.5", "a // 2.5", "a % 2.5", "a % -2.5", "a // -2.5", "math.floor(a / 3)", "a ** 2.0", "1 - a", "(a - b) / 2",
)  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_of_integers(expression):
    run = loop(f"def kernel(a, b):\n    return {expression}\n")
    expected = python(f"def kernel(a, b):\n    return {expression}\n")
    for a in (-9, -7, -1, 0, 1, 6, 14):
        for b in (-7, -2, 1, 3, 14):
            assert run(a, b) == expected(a, b), (a, b)


REALS = (
    "x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "-x", "x < y", "x == y", "x != y", "abs(x)", "x ** 2",
    "x ** 3", "min(x, y)", "max(x, y)", "x if x < y else y", "x and y", "not x", "math.sqrt(abs(x))", "math.exp(y)",
    "math.isnan(x)", "math.ceil(x) + 0.0", "x * 2", "int(x)", "x > 0 and y > 0", "math.pow(abs(x) + 1, y)", "math.log1p(abs(x))",
)  # fmt: skip


@pytest.mark.parametrize("expression", REALS)
def test_expressions_of_floats(expression):
    """To the last bit, with the sign of zero."""
    run = loop(f"def kernel(x, y):\n    return {expression}\n")
    expected = python(f"def kernel(x, y):\n    return {expression}\n")
    for x in (-7.5, -0.3, 0.0, 1e-300, 0.1, 5.0, 1e17, 2.0**52 + 1):
        for y in (-2.5, -0.1, 0.7, 1.0, 3.0):
            one, other = run(x, y), expected(x, y)
            assert one == other, (x, y)
            assert math.copysign(1, one) == math.copysign(1, other), (x, y)


def test_division_of_infinities():
    text = "def kernel(x, y, out):\n    out[0] = x // y\n    out[1] = x % y\n"
    for x, y in [(1.0, math.inf), (-1.0, math.inf), (math.inf, 2.0), (3.0, -math.inf), (math.nan, 1.0)]:
        agree(text, x, y, np.zeros(2))


def test_inverted_bools():
    """As NumPy's: `~True` is False."""
    run = loop("def kernel(x, out):\n    out[0] = ~x[0]\n    out[1] = ~(x[0] & x[1])\n")
    for x in ([True, False], [False, True], [True, True]):
        out = np.empty(2, bool)
        run(np.array(x), out)
        assert out.tolist() == [not x[0], not (x[0] and x[1])]


def test_integers_divided_by_zero_are_zero():
    """As NumPy's; the quotient of the smallest integer and -1 wraps around. Processors would end the program."""
    run = loop(
        "def kernel(x, y, q, r):\n    for i in range(len(x)):\n        q[i] = x[i] // y[i]\n        r[i] = x[i] % y[i]\n"
    )
    for dtype in (np.int64, np.uint64, np.int32, np.uint8):
        low = np.iinfo(dtype).min
        x, y = np.array([5, low, low, 7], dtype), np.array([0, 1, 0, 2], dtype)
        if low:
            y[1] = -1
        q, r = np.empty_like(x), np.empty_like(x)
        run(x, y, q, r)
        with np.errstate(all="ignore"):
            assert q.tolist() == (x // y).tolist()
            assert r.tolist() == (x % y).tolist()


# -- types ---------------------------------------------------------------------------------------------------------

DTYPES = ("float32", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def expected_type(a, b):
    """The type of an operation on two types, as the compiler's docstring defines it."""
    a, b = np.dtype(a), np.dtype(b)
    if "f" in (a.kind, b.kind):
        return np.dtype("float32") if a == b == "float32" else np.dtype("float64")
    return np.dtype("uint64") if a.kind == b.kind == "u" else np.dtype("int64")


@pytest.mark.parametrize("first", DTYPES)
def test_types_of_operations(first):
    """Sums, differences and products of all pairs of types, written to arrays of the widest types."""
    run = loop(
        "def kernel(x, y, out):\n    out[0] = x[0] + y[0]\n    out[1] = x[0] - y[0]\n    out[2] = x[0] * y[0]\n"
        "    out[3] = x[0] / y[0]\n"
    )
    for second in DTYPES:
        kind = expected_type(first, second)
        x, y = (np.array([1 if dtype == "bool" else 100.3], np.float64).astype(dtype) for dtype in (first, second))
        out = np.zeros(4, kind if kind.kind == "f" else np.float64)
        run(x, y, out)
        a, b = x.astype(kind)[0], y.astype(kind)[0]
        assert out[:3].tolist() == [float(a + b), float(a - b), float(a * b)], second
        assert out[3] == a / b, second


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_all_types(dtype):
    """Read, changed and written, and cut to the type's width."""
    values = np.array([0, 1, 1, 3, 100, 200, -3, -100] if dtype[0] != "u" else [0, 1, 1, 3, 100, 200, 250, 255])
    x = values.astype(dtype)
    agree("def kernel(x):\n    for i in range(len(x)):\n        x[i] = x[i]\n", x)
    run = loop("def kernel(x, out):\n    for i in range(len(x)):\n        out[i] = x[i] * 3 - 1\n")
    out = np.empty_like(x)
    run(x, out)
    wide = x.astype(np.float64 if np.dtype(dtype).kind == "f" else np.int64)
    assert out.tolist() == (wide * 3 - 1).astype(dtype).tolist()


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32"])
def test_numbers_of_numpy_as_arguments(name):
    kind = np.dtype(name).type
    run = loop("def kernel(n, out):\n    out[0] = n\n    return n\n")
    for value in (3, np.iinfo(kind).max) if name != "float32" else (0.1, -2.5):
        for _ in range(2):
            out = np.empty(1, kind)
            assert run(kind(value), out) == kind(value)
            assert out[0] == kind(value)


def test_float32_stays_single():
    """float32 with float32 is rounded to float32; with Python's numbers and int64 to float64."""
    run = loop(
        "def kernel(x, n, out):\n    out[0] = x * x\n    out[1] = x * 3.0\n    out[2] = x * n\n    out[3] = x * f32(3)\n"
    )
    x, out = np.float32(0.1), np.empty(4)
    run(x, 3, out)
    wide = float(x)
    assert out.tolist() == [float(x * x), wide * 3.0, wide * 3, float(x * np.float32(3))]


def test_unsigned_words():
    """Masks and shifts of uint32 and uint64, with wrap-around."""
    run = loop(
        "def kernel(x, out):\n    for i in range(len(x)):\n        y = u64(x[i])\n        out[i, 0] = (y << u64(40)) >> 40\n"
        "        out[i, 1] = y * u64(0x9E3779B97F4A7C15)\n        out[i, 2] = u64(0) - y\n        out[i, 3] = ~y\n"
        "        k = i\n        out[i, 4] = (u64(0) - y) >> k\n        out[i, 5] = u32(y * u64(2654435761))\n"
    )
    x = np.array([0, 1, 0xFFFF_FFFF, 0x8000_0000, 12345], np.uint32)
    out = np.empty((5, 6), np.uint64)
    run(x, out)
    y, modulus = [int(v) for v in x], 2**64
    for i, v in enumerate(y):
        assert out[i].tolist() == [
            (v << 40) % modulus >> 40, v * 0x9E37_79B9_7F4A_7C15 % modulus, -v % modulus, ~v % modulus,
            (-v % modulus) >> i, v * 2654435761 % 2**32,
        ]  # fmt: skip


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons_of_signed_and_unsigned(sign):
    run = loop(f"def kernel(a, b):\n    return (a {sign} b) * 2 + (b {sign} a)\n")
    for a in (-1, 0, 5, 2**63 - 1):
        for b in (0, 5, 2**63, 2**64 - 1):
            expected = eval(f"(a {sign} b) * 2 + (b {sign} a)", {"a": a, "b": b})
            assert run(a, np.uint64(b)) == expected, (a, b)


def test_exact_loops_round_twice():
    """Elsewhere, a processor with fused multiply-add rounds a product and a sum once."""
    text = "def kernel(x, y, out):\n    for i in range(len(x)):\n        out[i] = x[i] * y[i] + x[i]\n"
    x, y = np.random.default_rng(0).standard_normal((2, 4000)).astype(np.float32)
    out = np.empty_like(x)
    loop(text, exact=True)(x, y, out)
    assert (out == x * y + x).all()


def test_one_rounding():
    out = np.empty(1, np.float32)
    loop("def kernel(a, b, c, out):\n    out[0] = fused(a, b, c)\n")(*np.float32([1 + 2**-12, 1 + 2**-12, -1]), out)
    assert out[0] == np.float32((1 + 2**-12) ** 2 - 1)
    assert out[0] != np.float32(1 + 2**-12) * np.float32(1 + 2**-12) - np.float32(1)


# -- statements ----------------------------------------------------------------------------------------------------

STATEMENTS = {
    "for with a step": "t = 0\nfor i in range(2, 20, 3):\n    t = t * 3 + i",
    "for downwards": "t = 0\nfor i in range(n, -4, -2):\n    t = t * 3 + i",
    "for with a variable step": "t = 0\nfor s in range(-2, 3):\n    if s != 0:\n        for i in range(-5, 5, s):\n            t = t * 3 % 10007 + i",
    "for without rounds": "t = 5\nfor i in range(n, 0):\n    t = 0",
    "the counter afterwards": "t = 0\nfor i in range(n):\n    t += 1\nt = t * 100 + i",
    "the counter changed inside": "t = 0\nfor i in range(n):\n    t += i\n    i = 100\n    t += i",
    "break": "t = 0\nfor i in range(100):\n    if i * i > n:\n        break\n    t += i",
    "continue": "t = 0\nfor i in range(n):\n    if i % 3 == 0:\n        continue\n    t += i",
    "nested break": "t = 0\nfor i in range(n):\n    for j in range(n):\n        if j > i:\n            break\n        if (i + j) % 2:\n            continue\n        t += i * j",
    "while": "t = n\nwhile t < 1000:\n    t = t * 2 + 1",
    "while with break": "t = 0\nwhile True:\n    t += 1\n    if t > n:\n        break",
    "while with continue": "t = 0\ni = 0\nwhile i < n:\n    i += 1\n    if i % 2:\n        continue\n    t += i",
    "return in a loop": "t = 0\nfor i in range(n):\n    t += i\n    if t > 10:\n        return t",
    "return in two loops": "t = 0\nfor i in range(n):\n    for j in range(n):\n        t += 1\n        if i + j > 5:\n            return t\nt = -1",
    "elif": "if n < 3:\n    t = 1\nelif n < 6:\n    t = 2\nelse:\n    t = 3",
    "all operators": "t = n\nt += 3\nt -= 1\nt *= 7\nt //= 2\nt %= 11\nt <<= 2\nt >>= 1\nt |= 1\nt ^= 6\nt &= 15",
    "exchange": "t = 1\nu = n\nt, u = u, t\nt = t * 100 + u",
    "nested targets": "(t, u), v = (n, 2), 3\nt = t + u * v",
    "several targets": "t = u = n + 1\nt = t * u",
    "a variable that is known later": "t = 0\nfor i in range(n):\n    if i > 0:\n        t += before\n    before = i * i",
    "a branch that defines a type": "t = 0\nwhile t < n:\n    if t > 0:\n        t += step\n    step = 2\n    t += 1",
    "integers that become floats": "t = 0\nfor i in range(n):\n    t = t + 0.5",
    "a bool that becomes an integer": "t = n > 3\nt = t + 1",
    "a branch without effect": "t = 1\nif n > 2:\n    pass\nelse:\n    t = 2",
    "a constant condition": "if 1 > 2:\n    t = 1.5\nelse:\n    t = 2",
    "chained conditions": "t = 0\nfor i in range(n):\n    if 1 < i < 4 or i == 7 and not i % 7:\n        t += i",
    "a string": "'nothing'\nt = n",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements(name):
    body = "".join([f"    {line}\n" for line in STATEMENTS[name].split("\n")])
    text = f"def kernel(n):\n{body}    return t\n"
    run, expected = loop(text), python(text)
    for n in (1, 4, 9):
        assert run(n) == expected(n), n


FUNCTIONS = {
    "many returns": "def f(a, b):\n    if a > b:\n        return a\n    for i in range(b):\n        if i * i > a:\n            return i\n    return -1\n",
    "a tuple": "def f(a, b):\n    q, r = g(a, b)\n    return q * 1000 + r\ndef g(a, b):\n    return a // b, a % b\n",
    "tuples in branches": "def f(a, b):\n    x, y = g(a, b)\n    return x * 10 - y\ndef g(a, b):\n    if a > b:\n        return a, b\n    return b, 0.5\n",
    "arguments that are assigned": "def f(a, b):\n    while a > 3:\n        a -= b\n    return a\n",
    "names of the caller": "def f(a, b):\n    i = 5\n    t = g(a) + i\n    return t + g(b)\ndef g(i):\n    t = i * 2\n    i = t + 1\n    return i\n",
    "calls of calls": "def f(a, b):\n    return g(g(a, b), g(b, a))\ndef g(a, b):\n    return h(a) - h(b)\ndef h(a):\n    return a * a if a > 2 else a\n",
    "nothing": "def f(a, b):\n    g(a)\n    return b\ndef g(a):\n    if a:\n        return\n    a = 3\n",
    "a condition that calls": "def f(a, b):\n    return 1 if g(a) and g(b) or g(a + b) else 0\ndef g(a):\n    return a % 3 == 0\n",
    "a function as an argument": "def f(a, b):\n    return g(h, a) + g(k, b)\ndef g(one, a):\n    return one(a)\ndef h(a):\n    return a + 1\ndef k(a):\n    return a * 2\n",
    "constants": "TABLE = (5, 7, 11)\nHALF = 0.5\ndef f(a, b):\n    return TABLE[a % 3] * HALF + TABLE[b % 3]\n",
    "a loop that never falls through": "def f(a, b):\n    while True:\n        a += b\n        if a > 30:\n            return a\n",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_text(name):
    text = (
        FUNCTIONS[name]
        + "def kernel(n):\n    t = 0\n    for i in range(n):\n        t += f(i, 3) + f(i, i + 1)\n    return t\n"
    )
    assert loop(text)(12) == python(text)(12)


def test_a_place_is_computed_once():
    """`x[f()] += 1`, where f changes an array."""
    text = (
        "def after(state):\n    state[0] += 1\n    return state[0]\n"
        "def kernel(state, x):\n    for i in range(4):\n        x[after(state)] += 10\n"
    )
    agree(text, np.zeros(1, np.int64), np.zeros(6, np.int64))


def test_only_what_is_needed_is_computed():
    """`and`, `or` and `... if ... else ...` do not read places outside of the array."""
    text = (
        "def count(n, calls):\n    calls[0] += 1\n    return n > 3\n"
        "def kernel(n, calls):\n    a = n > 5 and count(n, calls)\n    b = n > 5 or count(n, calls)\n"
        "    c = count(n, calls) if a else b\n    return a * 4 + b * 2 + c\n"
    )
    for n in (2, 4, 7):
        agree(text, n, np.zeros(1, np.int64))


INTEGERS = st.sampled_from(["a", "b", "c", "1", "2", "-3", "7"])


def deeper(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "&", "|", "^"]), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(inner, st.sampled_from(["//", "%"]), inner).map(lambda t: f"({t[0]} {t[1]} ({t[2]} | 1))"),
        st.tuples(inner, st.sampled_from(["<", ">=", "==", "and", "or"]), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(inner, st.sampled_from(["-", "~", "not "])).map(lambda t: f"({t[1]}({t[0]} + 0))"),  # ~ of integers
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
    )


EXPRESSION = st.recursive(INTEGERS, deeper, max_leaves=6)


def blocks(inner):
    """Statements with statements inside."""
    body = st.lists(inner, min_size=1, max_size=3).map(lambda parts: "\n".join(parts).replace("\n", "\n    "))
    return st.one_of(
        st.tuples(EXPRESSION, body).map(lambda t: f"if {t[0]}:\n    {t[1]}"),
        st.tuples(EXPRESSION, body, body).map(lambda t: f"if {t[0]}:\n    {t[1]}\nelse:\n    {t[2]}"),
        st.tuples(EXPRESSION, body).map(lambda t: f"for i in range({t[0]} % 5):\n    c = c + i\n    {t[1]}"),
        st.tuples(EXPRESSION, body, EXPRESSION, st.sampled_from(["break", "continue", "return a"])).map(
            lambda t: f"for i in range(-2, {t[0]} % 5):\n    if {t[2]}:\n        {t[3]}\n    {t[1]}"
        ),
        st.tuples(EXPRESSION, body).map(
            lambda t: f"while {t[0]}:\n    steps = steps + 1\n    if steps > 9:\n        break\n    {t[1]}"
        ),
    )


ASSIGNMENT = st.tuples(st.sampled_from(["a", "b", "c"]), EXPRESSION).map(lambda t: f"{t[0]} = ({t[1]}) % 11 - 5")
PROGRAM = st.lists(st.recursive(ASSIGNMENT, blocks, max_leaves=6), min_size=1, max_size=4).map("\n".join)


@given(PROGRAM, EXPRESSION, st.integers(-20, 20), st.integers(-20, 20))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_programs(program, result, a, b):
    """Programs of random statements. Their variables stay small, so that Python's integers do not exceed 64 bits."""
    body = "".join([f"    {line}\n" for line in program.split("\n")])
    text = f"def kernel(a, b):\n    c = a - b\n    steps = 0\n{body}    return ({result}) + 0\n"
    assert loop(text)(a, b) == python(text)(a, b)


# -- arrays --------------------------------------------------------------------------------------------------------

ORDERS = {
    "C": lambda x: x,
    "Fortran": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "steps": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
}
PLACES = {
    "elements": "for i in range(x.shape[0]):\n    for j in range(x.shape[1]):\n        out[i, j] = x[i, j] * 2 + i",
    "from the end": "for i in range(x.shape[0]):\n    out[-1 - i, -1] = x[i, -2]\n    k = -i - 1\n    out[k, k] = x[k, 0]",
    "rows": "for i in range(len(x)):\n    row = x[i]\n    to = out[i]\n    for j in range(row.shape[0]):\n        to[j] = row[j] + len(row)",
    "columns": "for j in range(x.shape[1]):\n    column = x[:, j]\n    for i in range(len(column)):\n        out[i, j] = column[i] - j",
    "slices": "part = x[1:, 2:-1]\nfor i in range(part.shape[0]):\n    for j in range(part.shape[1]):\n        out[i, j] = part[i, j] + part.size",
    "slices beyond": "n = 100\npart = x[-100:n, 3:2]\nout[0, 0] = part.shape[0] * 10 + part.shape[1]",
    "slices of slices": "part = x[1:4][:, 1:]\nfor i in range(part.shape[0]):\n    out[i, 0] = part[i][1:3][-1]",
    "sums in place": "for i in range(x.shape[0]):\n    out[i, 0] += x[i, 1]\n    out[i, i] *= 3",
    "arrays in branches": "for i in range(4):\n    if i % 2:\n        a = x[i]\n    else:\n        a = x[0]\n    out[i, 0] = a[1]",
    "a function with arrays": "fill(x[1], out[0])\nfill(x[:, 1], out[:, 3])",
    "arrays in tuples": "a, b = pair(x, out)\nb[0, 0] = a[1, 1]\nt = (x, 5)\nout[1, 1] = t[0][2, 2] + t[1]",
    "numbers in between": "for i in range(x.shape[0] * x.shape[1]):\n    out[i // 5, i % 5] = x[i % 4, i // 4]",
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("place", PLACES)
def test_places_in_arrays(place, order):
    body = "".join([f"    {line}\n" for line in PLACES[place].split("\n")])
    text = f"def kernel(x, out):\n{body}"
    text += "def fill(a, b):\n    for i in range(min(len(a), len(b))):\n        b[i] = a[i] * 2\ndef pair(a, b):\n    return a, b\n"
    if place == "arrays in branches" and order != "C":
        text = text.replace("x[0]\n", "x[2]\n")
    x = np.random.default_rng(0).integers(-9, 9, (4, 5))
    agree(text, ORDERS[order](x), ORDERS[order](np.zeros((4, 5), np.int64)))


def test_arrays_of_three_dimensions():
    text = (
        "def kernel(x, out):\n    for i in range(x.shape[0]):\n        part = x[i, 1:]\n"
        "        for j in range(part.shape[0]):\n            for k in range(part.shape[1]):\n"
        "                out[k, j, i] = part[j, k] - x[i][j][k]\n"
    )
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    for same in (x, x.transpose(2, 0, 1).copy().transpose(1, 2, 0)):
        agree(text, same, np.zeros((5, 4, 3)))


def test_memory_of_a_loop():
    """Small arrays on the stack, large ones from malloc; in a loop, and as several arrays."""
    text = (
        "def kernel(x):\n    for r in range(3):\n        a = np.empty(len(x), np.float64)\n        b = empty((2, 3), f64)\n"
        "        for i in range(len(x)):\n            a[i] = x[len(x) - 1 - i] * 2\n"
        "        b[1, 2] = a[0]\n        b[0, 0] = 1.0\n        for i in range(len(x)):\n"
        "            x[i] = a[i] + b[1, 2] - b[0, 0]\n"
    )
    for n in (1, 7, 5000):
        agree(text, np.arange(float(n)))


def test_tuples_as_arguments():
    text = (
        "def kernel(sizes, arrays, out):\n    a, (b, scale) = arrays\n    for i in range(sizes[0]):\n"
        "        out[i] = a[i] * scale + b[i] + sizes[1]\n    return sizes[0] * 10 + len(sizes)\n"
    )
    agree(text, (3, 5), (np.arange(4.0), (np.ones(4), 0.5)), np.zeros(4))
    agree(text, (3, 5), (np.arange(8.0)[::2], (np.ones(4), 0.5)), np.zeros(4))


# -- loops as functions of Python ----------------------------------------------------------------------------------

SUM = "def kernel(x, y):\n    t = 0 * y\n    for i in range(len(x)):\n        t += x[i] * y\n    return t\n"


def test_several_signatures():
    """One loop, called in turn with arguments of several types."""
    run = loop(SUM)
    x = np.arange(5)
    for _ in range(3):
        for dtype in (np.int64, np.float32, np.float64, np.uint8):
            assert run(x.astype(dtype), 2) == 20
            assert run(x.astype(dtype)[::2], 2.5) == 15.0
        assert isinstance(run(x, 2), int)
        assert isinstance(run(x, 2.0), float)
        assert run(x > 2, True) == 2
        assert run(x.astype(">i8").astype(np.int64), np.int64(2)) == 20
    assert len(of(run).codes) == 10


RESULTS = {
    "b1": ("n > 2", False, True), "i8": ("n - 5", -4, -2), "f8": ("n / 2", 0.5, 1.5), "f4": ("f32(n) / f32(4)", 0.25, 0.75),
    "u8": ("u64(0) - u64(n)", 2**64 - 1, 2**64 - 3), "i4": ("i32(-n)", -1, -3), "None": ("", None, None),
}  # fmt: skip


@pytest.mark.parametrize("kind", RESULTS)
def test_results(kind):
    """By the first call, which goes through ctypes, and by later calls."""
    text, one, three = RESULTS[kind]
    run = loop(f"def kernel(n):\n    return {text}\n")
    for n, expected in ((1, one), (3, three), (1, one), (3, three)):
        result = run(n)
        assert result == expected
        assert type(result) is type(expected)


WRONG = {
    "too few": (np.ones(3),),
    "too many": (np.ones(3), 1, 2),
    "a list": ([1, 2], 1),
    "text": ("no", 1),
    "None": (np.ones(3), None),
    "other bytes": (np.ones(3).astype(">f8"), 1),
    "complex": (np.ones(3, complex), 1),
    "objects": (np.array([None]), 1),
    "unaligned": (np.frombuffer(bytes(25), np.uint8)[1:].view(np.float64), 1),
    "a complex number": (np.ones(3), 1j),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case, compiled):
    """TypeError with one traceback, before and after the loop was compiled."""
    run = loop(SUM)
    if compiled:
        run(np.ones(3), 1)
        run(np.ones(3), 1)
    with pytest.raises(TypeError) as caught:
        run(*WRONG[case])
    assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1
    with pytest.raises(TypeError):
        run(x=np.ones(3), y=1)


def test_integers_beyond_64_bits():
    run = loop("def kernel(n):\n    return n\n")
    for _ in range(2):
        with pytest.raises(OverflowError):
            run(2**63)
        assert run(2**63 - 1) == 2**63 - 1
        assert run(-(2**63)) == -(2**63)


ERRORS = "def part(n):\n    if n > 3:\n        raise IndexError('n')\n    if n == 2:\n        raise ValueError\n    return n\n"


def test_raised_errors():
    text = ERRORS + "def kernel(n, out):\n    for i in range(n):\n        out[i] = part(i)\n"
    run, calls = loop(text), 0
    for _ in range(2):
        for n, expected, last in ((2, None, 1), (3, ValueError, 1), (9, ValueError, 1)):
            out = np.full(9, -1)
            if expected:
                with pytest.raises(expected):
                    run(n, out)
            else:
                assert run(n, out) is None
            assert out.max() == last
            calls += 1
    assert calls == 6


def test_errors_of_a_loop_that_is_called():
    """The calling loop ends, too, and its memory is freed."""
    inner = loop("def kernel(n, out):\n    if n > 2:\n        raise IndexError\n    out[0] = n\n")
    outer = calling("def kernel(n, out):\n    a = empty(n * 1000, f64)\n    for i in range(n):\n        a[i] = i\n        inner(i, out)\n    out[1] = 5\n", inner=inner)  # fmt: skip
    for _ in range(2):
        out = np.zeros(2)
        outer(3, out)
        assert out.tolist() == [2, 5]
        out[:] = 0
        with pytest.raises(IndexError):
            outer(5, out)
        assert out.tolist() == [2, 0]


@pytest.mark.parametrize("round_", range(3))
def test_threads_call_a_loop_while_it_is_compiled(round_):
    """8 threads, two signatures: each thread gets the right sum, and each signature is compiled once."""
    run = loop(SUM + f"# {round_}\n")
    written, found, start = [], [], Barrier(8)
    compile_ = of(run).written
    of(run).written = lambda *args: (written.append(args), compile_(*args))[1]
    x = np.arange(1000)

    def work(k):
        start.wait()
        for _ in range(50):
            found.append(run(x if k % 2 else x.astype(np.float32), 2))

    threads = [Thread(target=work, args=(k,)) for k in range(8)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert found == [999_000] * 400
    assert len(written) <= 2


# -- texts that are refused ----------------------------------------------------------------------------------------

REFUSED = {
    "with": "with x:\n    pass",
    "try": "try:\n    y = 1\nexcept ValueError:\n    pass",
    "a list": "y = [1, 2]",
    "a dict": "y = {1: 2}",
    "a lambda": "y = lambda a: a",
    "a string": "y = 'text' + 1",
    "a comprehension": "y = [a for a in x]",
    "an iteration": "for a in x:\n    pass",
    "else of for": "for i in range(3):\n    pass\nelse:\n    y = 1",
    "else of while": "while n > 9:\n    pass\nelse:\n    y = 1",
    "is": "y = n is None",
    "in": "y = n in (1, 2)",
    "a keyword": "y = min(n, 2, key=3)",
    "an unknown name": "y = unknown + 1",
    "a name that is never known": "for i in range(n):\n    y = y + z\n    z = y",
    "matrix product": "y = x @ x",
    "bits of a float": "y = 1.5 * n & 3",
    "inverted float": "y = ~(n * 0.5)",
    "a float as a place": "y = x[n * 0.5]",
    "too many places": "y = x[n, n]",
    "too many slices": "y = x[:, :, n]",
    "a new dimension": "y = x[None]",
    "a slice with a step": "y = x[::2]",
    "a slice as a target": "x[1:2] = 3.0",
    "an array as a number": "y = x + 1",
    "an array as a condition": "if x:\n    y = 1",
    "too few values": "y, z = n, n, n",
    "a number as values": "y, z = n",
    "places in a number": "y = n[0]",
    "an attribute": "y = x.dtype",
    "an array of two kinds": "y = x\nfor i in range(n):\n    y = x[1:, None]",
    "an array and a number": "y = x\nif n > 2:\n    y = 1.0",
    "a number and an array": "y = 1.0\nif n > 2:\n    y = x",
    "tuples of two sizes": "y = (1, 2)\nif n > 2:\n    y = (1, 2, 3)",
    "a place in a tuple of variables": "y = (n, n + 1)[n]",
    "a variable exponent": "y = 2 ** n",
    "an unknown error": "raise RuntimeError('no')",
    "a function with too many arguments": "y = f(n, n)",
    "recursion": "y = g(n)",
    "a function without a result": "y = h(n)",
    "a few results": "y = k(n)",
    "an array as the result": "return x",
    "a tuple as the result": "return n, n",
}
HELPERS = (
    "def f(a):\n    return a\ndef g(a):\n    return g(a)\ndef h(a):\n    a = 1\n"
    "def k(a):\n    if a > 2:\n        return 1\n"
)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_texts_name_the_line(name):
    body = "".join([f"    {line}\n" for line in REFUSED[name].split("\n")])
    run = loop(f"{HELPERS}def kernel(x, n):\n    n = n + 1\n{body}")
    with pytest.raises(NotALoop) as caught:
        run(np.ones(4), 1)
    line = int(str(caught.value).rsplit("(line ", 1)[1].split()[0])
    assert line > HELPERS.count("\n") + 1 or name in ("recursion", "a few results")


# -- loops from functions ------------------------------------------------------------------------------------------

SCALE, TABLE, F = np.float32(0.1), (1.5, 2.5, 4.0), np.float32


def half(x):
    """Used by `scaled`."""
    return x * F(0.5)


# fmt: off
def chosen(
    x, k
):
    return half(x) * F(TABLE[k % 3])
# fmt: on


def scaled(x, out):
    for i in range(len(x)):
        out[i] = math.exp(chosen(x[i], i)) * float(SCALE)


def test_a_loop_from_a_function():
    text = whole_text(scaled)
    assert [line for line in text.split("\n") if line.startswith(("def", "F ", "SCALE", "TABLE"))] == [
        "def kernel(x, out):", "def chosen(", "def half(x):", "F = np.float32", "TABLE = (1.5, 2.5, 4.0,)",
        "SCALE = np.float32(0.10000000149011612)",
    ]  # fmt: skip
    x, out, expected = np.linspace(-1, 1, 50, dtype=np.float32), np.empty(50), np.empty(50)
    scaled(x, expected)
    program(exact=True)(scaled)(x, out)
    assert (out == expected).all()


def test_a_loop_from_a_closure():
    def with_(function):
        def run(x, out):
            for i in range(len(x)):
                out[i] = function(x[i])

        return run

    x, out = np.linspace(0.1, 2, 50), np.empty(50)
    for function in (math.log, math.sin, less_one):
        program(exact=True)(with_(function))(x, out)
        assert out.tolist() == [function(v) for v in x.tolist()]


def less_one(x):
    return x * x - 1.0


def both(x):
    return half(x) + chosen(x, 1)


def test_two_meanings_of_a_name_are_refused():
    other = FunctionType(chosen.__code__, {**globals(), "half": less_one})
    assert "def half" in whole_text(both)
    with pytest.raises(ValueError, match="two meanings"):
        whole_text(FunctionType(both.__code__, {**globals(), "chosen": other}))
