"""torch.nn.utils: norms, parametrizations, pruning, fusion and functional calls. Each story is told to both
libraries."""

from __future__ import annotations

import copy
import pickle
from importlib import import_module

import numpy as np
import pytest

import rushlight as rl
from rushlight import nn, tensor
from rushlight.nn.utils import parametrizations, parametrize, prune, stateless
from tests.support.programs import Programs

pytestmark = pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")


def same(got, want, at=""):
    """Tensors are close, all else is equal."""
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want), at
        for i, (g, w) in enumerate(zip(got, want)):
            same(g, w, f"{at}[{i}]")
    elif isinstance(want, np.ndarray):
        assert tuple(got.shape) == want.shape, at
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-5, atol=1e-6, err_msg=at)
    else:
        assert got == want, at


def told(story):
    """A test that a story, a function of (library, its nn), comes out as in torch."""

    def test(oracle):
        same(story(rl, nn), oracle(lambda torch: story(torch, torch.nn)))

    return test


def state(m):
    return [list(m.state_dict()), [t.detach() for t in m.state_dict().values()]]


def weight_norms(lib, nn):
    lib.manual_seed(0)
    seen = []
    for dim in (0, 1, None):
        m = nn.utils.weight_norm(nn.Linear(3, 2), dim=dim)
        m(lib.ones(1, 3)).sum().backward()
        seen += [repr(m), state(m), m.weight.detach(), m.weight_g.grad, m.weight_v.grad]
        new = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2), dim=dim)
        new.load_state_dict(m.state_dict())
        seen += [repr(new), state(new), new.weight.detach()]
        seen += [state(nn.utils.remove_weight_norm(m))]
    m = nn.utils.weight_norm(nn.Conv2d(2, 3, 2))
    return [*seen, state(m), m(lib.ones(1, 2, 3, 3)).detach()]


def spectral_norms(lib, nn):
    lib.manual_seed(0)
    seen = []
    for make in (lambda: nn.Linear(3, 2), lambda: nn.ConvTranspose2d(3, 2, 2)):
        for norm in (nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm):
            m = norm(make())
            x = lib.ones(1, 3, 2, 2) if "Conv" in repr(m) else lib.ones(1, 3)
            m(x)
            m(x).sum().backward()
            seen += [repr(m), state(m), m.bias.grad, [p.grad for _, p in m.named_parameters()]]
            m.eval()
            seen += [m(x).detach(), m(x).detach()]
    old = nn.utils.spectral_norm(nn.Linear(3, 2))
    return [
        *seen,
        dict(old.state_dict()._metadata[""]) == {"version": 1, "spectral_norm": {"weight.version": 1}},
        state(nn.utils.remove_spectral_norm(old)),
    ]


def pruning(lib, nn):
    lib.manual_seed(0)
    prune = import_module(f"{nn.__name__}.utils.prune")  # torch loads it when asked
    m = nn.Linear(4, 3)
    seen = []
    for step in (
        lambda: prune.l1_unstructured(m, "weight", 0.3),
        lambda: prune.random_unstructured(m, "weight", 3),
        lambda: prune.ln_structured(m, "weight", 1, 2, 0),
        lambda: prune.identity(m, "bias"),
        lambda: prune.remove(m, "weight"),
        lambda: prune.random_structured(m, "weight", 2, 1),
        lambda: prune.custom_from_mask(m, "weight", lib.tensor([[1.0, 0.0, 1.0, 0.0]] * 3)),
    ):
        step()
        seen += [state(m), m.weight.detach(), prune.is_pruned(m)]
    m(lib.ones(1, 4)).sum().backward()
    a, b = nn.Linear(2, 2), nn.Linear(2, 3)
    for amount in (0.4, 2):
        prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=amount)
        seen += [a.weight.detach(), b.weight.detach()]
    return [*seen, m.weight_orig.grad, prune.L1Unstructured(2).prune(lib.tensor([1.0, -3.0, 2.0]))]


def fusion(lib, nn):
    lib.manual_seed(0)
    norm = nn.BatchNorm2d(4).eval()
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    norm.weight.data.normal_()
    conv, up = nn.Conv2d(2, 4, 3, bias=False).eval(), nn.ConvTranspose2d(2, 4, 3).eval()
    flat, rows = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
    rows.load_state_dict(norm.state_dict())
    fused = [
        nn.utils.fuse_conv_bn_eval(conv, norm),
        nn.utils.fuse_conv_bn_eval(up, norm, transpose=True),
        nn.utils.fuse_linear_bn_eval(flat, rows),
    ]
    x, y = lib.randn(1, 2, 5, 5), lib.randn(2, 3)
    errors = [(fused[0](x) - norm(conv(x))), (fused[1](x) - norm(up(x))), (fused[2](y) - rows(flat(y)))]
    return [[repr(m) for m in fused], [state(m) for m in fused], [bool(e.abs().max() < 1e-5) for e in errors]]


def orthogonal_weights(lib, nn):
    seen = []
    for shape in ((3, 3), (2, 3), (4, 2)):
        for how in ("matrix_exp", "cayley", "householder", None):
            for trivial in (True, False):
                lib.manual_seed(0)
                m = nn.utils.parametrizations.orthogonal(
                    nn.Linear(*shape), orthogonal_map=how, use_trivialization=trivial
                )
                m(lib.ones(1, shape[0])).sum().backward()
                seen += [m.weight.detach(), m.parametrizations.weight.original.grad]
    return seen


class Tied:
    """A module with a tied parameter and a buffer that forward replaces, in either library."""

    def __new__(cls, lib, nn):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Parameter(lib.ones(1))
                self.b = self.a
                self.register_buffer("c", lib.zeros(1))

            def forward(self, x):
                self.c = self.c + 1
                return x * self.a + self.b + self.c

        return Tied()


def functional_calls(lib, nn):
    call, m, x = (
        lib.func.functional_call if hasattr(lib, "func") else stateless.functional_call,
        Tied(lib, nn),
        lib.ones(2),
    )
    zero, one = lib.zeros(1), lib.ones(1)
    state = {"c": lib.zeros(1) + 5}
    return [
        call(m, {"a": zero}, x),
        call(m, {"a": zero, "b": one}, (x,), tie_weights=False).detach(),
        call(m, state, x).detach(),
        state["c"],
        m.c,
        m.a.detach(),
        call(m, ({"a": zero}, state), x),
    ]


for _story in (weight_norms, spectral_norms, orthogonal_weights, pruning, fusion, functional_calls):
    globals()[f"test_{_story.__name__}"] = told(_story)


# -- parametrize -----------------------------------------------------------------------------------


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT


class Halves(nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, x):
        return x / 2, x / 2


class Cut(nn.Module):
    def forward(self, x):
        return x[:1]


def test_parametrized_weight():
    m = nn.Linear(3, 3)
    parametrize.register_parametrization(m, "weight", Symmetric())
    assert [n for n, _ in m.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert repr(m) == (
        "ParametrizedLinear(\n  in_features=3, out_features=3, bias=True\n  (parametrizations): ModuleDict(\n    "
        "(weight): ParametrizationList(\n      (0): Symmetric()\n    )\n  )\n)"
    )
    m(rl.ones(1, 3)).sum().backward()
    np.testing.assert_array_equal(m.parametrizations.weight.original.grad.numpy(), [[1, 2, 2], [0, 1, 2], [0, 0, 1]])
    assert m.weight is not m.weight
    with parametrize.cached():
        assert m.weight is m.weight
    assert type(copy.deepcopy(m)) is type(m)
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(m)
    with pytest.raises(RuntimeError, match="parametrization Symmetric does not implement right_inverse"):
        m.weight = rl.ones(3, 3)


def test_a_copy_keeps_its_parametrization():
    m = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    twin = copy.deepcopy(m)
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear
    assert list(m.state_dict()) == ["bias", "weight"]
    assert parametrize.is_parametrized(twin, "weight")
    assert rl.equal(twin.weight, m.weight)


def test_several_originals():
    m = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Halves())
    m.weight = rl.full((2, 2), 4.0)
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert rl.equal(m.parametrizations.weight.original0, rl.full((2, 2), 2.0))
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(m, "weight")
    assert rl.equal(m.weight, rl.full((2, 2), 4.0))
    assert m.weight.requires_grad


@pytest.mark.parametrize(
    ("name", "by", "words"),
    [
        ("foo", Symmetric(), "does not have a parameter, a buffer, or a parametrized element with name 'foo'"),
        ("weight", Cut(), "may not change the shape of the tensor, unless `unsafe` flag"),
    ],
)
def test_parametrizations_refused(name, by, words):
    m = nn.Linear(3, 3)
    with pytest.raises(ValueError, match=words):
        parametrize.register_parametrization(m, name, by)
    assert type(m) is nn.Linear
    assert list(m.state_dict()) == ["weight", "bias"]
    parametrize.register_parametrization(m, "weight", Symmetric())
    with pytest.raises(ValueError, match="may not change the shape of the tensor, unless the `unsafe` flag"):
        parametrize.register_parametrization(m, "weight", Cut())
    assert len(m.parametrizations.weight) == 1
    with pytest.raises(ValueError, match="does not have a parametrization on bias"):
        parametrize.remove_parametrizations(m, "bias")


def test_spectral_norm_is_one():
    m = parametrizations.spectral_norm(nn.Linear(5, 4), n_power_iterations=50)
    np.testing.assert_allclose(np.linalg.norm(m.weight.detach().numpy(), 2), 1, rtol=1e-5)
    for norm in (nn.utils.spectral_norm, parametrizations.spectral_norm):
        with pytest.raises(ValueError, match="Expected n_power_iterations to be positive"):
            norm(nn.Linear(2, 2), n_power_iterations=0)


def test_norms_refused():
    m = nn.utils.weight_norm(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
        nn.utils.weight_norm(m)
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
        nn.utils.remove_spectral_norm(nn.Linear(2, 2))


# -- the others ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "error"), [(1.5, ValueError), (-1, ValueError), ("x", TypeError), (100, ValueError)]
)
def test_amounts_refused(amount, error):
    m = nn.Linear(2, 2)
    with pytest.raises(error, match="amount"):
        prune.l1_unstructured(m, "weight", amount)
    assert list(m.state_dict()) == ["weight", "bias"]
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(m, "weight")


def test_functional_call_refuses():
    m, x = nn.Linear(2, 1), rl.ones(1, 2)
    call = stateless.functional_call
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'bias'"):
        call(m, {"weight": x}, x, strict=True)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        call(m, [{"weight": x}, {"weight": x}], x)
    with pytest.raises(AttributeError, match="Linear has no attribute `a`"):
        call(m, {"a.b": x}, x)
    with pytest.raises(TypeError, match="3 is not an instance of torch.Tensor"):
        call(m, {"weight": 3}, x)
    with pytest.raises(ValueError, match="multiple values for keys"):
        call(Tied(rl, nn), {"a": x, "b": rl.zeros(1)}, x)
    assert call(m, {"other": x}, x).shape == (1, 1)
    assert not hasattr(m, "other")


def test_functional_call_of_a_module_inside_itself():
    class Ring(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(1, 1)
            self.inner.whole = self

        def forward(self, x):
            return self.inner(x)

    m, x = Ring(), rl.tensor([3.0])
    weight, bias = m.inner.weight, m.inner.bias
    values = {"inner.whole.inner.weight": rl.tensor([[2.0]]), "inner.bias": rl.tensor([1.0])}
    assert stateless.functional_call(m, values, x, tie_weights=False).item() == 7
    assert m.inner.weight is weight
    assert m.inner.bias is bias


def test_functional_call_without_a_bias_and_with_more_parameters():
    """None takes a tensor away; a new parameter is one of the module's meanwhile, and what is tied is not missing."""

    class Counts(nn.Linear):
        def forward(self, x):
            return super().forward(x), len(list(self.parameters()))

    m, x = Counts(2, 1), rl.ones(2)
    y, count = stateless.functional_call(m, {"weight": rl.ones(1, 2), "bias": None, "more": nn.Parameter(x)}, x)
    assert (y.item(), count) == (2, 2)
    assert list(m.state_dict()) == ["weight", "bias"]
    tied = stateless.functional_call(Tied(rl, nn), {"a": rl.ones(1) * 3, "c": rl.zeros(1)}, x, strict=True)
    assert tied.tolist() == [7, 7]
    m.scale = 2.0
    with pytest.raises(TypeError, match="attribute `scale`: 2.0 is not an instance of torch.Tensor"):
        stateless.functional_call(m, {"scale": x}, x)


def test_functional_call_puts_back_after_an_error():
    m = nn.Linear(2, 1)
    weight = m.weight
    with pytest.raises(RuntimeError):
        stateless.functional_call(m, {"weight": rl.ones(1, 5)}, rl.ones(2))
    assert m.weight is weight


def test_stacked_modules():
    models = [nn.Linear(2, 3) for _ in range(4)]
    parameters, buffers = stateless.stack_module_state(models)
    assert parameters["weight"].shape == (4, 3, 2)
    assert parameters["weight"].is_leaf
    assert parameters["weight"].requires_grad
    assert rl.equal(parameters["bias"][2], models[2].bias)
    assert buffers == {}


def test_skip_init_draws_nothing():
    rl.manual_seed(0)
    first = rl.rand(2)
    rl.manual_seed(0)
    m = nn.utils.skip_init(nn.Linear, 3, 4)
    assert rl.equal(rl.rand(2), first)
    assert m.weight.shape == (4, 3)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        nn.utils.skip_init(nn.ReLU)


@pytest.mark.origin("suites")
def test_complex_weights_over_their_largest_singular_value():
    layer = nn.Linear(2, 2, dtype=rl.complex64)
    with rl.no_grad():
        diagonal = tensor([0.3 + 0.4j, 0.1j])
        layer.weight = nn.Parameter(rl.diag(diagonal))
        nn.utils.parametrizations.spectral_norm(layer)
        assert rl.allclose(layer.weight, rl.diag(diagonal / 0.5), atol=1e-5)


program = Programs()


@program.found_in("torch tests")
def masks_of_whole_numbers_prune(torch):
    prune = import_module(f"{torch.__name__}.nn.utils.prune")
    chain, method = prune.PruningContainer(), prune.L1Unstructured(amount=2)
    chain._tensor_name = method._tensor_name = "weight"
    chain.add_pruning_method(method)
    return chain.compute_mask(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1, 1], [0, 1]]))


test_program = program.test()
