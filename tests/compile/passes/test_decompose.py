"""decompose: ops that fuse better in parts become these, where the numbers are of a kind for which the parts are
right."""

import pytest

import rushlight as torch
from rushlight.compile.run.program import RUN_EAGERLY
from rushlight.nn import functional as F
from tests.support.passes import agree, compiled, numbers, ops

X, W, B, LONG = numbers(0, (4, 6), (5, 6), (5,), (2, 3, 6))
B6 = X[0].abs()
COLUMN, CLASSES = torch.tensor([[0], [3], [5], [1]]), torch.tensor([0, 3, 4, 1])

CASES = {
    "sum": (lambda: LONG.sum((0, 2)), "sum sum"),
    "softmax": (lambda: X.softmax(1), "amax sub exp sum div"),
    "log_softmax": (lambda: X.log_softmax(0), "amax sub exp sum log sub"),
    "mean": (lambda: X.mean(1), "sum div"),
    "var_core": (lambda: X.var(0), "getitem sub sum div sub mul sum div squeeze"),
    "layer_norm": (lambda: F.layer_norm(X, (6,), B6, B6), "sum div sub mul sum div add rsqrt mul mul add"),
    "frozen_batch_norm": (lambda: F.batch_norm(X, B6, B6), "reshape reshape sub add rsqrt mul"),
    "linear": (lambda: F.linear(X, W, B), "transpose mm add"),
    "mm": (lambda: LONG @ W.T, "permute reshape mm reshape"),
    "gather": (lambda: X.gather(1, COLUMN), "check_index eq where sum"),
    "scatter_add": (lambda: torch.zeros(4, 6).scatter_add(1, COLUMN, X[:, :1]), "getitem check_index eq where"),
    "nll_loss": (lambda: F.nll_loss(X, CLASSES), "check_classes reshape eq where sum neg ne to sum div"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_op_becomes_its_parts(name):
    f, parts = CASES[name]
    _, got, steps = compiled(f)
    agree(got, f())
    assert name in ops(steps["as recorded"])
    assert ops(steps["decompose"]) == parts.split()
    _, got, steps = compiled(f, decompose=False)
    agree(got, f())
    assert "decompose" not in steps
    assert name in ops(steps["simplify"])


def test_the_loss_of_a_batch_and_its_gradient():
    x = X.clone().requires_grad_()

    def step():
        x.grad = None
        loss = F.cross_entropy(x, CLASSES, ignore_index=4)
        loss.backward()
        return loss.detach(), x.grad * 1

    _, got, steps = compiled(step)
    agree(got, step())
    assert {"nll_loss", "nll_loss_grad"} <= set(ops(steps["as recorded"]))
    assert not {"nll_loss", "nll_loss_grad", "log_softmax"} & set(ops(steps["decompose"]))


@pytest.mark.filterwarnings("ignore:var")
@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("softmax", lambda: X.to(torch.float16).softmax(1)),  # rounds between the parts
        ("softmax", lambda: X[:0].softmax(1)),
        ("linear", lambda: F.linear(X[0], W, B)),  # one row: a product of a matrix and a vector
        ("gather", lambda: X.gather(0, COLUMN % 4)),  # down the columns
        ("gather", lambda: X.gather(1, COLUMN.expand(4, 2))),  # two in a row
        ("nll_loss", lambda: F.nll_loss(X, CLASSES, weight=X[0, :].abs())),
        ("var_core", lambda: X[:1].var(0)),  # nothing to divide by: nan
    ],
)
def test_what_stays_whole(name, f):
    _, got, steps = compiled(f)
    agree(got, f())
    assert name in ops(steps["decompose"])


def test_places_that_are_not_there_are_left_to_the_function_which_refuses_them():
    program, _, _ = compiled(lambda index: X.gather(1, index), COLUMN)
    assert program.run([COLUMN + 3]) is RUN_EAGERLY
    with pytest.raises(RuntimeError, match="out of bounds"):
        X.gather(1, COLUMN + 3)


@pytest.mark.parametrize(
    ("shape", "dim"), [((64, 257), 1), ((257, 64), 0), ((5, 7), 1), ((3, 1000), 1), ((4, 9, 5), (0, 2))]
)
def test_equal_numbers_have_no_deviation(shape, dim):
    """As eager and torch have it: programs ask `std == 0`."""
    f = torch.compile(lambda x: (x * 3).std(dim, keepdim=True) + x * 0)
    dims = (dim,) if isinstance(dim, int) else dim
    x = torch.rand([1 if d in dims else n for d, n in enumerate(shape)]).expand(shape).contiguous()
    assert f(x).abs().max() == 0
    near = x + torch.rand(shape) * 1e-5
    assert torch.allclose(f(near), (near * 3).double().std(dim, keepdim=True).float(), rtol=1e-4)
