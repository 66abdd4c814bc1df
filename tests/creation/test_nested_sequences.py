"""Tensors from nested lists: of tensors, arrays and numbers."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.support.programs import Programs, outcome

ONE_ELEMENT = {
    "linear of a vector of one": lambda t: t.nn.functional.linear(
        t.full((1,), 2.0), t.tensor([[3.0], [5.0]]), t.ones(2)
    ),
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
    "a tensor where the first is a list": lambda t: t.tensor([[1.0], t.tensor([1.0])]),
    "of several numbers there": lambda t: t.tensor([[1.0, 2.0], t.tensor([1.0, 3.0], dtype=t.float64)]),
    "of more dimensions there": lambda t: t.tensor([[1.0, 2.0], t.tensor([[1.0], [3.0]])]),
    "deeper there": lambda t: t.FloatTensor([[[1.0], [2.0]], [t.tensor([1.0]), t.tensor(3.0).reshape(1, 1)]]),
    "beside an array": lambda t: t.tensor([np.array([1.0, 2.0]), t.tensor([1.0, 3.0])]),
}


POWERS = {
    "whole numbers to the power of a tensor below 0": lambda t: t.pow(2, t.tensor(-1)),
    "of several": lambda t: t.tensor([2, 1, -1, 0]) ** t.tensor(-3),
    "of one to a tensor": lambda t: 2 ** t.tensor([-1, 0, 3]),
}


@pytest.mark.origin("programs")
@pytest.mark.parametrize("name", [*ONE_ELEMENT, *LISTS, *POWERS])
def test_ones(oracle, name):
    call = {**ONE_ELEMENT, **LISTS, **POWERS}[name]
    expected, found = oracle(call), call(rushlight).numpy()
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.origin("programs")
def test_tensors_of_many_numbers_are_no_numbers():
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        rushlight.tensor([rushlight.ones(2), rushlight.ones(2)])
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        rushlight.tensor([rushlight.tensor([1, 2])])
    with pytest.raises(TypeError, match="not a sequence"):
        rushlight.tensor([[1.0], rushlight.tensor(1.0)])
    with pytest.raises(ValueError, match="expected sequence of length 1 at dim 1"):
        rushlight.tensor([[1.0], rushlight.ones(2)])
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        rushlight.tensor([2, 3]) ** -1
    with pytest.raises(
        RuntimeError, match="Expected object of scalar type ComplexFloat but got scalar type ComplexDouble"
    ):
        rushlight.complex(rushlight.ones(1), rushlight.ones(1), out=rushlight.zeros(1, dtype=rushlight.complex128))
    with pytest.raises(TypeError, match="argument 'imag' must be Tensor, not int"):
        rushlight.complex(rushlight.ones(1), 1)


program = Programs()


@program.found_in("torch tests")
def lists_that_hold_themselves_have_no_end(torch):
    endless = []
    endless.append(endless)
    return [outcome(torch.tensor, endless), outcome(torch.as_tensor, endless)]


@program.found_in("torch tests")
def lists_of_bfloat16_tensors_are_tensors_of_that(torch):
    a, b = torch.tensor(1.5, dtype=torch.bfloat16), torch.tensor([2.5], dtype=torch.bfloat16)
    made = [torch.tensor([a, a]), torch.tensor([a, 2]), torch.tensor([[a, b], [1.0, b]])]
    return [str(t.dtype) for t in made] + [t.float() for t in made]


test_program = program.test()
