"""Groups, saved state in torch's format, hooks, refusals, averaged models."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight
from rushlight import nn, optim
from rushlight.optim import optimizer
from tests.optim.problem import CASES, IDS, Problem, advance, arrays, close

# -- groups, saving, hooks -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "settings"), CASES, ids=IDS)
def test_saved_format_is_torchs(torch, name, settings):
    ours, theirs = Problem(rushlight).train(name, settings), Problem(torch).train(name, settings)
    ours, theirs = ours.state_dict(), theirs.state_dict()
    assert {k: set(v) for k, v in ours["state"].items()} == {k: set(v) for k, v in theirs["state"].items()}
    for one, other in zip(ours["param_groups"], theirs["param_groups"], strict=True):
        assert one == other
    for key, one in ours["state"].items():
        for k, v in one.items():
            other = theirs["state"][key][k]
            assert type(v).__name__ == type(other).__name__
            if isinstance(v, rushlight.Tensor):
                assert str(v.dtype) == str(other.dtype)
                assert tuple(v.shape) == tuple(other.shape)


@pytest.mark.parametrize(("name", "settings"), CASES, ids=IDS)
def test_saved_and_loaded_goes_on_alike(name, settings):
    one, other = Problem(rushlight), Problem(rushlight)
    optimizer = one.train(name, settings, 3)
    saved = pickle.loads(pickle.dumps(optimizer.state_dict()))
    for p, q in zip(other.params, one.params):
        p.detach().copy_(q.detach())
    fresh = getattr(optim, name)(other.params, **settings)
    fresh.load_state_dict(saved)
    advance(one, optimizer, 2)
    advance(other, fresh, 2)
    exact = name not in ("NAdam", "ASGD")  # whose counters are loaded in the parameter's dtype, as in torch
    close(one.values(), arrays(other.values()), 0 if exact else 1e-8)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copied_with_its_parameters(how):
    problem = Problem(rushlight)
    optimizer = problem.train("Adam", {}, 2)
    twin = how(optimizer)
    assert repr(twin) == repr(optimizer)
    params = twin.param_groups[0]["params"]
    assert params[0] is not problem.params[0]
    assert set(map(id, params)) == set(map(id, twin.state))
    problem.closure()
    for p, q in zip(params, problem.params):
        p.grad = q.grad.clone()
    optimizer.step()
    twin.step()
    close(problem.values(), [p.detach()._array for p in params], 0)


def test_loaded_state_takes_the_parameters_dtype():
    saved = Problem(rushlight, "float32").train("Adam", {}).state_dict()
    wide = optim.Adam(Problem(rushlight, "float64").params)
    wide.load_state_dict(saved)
    state = wide.state_dict()["state"][0]
    assert state["exp_avg"].dtype is rushlight.float64
    assert state["step"].dtype is rushlight.float32
    saved["state"][0]["exp_avg"].zero_()
    assert state["exp_avg"].abs().sum().item() > 0  # a copy


def test_old_checkpoints():
    optimizer = Problem(rushlight).train("Adam", {})
    saved = optimizer.state_dict()
    saved["state"] = {k: {**v, "step": 5} for k, v in saved["state"].items()}
    del saved["param_groups"][0]["decoupled_weight_decay"]
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is False
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"].item() == 6


def test_groups_have_settings_of_their_own():
    p, q, r = (rushlight.ones(2, requires_grad=True) for _ in range(3))
    optimizer = optim.SGD([{"params": p, "lr": 0.5}, {"params": [q]}], lr=0.1)
    optimizer.add_param_group({"params": [r], "momentum": 0.9})
    for t in (p, q, r):
        t.grad = rushlight.ones(2)
    optimizer.step()
    assert [t[0].item() for t in (p, q, r)] == pytest.approx([0.5, 0.9, 0.9])
    assert list(optimizer.state) == [r]
    assert [g["params"] for g in optimizer.state_dict()["param_groups"]] == [[0], [1], [2]]


def test_named_parameters():
    p, q = (rushlight.ones(2, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([("w", p), ("b", q)])
    assert optimizer.param_groups[0]["param_names"] == ["w", "b"]
    assert optimizer.param_groups[0]["params"] == [p, q]


def test_repr(oracle):
    def text(torch):
        ps = [torch.ones(2, requires_grad=True) for _ in range(2)]
        return repr(torch.optim.Adam([{"params": ps[:1]}, {"params": ps[1:], "lr": 0.5}]))

    assert text(rushlight) == oracle(text)


def test_hooks():
    seen = []
    w = rushlight.ones(1, requires_grad=True)
    optimizer = optim.SGD([w])
    first = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("post"))
    everywhere = optim.optimizer.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("all"))
    optimizer.step()
    everywhere.remove()
    first.remove()
    optimizer.step()
    assert seen == ["all", "pre", "post", "post"]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 5), {}))
    assert optimizer.step() == 5
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, d: seen.append(d["more"]))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen[-2:] == [1, "loaded"]


def test_optimizers_of_ones_own():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.add_(p.grad.sign(), alpha=-group["lr"])

    w = rushlight.ones(2, requires_grad=True)
    optimizer, seen = Sign([w]), []
    optimizer.register_step_post_hook(lambda *args: seen.append(1))
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    w.grad = rushlight.tensor([3.0, -3.0])
    for _ in range(2):
        optimizer.step()
        scheduler.step()
    assert w.tolist() == pytest.approx([0.85, 1.15])
    assert seen == [1, 1]


def test_weight_decay_of_an_unused_momentum_starts_later():
    """Momentum that a schedule turns on later starts with the gradient of that step, as in torch."""
    w = rushlight.ones(1, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)
    for momentum in (0, 0.5, 0.5):
        optimizer.param_groups[0]["momentum"] = momentum
        w.grad = rushlight.ones(1)
        optimizer.step()
    assert w.item() == pytest.approx(1 - 0.1 - 0.1 - 0.15)


# -- errors ----------------------------------------------------------------------------------------


def leaf(*shape):
    return rushlight.ones(*shape, requires_grad=True)


@pytest.mark.parametrize(
    ("error", "words", "make"),
    [
        (TypeError, "iterable of Tensors or dicts, but got torch.FloatTensor", lambda: optim.SGD(leaf(1))),
        (ValueError, "empty parameter list", lambda: optim.SGD([])),
        (TypeError, "one of the params is int", lambda: optim.SGD([3])),
        (TypeError, "sets will change between runs", lambda: optim.SGD([{"params": {leaf(1)}}])),
        (ValueError, "can't optimize a non-leaf Tensor", lambda: optim.SGD([leaf(1) * 2])),
        (ValueError, "Invalid learning rate: -1", lambda: optim.SGD([leaf(1)], lr=-1)),
        (ValueError, "Tensor lr must be 1-element", lambda: optim.Adam([leaf(1)], lr=rushlight.ones(2))),
        (ValueError, "Invalid beta parameter at index 1: 1.0", lambda: optim.NAdam([leaf(1)], betas=(0, 1.0))),
        (ValueError, "Invalid epsilon value: -1", lambda: optim.Adagrad([leaf(1)], eps=-1)),
        (ValueError, "Nesterov momentum requires", lambda: optim.SGD([leaf(1)], nesterov=True)),
        (ValueError, "Invalid eta values: 1.0, 0.5", lambda: optim.Rprop([leaf(1)], etas=(1.0, 0.5))),
        (ValueError, "Invalid rho value: 1.1", lambda: optim.Adadelta([leaf(1)], rho=1.1)),
        (ValueError, "Muon only supports 2D", lambda: optim.Muon([leaf(3)])),
        (
            ValueError,
            "LBFGS doesn't support per-parameter",
            lambda: optim.LBFGS([{"params": leaf(1)}, {"params": leaf(1)}]),
        ),
        (RuntimeError, "cannot be `True` together", lambda: optim.Adam([leaf(1)], fused=True, foreach=True)),
        (ValueError, "with/without names", lambda: optim.SGD([("w", leaf(1)), leaf(1)])),
    ],
)
def test_refusals(error, words, make):
    with pytest.raises(error, match=words):
        make()


def test_one_parameter_in_two_groups():
    w = leaf(1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([{"params": w}, {"params": w}])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([w, w])


def test_loading_what_does_not_fit_changes_nothing():
    saved = optim.SGD([leaf(1), leaf(1)], momentum=0.5).state_dict()
    optimizer = optim.SGD([leaf(1)], lr=0.25)
    with pytest.raises(ValueError, match="doesn't match the size"):
        optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert optimizer.param_groups[0]["momentum"] == 0


# -- averaged models -------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"decay": 0.9}, {"use_buffers": True}, {"anneal_epochs": 0}])
def test_averages_of_a_model(oracle, settings):
    def asked(torch):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        swa = torch.optim.swa_utils
        options = {"multi_avg_fn": swa.get_ema_multi_avg_fn(settings["decay"])} if "decay" in settings else {}
        average = swa.AveragedModel(model, use_buffers=settings.get("use_buffers", False), **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        schedule = swa.SWALR(optimizer, swa_lr=0.05, anneal_epochs=settings.get("anneal_epochs", 4))
        x, y = torch.randn(16, 3), torch.randn(16, 1)
        rates = []
        for _ in range(6):
            optimizer.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
            average.update_parameters(model)
            schedule.step()
            rates += schedule.get_last_lr()
        swa.update_bn([x[:8], x[8:]], average)
        return {**{k: v.tolist() for k, v in average.state_dict().items()}, "rates": rates}

    ours, theirs = asked(rushlight), oracle(asked)
    assert list(ours) == list(theirs)
    for key in ours:
        np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-4, atol=1e-5)


@pytest.mark.origin("courses")
def test_optimizers_take_lists_of_parameters():
    """MAML's Learner gives its ParameterList from parameters()."""
    one, two = nn.Parameter(rushlight.ones(1)), nn.Parameter(rushlight.ones(2))
    given = nn.ParameterList([one, two])
    assert rushlight.optim.Adam(given).param_groups[0]["params"] == [one, two]
    assert rushlight.optim.SGD([{"params": given}], lr=0.1).param_groups[0]["params"] == [one, two]
    with pytest.raises(TypeError, match=r"'Linear' object is not iterable(?s:.*)pass model\.parameters\(\)"):
        rushlight.optim.Adam(nn.Linear(1, 1))
    with pytest.raises(TypeError, match=r"one of the params is Linear(?s:.*)model\.parameters\(\)"):
        rushlight.optim.Adam(nn.Sequential(nn.Linear(1, 1)))


def stepped(t, kind, **settings):
    w = t.tensor([1.0, -2.0], requires_grad=True)
    steps = getattr(t.optim, kind)([w], lr=0.1, **settings)
    steps.param_groups[0]["step"] = 0  # a wrapper's own number
    for _ in range(3):
        (w * w).sum().backward()
        steps.step()
    return t.stack([w.detach(), steps.state[w]["step"].expand(2)])


@pytest.mark.origin("model zoos")
@pytest.mark.parametrize("kind", ["Adam", "NAdam", "ASGD"])
def test_a_step_of_the_users_in_a_group(oracle, kind):
    np.testing.assert_allclose(stepped(rushlight, kind).numpy(), oracle(lambda t: stepped(t, kind)), rtol=1e-6)


class Copied(rushlight.optim.Optimizer):
    """SGD as it stands in torch's own files."""

    def __init__(self, params, lr, differentiable=False):
        super().__init__(params, {"lr": lr, "differentiable": differentiable})

    @optimizer._use_grad_for_differentiable
    def step(self):
        for group in self.param_groups:
            params, grads = [*group["params"]], [p.grad for p in group["params"]]
            optimizer._view_as_real(params, grads)
            for p, g in zip(params, grads):
                p.add_(g, alpha=-optimizer._get_value(optimizer._to_scalar(group["lr"])))
                self.recorded = p.requires_grad and p.grad_fn is not None


@pytest.mark.origin("model zoos")
@pytest.mark.parametrize("differentiable", [False, True])
def test_optimizers_copied_out_of_torch(differentiable):
    w = rushlight.tensor([1 + 2j], requires_grad=True)
    p = w.clone()
    p.retain_grad()
    p.abs().square().sum().backward()
    sgd = Copied([w if not differentiable else p], rushlight.tensor([0.25]), differentiable)
    if not differentiable:
        w.grad = p.grad
    sgd.step()
    assert sgd.param_groups[0]["params"][0].tolist() == [0.5 + 1j]
    assert sgd.recorded is differentiable
    assert optimizer._default_to_fused_or_foreach([w], False, True) == (False, False)
    assert optimizer._stack_if_compiling([w]) == [w]
    assert "cuda" in optimizer._get_capturable_supported_devices()
