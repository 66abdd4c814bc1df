"""functorch's old functions."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import functorch
from rushlight.nn import BatchNorm1d, Linear, Module, Sequential


class Tied(Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.n = Linear(3, 3), Linear(3, 3), BatchNorm1d(3)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.n(self.a(x)))


@pytest.mark.origin("suites")
@pytest.mark.filterwarnings("ignore:.functorch")
def test_functorch_makes_functions_of_modules():
    model, x = Sequential(Linear(3, 2), Linear(2, 1)), rushlight.rand(4, 3)
    f, params = functorch.make_functional(model)
    assert [tuple(p.shape) for p in params] == [(2, 3), (2,), (1, 2), (1,)]
    assert not [*f.parameters()]
    assert all(p is not q for p, q in zip(params, model.parameters()))
    assert rushlight.equal(f(params, x), model(x))
    f(params, x).sum().backward()
    assert params[0].grad is not None
    assert model[0].weight.grad is None
    with pytest.raises(RuntimeError, match="has buffers"):
        functorch.make_functional(Tied())


@pytest.mark.origin("suites")
@pytest.mark.filterwarnings("ignore:.functorch")
def test_functorch_takes_buffers_and_tied_weights():
    model, x = Tied(), rushlight.rand(4, 3)
    f, params, buffers = functorch.make_functional_with_buffers(model, disable_autograd_tracking=True)
    assert f.param_names == ("a.weight", "a.bias", "b.bias", "n.weight", "n.bias")
    assert len(buffers) == 3
    assert not any(p.requires_grad for p in params)
    out = f(params, buffers, x)
    assert rushlight.equal(out, model(x))
    assert rushlight.equal(buffers[0], model.n.running_mean)
    f.eval()
    assert rushlight.equal(f(params, buffers, x), model.eval()(x))


@pytest.mark.origin("suites")
@pytest.mark.filterwarnings("ignore:.functorch")
def test_functorch_stacks_modules():
    models, x = [Linear(3, 2) for _ in range(4)], rushlight.rand(5, 3)
    f, params, buffers = functorch.combine_state_for_ensemble(models)
    made = functorch.vmap(f, (0, 0, None))(params, buffers, x)
    assert rushlight.allclose(made, rushlight.stack([m(x) for m in models]))
    assert not params[0].requires_grad
    for wrong in ([], [Linear(3, 2), Linear(3, 2).eval()], [Linear(3, 2), Tied()]):
        with pytest.raises(RuntimeError, match="combine_state_for_ensemble"):
            functorch.combine_state_for_ensemble(wrong)


@pytest.mark.origin("suites")
def test_functorch_says_where_its_names_are_now():
    with pytest.warns(FutureWarning, match=r"`functorch.vmap` .* use `torch.vmap`"):
        assert functorch.vmap(rushlight.sin)(rushlight.zeros(2)).tolist() == [0.0, 0.0]
