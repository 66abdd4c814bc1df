"""dtypes of results, against torch: all pairs of dtypes, with tensors, 0-d tensors and Python numbers."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import rushlight
from rushlight.base import lazy
from rushlight.core.table import FLOATING, TABLE
from tests.support.programs import Programs, leaf, like_torch, outcome

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
NUMBERS = [True, 3, 2.5, 1j]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "remainder",
    "floor_divide",
    "fmod",
    "maximum",
    "minimum",
    "atan2",
    "hypot",
    "eq",
    "lt",
    "logical_and",
    "bitwise_and",
    "copysign",
    "logaddexp",
    "xlogy",
    "heaviside",
]
UNARY = [
    "neg",
    "abs",
    "square",
    "reciprocal",
    "sqrt",
    "exp",
    "log",
    "sin",
    "tanh",
    "sigmoid",
    "relu",
    "floor",
    "round",
    "sign",
    "sgn",
    "isnan",
    "isinf",
    "logical_not",
    "bitwise_not",
    "erf",
    "angle",
    "conj",
    "sum",
    "mean",
    "prod",
    "amax",
    "argmax",
    "any",
    "all",
    "cumsum",
    "softmax",
    "log_softmax",
    "var",
    "logsumexp",
    "max",
    "sort",
    "square",
    "frac",
]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")


def operand(torch, name, ndim):
    return torch.ones((2,) * ndim, dtype=getattr(torch, name))


def answer(function, *args):
    """The name of the result's dtype, or "error"."""
    try:
        made = function(*args)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, ZeroDivisionError, IndexError):
        return "error"
    return str((made[0] if isinstance(made, tuple) else made).dtype).removeprefix("torch.")


def table(ask, columns):
    """{dtype: the answers for all columns, in one line}: a golden file of them stays small."""
    return {a: " ".join(ask(a, *column) for column in columns) for a in DTYPES}


def check(columns, ours, theirs):
    """Equal wherever torch has an answer; NumPy has no complex number of two float16, so they meet in no dtype."""
    wrong = [
        (a, column, one, other)
        for a in DTYPES
        for column, one, other in zip(columns, ours[a].split(), theirs[a].split())
        if other not in ("error", one)
    ]
    assert not [found for found in wrong if not complex_half(found[0], *found[1])], "(.., rushlight's, torch's)"


def complex_half(*operands):
    return "float16" in operands and any("complex" in str(one) or one == 1j for one in operands)


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_tensors(oracle, name):
    columns = [(b, m, n) for b in DTYPES for m, n in ((1, 1), (1, 0), (0, 1))]

    def ask(torch):
        return table(
            lambda a, b, m, n: answer(getattr(torch, name), operand(torch, a, m), operand(torch, b, n)), columns
        )

    check(columns, ask(rushlight), oracle(ask))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "eq", "floor_divide", "remainder"])
def test_tensors_with_numbers(oracle, name):
    columns = [(b, ndim) for b in NUMBERS for ndim in (0, 1)]

    def ask(torch):
        return table(lambda a, b, ndim: answer(getattr(torch, name), operand(torch, a, ndim), b), columns)

    check(columns, ask(rushlight), oracle(ask))


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**", "//", "%", "<", "=="])
def test_numbers_on_the_left(oracle, symbol):
    columns = [(b,) for b in NUMBERS]

    def ask(torch):
        return table(lambda a, b: answer(lambda x, y: eval(f"y {symbol} x"), operand(torch, a, 1), b), columns)

    check(columns, ask(rushlight), oracle(ask))


@pytest.mark.parametrize("name", UNARY)
def test_one_tensor(oracle, name):
    columns = [(0,) if name in ("cumsum", "softmax", "log_softmax", "logsumexp", "max", "sort") else ()]

    def ask(torch):
        return table(lambda a, *dim: answer(getattr(torch, name), operand(torch, a, 1), *dim), columns)

    check(columns, ask(rushlight), oracle(ask))


SEVERAL = {
    "where": lambda torch, x, y: torch.where(torch.tensor([True, False]), x, y),
    "clamp": lambda torch, x, y: torch.clamp(x, y, y),
    "lerp": lambda torch, x, y: torch.lerp(x, y, 0.5),
    "cat": lambda torch, x, y: torch.cat([x, y]),
    "stack": lambda torch, x, y: torch.stack([x, y]),
    "masked_fill": lambda torch, x, y: x.masked_fill(x == 1, y[0]),
    "matmul": lambda torch, x, y: x @ y,
    "addmm": lambda torch, x, y: torch.addmm(x, x[:, None], y[None]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_tensors(oracle, name):
    columns = [(b,) for b in DTYPES]

    def ask(torch):
        return table(lambda a, b: answer(SEVERAL[name], torch, operand(torch, a, 1), operand(torch, b, 1)), columns)

    check(columns, ask(rushlight), oracle(ask))


@pytest.mark.parametrize("default", ["float32", "float64", "bfloat16"])
def test_the_default_dtype_is_used(oracle, default):
    def program(torch):
        torch.set_default_dtype(getattr(torch, default))
        try:
            whole = torch.tensor([1, 2])
            made = [
                torch.ones(1),
                torch.tensor(1.5),
                whole / 2,
                whole * 1.5,
                whole.sqrt(),
                whole.float(),
                torch.arange(2.0),
                torch.linspace(0, 1, 2),
                torch.full((1,), 2.5),
                torch.zeros_like(whole),
                torch.eye(1),
                torch.sigmoid(whole),
                torch.tensor([True]) * 0.5,
            ]
            return [str(t.dtype) for t in made] + [str(torch.get_default_dtype())]
        finally:
            torch.set_default_dtype(torch.float32)

    like_torch(oracle, program)


def test_values_wrap_and_saturate_as_torchs(oracle):
    def program(torch):
        byte, small = torch.tensor([250, 255], dtype=torch.uint8), torch.tensor([127, -128], dtype=torch.int8)
        return [
            byte + 10,
            byte * 2,
            -byte,
            byte - 251,
            small + 1,
            small * 2,
            small.abs(),
            small // 3,
            small % 5,
            torch.tensor([7, -7]) // 2,
            torch.tensor([7, -7]) % 3,
            torch.tensor([7, -7]) % -3,
            torch.tensor([7, -7]).fmod(3),
            torch.tensor([2, -3]) ** 3,
            torch.tensor([1.9, -1.9]).to(torch.int64),
            torch.tensor([300, -1]).to(torch.uint8),
            torch.tensor([2, 0]).bool(),
            torch.tensor([True, False]).float(),
            torch.tensor([1 + 2j]).abs(),
            torch.tensor(2**40).int(),
            torch.tensor([1, 2]) << 3,
            torch.tensor([-8]) >> 1,
            torch.tensor([7.0, -7.0]) // 2,
            torch.tensor([7.0, -7.0]) % 3,
            torch.tensor([1, 2, 3]) / 2,
            outcome(lambda: torch.tensor([1]) // 0),
            outcome(lambda: torch.tensor([1]) ** -1),
            outcome(lambda: torch.tensor([True]) - torch.tensor([True])),
            torch.tensor([1.0]) // 0,
            outcome(lambda: -torch.tensor([True])),
            torch.tensor([True]) + True,
            torch.tensor([3, 5]).bitwise_xor(6),
        ]

    like_torch(oracle, program)


def test_integers_are_bounded_in_the_dtype_of_all(oracle):
    """A lower bound of -1 is 255 among bytes, but -1 where the upper one is a float; none is cut to fit."""

    def program(torch):
        bounds = [
            (-1, 3),
            (-1, 2.5),
            (None, -1),
            (-1.0, None),
            (300, 400),
            (0, 300),
            (True, 3),
            (torch.tensor(-1), torch.tensor(2.5)),
            (torch.tensor([-1]), torch.tensor([3])),
            (torch.tensor(-1), 2),
        ]
        tensors = [torch.arange(6).to(d) for d in (torch.uint8, torch.int8, torch.int64, torch.bool)]
        return [outcome(t.clamp, *pair) for t in tensors for pair in bounds]

    like_torch(oracle, program)


def test_gradients_come_back_in_the_dtype_of_what_was_promoted(oracle):
    def program(torch):
        found = []
        for a, b in (
            ("float16", "float32"),
            ("float32", "float64"),
            ("bfloat16", "float32"),
            ("float32", "complex64"),
            ("float64", "complex64"),
        ):
            x, y = operand(torch, a, 1).requires_grad_(), operand(torch, b, 0).requires_grad_()
            out = (x * y).sum()
            (out.abs() if out.is_complex() else out).backward()
            found.append([str(out.dtype), str(x.grad.dtype), str(y.grad.dtype), x.grad.double()])
        return found

    like_torch(oracle, program)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_half_precision_is_torchs(oracle, name):
    """Each op rounds once, from a result that is exact enough; sums are formed in single precision."""

    def program(torch):
        x = (torch.arange(1, 13).reshape(3, 4) / 7).to(getattr(torch, name)).requires_grad_()
        w = (torch.arange(12).reshape(4, 3) / 5 - 1).to(getattr(torch, name)).requires_grad_()
        parts = [
            x + 1,
            x * x,
            x / 3,
            x.exp(),
            x.sqrt(),
            x.sum(),
            x.mean(0),
            x.amax(1),
            x @ w,
            x.tanh(),
            x.softmax(1),
            x.relu(),
            x.sigmoid(),
            torch.cat([x, x]),
            x.reshape(2, 6),
            x[1:],
            x.log(),
            x**2,
            x.abs(),
            x.clamp(0.5, 1),
        ]
        total = sum(p.float().sum() for p in parts)
        total.backward()
        return [[p.float() for p in parts], x.grad.float(), w.grad.float(), str(x.grad.dtype)]

    ours, theirs = program(rushlight), oracle(program)
    eps = {"bfloat16": 2**-7, "float16": 2**-10}[name]
    for a, b in zip([*ours[0], *ours[1:3]], [*theirs[0], *theirs[1:3]]):
        assert np.allclose(a.detach()._array, b, 2 * eps, 2 * eps)
    assert ours[3] == theirs[3]


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_a_number_beside_half_precision_is_not_rounded_to_it(oracle, name):
    """3.4445 has no half: products and quotients are of it, not of 3.4375, and are rounded once."""

    def program(torch):
        x = (torch.arange(1, 13).reshape(3, 4) / 7).to(getattr(torch, name)).requires_grad_()
        number = torch.tensor(3.4445)
        parts = [
            x * 3.4445,
            3.4445 * x,
            x / 3.4445,
            x * number,
            x / number,
            x.mul(0.5),
            x.detach().clone().mul_(3.4445),
        ]
        sum(p.float().sum() for p in parts).backward()
        return [[p.float() for p in parts], x.grad.float(), [str(p.dtype) for p in parts]]

    ours, theirs = program(rushlight), oracle(program)
    for a, b in zip(ours[0], theirs[0]):
        assert np.array_equal(a.detach()._array, b)
    assert np.allclose(ours[1]._array, theirs[1], 2**-6, 0)
    assert ours[2] == theirs[2]


@pytest.mark.parametrize("first", [1, 1.0, 2, 2.0])
def test_equal_numbers_of_different_types_promote_by_their_own(first):
    x = rushlight.tensor([1, 2])
    for number in (first, 1, 1.0, 2, 2.0, 1, True):
        expected = rushlight.float32 if isinstance(number, float) else rushlight.int64
        assert (x + number).dtype is expected, number
        assert (x * number).dtype is expected, number


lazy.complete()
FLOATING_OPS = [
    op.name
    for op in TABLE.values()
    if op.elementwise and op.result == FLOATING and not op.settings and len(op.inputs) == 1
    if {*"bui"} <= {*op.takes}
]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
@pytest.mark.parametrize("name", FLOATING_OPS)
def test_functions_of_whole_numbers_are_floating(name, dtype):
    """Also where the kernel computes in double and returns the dtype that it was given."""
    made = TABLE[name].call(rushlight.ones(2, dtype=getattr(rushlight, dtype)))
    assert made.dtype is rushlight.float32


program = Programs()


@program.found_in("torch tests")
def an_array_of_no_dimensions_is_an_operand(torch):
    arrays = [np.array(2.0), np.array(2.0, np.float32), np.float64(2), np.array([2.0])]
    return [
        op(x, a)
        for x in (torch.ones(2), torch.tensor(3.0), torch.ones(2, dtype=torch.float64))
        for a in arrays
        for op in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.eq)
    ]


@pytest.mark.origin("torch tests")
def test_an_array_of_no_dimensions_lets_the_gradient_through():
    """torch asks for detach() here."""
    x = leaf(rushlight, 1, 2)
    (x * np.array(3.0) + np.array(1.0)).sum().backward()
    assert x.grad.tolist() == [3, 3]


test_program = program.test()
