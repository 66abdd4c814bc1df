"""swap_tensors."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.origin("programs")
def test_swapped_tensors():
    layer, weight = rushlight.nn.Linear(2, 1), rushlight.nn.Parameter(rushlight.ones(1, 2))
    held = layer.weight
    rushlight.utils.swap_tensors(layer.weight, weight)
    layer(rushlight.ones(1, 2)).sum().backward()
    assert layer.weight is held
    assert (held.tolist(), held.grad.tolist(), weight.grad) == ([[1, 1]], [[1, 1]], None)
    made, plain = rushlight.ones(2, requires_grad=True) * 2, rushlight.zeros(3, dtype=rushlight.int64)
    plain.note = "kept"
    rushlight.utils.swap_tensors(made, plain)
    assert (made.tolist(), made.note, made.requires_grad) == ([0, 0, 0], "kept", False)
    assert (plain.tolist(), plain.requires_grad, hasattr(plain, "note")) == ([2, 2], True, False)
    part = made[1:]
    with pytest.raises(RuntimeError, match="has views"):
        rushlight.utils.swap_tensors(made, plain)
    assert part.tolist() == [0, 0]
