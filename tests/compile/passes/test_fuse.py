"""fuse: calls that share a loop. Each test says what runs together, what must not, and that the numbers stay."""

import re
import warnings

import pytest

import rushlight as torch
from tests.support.passes import agree, compiled, numbers

pytest.importorskip("llvmlite")

X, Y = numbers(0, (7, 5), (7, 5))
(ROW,) = numbers(1, (5,))
(W,) = numbers(2, (5, 5))


def loops(f, *args, **options):
    """For each loop that a program of f runs the ops in it; results and order of effects are eager's."""
    program, got, _ = compiled(f, *args, backend="loops", **options)
    agree(got, f(*args), rtol=2e-5, atol=1e-5)
    if options.get("fuse") is False:
        assert "loop_" not in program.source
    return [" ".join(item.ops) for item in program.items if re.search(r"loop_\d", item.text)]


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda x, y: (x + y).exp() * x - 1, ["add exp mul sub"]),
        (lambda x, y: (x * y).sum(), ["mul sum"]),
        (lambda x, y: (x - x.amax(1, keepdim=True)).exp().sum(1), ["amax sub exp sum"]),
        (lambda x, y: ((x * ROW).tanh() + y).sum(0), ["mul tanh add sum"]),
        (lambda x, y: x.softmax(1) * y, ["amax sub exp sum div mul"]),
        (lambda x, y: torch.nn.functional.layer_norm(x, (5,), ROW), ["sum div sub mul add rsqrt"]),
        (lambda x, y: (lambda r: r.sqrt() + 1)((x * x).sum(1, keepdim=True)) - y, ["mul sum sqrt add sub"]),
    ],
    ids=[
        "a chain",
        "its sum",
        "a row's largest and sum",
        "columns",
        "softmax",
        "layer norm",
        "between two loops over a row",
    ],
)
def test_one_loop(f, want):
    assert loops(f, X, Y) == want


def test_two_results_of_one_input_share_its_loop():
    assert len(loops(lambda x, y: (x.exp() + y, x.tanh() * 2), X, Y)) == 1


def test_a_loop_does_not_reach_over_a_product():
    """Or it would write what could as well be read again after it."""
    assert loops(lambda x, y: (x.exp() @ W).tanh() + x.sin(), X, Y) == ["exp sin", "mm", "tanh add"]


def test_what_lies_between_two_keeps_them_apart():
    """The sum of all must be known before an element is divided by it."""
    found = loops(lambda x, y: (lambda e: e / e.sum() + y)(x.exp()), X, Y)
    assert found == ["exp sum", "div add"]


def test_memory_is_written_after_the_last_read_of_what_was_there():
    def step(p, y):
        old = p * 2
        p += y.exp()
        return old, p * 3

    p, q = X.clone(), X.clone()
    program, _, _ = compiled(step, p, Y, backend="loops")
    for _ in range(4):
        step(q, Y)
    agree(p, q)
    agree(program.run([p, Y]), step(q, Y))
    agree(p, q)
    assert any("store" in item.ops and len(item.ops) > 1 for item in program.items)  # in the loop that makes its value


def test_a_sum_of_a_parameter_that_is_written_comes_from_before():
    def step(p, y):
        total = p.sum()
        p.mul_(0.5)
        return total, p.sum()

    p, q = X.clone(), X.clone()
    program, _, _ = compiled(step, p, Y, backend="loops")
    for _ in range(4):
        step(q, Y)
    agree(program.run([p, Y]), step(q, Y))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.addr_(x[0], x[1]),
        lambda x: x.mul_(2).add_(x[0]),
        lambda x: x.copy_(x.sin() * x[:, :1]),
        lambda x: x.copy_(x.T.exp().T + x.sum(0)),
    ],
)
def test_a_loop_does_not_write_to_rows_that_it_reads_again(write):
    """A row of x is a view of x's memory, which has other numbers after the first round."""

    def f(x):
        write(x)
        return x + 1

    g = torch.compile(f, backend="loops")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            x = torch.randn(5, 5)
            y = x.clone()
            torch.testing.assert_close(g(x), f(y))
            torch.testing.assert_close(x, y)


def test_random_numbers_keep_their_order():
    def f(x, y):
        a, b = torch.rand(7, 5), torch.rand(7, 5)
        return b.exp() + x, a.exp() + y

    program, _, _ = compiled(f, X, Y, backend="loops")
    torch.manual_seed(5)
    got = program.run([X, Y])
    torch.manual_seed(5)
    agree(got, f(X, Y))


def test_switched_off_each_op_runs_by_itself():
    assert loops(lambda x, y: (x + y).exp() * x - 1, X, Y, fuse=False) == []


def test_long_programs_are_cut():
    """LLVM's time grows faster than the text of a loop."""
    from rushlight.compile.passes.fuse import MAX_STEPS

    def f(x, y):
        for k in range(MAX_STEPS + 20):
            x = x * 0.99 + y if k % 2 else x - y
        return x

    found = loops(f, X, Y, decompose=True)
    assert len(found) == 2
