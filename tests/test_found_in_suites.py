"""What test suites of libraries and older programs ask for, and no other test did."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

import rushlight
from rushlight import functorch
from rushlight.nn import BatchNorm1d, Linear, Module, Sequential
from tests.support.paths import ROOT
from tests.support.programs import Programs, outcome

run = Programs()


@run
def copies_of_expanded_tensors_lie_as_torchs(torch):
    a = torch.arange(4).view(1, 4).expand(3, 4)
    b = torch.arange(3).view(1, 3, 1).expand(2, 3, 4)
    c = torch.rand(4, 3).t().unsqueeze(0).expand(5, 3, 4)
    return [list(t.stride()) for t in (a.float(), a.clone(), a.double(), a * 1.5, b.float(), b.clone(), c.clone(),
                                       c.double(), a.t().float(), b.permute(2, 0, 1).clone(), c[:, :, :1].clone())] + [
        a.float().view(12), b.float().view(-1)]


@run
def steps_of_ranges_may_be_tensors(torch):
    return [torch.linspace(-0.5, 0.5, torch.tensor(5)), torch.logspace(0, 1, torch.tensor(3))]


@run
def random_numbers_like_a_list_are_refused(torch):
    return [outcome(f, [torch.ones(2)]) for f in (torch.rand_like, torch.randn_like)]


@run
def wishart_draws_as_torch(torch):
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one = torch.distributions.Wishart(torch.tensor(5.0), torch.eye(3))
        many = torch.distributions.Wishart(torch.tensor([5.0, 6.0]), torch.eye(3))
        drawn = [one.sample(), one.sample((2, 2)), many.sample(), many.sample((2,)), torch.rand(1)]
    return [*drawn, sorted({str(w.message) for w in caught})]


@run
def modules_are_laid_out(torch):
    m = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(2, 2))
    m = m.to(torch.float64, memory_format=torch.channels_last)
    m(torch.rand(2, 3, 4, 4, dtype=torch.float64)).sum().backward()
    return [list(m[0].weight.stride()), list(m[1].weight.stride()), m[0].weight.grad.shape == m[0].weight.shape,
            outcome(torch.nn.Conv3d(1, 1, 3).to, memory_format=torch.channels_last)]


@run
def older_comparisons(torch):
    close = torch.testing.assert_allclose
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [outcome(close, *args) for args in (
            (torch.tensor([1.0]), torch.tensor([1.00005])), (torch.tensor([1.0]), torch.tensor([1.001])),
            (torch.tensor([1.0]), [1.0]), (torch.tensor([float("nan")]), torch.tensor([float("nan")])),
            (torch.ones(1), torch.ones(1, dtype=torch.float64)), (torch.ones(1), torch.ones(1) + 1, 1.0, 1.0))]


test_like_torch = run.test()


class Tied(Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.n = Linear(3, 3), Linear(3, 3), BatchNorm1d(3)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.n(self.a(x)))


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


def test_functorch_says_where_its_names_are_now():
    with pytest.warns(FutureWarning, match=r"`functorch.vmap` .* use `torch.vmap`"):
        assert functorch.vmap(rushlight.sin)(rushlight.zeros(2)).tolist() == [0.0, 0.0]


def test_old_packages_are_found_by_the_hook():
    text = ("import rushlight.compat; rushlight.compat.install()\n"
            "import functorch, torch, torch.distributed.nn\n"
            "from functorch.experimental import replace_all_batch_norm_modules_\n"
            "from torch._vmap_internals import _vmap\n"
            "assert functorch.__name__ == 'rushlight.functorch', functorch\n"
            "print(_vmap(lambda x: (x * 2, None), 0, 0, True)(torch.ones(2)), _vmap(torch.sin)(torch.zeros(1)))")
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.stdout == "(tensor([2., 2.]), None) tensor([0.])\n", done.stderr


def test_gradients_go_through_collectives_of_one_process():
    from rushlight import distributed
    from rushlight.distributed import nn
    distributed.init_process_group("gloo", rank=0, world_size=1, store=None, init_method="tcp://127.0.0.1:29500")
    try:
        x = rushlight.ones(2, requires_grad=True)
        total = nn.all_reduce(x) + nn.all_gather(x)[0] + nn.functional.broadcast(x, 0) + nn.all_to_all([x], [x])[0]
        total.sum().backward()
        assert x.grad.tolist() == [4.0, 4.0]
    finally:
        distributed.destroy_process_group()


def test_compiled_functions_take_a_stance():
    f, x, other = rushlight.compile(lambda x: x.sin() * 2 + 1), rushlight.ones(3), rushlight.ones(2, 2)
    stance, programs = rushlight.compiler.set_stance, rushlight.compiler.programs
    right = [(x.sin() * 2 + 1).tolist(), (other.sin() * 2 + 1).tolist()]
    with stance("force_eager"):
        for _ in range(3):
            assert f(x).tolist() == right[0]
    assert not programs(f)
    for _ in range(3):
        f(x)
    assert len(programs(f)) == 1
    with stance("fail_on_recompile"):
        assert f(x).tolist() == right[0]
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            f(other)
    with stance("eager_on_recompile"):
        for _ in range(3):
            assert f(other).tolist() == right[1]

    @stance("force_eager")
    def apart():
        return f.enter, f(x).tolist()
    assert apart() == (None, right[0])
    assert len(programs(f)) == 1
    assert f(x).tolist() == right[0]
    assert f.enter is not None
    with pytest.raises(RuntimeError, match="invalid torch.compile stance"):
        stance("wrong")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("more", [{}, {"weight": [0.5, 1.0, 2.0]}, {"ignore_index": 1}, {"label_smoothing": 0.1}])
def test_a_sample_may_be_one_row_of_scores_and_its_class(reduction, more):
    from rushlight.func import grad, vmap
    more = {key: rushlight.tensor(v) if key == "weight" else v for key, v in more.items()}

    def loss(w, x, target):
        return rushlight.nn.functional.cross_entropy(w @ x, target, reduction=reduction, **more)
    w, x, target = rushlight.randn(3, 3), rushlight.randn(4, 3), rushlight.tensor([0, 2, 1, 1])
    for f in (loss, grad(loss), grad(loss, 1)):
        made = vmap(f, (None, 0, 0))(w, x, target)
        one = rushlight.stack([f(w, a, b) for a, b in zip(x, target)])
        assert rushlight.allclose(made, one, atol=1e-6, equal_nan=True)
    assert rushlight.allclose(vmap(loss, (None, 0, None))(w, x, target[0]),
                              rushlight.stack([loss(w, a, target[0]) for a in x]), atol=1e-6)


@pytest.mark.parametrize("layer", [Linear(3, 4), rushlight.nn.Conv1d(3, 4, 1), rushlight.nn.LayerNorm(3)])
def test_a_layers_forward_takes_any_object_with_its_attributes(layer):
    class Scope:
        pass
    scope, x = Scope(), rushlight.rand(3, 3)
    scope.__dict__.update({key: v for key, v in vars(layer).items() if not key.startswith("_")}, **layer._parameters)
    if hasattr(layer, "_conv_forward"):
        scope._conv_forward = layer._conv_forward
    assert rushlight.equal(type(layer).forward(scope, x), layer(x))
