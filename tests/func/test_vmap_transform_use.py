"""vmap as it is used: dims and trees, other transforms, modules, in-place writes, random numbers, and what goes
wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from rushlight.nn import functional as F


@pytest.fixture
def x():
    return torch.tensor(np.random.default_rng(0).standard_normal((5, 3)))


def equal(a, b, tolerance=1e-12):
    return a.shape == b.shape and a.dtype == b.dtype and bool((a - b).abs().max() <= tolerance)


def loop(f, *batches):
    return torch.stack([f(*rows) for rows in zip(*batches)])


# -- dims, trees, chunks ---------------------------------------------------------------------------


def test_a_sample_has_its_own_shape(x):
    seen = []
    vmap(lambda a: seen.append((a.shape, a.dim(), a.numel(), a.dtype, a.stride(), a.is_contiguous(), type(a))) or a)(x)
    assert seen == [((3,), 1, 3, torch.float64, (1,), True, torch.Tensor)]


def test_out_dims(x):
    assert equal(vmap(torch.sin, in_dims=1, out_dims=-1)(x), x.sin())
    a, (b,) = vmap(lambda a: (a, [a.sum()]), out_dims=(1, [0]))(x)
    assert equal(a, x.T)
    assert equal(b, x.sum(1))
    assert vmap(lambda a: (a, 7), out_dims=(0, None))(x)[1] == 7
    assert vmap(lambda a: torch.ones(2))(x).shape == (5, 2)  # shared by all: repeated


def test_trees_and_keywords(x):
    def f(d, k):
        return {"sum": d["a"] + d["b"][0], "product": (d["a"] * k,)}

    made = vmap(f, in_dims=({"a": 0, "b": [None]},), out_dims={"sum": 1, "product": (0,)})({"a": x, "b": [x[0]]}, k=x)
    assert equal(made["sum"], (x + x[0]).T)
    assert equal(made["product"][0], x[:, None] * x)  # samples share keyword arguments


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_chunks(x, size):
    seen = []
    made = vmap(lambda a: seen.append(1) or a.sin(), out_dims=1, chunk_size=size)(x)
    assert equal(made, x.sin().T)
    assert len(seen) == -(-5 // size)


def test_no_samples():
    assert vmap(lambda a: a.sin().sum())(torch.zeros(0, 3)).shape == (0,)


# -- with other transforms -------------------------------------------------------------------------


def test_weights_shared_by_all_have_a_gradient_for_each_sample(x):
    w = x[0]
    made = vmap(grad(lambda w, a: (w * a).sin().sum()), in_dims=(None, 0))(w, x)
    assert equal(made, x * (w * x).cos())
    assert not made.requires_grad


def test_gradients_go_through_vmap(x):
    """By backward, by func.grad, and through a gradient taken inside."""
    w = x[0]
    expected = (x * (w * x).cos()).sum(0)
    assert equal(grad(lambda w: vmap(lambda a: (w * a).sin().sum())(x).sum())(w), expected)
    leaf = w.clone().requires_grad_()
    vmap(lambda a: (leaf * a).sin().sum())(x).sum().backward()
    assert equal(leaf.grad, expected)
    second = grad(lambda w: vmap(grad(lambda a: (w * a).sin().sum()))(x).sum())(w)
    assert equal(second, ((w * x).cos() - w * x * (w * x).sin()).sum(0))


def test_a_gradient_inside_leaves_no_history(x):
    leaf = x[0].clone().requires_grad_()
    assert vmap(grad(lambda a: (leaf * a).sum()))(x).requires_grad
    assert not vmap(grad(lambda a: (leaf.detach() * a).sum()))(x).requires_grad


def test_higher_derivatives(x):
    t = x[:, 0].tanh()
    assert equal(vmap(grad(grad(torch.tanh)))(x[:, 0]), -2 * t * (1 - t * t))
    f = lambda a: (a.sin() * a.sum()).sum()
    assert equal(vmap(hessian(f))(x), loop(hessian(f), x))
    assert equal(vmap(jacrev(torch.outer))(x, x), vmap(jacfwd(torch.outer))(x, x))


def test_forward_mode(x):
    ones = torch.ones_like(x)
    assert equal(vmap(lambda a, t: jvp(torch.sin, (a,), (t,))[1])(x, ones), x.cos())
    assert equal(jvp(vmap(lambda a: a.sin().sum()), (x,), (ones,))[1], x.cos().sum(1))
    shared = vmap(lambda w, a: jvp(lambda w: (w * a).sum(), (w,), (a,))[1], in_dims=(None, 0))(x[0], x)
    assert equal(shared, (x * x).sum(1))


def test_vjp_of_several_vectors(x):
    _, pull = vjp(torch.sin, x[0])
    assert equal(vmap(pull)(torch.eye(3, dtype=torch.float64))[0], x[0].cos().diag())
    leaf = x[0].clone().requires_grad_()
    y = leaf.sin()
    assert equal(
        vmap(lambda v: torch.autograd.grad(y, leaf, v)[0])(torch.eye(3, dtype=torch.float64)), x[0].cos().diag()
    )


def test_compiled(x):
    f = vmap(grad(lambda a: (a.sin() * 2).sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = torch.compile(f)
        assert equal(compiled(x), f(x))
        assert equal(compiled(x + 1), f(x + 1))


# -- modules ---------------------------------------------------------------------------------------


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 4)), (3,)),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.ReLU(),
            nn.GroupNorm(2, 4),
            nn.MaxPool2d(2),
            nn.ConvTranspose2d(4, 2, 2, groups=2),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(2, 4),
        ),
        (2, 4, 4),
    ),
    "bag": (lambda: nn.Sequential(nn.Embedding(7, 3, padding_idx=1), nn.Flatten(), nn.Linear(9, 4)), None),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_each_sample(name, weighted):
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model = make().double()
    data = torch.randint(0, 7, (5, 3)) if shape is None else torch.randn(5, *shape, dtype=torch.float64)
    target, weight = torch.randint(0, 4, (5,)), torch.tensor([1.0, 2.0, 3.0, 4.0]).double() if weighted else None
    parameters = {k: p.detach() for k, p in model.named_parameters()}

    def loss(p, a, t):
        return F.cross_entropy(functional_call(model, p, (a.unsqueeze(0),)), t.unsqueeze(0), weight)

    made = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, data, target)
    each = [grad(loss)(parameters, a, t) for a, t in zip(data, target)]
    for k in parameters:
        assert equal(made[k], torch.stack([g[k] for g in each]), 1e-10), k


@pytest.mark.parametrize("name", MODELS)
def test_an_ensemble_of_models(name):
    make, shape = MODELS[name]
    torch.manual_seed(0)
    models = [make().double() for _ in range(3)]
    data = torch.randint(0, 7, (5, 3)) if shape is None else torch.randn(5, *shape, dtype=torch.float64)
    parameters, buffers = torch.func.stack_module_state(models)
    made = vmap(lambda p, b, a: functional_call(models[0], (p, b), (a,)), in_dims=(0, 0, None))(
        parameters, buffers, data
    )
    assert equal(made, torch.stack([m(data) for m in models]), 1e-10)
    made.sum().backward()
    for k, p in parameters.items():
        for i, m in enumerate(models):
            m.zero_grad()
            m(data).sum().backward()
            assert equal(p.grad[i], dict(m.named_parameters())[k].grad, 1e-9), k


def test_a_transformer_layer():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0).double()
    data = torch.randn(3, 2, 5, 4, dtype=torch.float64)
    assert equal(vmap(layer)(data), torch.stack([layer(a) for a in data]), 1e-10)


# -- writes ----------------------------------------------------------------------------------------


def write_here_and_there(a):
    b = a.clone()
    b[0] = 5.0
    b[1:].mul_(2)
    b += a
    b[b.argmax()] = 0.0
    return b


def test_in_place(x):
    assert equal(vmap(write_here_and_there)(x), loop(write_here_and_there, x))
    f = lambda a: (write_here_and_there(a) ** 2).sum()
    assert equal(vmap(grad(f))(x), loop(grad(f), x))


def test_writes_reach_what_is_mapped_over(x):
    y = x.clone()
    vmap(lambda a: a.mul_(2))(y)
    assert equal(y, x * 2)
    vmap(lambda a: a.zero_(), in_dims=1)(y)
    assert not y.any()


def test_gradients_through_writes_into_what_is_mapped_over(x):
    leaf = x.clone().requires_grad_()
    y = leaf * 1
    vmap(lambda a: a.mul_(a))(y)
    y.sum().backward()
    assert equal(leaf.grad, 2 * x)


def test_new_tensors_are_batched(x):
    def f(a):
        z = a.new_zeros(4)
        z[1] = a.sum()
        z.index_add_(0, torch.tensor([0, 2]), a[:2])
        return z + torch.zeros_like(z).copy_(z)

    assert equal(vmap(f)(x), loop(f, x))


def test_index_of_each_sample(x):
    i = torch.tensor([0, 1, 2, 0, 1])
    assert equal(vmap(lambda a, i: a[i])(x, i), x[torch.arange(5), i])
    assert equal(vmap(lambda i: x[i])(i), x[i])
    pairs = torch.stack([i, 2 - i], 1)
    assert equal(vmap(lambda a, p: a[None, p])(x, pairs), x.gather(1, pairs)[:, None])


# -- random numbers --------------------------------------------------------------------------------

DRAWS = {
    "randn": lambda a: torch.randn(2),
    "dropout": F.dropout,
    "constant": lambda a: F.dropout(torch.ones(3)),
    "randperm": lambda a: torch.randperm(4),
    "rand_like": torch.rand_like,
    "normal_": lambda a: a.clone().normal_(),
    "bernoulli_": lambda a: a.clone().bernoulli_(0.5),
    "randint": lambda a: torch.randint(0, 100, (3,)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_randomness(name, x):
    draw = DRAWS[name]
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(draw)(x)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        same = vmap(draw, randomness="same")(torch.ones(20, 3))
        different = vmap(draw, randomness="different")(torch.ones(20, 3))
    assert (same == same[0]).all()
    assert len(np.unique(different.numpy(), axis=0)) > 1


def test_the_same_numbers_in_every_chunk(x):
    made = vmap(lambda a: torch.randn(2), randomness="same", chunk_size=2)(x)
    assert (made == made[0]).all()


def test_random_numbers_are_torchs(oracle, x):
    def draws(torch, vmap):
        found = []
        for randomness in ("same", "different"):
            torch.manual_seed(0)
            for f in (
                lambda a: torch.randn(2),
                lambda a: torch.nn.functional.dropout(a),
                lambda a: torch.randperm(3),
                lambda a: torch.nn.functional.dropout(torch.ones(3)),
                torch.rand_like,
            ):
                found.append(vmap(f, randomness=randomness)(torch.arange(6.0).reshape(2, 3)).tolist())
        torch.manual_seed(0)
        nested = vmap(vmap(lambda a: torch.randn(()), randomness="same"), randomness="different")
        found.append(nested(torch.ones(2, 3)).tolist())
        return found

    expected = oracle(lambda torch: draws(torch, torch.func.vmap))
    assert draws(torch, vmap) == expected


# -- what goes wrong -------------------------------------------------------------------------------

WRONG = {
    "in_dims of another kind": (
        ValueError,
        r"expected `in_dims` to be int or a \(potentially nested\) tuple matching the "
        "structure of inputs, got: <class 'float'>",
        lambda x: vmap(torch.sin, in_dims=1.5)(x),
    ),
    "no inputs": (ValueError, "got no inputs", lambda x: vmap(torch.sin)()),
    "in_dims of another form": (
        ValueError,
        "in_dims is not compatible with the structure of `inputs`",
        lambda x: vmap(torch.sin, in_dims=(0, 0))(x),
    ),
    "in_dim that is no number": (
        ValueError,
        "in_dim must be either an integer dimension or None",
        lambda x: vmap(torch.sin, in_dims=("a",))(x),
    ),
    "no tensor": (ValueError, "We cannot vmap over non-Tensor arguments", lambda x: vmap(lambda a: a)(2.0)),
    "no such dimension": (
        ValueError,
        "but that input is a Tensor of dimensionality 2 so expected in_dim to satisfy -2 <= in_dim < 2",
        lambda x: vmap(torch.sin, in_dims=2)(x),
    ),
    "nothing mapped": (ValueError, "in_dims|mapped over", lambda x: vmap(torch.sin, in_dims=(None,))(x)),
    "sizes": (
        ValueError,
        r"Expected all tensors to have the same size in the mapped dimension, got sizes \[5, 2\]",
        lambda x: vmap(torch.add)(x, x[:2]),
    ),
    "results that are no tensors": (
        ValueError,
        "must only return Tensors, got type <class 'float'>",
        lambda x: vmap(lambda a: 1.0)(x),
    ),
    "out_dims of another kind": (
        ValueError,
        "`out_dims` must be an int, None or a python collection of ints",
        lambda x: vmap(torch.sin, out_dims="a")(x),
    ),
    "out_dims of another form": (
        ValueError,
        "out_dims is not compatible with the structure of `outputs`",
        lambda x: vmap(torch.sin, out_dims=(0, 1))(x),
    ),
    "no such out_dim": (IndexError, "Dimension out of range", lambda x: vmap(torch.sin, out_dims=3)(x)),
    "out_dims None": (
        ValueError,
        "can not return a BatchedTensor when out_dim is None",
        lambda x: vmap(torch.sin, out_dims=None)(x),
    ),
    "randomness": (
        RuntimeError,
        "Only allowed values for randomness",
        lambda x: vmap(torch.sin, randomness="maybe")(x),
    ),
    "chunk_size": (
        ValueError,
        "chunk_size should be None or greater than 0",
        lambda x: vmap(torch.sin, chunk_size=0)(x),
    ),
    "if": (RuntimeError, "data-dependent control flow", lambda x: vmap(lambda a: a if a.sum() > 0 else -a)(x)),
    "item": (RuntimeError, r"calling .item\(\) on a Tensor", lambda x: vmap(lambda a: a * a.sum().item())(x)),
    "float": (RuntimeError, r"calling .item\(\) on a Tensor", lambda x: vmap(lambda a: a * float(a.sum()))(x)),
    "tolist": (RuntimeError, "vmap", lambda x: vmap(lambda a: a.tolist())(x)),
    "numpy": (RuntimeError, "Cannot access data pointer", lambda x: vmap(lambda a: a.numpy())(x)),
    "masks": (RuntimeError, "indexing with a boolean mask", lambda x: vmap(lambda a: a[a > 0])(x)),
    "nonzero": (RuntimeError, "dynamic shape", lambda x: vmap(torch.nonzero)(x)),
    "unique": (RuntimeError, "dynamic shape", lambda x: vmap(torch.unique)(x)),
    "write into what is not mapped": (
        RuntimeError,
        "inplace arithmetic.*is not possible",
        lambda x: vmap(lambda a: torch.zeros(3).add_(a))(x),
    ),
    "out=": (
        RuntimeError,
        "fallback path doesn't work on out=",
        lambda x: vmap(lambda a: torch.sin(a, out=torch.zeros(3)))(x),
    ),
    "shapes of samples": (RuntimeError, "size of tensor a", lambda x: vmap(lambda a: a + torch.ones(4))(x)),
    "dim of a sample": (IndexError, "Dimension out of range", lambda x: vmap(lambda a: a.sum(1))(x)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong(name, x):
    kind, words, call = WRONG[name]
    with pytest.raises(kind, match=words):
        call(x)


def test_a_tensor_that_has_escaped(x):
    leak = []
    vmap(lambda a: leak.append(a) or a)(x)
    with pytest.raises(RuntimeError, match="may have escaped from inside a function being vmapped"):
        leak[0] + 1
    assert repr(leak[0]).startswith("BatchedTensor(lvl=1, bdim=0, value=")


def test_the_loop_warns_once():
    from rushlight.func import batching

    batching.WARNED.discard("ctc_loss")
    batching.WARNED.discard("ctc")
    logits = torch.zeros(2, 4, 1, 3).log_softmax(-1)
    f = vmap(lambda a: F.ctc_loss(a, torch.tensor([[1]]), (4,), (1,)))
    with pytest.warns(UserWarning, match="performance drop because we have not yet implemented the batching rule"):
        f(logits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(logits)


def test_a_failed_call_leaves_no_level(x):
    with pytest.raises(RuntimeError):
        vmap(lambda a: a if a.sum() > 0 else -a)(x)
    assert torch.randn(2).shape == (2,)  # random ops draw again


# -- a user's Function -----------------------------------------------------------------------------


class Cubed(torch.autograd.Function):
    """x^3, with a gradient 10 times too large: so that one sees which is used."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, scale):
        return x**3 * scale, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g, h):
        x, scale = ctx.saved_tensors
        return 30 * x**2 * scale * g + h, (g * x**3).sum()


class Doubled(torch.autograd.Function):
    """2 x, with a rule for vmap."""

    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return 7 * g

    @staticmethod
    def vmap(info, in_dims, x):
        assert (info.batch_size, info.randomness, in_dims) == (5, "error", (0,))
        return Doubled.apply(x), 0


def test_a_function_with_a_generated_rule(x):
    """Gradients of samples, and through vmap: the user's, also where an argument is shared."""
    scale = torch.tensor(2.0, dtype=torch.float64)
    f = lambda a, s: Cubed.apply(a, s)[0].sum() + Cubed.apply(a, s)[1] * 0
    assert equal(vmap(f, in_dims=(0, None))(x, scale), (2 * x**3).sum(1))
    g, h = vmap(grad(f, (0, 1)), in_dims=(0, None))(x, scale)
    assert equal(g, 60 * x**2)
    assert equal(h, (x**3).sum(1))
    leaf, s = x.clone().requires_grad_(), scale.clone().requires_grad_()
    vmap(f, in_dims=(0, None))(leaf, s).sum().backward()
    assert equal(leaf.grad, 60 * x**2)
    assert equal(s.grad, (x**3).sum())
    assert equal(vmap(vmap(lambda a: Cubed.apply(a, scale)[0]))(x), 2 * x**3)
    twice = x.clone().requires_grad_()
    vmap(vmap(lambda a: Cubed.apply(a, scale)[0]))(twice).sum().backward()
    assert equal(twice.grad, 60 * x**2)


def test_a_function_with_its_own_rule(x):
    assert equal(vmap(Doubled.apply)(x), 2 * x)
    assert equal(vmap(grad(lambda a: Doubled.apply(a).sum()))(x), torch.full_like(x, 7))
    leaf = x.clone().requires_grad_()
    vmap(Doubled.apply)(leaf).sum().backward()
    assert equal(leaf.grad, torch.full_like(x, 7))


def test_a_function_without_a_rule(x):
    plain = type("Plain", (Doubled,), {"vmap": torch.autograd.Function.vmap})
    with pytest.raises(RuntimeError, match="You tried to vmap over Plain, but it does not have vmap support"):
        vmap(plain.apply)(x)
    old = type("Old", (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x)})
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        vmap(old.apply)(x)


def test_one_hot_of_each_sample():
    labels = torch.tensor([[2, 0], [1, 1], [0, 2]])
    ours = vmap(lambda x: F.one_hot(x, 3), in_dims=1)(labels)
    assert ours.tolist() == F.one_hot(labels.T, 3).tolist()
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        vmap(lambda x: F.one_hot(x, 2))(labels)
