"""simplify: what was computed already, what is constant, and what changes nothing is left out."""

import pytest

import rushlight as torch
from tests.support.passes import agree, compiled, numbers, ops

X, Y = numbers(0, (4, 6), (4, 6))

CASES = {
    "the same twice": (lambda x, y: (x + y).exp() * (x + y).exp(), "add exp mul"),
    "of constants": (lambda x, y: x * (torch.arange(6).float().sqrt() * 2), "mul"),
    "times one, by one": (lambda x, y: (x * 1) / 1 + torch.ones(4, 6) * y, "add"),
    "the same shape": (lambda x, y: x.reshape(4, 6).permute(0, 1).expand(4, 6) + y.clone(), "add"),
    "copies between results": (lambda x, y: (x + y).clone() * 2, "add mul"),
    "unused": (lambda x, y: (x.exp(), x + y)[1], "add"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left(name):
    f, left = CASES[name]
    _, got, steps = compiled(f, X, Y)
    agree(got, f(X, Y))
    assert ops(steps["simplify"]) == left.split()
    assert len(steps["as recorded"]) > len(steps["simplify"]) or name == "unused"  # which goes before any pass
    _, got, steps = compiled(f, X, Y, simplify=False)
    agree(got, f(X, Y))
    assert "simplify" not in steps


def test_numbers_that_only_look_equal():
    """0.0 and -0.0, 1 and True: equal for Python, not for arithmetic."""

    def f(x, y):
        return x * 0.0 + y / (x * 0.0), x * -0.0 + y / (x * -0.0)

    got, want = compiled(f, X, Y)[1], f(X, Y)
    assert [t.tolist() for t in got] == [t.tolist() for t in want]
    assert got[0].tolist() != got[1].tolist()


def test_random_numbers_are_drawn_as_often_as_asked_for():
    def f(x, y):
        return torch.rand(4, 6) - torch.rand(4, 6), x

    _, (got, _), steps = compiled(f, X, Y)
    assert ops(steps["simplify"]).count("draw") == 2
    assert got.abs().max() > 0


def test_what_is_written_to_is_not_what_it_was():
    def f(x, y):
        before = x.exp()
        x += y
        return before, x.exp(), x.clone()

    a, b = X.clone(), X.clone()
    program, _, steps = compiled(f, a, Y)
    assert ops(steps["simplify"]).count("exp") == 2
    for _ in range(4):
        want = f(b, Y)
    agree(a, b)
    agree(program.run([a, Y]), f(b, Y))
    agree(a, b)
    assert want[2] is not b


def test_two_results_have_memory_of_their_own():
    program, (a, b), _ = compiled(lambda x, y: (x + y, (x + y).clone()), X, Y)
    a += 1
    agree(b, X + Y)
    c, d = program.run([X, Y])
    c += 1
    agree(d, X + Y)


@pytest.mark.parametrize("backend", ["numpy", "loops"])
def test_zero_keeps_its_sign(backend):
    """As a number in the text of a loop, beside 0, and among the elements of a constant."""

    def f(x):
        return x / -0.0, x / 0.0, x / torch.tensor([0.0, -0.0]), torch.where(x > 0, -0.0, 0.0) / x

    g, x = torch.compile(f, backend=backend), torch.tensor([1.0, -2.0])
    for _ in range(3):
        made = g(x)
    assert torch.compiler.programs(g)
    for a, b in zip(made, f(x)):
        assert [a.tolist(), a.signbit().tolist()] == [b.tolist(), b.signbit().tolist()]
