"""Modules: what they own, how they are walked, saved, loaded, converted, hooked and shown; and their first values."""

from __future__ import annotations

import copy
import gc
import math
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.nn import Linear
from rushlight.nn import functional as F
from tests.support.programs import Programs, outcome


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 1, bias=False)])
        self.register_buffer("mean", rushlight.zeros(1))
        self.register_buffer("scratch", rushlight.ones(1), persistent=False)
        self.tail = nn.Sequential(nn.Linear(1, 1), nn.ReLU())

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.tail(x) + self.mean


NAMES = ["mean", "layers.0.weight", "layers.0.bias", "layers.1.weight", "tail.0.weight", "tail.0.bias"]


# -- owning ----------------------------------------------------------------------------------------


def test_names_of_what_it_owns():
    net = Net()
    assert list(net.state_dict()) == NAMES
    assert [name for name, _ in net.named_parameters()] == NAMES[1:]
    assert [name for name, _ in net.named_buffers()] == ["mean", "scratch"]
    assert [name for name, _ in net.named_modules()] == [
        "",
        "layers",
        "layers.0",
        "layers.1",
        "tail",
        "tail.0",
        "tail.1",
    ]
    assert [name for name, _ in net.named_children()] == ["layers", "tail"]
    assert sum(p.numel() for p in net.parameters()) == 14
    assert len(list(net.parameters(recurse=False))) == 0


def test_shared_parameters_count_once():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert len(net.state_dict()) == 4


def test_attributes_of_three_kinds():
    m = nn.Module()
    m.w = nn.Parameter(rushlight.zeros(2))
    m.b = nn.Buffer(rushlight.zeros(2))
    m.child = nn.Identity()
    m.n = 3
    assert list(m._parameters) == ["w"]
    assert list(m._buffers) == ["b"]
    assert list(m._modules) == ["child"]
    m.b = rushlight.ones(2)
    assert m._buffers["b"].tolist() == [1, 1]
    m.w = None
    assert m.w is None
    assert "w" in m._parameters
    m.child = nn.Parameter(rushlight.zeros(1))  # another kind takes the name
    assert list(m._modules) == []
    assert "child" in m._parameters
    del m.child, m.b, m.n
    for name in ("child", "b", "n"):
        with pytest.raises(AttributeError, match=f"'Module' object has no attribute '{name}'"):
            getattr(m, name)


def test_a_tensor_is_no_parameter():
    m = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"cannot assign 'torch.FloatTensor' as parameter 'weight' \(torch.nn.Para"):
        m.weight = rushlight.zeros(2, 2)
    with pytest.raises(TypeError, match="as child module"):
        nn.Sequential(nn.ReLU()).__setattr__("0", 1)


def test_registering_checks_names():
    m = nn.Module()
    for register, thing in ((m.register_parameter, None), (m.register_buffer, None), (m.add_module, None)):
        for name in ("a.b", "", "forward"):
            with pytest.raises(KeyError):
                register(name, thing)
        with pytest.raises(TypeError):
            register("x", 3)
        with pytest.raises(TypeError, match="name should be a string"):
            register(3, thing)
    w = nn.Parameter(rushlight.ones(2))
    product = nn.Parameter(rushlight.ones(2))
    product._node = (w * 2)._node
    with pytest.raises(ValueError, match="Cannot assign non-leaf"):
        m.register_parameter("w", product)


def test_assigning_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Early()
    with pytest.raises(TypeError, match="unexpected keyword argument 'a'"):
        nn.Module(a=1)


class Incomplete(nn.Module):
    """Its property raises an AttributeError, its constructor may leave out Module's."""

    def __init__(self, complete):
        if complete:
            super().__init__()

    @property
    def size(self):
        return self.sizes


@pytest.mark.parametrize(
    ("complete", "name", "hint"),
    [
        (True, "size", r"the property raised an AttributeError; call Incomplete.size.fget\(...\)"),
        (False, "weight", r"Incomplete.__init__ has to call super\(\).__init__\(\) first"),
        (True, "sise", "did you mean size"),
    ],
)
def test_hints_about_missing_attributes(complete, name, hint):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'\n  hint: {hint}"):
        getattr(Incomplete(complete), name)


def test_paths():
    net = Net()
    assert net.get_submodule("layers.1") is net.layers[1]
    assert net.get_parameter("tail.0.weight") is net.tail[0].weight
    assert net.get_buffer("mean") is net.mean
    net.set_submodule("tail.1", nn.Tanh())
    assert isinstance(net.tail[1], nn.Tanh)
    with pytest.raises(AttributeError, match="has no attribute `head`"):
        net.get_submodule("head")
    with pytest.raises(AttributeError, match="is not an nn.Parameter"):
        net.get_parameter("mean")


def test_parameter():
    data = rushlight.zeros(2)
    p = nn.Parameter(data)
    assert p.requires_grad
    assert p.is_leaf
    assert isinstance(p, rushlight.Tensor)
    data[0] = 5.0
    assert p.tolist() == [5, 0]  # one memory
    assert repr(p) == "Parameter containing:\ntensor([5., 0.], requires_grad=True)"
    assert type(p * 2) is rushlight.Tensor
    assert not nn.Parameter(rushlight.tensor([1]), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="floating point and complex"):
        nn.Parameter(rushlight.tensor([1]))
    assert nn.Parameter().shape == (0,)
    p.grad = rushlight.ones(2)
    for twin in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(twin) is nn.Parameter
        assert twin.tolist() == [5, 0]
        assert twin.requires_grad
        assert twin.grad is None


def test_a_write_to_the_memory_of_a_parameter_is_noticed():
    data = rushlight.ones(2)
    p = nn.Parameter(data)
    out = (p * p).sum()
    data.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


# -- saving and loading ----------------------------------------------------------------------------


def test_load_what_was_saved():
    a, b = Net(), Net()
    answer = b.load_state_dict(a.state_dict())
    assert repr(answer) == "<All keys matched successfully>"
    assert answer.missing_keys == []
    x = rushlight.ones(4, 2)
    assert b(x).tolist() == a(x).tolist()
    assert a.state_dict()["layers.0.weight"].data_ptr() == a.layers[0].weight.data_ptr()
    assert not a.state_dict()["layers.0.weight"].requires_grad
    assert a.state_dict(keep_vars=True)["layers.0.weight"] is a.layers[0].weight
    assert a.state_dict(prefix="x.")._metadata["x.tail.0"] == {"version": 1}


def test_what_does_not_fit_is_told_and_changes_nothing(oracle):
    def ask(lib):
        nn = lib.nn
        net = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), second=nn.Linear(3, 1)))
        state = net.state_dict()
        state["first.bias"] = lib.ones(4)
        state["extra"] = lib.ones(1)
        state["first.extra.deep"] = lib.ones(1)
        state["first.weight"] = lib.full((3, 2), 7.0)
        del state["second.bias"]
        with pytest.raises(RuntimeError) as caught:
            net.load_state_dict(state)
        return str(caught.value).split("\n  at:")[0], net.first.weight

    theirs = oracle(lambda torch: ask(torch)[0])
    ours, weight = ask(rushlight)
    assert ours == theirs
    assert not (weight == 7).any()


def test_not_strict():
    net = nn.Linear(2, 2)
    answer = net.load_state_dict({"weight": rushlight.ones(2, 2), "other": rushlight.ones(1)}, strict=False)
    assert answer == (["bias"], ["other"])
    assert repr(answer) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['other'])"
    assert (net.weight == 1).all()
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([])


def test_assign():
    net = nn.Linear(2, 2)
    weight = rushlight.ones(2, 2, dtype=rushlight.float64)
    net.load_state_dict({"weight": weight, "bias": rushlight.ones(2)}, assign=True)
    assert net.weight.dtype is rushlight.float64
    assert isinstance(net.weight, nn.Parameter)
    assert net.weight.data_ptr() == weight.data_ptr()


def test_extra_state():
    class Counting(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    a, b = nn.Sequential(Counting()), nn.Sequential(Counting())
    a[0].count = 5
    assert list(a.state_dict()) == ["0._extra_state"]
    b.load_state_dict(a.state_dict())
    assert b[0].count == 5
    with pytest.raises(RuntimeError, match="_extra_state"):
        b.load_state_dict({})


def test_a_state_of_another_form():
    class Doubled(nn.Linear):
        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "weight"] = destination[prefix + "weight"] * 2

        def _load_from_state_dict(self, state_dict, prefix, *args):
            state_dict[prefix + "weight"] = state_dict[prefix + "weight"] / 2
            super()._load_from_state_dict(state_dict, prefix, *args)

    a, b = nn.Sequential(Doubled(2, 2)), nn.Sequential(Doubled(2, 2))
    b.load_state_dict(a.state_dict())
    assert b[0].weight.tolist() == a[0].weight.tolist()


def test_hooks_of_saving_and_loading():
    net, seen = nn.Sequential(nn.Linear(1, 1)), []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append("before saving"))
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: state.update(more=rushlight.ones(1)))
    net[0].register_load_state_dict_pre_hook(lambda m, state, prefix, *rest: seen.append((type(m).__name__, prefix)))
    handle = net.register_load_state_dict_post_hook(lambda m, keys: keys.unexpected_keys.clear())
    state = net.state_dict()
    assert "more" in state
    net.load_state_dict(state)  # the last hook has taken the complaint away
    handle.remove()
    with pytest.raises(RuntimeError, match="Unexpected key"):
        net.load_state_dict(state)
    assert seen == ["before saving", ("Linear", "0."), ("Linear", "0.")]


def test_batch_norm_from_before_batches_were_counted():
    bn = nn.BatchNorm1d(2)
    old = {key: value for key, value in bn.state_dict().items() if key != "num_batches_tracked"}
    bn.load_state_dict(old)
    state = bn.state_dict()
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        bn.load_state_dict(state)


def test_copies_are_their_own():
    net = Net()
    net(rushlight.ones(1, 2)).backward()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert list(twin.state_dict()) == NAMES
        assert twin.tail[0].weight is not net.tail[0].weight
        assert twin.layers[0].weight.tolist() == net.layers[0].weight.tolist()
        assert all(p.grad is None for p in twin.parameters())


# -- changing --------------------------------------------------------------------------------------


def test_conversion_keeps_the_parameters_themselves():
    net = Net()
    weight = net.layers[0].weight
    net(rushlight.ones(1, 2)).backward()
    net.register_buffer("count", rushlight.tensor(3))
    assert net.double() is net
    assert net.layers[0].weight is weight
    assert weight.dtype is rushlight.float64
    assert weight.grad.dtype is rushlight.float64
    assert net.mean.dtype is rushlight.float64
    assert net.count.dtype is rushlight.int64
    net(rushlight.ones(1, 2, dtype=rushlight.float64)).sum().backward()
    for change, dtype in (
        (net.float, "float32"),
        (net.half, "float16"),
        (net.bfloat16, "bfloat16"),
        (lambda: net.to(rushlight.float64), "float64"),
        (lambda: net.to("cpu"), "float64"),
        (lambda: net.to(rushlight.ones(1)), "float32"),
        (net.cpu, "float32"),
    ):
        change()
        assert str(weight.dtype) == f"torch.{dtype}"
        assert weight.requires_grad
    with pytest.raises(TypeError, match="only accepts floating point or complex"):
        net.to(rushlight.int64)
    with pytest.raises(RuntimeError, match="CUDA"):
        net.cuda()


def test_modes_gradients_and_apply():
    net = Net()
    assert net.training
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    net.train()
    assert all(m.training for m in net.modules())
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)
    net(rushlight.ones(1, 2)).backward()
    net.zero_grad(set_to_none=False)
    assert all((p.grad == 0).all() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net.requires_grad_(False)
    assert not net(rushlight.ones(1, 2)).requires_grad
    order = []
    net.apply(lambda m: order.append(type(m).__name__))
    assert order == ["Linear", "Linear", "ModuleList", "Linear", "ReLU", "Sequential", "Net"]


# -- hooks -----------------------------------------------------------------------------------------


def test_forward_hooks():
    m, seen = nn.Linear(2, 2), []
    plus = m.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    twice = m.register_forward_hook(lambda mod, args, out: out * 2)
    m.register_forward_hook(lambda mod, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    first = m.register_forward_hook(lambda mod, args, out: seen.append("first"), prepend=True)
    x = rushlight.ones(1, 2)
    np.testing.assert_allclose(m(x).detach().numpy(), (F.linear(x + 1, m.weight, m.bias) * 2).detach().numpy())
    assert seen == ["first", {}]
    for handle in (plus, twice, first):
        handle.remove()
    assert m(x).tolist() == F.linear(x, m.weight, m.bias).tolist()


def test_hooks_with_keywords_and_errors():
    class Scaled(nn.Module):
        def forward(self, x, factor=1):
            if factor == 0:
                raise ValueError("no")
            return x * factor

    m, seen = Scaled(), []
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"factor": kwargs["factor"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)
    assert m(rushlight.ones(1), factor=2).item() == 3
    with pytest.raises(ValueError, match="no"):
        m(rushlight.ones(1), factor=-1)
    assert seen[1] is None
    m.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        m(rushlight.ones(1), factor=2)


def test_backward_hooks_see_what_goes_through_the_module_alone():
    m, seen = nn.Linear(2, 1, bias=False), []
    m.register_full_backward_pre_hook(lambda mod, grads: seen.append([g.tolist() for g in grads]))
    m.register_full_backward_hook(lambda mod, inside, outside: seen.append((inside[0].tolist(), outside[0].tolist())))
    x = rushlight.ones(1, 2, requires_grad=True)
    y = x * 1
    (m(y) * 3 + y.sum()).sum().backward()
    w = m.weight.tolist()[0]
    assert seen == [[[[3.0]]], ([[pytest.approx(3 * v) for v in w]], [[3.0]])]
    np.testing.assert_allclose(x.grad.numpy(), [[3 * v + 1 for v in w]], rtol=1e-6)


def test_backward_hooks_may_replace_gradients():
    m = nn.Linear(2, 1)
    m.register_full_backward_hook(lambda mod, inside, outside: (inside[0] * 0 + 7,))
    x = rushlight.ones(1, 2, requires_grad=True)
    m(x).backward()
    assert x.grad.tolist() == [[7, 7]]
    quiet = nn.Linear(2, 1)  # no gradient goes to the input: called all the same
    calls = []
    quiet.register_full_backward_hook(lambda mod, inside, outside: calls.append(inside))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        quiet(rushlight.ones(1, 2)).backward()
    assert calls == [(None,)]


def test_backward_hooks_of_several_outputs():
    class Split(nn.Module):
        def forward(self, x):
            return x * 2, x * 3

    m, seen = Split(), []
    m.register_full_backward_hook(lambda mod, inside, outside: seen.append([g.item() for g in (*inside, *outside)]))
    x = rushlight.ones(1, requires_grad=True)
    a, b = m(x)
    (a + 10 * b).sum().backward()
    assert seen == [[32.0, 1.0, 10.0]]


def test_hooks_everywhere():
    from rushlight.nn import hooks

    seen = []
    handle = hooks.register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__))
    nn.Sequential(nn.ReLU())(rushlight.ones(1))
    handle.remove()
    nn.ReLU()(rushlight.ones(1))
    assert seen == ["ReLU", "Sequential"]


# -- containers ------------------------------------------------------------------------------------


def test_sequential_is_a_list():
    s = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    assert len(s) == 3
    assert isinstance(s[-1], nn.Linear)
    assert list(s)[1] is s[1]
    assert list(s[1:]._modules) == ["1", "2"]
    s[1] = nn.Tanh()
    s.append(nn.Identity()).extend([nn.GELU()])
    assert isinstance(s.pop(4), nn.GELU)
    s.insert(0, nn.Flatten())
    del s[-1]
    assert [type(m).__name__ for m in s] == ["Flatten", "Linear", "Tanh", "Linear"]
    assert len(s + s) == 8
    assert len(s * 2) == 8
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert named.a is named[0]
    with pytest.raises(IndexError):
        s[9]
    with pytest.raises(TypeError, match="is not a Module subclass"):
        nn.Sequential(3)
    with pytest.raises(ValueError, match="add operator supports only"):
        s + [nn.ReLU()]


def test_module_list_and_dict():
    m = nn.ModuleList(nn.Linear(n, n) for n in (1, 2, 3))
    m.insert(1, nn.ReLU())
    m += [nn.Tanh()]
    assert [type(x).__name__ for x in m[1:3]] == ["ReLU", "Linear"]
    assert isinstance(m[1:3], nn.ModuleList)
    del m[0]
    assert list(m._modules) == ["0", "1", "2", "3"]
    with pytest.raises(NotImplementedError, match="missing the required"):
        m(1)
    d = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Linear(1, 1)})
    d.update([("c", nn.Tanh())])
    assert list(d) == ["b", "a", "c"]
    assert "a" in d
    assert len(d) == 3
    assert isinstance(d.pop("c"), nn.Tanh)
    assert [name for name, _ in d.named_parameters()] == ["a.weight", "a.bias"]


def test_parameter_list_and_dict():
    p = nn.ParameterList([rushlight.ones(2), nn.Parameter(rushlight.zeros(1)), "kept"])
    assert isinstance(p[0], nn.Parameter)
    assert p[-1] == "kept"
    assert len(p[:2]) == 2
    p.append(rushlight.ones(1))
    p[1] = rushlight.ones(3)
    assert [name for name, _ in p.named_parameters()] == ["0", "1", "3"]
    d = nn.ParameterDict({"b": rushlight.ones(1), "a": rushlight.ones(2)})
    assert list(d) == ["a", "b"]
    assert d.setdefault("c", 5) == 5
    assert d.get("z") is None
    assert d.popitem() == ("c", 5)
    assert list(d | {"n": 1}) == ["a", "b", "n"]
    del d["a"]
    assert [name for name, _ in d.named_parameters()] == ["b"]
    with pytest.raises(TypeError, match="not a string"):
        d[1] = 2


# -- text and first values -------------------------------------------------------------------------

SHOWN = [
    "Linear(2, 3)",
    "Bilinear(2, 3, 4, bias=False)",
    "Identity(3)",
    "Flatten()",
    "Unflatten(1, (2, 3))",
    "Conv2d(4, 4, (3, 2), stride=2, padding=1, dilation=2, groups=2, bias=False, padding_mode='circular')",
    "Conv1d(3, 4, 3, padding='same')",
    "ConvTranspose2d(3, 4, 3, 2, 1, 1)",
    "BatchNorm2d(3)",
    "InstanceNorm1d(3)",
    "LayerNorm((2, 3), bias=False)",
    "GroupNorm(1, 3)",
    "RMSNorm(3)",
    "LocalResponseNorm(2)",
    "Dropout(.2)",
    "AlphaDropout()",
    "Embedding(3, 4, padding_idx=-1, max_norm=1.)",
    "EmbeddingBag(3, 4, max_norm=1., mode='sum')",
    "MaxPool2d((2, 3), 1, 1, 1, True, True)",
    "AvgPool1d(2)",
    "AvgPool2d(2)",
    "AdaptiveAvgPool2d((1, None))",
    "AdaptiveMaxPool1d(2)",
    "LPPool2d(2, 3)",
    "MaxUnpool2d(2)",
    "ReLU()",
    "ReLU(True)",
    "ReLU6(True)",
    "ELU(1., True)",
    "SELU()",
    "GELU()",
    "LeakyReLU(.1, True)",
    "Hardtanh(-2, 2, True)",
    "Hardsigmoid(True)",
    "Hardshrink()",
    "Softplus()",
    "Softmax(1)",
    "Softmax2d()",
    "Threshold(1, 2, True)",
    "PReLU()",
    "RReLU(inplace=True)",
    "GLU()",
    "SiLU(True)",
    "Mish()",
    "Tanh()",
    "CrossEntropyLoss()",
    "HuberLoss()",
    "PixelShuffle(2)",
    "Upsample(scale_factor=2)",
    "Upsample(3, mode='bilinear')",
    "UpsamplingNearest2d(scale_factor=2)",
    "ZeroPad2d(1)",
    "ReflectionPad2d((1, 2, 3, 4))",
    "ConstantPad1d(1, .5)",
    "CosineSimilarity()",
    "PairwiseDistance()",
    "Fold((3, 3), 2)",
    "Unfold(2)",
    "LinearCrossEntropyLoss(3, 4)",
    "TripletMarginLoss()",
]


def test_shown_as_in_torch(oracle):
    def texts(lib):
        nn = lib.nn
        made = [repr(eval(f"nn.{text}", {"nn": nn})) for text in SHOWN]
        inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        three = nn.ModuleList([nn.ReLU() for _ in range(3)])
        return [
            *made,
            repr(nn.Sequential(inner, three, nn.ModuleDict({"a": inner}))),
            repr(nn.ModuleList([nn.ReLU(), inner, nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Tanh()])),
            repr(nn.ParameterList([lib.ones(2, 3), 4])),
            repr(nn.ParameterDict({"x": lib.ones(2), "y": 1})),
            repr(nn.Sequential()),
            repr(nn.Module()),
        ]

    assert texts(rushlight) == oracle(texts)


FRESH = [
    "Linear(5, 4)",
    "Linear(5, 4, bias=False, dtype={}.float64)",
    "Bilinear(2, 3, 2)",
    "Conv1d(2, 3, 2)",
    "Conv2d(2, 4, 3, groups=2)",
    "ConvTranspose2d(2, 3, 2)",
    "Conv3d(1, 2, 2)",
    "Embedding(4, 3, padding_idx=1)",
    "EmbeddingBag(4, 3)",
    "BatchNorm1d(2)",
    "LayerNorm(3)",
    "GroupNorm(1, 2)",
    "PReLU(2)",
    "RMSNorm(3)",
]


@pytest.mark.parametrize("text", FRESH)
def test_first_values_are_torchs_to_the_bit(text, oracle):
    def ask(lib):
        lib.manual_seed(7)
        module = eval("nn." + text.format("lib"), {"nn": lib.nn, "lib": lib})
        return [*module.state_dict().values(), lib.rand(1)]

    for ours, theirs in zip(ask(rushlight), oracle(ask)):
        assert ours.numpy().dtype == theirs.dtype
        assert ours.numpy().tolist() == theirs.tolist()


INIT = {
    "uniform_": lambda init, t: init.uniform_(t, -1, 2),
    "normal_": lambda init, t: init.normal_(t, 1, 2),
    "constant_": lambda init, t: init.constant_(t, 3),
    "ones_": lambda init, t: init.ones_(t),
    "zeros_": lambda init, t: init.zeros_(t),
    "eye_": lambda init, t: init.eye_(t),
    "xavier_uniform_": lambda init, t: init.xavier_uniform_(t, 2.0),
    "xavier_normal_": lambda init, t: init.xavier_normal_(t),
    "kaiming_uniform_": lambda init, t: init.kaiming_uniform_(t, nonlinearity="relu"),
    "kaiming_normal_": lambda init, t: init.kaiming_normal_(t, 0.1, mode="fan_out"),
    "trunc_normal_": lambda init, t: init.trunc_normal_(t, 0.5, 1.5, -1, 1),
    "sparse_": lambda init, t: init.sparse_(t, 0.4),
    "trunc_normal_ far": lambda init, t: init.trunc_normal_(t, 0, 1, 1.0, 3.0),
}


@pytest.mark.parametrize("name", INIT)
def test_init_is_torchs_to_the_bit(name, oracle):
    def ask(lib):
        lib.manual_seed(11)
        t = lib.empty(5, 6)
        assert INIT[name](lib.nn.init, t) is t
        return [t, lib.rand(1)]

    for ours, theirs in zip(ask(rushlight), oracle(ask)):
        assert ours.tolist() == theirs.tolist()


def test_orthogonal_and_dirac(oracle):
    def ask(lib):
        lib.manual_seed(1)
        return [
            lib.nn.init.orthogonal_(lib.empty(3, 5)),
            lib.nn.init.orthogonal_(lib.empty(5, 3), 2.0),
            lib.nn.init.dirac_(lib.empty(4, 2, 3, 3), 2),
            lib.rand(1),
        ]

    for ours, theirs in zip(ask(rushlight), oracle(ask)):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=2e-6)
    q = nn.init.orthogonal_(rushlight.empty(3, 5))
    np.testing.assert_allclose((q @ q.T).numpy(), np.eye(3), atol=1e-6)


def test_gains():
    gain = nn.init.calculate_gain
    assert (gain("relu"), gain("tanh"), gain("leaky_relu", 1)) == (math.sqrt(2), 5 / 3, 1.0)
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        gain("step")
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(rushlight.empty(3))
    p = nn.Parameter(rushlight.empty(2, 2))
    assert nn.init.ones_(p) is p
    assert p.requires_grad
    assert p.is_leaf


# -- modules at work -------------------------------------------------------------------------------


def test_norm_layers():
    bn = nn.BatchNorm1d(1)
    out = bn(rushlight.tensor([[1.0], [3.0]]))
    np.testing.assert_allclose(out.detach().numpy(), [[-0.999995], [0.999995]], rtol=1e-6)
    assert bn.num_batches_tracked.item() == 1
    np.testing.assert_allclose([bn.running_mean.item(), bn.running_var.item()], [0.2, 1.1], rtol=1e-6)
    bn.eval()
    np.testing.assert_allclose(bn(rushlight.ones(1, 1)).item(), 0.8 / math.sqrt(1.1 + 1e-5), rtol=1e-6)
    average = nn.BatchNorm1d(1, momentum=None)
    for value in (1.0, 3.0):
        average(rushlight.tensor([[value], [value + 2]]))
    assert average.running_mean.item() == 3.0  # the plain average of 2 and 4
    with pytest.raises(ValueError, match="expected 4D input"):
        nn.BatchNorm2d(2)(rushlight.ones(2, 2))


def test_dropout_only_in_training():
    d = nn.Dropout(0.5)
    rushlight.manual_seed(123)
    first = d(rushlight.ones(2, 6)).tolist()
    assert first == [[2, 2, 0, 2, 2, 0], [0, 0, 0, 2, 0, 2]]  # torch's, on all but Intel CPUs
    d.eval()
    assert d(rushlight.ones(3)).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(2)


def test_embedding_trains():
    e = nn.Embedding(4, 2)
    e(rushlight.tensor([1, 1, 3])).sum().backward()
    assert e.weight.grad.tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]
    frozen = nn.Embedding.from_pretrained(rushlight.ones(2, 3))
    assert not frozen.weight.requires_grad
    assert nn.Embedding(3, 2, padding_idx=-1).weight[2].tolist() == [0, 0]


def test_conv_transpose_of_a_given_size():
    m = nn.ConvTranspose2d(1, 1, 3, stride=2)
    assert m(rushlight.ones(1, 1, 4, 4), output_size=(10, 9)).shape == (1, 1, 10, 9)
    with pytest.raises(ValueError, match="valid sizes range"):
        m(rushlight.ones(1, 1, 4, 4), output_size=(20, 9))


def test_clipping_gradients(oracle):
    def ask(lib):
        grads = [lib.tensor([3.0, 4.0]), lib.tensor([[12.0]])]
        ps = [lib.nn.Parameter(lib.zeros_like(g)) for g in grads]
        for p, g in zip(ps, grads):
            p.grad = g
        utils = lib.nn.utils
        total = utils.clip_grad_norm_(ps, 2.0)
        large = utils.clip_grad_norm_(iter(ps), 2.0, norm_type=math.inf)
        utils.clip_grad_value_(ps, 0.5)
        vector = utils.parameters_to_vector(ps)
        utils.vector_to_parameters(vector + 1, ps)
        return [total, large, *[p.grad for p in ps], *ps]

    for ours, theirs in zip(ask(rushlight), oracle(ask)):
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-6)
    p = nn.Parameter(rushlight.zeros(1))
    p.grad = rushlight.tensor([math.nan])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_([nn.Parameter(rushlight.zeros(1))], 1.0).item() == 0
    p.grad = rushlight.tensor([math.inf])
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == math.inf
    assert math.isnan(p.grad.item())  # inf / inf


def test_training_makes_no_reference_cycles(uncollected):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4, 2))
    x, y = rushlight.ones(5, 3), rushlight.tensor([0, 1, 0, 1, 0])
    loss = nn.CrossEntropyLoss()
    loss(net(x), y).backward()
    gc.collect()
    for _ in range(3):
        net.zero_grad()
        loss(net(x), y).backward()
    assert gc.collect() == 0


def test_a_call_without_hooks_goes_straight_to_forward():
    """No argument parsing, no hook loops: at most so many calls of Python functions between `m(x)` and its forward."""
    import sys

    calls = []
    m = nn.Identity()
    sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_name) if event == "call" else None)
    m(1)
    sys.setprofile(None)
    assert calls == ["__call__", "forward"]


@pytest.mark.parametrize("dtype", [rushlight.float32, rushlight.float64])
def test_running_statistics_follow_in_their_own_memory(dtype):
    norm, twin = (
        rushlight.nn.BatchNorm1d(3, momentum=0.3).to(dtype),
        rushlight.nn.BatchNorm1d(3, momentum=0.3).to(dtype),
    )
    held, view, before = norm.running_var.detach(), norm.running_mean[1:], norm.running_mean._version
    for _ in range(3):
        x = rushlight.randn(5, 3, dtype=dtype)
        norm(x)
        mean, var = x.mean(0), x.var(0)
        with rushlight.no_grad():
            twin.running_mean.mul_(0.7).add_(0.3 * mean)
            twin.running_var.mul_(0.7).add_(0.3 * var)
    assert rushlight.allclose(norm.running_mean, twin.running_mean)
    assert rushlight.allclose(norm.running_var, twin.running_var)
    assert rushlight.equal(held, norm.running_var)
    assert rushlight.equal(view, norm.running_mean[1:])
    assert norm.running_mean._version == before + 3
    assert norm.running_mean.dtype is dtype


@pytest.mark.origin("courses")
def test_where_to_is_told_by_cpu():
    """GPyTorch's search of neighbours: its `to` calls its `cpu`, which calls the module's."""

    class Index(nn.Module):
        def cpu(self):
            super().cpu()
            self.place = "cpu"
            return self

        def to(self, device):
            return self.cpu()

    index = Index()
    assert index.to("cpu") is index
    assert index.place == "cpu"
    with pytest.raises(NotImplementedError, match="to_empty"):
        nn.Linear(2, 2, device="meta").cpu()


program = Programs()


@program.found_in("libraries")
def prefixes_of_state_dicts_are_taken_away(torch):
    inner = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1))
    outer = torch.nn.Module()
    outer.module = inner
    state = outer.state_dict()
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    inner.load_state_dict(state)
    return [list(state), [list(item) for item in state._metadata.items()]]


@program.found_in("suites")
def modules_are_laid_out(torch):
    m = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(2, 2))
    m = m.to(torch.float64, memory_format=torch.channels_last)
    m(torch.rand(2, 3, 4, 4, dtype=torch.float64)).sum().backward()
    return [
        list(m[0].weight.stride()),
        list(m[1].weight.stride()),
        m[0].weight.grad.shape == m[0].weight.shape,
        outcome(torch.nn.Conv3d(1, 1, 3).to, memory_format=torch.channels_last),
    ]


@pytest.mark.origin("suites")
@pytest.mark.parametrize("layer", [Linear(3, 4), rushlight.nn.Conv1d(3, 4, 1), rushlight.nn.LayerNorm(3)])
def test_a_layers_forward_takes_any_object_with_its_attributes(layer):
    class Scope:
        pass

    scope, x = Scope(), rushlight.rand(3, 3)
    scope.__dict__.update({key: v for key, v in vars(layer).items() if not key.startswith("_")}, **layer._parameters)
    if hasattr(layer, "_conv_forward"):
        scope._conv_forward = layer._conv_forward
    assert rushlight.equal(type(layer).forward(scope, x), layer(x))


@program.found_in("torch tests")
def the_order_of_where_a_module_goes(torch):
    cpu, double, like = torch.device("cpu"), torch.float64, torch.zeros(1)
    orders = [
        (cpu, True),
        (None, True),
        ("cpu", double, True),
        (double, True),
        (like, True),
        (like, True, True),
        (double, cpu),
        (like, double),
        (double, True, True),
        (cpu, cpu),
        (None,),
        (),
        (None, double),
        (None, None, True),
        (torch.long,),
    ]

    def where(*args, **kwargs):
        return str(torch.nn.Linear(1, 1).to(*args, **kwargs).weight.dtype)

    return [
        *[outcome(where, *order) for order in orders],
        *[outcome(where, "cpu", copy=copy) for copy in (True, False)],
    ]


@pytest.mark.origin("torch tests")
def test_the_names_of_all_modules(torch):
    ours, theirs = set(rushlight.nn.modules.__all__), set(torch.nn.modules.__all__)
    assert ours <= theirs
    assert theirs - ours <= {"Container", "LinearCrossEntropyOptions"}  # an old name, and a new one's options
    found = {}
    exec("from rushlight.nn.modules import *", found)
    assert found["Conv2d"] is rushlight.nn.Conv2d


test_program = program.test()
