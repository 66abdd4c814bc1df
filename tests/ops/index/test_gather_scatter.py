"""gather and scatter."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_one_number_scattered_to_a_row_of_one(oracle, name, shape):
    """It is a source of its own, with a gradient, not a number to be written everywhere: two places are too many."""

    def found(t):
        x, y = t.ones(shape, requires_grad=True), t.ones(2, requires_grad=True)
        out = getattr(x, name)(-1, t.tensor([0]), y.sum())
        (3 * out).sum().backward()
        return [out.detach(), x.grad, y.grad]

    for ours, theirs in zip(found(rushlight), oracle(found)):
        assert ours.tolist() == theirs.tolist()
    with pytest.raises(RuntimeError, match="no larger size than src"):
        getattr(rushlight.ones(4), name)(-1, rushlight.tensor([0, 0]), rushlight.tensor(1.0))
