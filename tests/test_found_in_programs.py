"""What public programs do and no other test did: each line was once a wrong result or a crash."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight

ONE_ELEMENT = {
    "linear of a vector of one": lambda t: t.nn.functional.linear(t.full((1,), 2.0), t.tensor([[3.0], [5.0]]), t.ones(2)),
    "linear without bias": lambda t: t.nn.functional.linear(t.full((1,), 2.0), t.tensor([[3.0]])),
    "linear of one, in a stack": lambda t: t.nn.functional.linear(t.ones(2, 3, 1), t.tensor([[3.0], [4.0]])),
    "dot of one": lambda t: t.dot(t.full((1,), 2.0), t.full((1,), 3.0)),
    "vectors of one": lambda t: t.full((1,), 2.0) @ t.full((1,), 3.0),
    "a stack by a vector of one": lambda t: t.ones(2, 3, 1) @ t.full((1,), 3.0),
    "a vector of one by a stack": lambda t: t.full((1,), 3.0) @ t.ones(2, 1, 3),
    "mv of one column": lambda t: t.mv(t.ones(3, 1), t.full((1,), 3.0)),
}
LISTS = {
    "tensors of one number in a list": lambda t: t.tensor([t.tensor([1.0]), t.tensor([2.0])]),
    "deeper": lambda t: t.tensor([[t.tensor([1.0])], [t.tensor([[2.0]])]]),
    "with numbers": lambda t: t.tensor([3.0, t.tensor([1.0])]),
    "whole numbers": lambda t: t.tensor([t.tensor([1]), t.tensor(7)]),
    "another dtype": lambda t: t.tensor([t.tensor([1.0])], dtype=t.float64),
    "as_tensor": lambda t: t.as_tensor([t.tensor([1.0]), 2]),
    "FloatTensor": lambda t: t.FloatTensor([t.tensor([1.0]), 2]),
    "Tensor": lambda t: t.Tensor([t.tensor([1.0]), 2]),
    "their dtype": lambda t: t.tensor([t.tensor(1.0, dtype=t.float64), 2]),
    "arrays keep their shape": lambda t: t.tensor([np.ones(1, np.float32)]),
}


@pytest.mark.parametrize("name", [*ONE_ELEMENT, *LISTS])
def test_ones(oracle, name):
    call = {**ONE_ELEMENT, **LISTS}[name]
    expected, found = oracle(call), call(rushlight).numpy()
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_tensors_of_many_numbers_are_no_numbers():
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        rushlight.tensor([rushlight.ones(2), rushlight.ones(2)])
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        rushlight.tensor([rushlight.tensor([1, 2])])
