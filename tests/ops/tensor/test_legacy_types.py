"""Legacy tensor types: DoubleTensor, `new`, `type`."""

from __future__ import annotations

import pytest

import rushlight
from tests.support.programs import Programs, leaf, outcome

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
    types = [torch.DoubleTensor([1e300, 0.1]), torch.DoubleTensor((0.1,)), torch.LongTensor([2**53 + 1])]
    sparse = [
        torch.sparse_coo_tensor([[0]], [0.1], (2,), dtype=torch.float64),
        torch.sparse_csr_tensor([0, 1], [0], [0.1], dtype=torch.float64),
    ]
    return [t.tolist() for t in types] + [t.to_dense().flatten().tolist() for t in sparse]


@program
def a_tensor_made_of_a_tensor_is_a_view_in_the_graph(torch):
    """`Tensor(y)`, a subclass of it, and the older names of the class: what is written to one is seen by the other."""

    class Labelled(torch.Tensor):
        pass

    class Renamed(torch.Tensor):
        @staticmethod
        def __new__(cls, x, *args):
            return super().__new__(cls, x)

    makers = {
        "Tensor": torch.Tensor,
        "DoubleTensor": torch.DoubleTensor,
        "new": lambda y: y.new(y),
        "subclass": Labelled,
        "__new__": Renamed,
        "of a subclass": lambda y: Labelled(y.as_subclass(Renamed)),
        "parts": lambda y: Labelled(y)[:1],
        "as Tensor": lambda y: Labelled(y).as_subclass(torch.Tensor),
        "Parameter": torch.nn.Parameter,
        "Buffer": torch.nn.Buffer,
    }
    found = []
    for name, make in makers.items():
        x = leaf(torch, 1.0, 2.0)
        y = x * 2
        made = make(y)
        found.append([name, made.requires_grad, made.is_leaf, made._is_view()])
        if not made.is_leaf:
            made.mul_(3)
            (made.sum() + y.sum()).backward()
            found.append([y.detach(), x.grad])
    return found


@program
def a_number_that_requires_grad_is_no_setting(torch):
    """The result would not depend on it."""
    s, x = torch.tensor(1.5, requires_grad=True), torch.ones(2)
    F = torch.nn.functional
    calls = {
        "full": lambda v: torch.full((2,), v),
        "full_like": lambda v: torch.full_like(x, v),
        "new_full": lambda v: x.new_full((2,), v),
        "scalar_tensor": torch.scalar_tensor,
        "arange": lambda v: torch.arange(0, v),
        "leaky_relu": lambda v: F.leaky_relu(x, v),
        "elu": lambda v: F.elu(x, v),
        "addcmul": lambda v: torch.addcmul(x, x, x, value=v),
        "hardtanh": lambda v: F.hardtanh(x, 0.0, v),
        "nan_to_num": lambda v: torch.nan_to_num(x, nan=v),
    }
    return [[name, type(outcome(f, s)).__name__, outcome(f, s.detach())] for name, f in calls.items()]


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
