"""Legacy tensor types: DoubleTensor, `new`, `type`."""

from __future__ import annotations

import pytest

import rushlight
from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("torch tests")
def a_type_makes_tensors_of_a_named_size(torch):
    return [
        list(torch.ones(1, dtype=torch.int16).new(size=(2, 3)).shape),
        outcome(torch.device, -1),
        outcome(torch.device, True),
        outcome(torch.ones(1).apply_, "abs"),
    ]


@program.found_in("torch tests")
def numbers_of_double_precision_keep_it(torch):
    types = [
        torch.DoubleTensor([1e300, 0.1]),
        torch.DoubleTensor((0.1,)),
        torch.LongTensor([2**53 + 1]),
    ]
    sparse = [
        torch.sparse_coo_tensor([[0]], [0.1], (2,), dtype=torch.float64),
        torch.sparse_csr_tensor([0, 1], [0], [0.1], dtype=torch.float64),
    ]
    return [t.tolist() for t in types] + [t.to_dense().flatten().tolist() for t in sparse]


@pytest.mark.origin("model zoos")
def test_type_of_the_class_of_tensors():
    mask = rushlight.tensor([1, 0]) > 0
    assert mask.type(rushlight.Tensor).dtype is rushlight.float32
    rushlight.set_default_dtype(rushlight.float64)
    try:
        assert mask.type("torch.Tensor").dtype is rushlight.float64
    finally:
        rushlight.set_default_dtype(rushlight.float32)


test_program = program.test()
