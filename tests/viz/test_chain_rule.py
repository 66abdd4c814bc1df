"""explain and contributions: the formula is the derivative, the paths add up, the parts are the gradient."""

import random

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

CUBIC = """\
dz/dx by the chain rule

Forward, in steps:
  a  = x * x  = 1.44
  b  = a * x  = 1.728
  z  = b + x  = 2.928

The derivative of each step by its inputs:
  ∂z/∂b           = 1         = 1
  ∂z/∂x           = 1         = 1
  ∂b/∂a           = x         = 1.2
  ∂b/∂x           = a         = 1.44
  ∂a/∂(first x)   = second x  = 1.2
  ∂a/∂(second x)  = first x   = 1.2

4 paths lead from z to x. Along a path the factors are multiplied; the paths are added:
  z → b → a → x (twice)  2 · 1 · x · x  = 2.88
  z → b → x              1 · a          = 1.44
  z → x                  1              = 1
dz/dx = 5.32"""


def leaf(value):
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def test_the_words_of_the_cubic():
    x = torch.tensor([1.2], requires_grad=True)
    z = x * x * x + x
    told = torch.explain(z, wrt=x)
    assert str(told).replace("[", "").replace("]", "") == CUBIC
    assert x.grad is None
    z.backward()  # nothing was freed
    assert told.value.item() == x.grad.item()


def test_operands_and_paths_are_told_apart():
    """x * x has two factors; equal paths stand once with their number; other paths name their operand."""
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    told = str(torch.explain(y, wrt=x))
    assert "  ∂y/∂(first x)   = second x  = 3\n  ∂y/∂(second x)  = first x   = 3\n" in told
    assert "  y → x (twice)  2 · x  = 6\n" in told
    assert len(torch.explain(y, wrt=x).paths) == 2
    y = x / x
    told = str(torch.explain(y, wrt=x))
    assert "∂y/∂(first x)   = 1 / second x " in told
    assert "y → first x   1 / x           = 0.3333" in told
    assert "y → second x  -(x / x / x)" in told or "y → second x  (-(x / x / x))" in told
    w = torch.ones(2, 2, requires_grad=True)
    s = (w @ w).sum()
    told = str(torch.explain(s, wrt=w))
    assert "∂b/∂(first w)   sends g @ w.T" in told or "∂a/∂(first w)   sends g @ w.T" in told
    assert "→ second w " in told
    m = torch.maximum(x, x) * 2  # a rule with conditions keeps its own formula
    assert "= 0.5" in str(torch.explain(m, wrt=x))


@pytest.mark.parametrize("seed", range(12))
def test_the_listed_paths_add_up(seed):
    """The shares as they are printed, each with its number of equal paths, add up to the derivative."""
    rng = random.Random(seed)
    x, y = leaf(rng.uniform(0.3, 1.5)), leaf(rng.uniform(0.3, 1.5))
    z = (expression(rng, x, y) * x) * (x * x)
    told = torch.explain(z, wrt=x)
    equal = told.equal_paths()
    assert sum(map(len, equal)) == told.count
    assert sum(len(same) * same[0].share.item() for same in equal) == pytest.approx(told.value.item(), rel=1e-9)
    rows = [line for line in str(told).split("\n") if " → " in line and "  = " in line]
    assert len({row.split("  ")[1] + row.split("  ")[-2] for row in rows}) == len(rows)


# -- 30 random expressions: the LaTeX, read by SymPy, computes `.grad`

UNARY = [
    torch.sin,
    torch.cos,
    torch.exp,
    torch.tanh,
    lambda x: (x * x + 1).log(),
    lambda x: (x * x + 0.5).sqrt(),
    torch.sigmoid,
    lambda x: -x,
    lambda x: x**3,
    lambda x: (x.exp() + 0.25) ** 0.5,
    lambda x: 1 / (x * x + 2),
    lambda x: x / 3 - 0.125,
    lambda x: 2**x,
    torch.sinh,
    torch.square,
    torch.log1p,
]
BINARY = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a / (b * b + 1),
    lambda a, b: (a * a + 1) ** (b / 4),
]


def expression(rng, x, y):
    pool = [x, y]
    for _ in range(rng.randint(3, 5)):
        if rng.random() < 0.6:
            pool.append(rng.choice(UNARY[:-1])(rng.choice(pool[-2:])))
        else:
            pool.append(rng.choice(BINARY)(*rng.sample(pool[-3:], 2)))
    return pool[-1] * x


def read(latex):
    parse_latex = pytest.importorskip("sympy.parsing.latex").parse_latex
    pytest.importorskip("antlr4", reason="SymPy reads LaTeX with antlr4")
    return parse_latex(latex)


@pytest.mark.parametrize("seed", range(30))
def test_sympy_reads_the_latex_and_gets_grad(seed):
    sympy = pytest.importorskip("sympy")
    rng = random.Random(seed)
    x, y = leaf(rng.uniform(0.3, 1.5)), leaf(rng.uniform(0.3, 1.5))
    z = expression(rng, x, y)
    told = torch.explain(z, wrt=x)
    assert told.formula is not None
    left, right = told.latex.split(" = ")
    assert left == r"\frac{\partial z}{\partial x}"
    symbolic = read(right)
    given = {"x": x.item(), "y": y.item(), "e": np.e} | {k: v.item() for k, v in told.values.items() if v is not None}
    names = sorted(symbolic.free_symbols, key=str)
    computed = sympy.lambdify(names, symbolic, "math")(*[given[str(name)] for name in names])
    z.backward()
    assert computed == pytest.approx(x.grad.item(), rel=1e-12, abs=1e-12)
    assert sum(path.share.item() for path in told.paths) == pytest.approx(x.grad.item(), rel=1e-12)


def test_factors_have_formula_and_value():
    x = leaf(0.5)
    z = x.sin() * x
    factors = {(f.result, f.operand): f for f in torch.explain(z, x).factors}
    assert str(factors["a", "x"].formula) == "cos(x)"
    assert factors["a", "x"].value == np.cos(0.5)
    assert str(factors["z", "x"].formula) == "a"
    assert factors["z", "x"].full.latex == r"\sin\left(x\right)"


def test_names_are_the_users():
    weight, bias = leaf(2.0), leaf(1.0)
    hidden = weight * 3 + bias
    loss = hidden.square()
    told = torch.explain(loss, wrt=weight)
    assert "loss    = hidden * hidden" in str(told)
    assert told.latex.startswith(r"\frac{\partial \mathrm{loss}}{\partial \mathrm{weight}}")
    assert "∂hidden/∂a" in str(torch.explain(loss, weight))
    assert "dloss/dW" in str(torch.explain(loss, weight, params={"W": weight}))
    assert (
        str(torch.explain(loss, wrt=hidden).formula) == "2 * hidden"
        or torch.explain(loss, wrt=hidden).value.item() == 14
    )


def test_through_tensors():
    torch.manual_seed(0)
    w = torch.randn(2, 3, requires_grad=True)
    loss = (w @ torch.ones(3, 2)).relu().sum() + w.exp().mean()
    told = torch.explain(loss, wrt=w)
    assert told.count == len(told.paths) == 2
    assert told.formula is None
    assert "sends g @ p.T" in str(told)
    assert "p is a constant of the program, shape (3, 2)." in str(told)
    assert r"\frac{\partial" in told.latex
    loss.backward()
    np.testing.assert_array_equal(told.value, w.grad)
    np.testing.assert_allclose(sum(path.share for path in told.paths), w.grad, rtol=1e-6)


def test_outputs_of_several():
    x = torch.tensor([[1.0, 4.0, 2.0]], requires_grad=True)
    values, _ = x.sort()
    z = (values * values).sum()
    told = torch.explain(z, wrt=x)
    np.testing.assert_array_equal(sum(path.share for path in told.paths), [[2, 8, 4]])


def test_too_many_paths_are_counted():
    y = x = leaf(1.0)
    for _ in range(1000):
        y = y + y
    told = torch.explain(y, wrt=x)
    assert told.count == 2**1000
    assert told.paths == []
    assert "too many to list" in str(told)
    assert told.value.item() == 2.0**1000


def test_a_long_chain():
    y = x = leaf(1.0)
    for _ in range(3000):
        y = y * 1.0
    told = torch.explain(y, wrt=x)
    assert told.value.item() == 1
    assert told.latex
    assert len(str(told).splitlines()) > 6000


def test_a_notebook_shows_it():
    x = leaf(2.0)
    told = torch.explain(x * x, x)
    assert told._repr_latex_() == r"$\displaystyle \frac{\partial z}{\partial x} = x + x$"
    assert "<pre>" in told._repr_html_()
    assert "&gt;" not in told._repr_html_().split("<pre>")[0]


def test_errors():
    x = leaf(2.0)
    with pytest.raises(ValueError, match="no graph was recorded"):
        torch.explain(torch.ones(()), x)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.explain(x * 2, torch.ones(()))
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.explain(x * 2, leaf(1.0))
    with pytest.raises(RuntimeError, match="scalar outputs"):
        torch.explain(x * torch.ones(2), x)
    z = x * x
    z.backward()
    with pytest.raises(RuntimeError, match=r"explain: an earlier backward\(\) has freed") as info:
        torch.explain(z, x)
    assert "hint: call explain(...) before backward(), or write backward(retain_graph=True)" in str(info.value)
    z = x * x
    z.backward(retain_graph=True)
    assert torch.explain(z, x).value.item() == 4


# -- contributions


def test_the_parts_of_a_gradient():
    x = torch.tensor(3.0, requires_grad=True)
    found = torch.contributions(x, of=x * x + x * x)
    assert [share.item() for _, share in found.by_use()] == [6, 6]
    assert len(found) == 4
    assert x.grad is None
    assert "2 uses sent gradients" in str(found)
    assert "test_chain_rule.py" in str(found)


def test_parts_add_up_to_the_bit():
    torch.manual_seed(3)
    cell = nn.Linear(5, 5)
    h = torch.randn(7, 5)
    for _ in range(12):  # a recurrent network: a part for each step in time
        h = h + cell(h).tanh()
    loss = h.pow(2).mean()
    found = torch.contributions(cell.weight, of=loss)
    assert len(found) == 12
    loss.backward()
    assert np.array_equal(found.total, cell.weight.grad)
    assert "|part| / |sum|" in str(found)


def test_the_loss_is_found():
    torch.manual_seed(0)
    layer = nn.Linear(3, 1)
    x = torch.randn(4, 3)
    loss = layer(x).pow(2).mean() + layer(-x).mean()
    loss.backward(retain_graph=True)
    found = torch.contributions(layer.weight)
    assert len(found) == 2
    assert np.array_equal(found.total, layer.weight.grad)
    with pytest.raises(RuntimeError, match="none of your variables"):
        torch.contributions(torch.ones(7, requires_grad=True))


def test_a_tensor_on_the_way():
    x = torch.ones(3, requires_grad=True)
    h = x * 2
    found = torch.contributions(h, of=(h + h.sin()).sum())
    assert {part.user.name() for part in found} == {"AddBackward0", "SinBackward0"}


def test_contributions_refuse():
    x = torch.tensor(3.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.contributions(torch.ones(1, requires_grad=True), of=x * x)
    with pytest.raises(ValueError, match="no graph"):
        torch.contributions(x, of=x)
    z = x * x
    z.backward()
    with pytest.raises(RuntimeError, match=r"contributions: an earlier backward\(\) has freed"):
        torch.contributions(x, of=z)


def test_the_total_of_a_number_prints_as_a_number():
    x = torch.tensor(3.0, requires_grad=True)
    assert repr(torch.contributions(x, of=x * x).total) == "tensor(6.)"


@pytest.mark.origin("newcomers")
def test_an_explanation_calls_constants_by_the_users_names():
    weight, rows, z = torch.ones(3, 3, requires_grad=True), torch.rand(2, 3), 0 * torch.ones(1)
    told = str(torch.explain((rows @ weight).tanh().sum(), wrt=weight))
    assert "= rows @ weight " in told
    assert z.item() == 0
    assert told.startswith("dy/dweight by the chain rule")  # z is taken
