"""tables: products with rows that were looked up in a small table: the table is multiplied instead."""

import numpy as np
import pytest

import rushlight
from rushlight import nn

PLACES, ROWS = (6, 8), 5


def parameters():
    rushlight.manual_seed(0)
    return [rushlight.randn(*shape, requires_grad=True) for shape in ((ROWS, 3), (4, 3), (4,), (2, 4))]


def index():
    return rushlight.randint(0, ROWS, PLACES)


def step(table, w, b, head, i, arrange):
    """A gradient step on all parameters; a table, and all else, are written to at its end."""
    h = nn.functional.linear(arrange(table, i), w, b)
    loss = (nn.functional.linear(h.tanh(), head) ** 2).mean()
    loss.backward()
    with rushlight.no_grad():
        for p in (table, w, b, head):
            p -= 0.1 * p.grad
            p.grad = None
    return loss


ARRANGED = {
    "as they are": lambda e, i: nn.functional.embedding(i, e),
    "turned": lambda e, i: nn.functional.embedding(i, e).transpose(0, 1),
    "flat": lambda e, i: nn.functional.embedding(i, e).transpose(1, 0).reshape(-1, 3),
    "permuted": lambda e, i: nn.functional.embedding(i.reshape(2, 3, 8), e).permute(2, 0, -3, 3).flatten(0, 1),
}


def listings(arrange, **options):
    """What three compiled steps return and leave behind, and the listing of the optimized program."""
    shown, given = [], parameters()
    run = rushlight.compile(lambda *batch: step(*given, *batch, arrange), options={"show": shown.append, **options})
    rushlight.manual_seed(1)
    losses = [run(index()).item() for _ in range(4)]
    return losses, given, shown[-1]


@pytest.mark.parametrize("name", ARRANGED)
def test_a_step_with_a_small_table(name):
    losses, given, listing = listings(ARRANGED[name])
    expected, whole, untouched = listings(ARRANGED[name], tables=False)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for p, q in zip(given, whole):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-6)
    assert f"float32[{ROWS}, 4] = mm" in listing
    assert f"float32[{ROWS}, 4] = embedding_grad" in listing
    assert "float32[48, 3]" in untouched  # rows of the table, side by side
    assert "float32[48, 3]" not in listing


@pytest.mark.parametrize("change", ["large table", "padding", "another use"])
def test_what_is_left_alone(change):
    rushlight.manual_seed(0)
    table, w = rushlight.randn(100 if change == "large table" else ROWS, 3), rushlight.randn(3, 4)
    padding, shown = 0 if change == "padding" else None, []

    def f(i):
        rows = nn.functional.embedding(i, table, padding)
        return rows @ w if change != "another use" else rows.sum(-1, keepdim=True) * w[0]

    run, i = rushlight.compile(f, options={"show": shown.append}), index()
    for _ in range(3):
        np.testing.assert_allclose(run(i).numpy(), f(i).numpy(), rtol=1e-6)
    assert f"[{len(table)}, 4] = mm" not in shown[-1]


def test_a_place_that_is_not_there():
    table, w = rushlight.randn(ROWS, 3), rushlight.randn(3, 4)
    run = rushlight.compile(lambda i: nn.functional.embedding(i, table) @ w)
    for _ in range(3):
        run(index())
    with pytest.raises(IndexError, match="index out of range in self"):
        run(index() + ROWS)


def test_a_table_that_was_written_to_in_between():
    """The rows are those of the table before; the product must not read the new one."""
    table, w, i = rushlight.ones(ROWS, 3), rushlight.randn(3, 4), index().reshape(-1)

    def f(i):
        rows = nn.functional.embedding(i, table)
        table.mul_(2)
        return rows @ w

    run = rushlight.compile(f)
    for _ in range(4):
        before = table.clone()
        np.testing.assert_allclose(run(i).numpy(), (before[i] @ w).numpy(), rtol=1e-6)
