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


@pytest.mark.parametrize("name", [*ONE_ELEMENT, *LISTS, *POWERS])
def test_ones(oracle, name):
    call = {**ONE_ELEMENT, **LISTS, **POWERS}[name]
    expected, found = oracle(call), call(rushlight).numpy()
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_tensors_of_many_numbers_are_no_numbers():
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        rushlight.tensor([rushlight.ones(2), rushlight.ones(2)])
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        rushlight.tensor([rushlight.tensor([1, 2])])
    with pytest.raises(TypeError, match="not a sequence"):
        rushlight.tensor([[1.0], rushlight.tensor(1.0)])
    with pytest.raises(ValueError, match="expected sequences of equal length"):
        rushlight.tensor([[1.0], rushlight.ones(2)])
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        rushlight.tensor([2, 3]) ** -1
    with pytest.raises(RuntimeError, match="Expected object of scalar type ComplexFloat but got scalar type ComplexDouble"):
        rushlight.complex(rushlight.ones(1), rushlight.ones(1), out=rushlight.zeros(1, dtype=rushlight.complex128))
    with pytest.raises(TypeError, match="argument 'imag' must be Tensor, not int"):
        rushlight.complex(rushlight.ones(1), 1)


def test_the_power_of_two_is_a_square():
    x = rushlight.tensor([3.0, -1.0], requires_grad=True)
    for y in (x.pow(2), x**2, x.pow(2.0), x.pow(exponent=2), rushlight.pow(x, 2)):
        x.grad = None
        y.sum().backward()
        assert (y.tolist(), x.grad.tolist(), y.grad_fn.name()) == ([9.0, 1.0], [6.0, -2.0], "PowBackward0")
    assert x.detach().pow(2, out=rushlight.empty(2)).tolist() == [9.0, 1.0]
    assert rushlight.tensor([2, 3]).pow(2).tolist() == [4, 9]


# -- names from before dtypes, and lists of tensors ----------------------------------------------------------

OLD = {
    "new of numbers": lambda t: t.ones(1, dtype=t.int32).new([1.7, 2]),
    "new of a size": lambda t: t.ones(1).new(2, 3).zero_(),
    "new of a Size": lambda t: t.ones(1).new(t.Size([2, 0])),
    "new of nothing": lambda t: t.ones(1).new(),
    "storage of a view": lambda t: t.tensor(t.arange(6.0).reshape(2, 3).t()[1:].storage().tolist()),
    "bytes": lambda t: t.tensor(list(t.arange(6.0).reshape(2, 3)[1].untyped_storage())),
    "sizes": lambda t: t.tensor([t.arange(6.0)[2:].storage().size(), t.arange(6.0)[2:].untyped_storage().nbytes()]),
}
FOREACH = {
    "add a number": lambda t, a: t._foreach_add(a, 2),
    "add with alpha": lambda t, a: t._foreach_add(a, a, alpha=2),
    "mul numbers": lambda t, a: t._foreach_mul(a, [2, 3.0]),
    "sqrt": lambda t, a: t._foreach_sqrt(a),
    "norm": lambda t, a: t._foreach_norm(a),
    "norm by ord": lambda t, a: t._foreach_norm(a, ord=1, dtype=t.float64),
    "sum of powers": lambda t, a: t._foreach_powsum(a, 3),
    "numbers to a power": lambda t, a: t._foreach_pow(2, a),
    "addcdiv with numbers": lambda t, a: t._foreach_addcdiv(a, a[::-1], a, [2, 3.0]),
    "addcmul with a tensor of numbers": lambda t, a: t._foreach_addcmul(a, a[::-1], a, t.tensor([2, 3.0])),
    "by name": lambda t, a: t._foreach_addcmul(t._foreach_add(self=a, scalar=1), tensor2=a, tensor1=a[::-1]),
    "addcmul": lambda t, a: t._foreach_addcmul(a, a, a, value=0.5),
    "lerp": lambda t, a: t._foreach_lerp(a, a[::-1], 0.25),
    "maximum": lambda t, a: t._foreach_maximum(a, 2.0),
    "max": lambda t, a: t._foreach_max(a),
    "in place": lambda t, a: [t._foreach_mul_(a, 3), t._foreach_addcdiv_(a, a, a[::-1], value=2.0), a][-1],
    "copy": lambda t, a: [t._foreach_copy_(a, a[::-1]), a][-1],
}


@pytest.mark.parametrize("name", OLD)
def test_old_names(oracle, name):
    expected, found = oracle(OLD[name]), OLD[name](rushlight).numpy()
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", FOREACH)
def test_ops_on_lists(oracle, name):
    def call(t):
        return t.stack(list(FOREACH[name](t, [t.tensor([1.0, 4.0]), t.tensor([3.0, 2.0])])))
    np.testing.assert_allclose(call(rushlight).numpy(), oracle(call), rtol=1e-6)


def test_lists_of_different_length():
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        rushlight._foreach_add([rushlight.ones(1)] * 2, [rushlight.ones(1)])
    assert isinstance(rushlight._foreach_abs([rushlight.ones(1)]), tuple)
    with pytest.raises(RuntimeError, match="at least one tensor"):
        rushlight._foreach_neg([])
    zeros = [rushlight.ones(1)]
    assert rushlight._foreach_zero_(zeros) is zeros
    assert zeros[0].item() == 0


def test_storage():
    x = rushlight.arange(4.0).reshape(2, 2)
    memory = x[1].storage()
    memory[0] = 9
    assert x.tolist() == [[9, 1], [2, 3]]
    assert memory == x.storage()
    assert memory != x.clone().storage()
    assert x.untyped_storage().data_ptr() == x.data_ptr()
    assert rushlight.is_storage(memory.untyped())
    told = repr(rushlight.ones(1).storage())
    assert told == " 1.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 1]"
    with pytest.raises(RuntimeError, match="slices are only supported"):
        memory[1:]


def test_devices_that_are_not_there():
    assert rushlight.cuda.memory_stats() == {}
    assert "only the CPU" in rushlight.cuda.memory_summary()
    assert rushlight.cuda.max_memory_cached() == 0
    assert issubclass(rushlight.cuda.OutOfMemoryError, RuntimeError)
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        rushlight.cuda.device(0)
    with pytest.raises(TypeError, match="torch.cuda.FloatTensor not available"):
        rushlight.set_default_tensor_type("torch.cuda.FloatTensor")
    assert rushlight.jit.annotate(list, [1]) == [1]
    assert not isinstance(rushlight.jit.script(rushlight.nn.Linear(1, 1)), rushlight.jit.ScriptModule)


def test_names_of_notebooks(monkeypatch):
    jit, hub = rushlight.jit, rushlight.hub
    layer = rushlight.nn.Linear(2, 2)
    assert jit.wait(jit.fork(max, 1, 2)) == 2
    assert jit.optimize_for_inference(jit.freeze(jit.script(layer.eval()))) is layer
    assert jit.trace_module(layer, {}) is layer
    with pytest.raises(RuntimeError, match="eval mode"):
        jit.freeze(layer.train())
    monkeypatch.setattr(hub, "chosen", None)
    hub.set_dir("somewhere")
    assert hub.get_dir() == "somewhere"
    from rushlight.optim.adamw import AdamW
    assert AdamW is rushlight.optim.AdamW
    assert rushlight.utils.tensorboard.writer.SummaryWriter is rushlight.utils.tensorboard.SummaryWriter


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_the_last_state_is_nobodys_view(kind):
    """Truncated backpropagation through time: programs detach it in place."""
    _, states = getattr(rushlight.nn, kind)(3, 4)(rushlight.ones(5, 2, 3))
    for state in states if kind == "LSTM" else [states]:
        assert state.grad_fn.name() == "StackBackward0"
        assert not state.detach_().requires_grad


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
