"""products: transposes go where BLAS reads them for nothing, and pairs of them go."""

import pytest

from tests.support.passes import agree, compiled, numbers, ops

A, B, C = numbers(0, (4, 6), (5, 6), (4, 5))

CASES = {
    "of a product": (lambda: (A @ B.T).T + 1, "transpose mm add"),  # B A^T
    "of a transpose": (lambda: A.T.T @ B.T, "permute mm"),
    "of a product of transposes": (lambda: (B.T.contiguous().T @ A.T).T * 2, None),
    "used as it is, too": (lambda: (lambda p: p.T @ p)(A @ B.T), "permute mm permute mm"),
    "swapped by other names": (
        lambda: (A.transpose(-1, -2).permute(1, 0) @ B.mT).swapaxes(0, 1) + 1,
        "transpose mm add",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_transposes(name):
    f, left = CASES[name]
    _, got, steps = compiled(f)
    agree(got, f())
    before, after = ops(steps["tables"]), ops(steps["simplify"])
    assert left is None or after == left.split()
    assert sum(op in ("transpose", "permute") for op in after) <= sum(op in ("transpose", "permute") for op in before)
    _, got, steps = compiled(f, products=False)
    agree(got, f())
    assert "products" not in steps


def test_what_is_returned_is_not_turned():
    f = lambda: (lambda p: (p, p.T * 2))(A @ B.T)
    _, got, steps = compiled(f)
    agree(got, f())
    assert "float32[4, 5] = mm" in "\n".join(steps["products"])


def test_a_layers_gradients_are_three_products_and_no_copy():
    """grad of w is (x^T g)^T for torch's layout of w: turned, it is g^T x."""
    x, w = A.clone(), B.clone().requires_grad_()

    def step():
        w.grad = None
        (x @ w.T * C).sum().backward()
        return w.grad * 1

    _, got, steps = compiled(step)
    agree(got, step())
    assert ops(steps["products"]).count("mm") == ops(steps["tables"]).count("mm")
    assert "float32[5, 6] = mm" in "\n".join(steps["products"])
