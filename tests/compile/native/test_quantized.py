"""Linear layers of int8 weights inside native functions: the numbers of the eager module."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.compile import compile, programs

pytest.importorskip("llvmlite")


def quantized(*layers):
    return rushlight.ao.quantization.quantize_dynamic(nn.Sequential(*layers).eval(), {nn.Linear})


def agrees(model, x):
    f = compile(model)
    with rushlight.no_grad():
        want = model(x)
        for _ in range(3):
            got = f(x)
    (program,) = programs(f)
    assert program.native is not None, program.native_reason
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    return f


@pytest.mark.parametrize("shape", [(1,), (3,), (17,), (2, 5)], ids=str)
@pytest.mark.parametrize(("inputs", "outputs"), [(4, 64), (7, 3), (130, 70), (65, 129)])
def test_sizes_and_elementwise_steps(shape, inputs, outputs):
    x = rushlight.tensor(np.random.default_rng(0).standard_normal((*shape, inputs)).astype(np.float32))
    agrees(quantized(nn.Linear(inputs, outputs)), x)
    agrees(quantized(nn.Tanh(), nn.Linear(inputs, outputs, bias=False), nn.GELU(), nn.Linear(outputs, 2)), x)


def test_an_input_in_other_order():
    model = quantized(nn.Linear(6, 9))
    x = rushlight.randn(6, 5).T
    agrees(model, x)


class Last(nn.Module):
    """A linear layer of the last output of a GRU, whose elements lie inside the memory of all outputs; beside a copy."""

    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(5, 8, batch_first=True), nn.Linear(8, 8)

    def forward(self, x):
        last = self.gru(x)[0][:, -1]
        return rushlight.cat([last, self.head(last)], 1)


@pytest.mark.parametrize("batch", [1, 3])
def test_parts_of_other_memory(batch):
    agrees(quantized(Last()), rushlight.randn(batch, 6, 5))


def test_a_new_weight_makes_a_new_program():
    model = quantized(nn.Linear(6, 9), nn.ReLU())
    f, x = agrees(model, rushlight.randn(4, 6)), rushlight.randn(4, 6)
    other = quantized(nn.Linear(6, 9), nn.ReLU())
    model.load_state_dict(other.state_dict())
    with rushlight.no_grad():
        np.testing.assert_allclose(f(x).numpy(), other(x).numpy(), rtol=1e-5, atol=1e-6)


def test_loops_call_the_kernel():
    model, x = quantized(nn.Linear(6, 9), nn.ReLU()), rushlight.randn(4, 6)
    f = compile(model, backend="loops")
    with rushlight.no_grad():
        for _ in range(3):
            assert (f(x) == model(x)).all()
    assert len(programs(f)) == 1


def test_a_gradient_through_it_is_refused():
    model, x = quantized(nn.Linear(6, 9)), rushlight.randn(4, 6, requires_grad=True)
    f = compile(model)
    for _ in range(3):
        with pytest.raises(NotImplementedError, match="quantized modules have no gradients"):
            f(x).sum().backward()
