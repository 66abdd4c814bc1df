"""Private names of torch that libraries call, and what they do; values recorded from torch 2.13."""

from __future__ import annotations

import json

import pytest

import rushlight
from rushlight import nn
from rushlight.utils.data import DataLoader, dataloader
from tests.support.programs import Programs, outcome

program = Programs()
test_program = program.test()


def test_standard_gamma(oracle):
    rushlight.manual_seed(0)
    a = rushlight.tensor([[0.5, 1.0, 8.0]], requires_grad=True)
    x = rushlight._standard_gamma(a)
    x.sum().backward()

    def theirs(torch):
        torch.manual_seed(0)
        a = torch.tensor([[0.5, 1.0, 8.0]], requires_grad=True)
        x = torch._standard_gamma(a)
        x.sum().backward()
        return x, a.grad

    expected, grad = oracle(theirs)
    rushlight.testing.assert_close(x.detach(), rushlight.as_tensor(expected))
    # torch's derivative is exact to four digits
    rushlight.testing.assert_close(a.grad, rushlight.as_tensor(grad), rtol=1e-3, atol=1e-3)
    generator = rushlight.Generator().manual_seed(0)
    rushlight.testing.assert_close(rushlight._standard_gamma(a, generator), x)


def test_the_device_of_a_context_and_of_a_decorator():
    from rushlight.utils import _device

    with _device.DeviceContext("meta") as context:
        assert rushlight.zeros(2).device == context.device == rushlight.device("meta")
    assert rushlight.zeros(2).device.type == "cpu"
    assert _device.set_device("meta")(lambda n: rushlight.zeros(n))(2).is_meta


def test_the_switch_of_sparse_checks():
    switch = rushlight.sparse.check_sparse_tensor_invariants
    assert not switch.is_enabled()
    with switch() as nothing:
        assert nothing is None
        assert switch.is_enabled()
        with switch(enable=False):
            assert not switch.is_enabled()
        assert switch.is_enabled()
    assert not switch.is_enabled()
    assert switch(True)(switch.is_enabled)()
    switch.enable()
    assert switch.is_enabled()
    switch.disable()
    one = switch()
    with one, pytest.raises(RuntimeError, match="already activated"), one:
        pass
    with pytest.raises(RuntimeError):
        rushlight.sparse_coo_tensor([[5]], [1.0], (2,))


def test_an_iterator_of_a_loader_can_be_made():
    loader = DataLoader(list(range(6)), batch_size=2, shuffle=True)
    made = dataloader._SingleProcessDataLoaderIter(loader)
    assert isinstance(made, dataloader._BaseDataLoaderIter)
    assert isinstance(iter(loader), dataloader._SingleProcessDataLoaderIter)
    assert not isinstance(made, dataloader._MultiProcessingDataLoaderIter)
    assert len(made) == 3
    rushlight.manual_seed(0)
    batches = [b.tolist() for b in dataloader._SingleProcessDataLoaderIter(loader)]
    rushlight.manual_seed(0)
    assert batches == [b.tolist() for b in loader]


def test_a_class_may_inherit_from_the_iterator():
    class Doubled(dataloader._SingleProcessDataLoaderIter):
        def __next__(self):
            return 2 * super().__next__()

    assert [b.tolist() for b in Doubled(DataLoader([1, 2, 3], batch_size=2))] == [[2, 4], [6]]


def test_errors_of_workers_are_recorded(tmp_path, monkeypatch):
    from rushlight.distributed.elastic.multiprocessing.errors import record

    @record
    def main(n):
        return 1 / n

    assert main(2) == 0.5
    with pytest.raises(ZeroDivisionError):
        main(0)
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    with pytest.raises(ZeroDivisionError):
        main(0)
    told = json.loads((tmp_path / "error.json").read_text())["message"]
    assert told["message"] == "ZeroDivisionError: division by zero"
    assert "in main" in told["extraInfo"]["py_callstack"]
    assert int(told["extraInfo"]["timestamp"]) > 1e9
    with pytest.raises(AttributeError):
        rushlight.distributed.elastic.agent


def test_the_old_name_of_get_global_rank():
    from rushlight.distributed import distributed_c10d

    assert distributed_c10d._get_global_rank is distributed_c10d.get_global_rank


def test_checkpoints_warn_of_inputs_without_gradient():
    check = rushlight.utils.checkpoint.check_backward_validity
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        check([rushlight.ones(2), 3])


def test_whether_a_checkpoint_is_valid():
    valid = []
    x = rushlight.ones(2, requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: valid.append(rushlight.autograd._is_checkpoint_valid()))
    y.sum().backward(retain_graph=True)
    rushlight.autograd.grad(y.sum(), x)
    assert valid == [True, False]


# -- gradients of each sample ----------------------------------------------------------------------


def per_sample():
    from rushlight.nn.utils._per_sample_grad import call_for_per_sample_grads

    return call_for_per_sample_grads


def model_of(torch):
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(2, 3, 3, padding=1), nn.GroupNorm(3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_of_each_sample(oracle, reduction):
    def grads(torch):
        from importlib import import_module

        utils = import_module(f"{torch.__name__}.nn.utils._per_sample_grad")
        model = model_of(torch)
        x = torch.linspace(-1, 1, 40).reshape(5, 2, 4).requires_grad_()
        made = utils.call_for_per_sample_grads(model, loss_reduction=reduction)(x)
        getattr(made.square().sum(1), reduction)().backward()
        assert all(p.grad is None for p in model.parameters())
        return [made.detach(), x.grad, *(p.grad_sample for p in model.parameters())]

    for ours, theirs in zip(grads(rushlight), oracle(grads)):
        rushlight.testing.assert_close(ours, rushlight.as_tensor(theirs), rtol=1e-4, atol=1e-5)


def test_samples_along_the_second_dimension():
    model = nn.Linear(3, 2)
    x = rushlight.randn(4, 5, 3)
    per_sample()(model, batch_first=False)(x).sum().backward()
    assert model.weight.grad_sample.shape == (5, 2, 3)
    rushlight.testing.assert_close(model.weight.grad_sample[:, 0], x.sum(0))


def test_gradients_of_each_sample_where_torch_has_no_rule():
    """A parameter in matmul: torch raises RuntimeError, "cannot handle function"."""

    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(rushlight.randn(3, 2))

        def forward(self, x):
            return rushlight.matmul(x, self.weight).sin()

    model, x = Product(), rushlight.randn(4, 3)
    per_sample()(model)(x).sum().backward()
    for i in range(4):
        (alone,) = rushlight.autograd.grad(model(x[i : i + 1]).sum(), model.weight)
        rushlight.testing.assert_close(model.weight.grad_sample[i], alone)


def test_calls_that_have_no_gradient_of_a_sample():
    model = nn.Linear(3, 2)
    call = per_sample()(model)
    for bad, match in (
        (lambda: call(), "Unable to find a tensor"),
        (lambda: per_sample()(nn.Bilinear(3, 3, 2))(rushlight.ones(2, 3), rushlight.ones(4, 3)), "batch"),
        (lambda: per_sample()(nn.BatchNorm1d(3)), "mixes samples"),
        (lambda: per_sample()(3), "must be nn.Module"),
        (lambda: per_sample()(model, batch_size=0), "positive"),
        (lambda: per_sample()(model, loss_reduction="max"), "sum or mean"),
    ):
        with pytest.raises(RuntimeError, match=match):
            bad()
    call(rushlight.ones(4, 3)).sum().backward()
    with pytest.raises(RuntimeError, match="clearing"):
        per_sample()(model)


@program
def helpers_of_autograd_functional(torch):
    from importlib import import_module

    f = import_module(f"{torch.__name__}.autograd.functional")
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    inside, outside = (f._grad_preprocess((y,), create, True)[0] for create in (True, False))
    return [
        f._as_tuple(x, "inputs", "jacobian"),
        f._as_tuple((x, 3)),
        f._as_tuple([x, 3]),
        f._as_tuple(x),
        outcome(f._as_tuple, 3, "inputs", "jacobian"),
        outcome(f._as_tuple, (x, 3), "inputs", "jacobian"),
        f._tuple_postprocess(((x,), (y,)), (True, False)),
        f._tuple_postprocess(((x, y),), (False, True)),
        f._tuple_postprocess((y,), False),
        [inside.is_leaf, outside.is_leaf, outside.requires_grad],
        f._grad_postprocess(((y,), (y, x)), False),
        f._grad_postprocess((y,), True)[0] is y,
    ]


@program
def helpers_that_libraries_call_without_effect(torch):
    from importlib import import_module

    calls = import_module(f"{torch.__name__}.distributed.autograd")
    x = torch.ones(2)
    with import_module(f"{torch.__name__}._dynamo.utils").disable_cache_limit():
        return [
            torch._C._is_tracing(),
            torch._has_compatible_shallow_copy_type(x, torch.ones(3, dtype=torch.int32)),
            torch._has_compatible_shallow_copy_type(x, x.to_sparse()),
            isinstance(calls.is_available(), bool),
            torch.backends.cudnn.benchmark_limit,
        ]


@program.found_in("torchjd")
def edges_are_found_among_those_of_another_node(torch):
    edges = torch.autograd.graph
    x = torch.ones(3, requires_grad=True)
    y, (a, b) = x * 2, x.unbind(0)[:2]
    found = {edges.get_gradient_edge(t) for t in (x, y, a, b, y)}
    after = [edges.GradientEdge(*edge) for edge in (y + 1).grad_fn.next_functions[:1]]
    after += [edges.GradientEdge(*(b * 2).grad_fn.next_functions[0])]
    return [len(found), [edge in found for edge in after], after[0] == after[1]]
