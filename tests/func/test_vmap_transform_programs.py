"""Programs around vmap whose results torch knows: views of memory, many gradients at once, layouts of tangents."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.func import grad, jvp, vmap
from rushlight.nn import functional as F
from tests.support.programs import Programs, leaf, outcome

program = Programs()


# -- as_strided: the steps of a sample, behind that of the batch -----------------------------------


def grid(torch, *shape):
    return torch.arange(float(np.prod(shape)), dtype=torch.float64).reshape(shape)


@program
def strided_samples(torch):
    x, y = grid(torch, 3, 4), grid(torch, 2, 3, 4)

    def mapped(*args, **kwargs):
        return torch.func.vmap(lambda a: a.as_strided(*args), **kwargs)

    return [
        mapped((2, 2), (1, 2))(x),
        mapped((2, 2), (1, 1), 1)(x),
        mapped((2,), (3,), in_dims=1)(x.reshape(4, 3)),
        mapped((2,), (3,), 3, in_dims=1)(x.reshape(4, 3)),
        mapped((2, 2), (4, 1))(y[:, 1:]),
        mapped((2, 2), (4, 1), 4)(y[:, 1:]),
        mapped((2, 2), (4, 1), 14)(y[1:]),
        mapped((2,), (0,))(x[0]),
        mapped((0,), (1,))(x),
        mapped((2, 2), (1, 1))(x[0].expand(3, 4)),
        torch.func.vmap(lambda a: a.sum() + x.as_strided((2, 2), (1, 1)))(x),
    ]


@program
def strided_views_of_samples(torch):
    y = grid(torch, 2, 3, 4)
    vmap = torch.func.vmap
    return [
        vmap(lambda a: a[1:].as_strided((2, 2), (4, 1)))(y),
        vmap(lambda a: a[1:].as_strided((2, 2), (4, 1), 4))(y),
        vmap(lambda a: a.t().as_strided((4, 3), (1, 4)))(y),
        vmap(lambda a: (a * 2).as_strided((2,), (5,)))(y),
        vmap(vmap(lambda a: a.as_strided((2, 2), (1, 1))))(y),
        vmap(vmap(lambda a: a.as_strided((2, 2), (1, 1))), in_dims=1)(y),
    ]


@program
def strided_derivatives(torch):
    x, func = grid(torch, 3, 4), torch.func

    def f(a):
        return a.as_strided((2, 2), (1, 1)) ** 3

    w = x.clone().requires_grad_()
    (outside,) = torch.autograd.grad(func.vmap(f)(w).sum(), w)
    return [
        func.vmap(func.grad(lambda a: f(a).sum()))(x),
        func.vmap(func.jacrev(f))(x),
        func.vmap(func.jacfwd(f))(x),
        func.vmap(func.hessian(f))(x),
        outside,
        func.jvp(func.vmap(f), (x,), (x,))[1],
        func.vmap(lambda a: func.jvp(f, (a,), (a,))[1])(x),
    ]


@program
def strided_writes(torch):
    def scaled(a):
        b = a.clone()
        b.as_strided((2,), (2,)).mul_(10)
        return b

    x, func = grid(torch, 3, 4), torch.func
    return [func.vmap(scaled)(x), func.vmap(func.grad(lambda a: (scaled(a) ** 2).sum()))(x)]


@program
def strided_out_of_the_sample(torch):
    x = grid(torch, 3, 4)

    def ask(*args):
        try:
            torch.func.vmap(lambda a: a.as_strided(*args))(x[1:])
        except RuntimeError as error:
            return str(error).split("\n")[0]

    return [ask((2,), (1,), 7), ask((5,), (1,)), ask((2,), (1,), 0), ask((2,), (1,), -1)]


# -- autograd.grad(is_grads_batched=True) ----------------------------------------------------------


@program
def rows_of_gradients(torch):
    x, z = leaf(torch, 1.0, 2.0, 3.0), leaf(torch, 4.0, 5.0, 6.0)
    y, s, eye = x * x, (x * z).sum(), torch.eye(3, dtype=torch.float64)

    def ask(*args, **kwargs):
        return list(torch.autograd.grad(*args, is_grads_batched=True, retain_graph=True, **kwargs))

    return [
        ask(y, x, eye),
        ask([y, s], (x, z), [eye, eye[0]]),
        ask(y, (x, z), eye, allow_unused=True),
        ask(y, (x, z), eye, materialize_grads=True),
        outcome(ask, y, x, eye[0]),
        outcome(ask, y, (x, z), eye),
        outcome(ask, [y, s], (x, z), [eye, None]),
        outcome(ask, [y, s], (x, z), [eye, eye[0, :2]]),
        outcome(ask, y, (x, z), eye, allow_unused=False, materialize_grads=True),
    ]


@program
def rows_differentiate_again(torch):
    x, v = leaf(torch, 1.0, 2.0), torch.eye(2, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sin(), x, v, create_graph=True, is_grads_batched=True)
    return [g, list(torch.autograd.grad((g**2).sum(), (x, v)))]


@program
def rows_through_hooks_and_functions(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    x, seen = leaf(torch, 1.0, 2.0), []
    y = Cube.apply(x)
    y.register_hook(lambda g: seen.append(list(g.shape)) or 2 * g)
    return [list(torch.autograd.grad(y.exp(), x, torch.eye(2, dtype=torch.float64), is_grads_batched=True)), seen]


@program
def jacobians_at_once(torch):
    x, z = leaf(torch, 1.0, 2.0, 3.0).detach(), leaf(torch, 4.0, 5.0).detach()

    def f(a, b):
        return a * b.sum(), (a * a).sum().unsqueeze(0)

    return [
        [list(row) for row in torch.autograd.functional.jacobian(f, (x, z), vectorize=True)],
        [
            list(row)
            for row in torch.autograd.functional.hessian(lambda a, b: (a**3).sum() * b.prod(), (x, z), vectorize=True)
        ],
    ]


# -- tangents lie in memory as their tensors do ----------------------------------------------------


@program
def views_of_tangents_that_lie_otherwise(torch):
    x, t = grid(torch, 2, 3), grid(torch, 3, 2).t() + 1

    def written(a):
        b = a * 1
        b.as_strided((2,), (2,)).mul_(a.sum())
        return b

    def into_new(a):
        b = torch.zeros(3, 2, dtype=a.dtype).t()
        b.as_strided((2,), (3,)).copy_(a[0, 1:])
        return b

    functions = [
        lambda a: a.view(-1),
        lambda a: (a * 2).view(3, 2),
        lambda a: a.as_strided((2, 2), (2, 1)),
        written,
        into_new,
    ]
    return [
        list(torch.func.jvp(f, (a,), (b,)))
        for f in functions
        for a, b in ((x, t), (t.t().contiguous().t(), x))
        if f is not functions[0] and f is not functions[1] or a.is_contiguous()
    ]


test_program = program.test()


def test_is_grads_batched_is_the_loop():
    """Through layers, sorting and indexing, recorded or not; the node's rules run once for all rows."""
    rushlight.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 4)).double()
    x = rushlight.randn(3, 1, 6, 6, dtype=rushlight.float64, requires_grad=True)
    y = F.log_softmax(net(x), -1).sort(-1)[0][:, [0, 2, 2]]
    vs = rushlight.randn(5, 3, 3, dtype=rushlight.float64)
    inputs, runs = [x, *net.parameters()], []
    y.grad_fn.register_prehook(lambda gs: runs.append(1))
    for create_graph in (False, True):
        runs.clear()
        made = rushlight.autograd.grad(y, inputs, vs, True, create_graph, is_grads_batched=True)
        assert len(runs) == 1
        rows = [rushlight.autograd.grad(y, inputs, v, True) for v in vs]
        for g, each in zip(made, zip(*rows)):
            assert g.requires_grad is create_graph
            np.testing.assert_allclose(g.detach(), np.stack([e._array for e in each]), rtol=1e-10, atol=1e-12)


def test_rows_whose_rule_has_no_batches_run_one_by_one():
    """The gradient of a recurrent layer is one op on all its steps; it says once that it is slow."""
    rushlight.manual_seed(0)
    net, x = nn.LSTM(2, 3).double(), rushlight.randn(4, 1, 2, dtype=rushlight.float64)
    y, vs = net(x)[0], rushlight.randn(5, 4, 1, 3, dtype=rushlight.float64)
    weights = list(net.parameters())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = rushlight.autograd.grad(y, weights, vs, True, is_grads_batched=True)
    assert len([w for w in said if "performance drop" in str(w.message)]) <= 1
    for i, v in enumerate(vs):
        for g, expected in zip(made, rushlight.autograd.grad(y, weights, v, True)):
            np.testing.assert_allclose(g[i], expected, rtol=1e-10, atol=1e-12)


def test_anomaly_detection_looks_at_all_samples():
    x = rushlight.tensor([[4.0, 9.0], [1.0, 0.0]])
    with warnings.catch_warnings(), rushlight.autograd.detect_anomaly():
        warnings.simplefilter("ignore")
        assert vmap(grad(lambda a: a.exp().sum()))(x).shape == (2, 2)
        with pytest.raises(RuntimeError, match="SqrtBackward0' returned inf"):
            vmap(grad(lambda a: (a * 0).sqrt().sum()))(x)


def test_tangents_of_batches_lie_as_their_tensors():
    x = rushlight.arange(12.0, dtype=rushlight.float64).reshape(2, 2, 3)
    t = rushlight.arange(12.0, dtype=rushlight.float64).reshape(2, 3, 2).mT
    for f in (lambda a: a.view(-1), lambda a: a.as_strided((2, 2), (3, 1)), lambda a: (a * 2).view(3, 2) ** 2):
        made = vmap(lambda a, b, f=f: jvp(f, (a,), (b,))[1], in_dims=(0, 0))(x, t)
        for i in range(2):
            expected = jvp(f, (x[i].clone(),), (t[i].contiguous(),))[1]
            np.testing.assert_allclose(made[i], expected)


# -- attention, one op on many tensors -------------------------------------------------------------

ATTENTION = {
    "all": ((0, 0, 0), {}, None),
    "shared keys": ((0, None, 0), {}, None),
    "causal": ((0, 0, 0), {"is_causal": True}, None),
    "shared mask": ((0, 0, 0, None), {}, (4, 6)),
    "a mask each": ((None, None, None, 0), {}, (4, 6)),
    "masked heads": ((0, 0, 0, 0), {}, (2, 1, 6)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_of_samples_is_the_loop(name):
    """Values and gradients, without the warning that it is slow."""
    dims, how, mask = ATTENTION[name]
    shapes = [(2, 4, 5), (2, 6, 5), (2, 6, 5)] + [mask] * (mask is not None)
    rushlight.manual_seed(0)
    given = [
        rushlight.randn(*([3] if d == 0 else []), *shape, dtype=rushlight.float64) for shape, d in zip(shapes, dims)
    ]

    def f(*args):
        made = F.scaled_dot_product_attention(*args, **how)
        return (made.sin() * made).sum(), made

    made, value = vmap(grad(f, tuple(range(len(given))), has_aux=True), in_dims=dims)(*given)
    for i in range(3):
        expected, one = grad(f, tuple(range(len(given))), has_aux=True)(
            *[a if d is None else a[i] for a, d in zip(given, dims)]
        )
        for a, b in zip((*made, value), (*expected, one)):
            np.testing.assert_allclose(a[i], b, rtol=1e-9, atol=1e-12)


# -- random numbers --------------------------------------------------------------------------------


@program
def choices_of_rows(torch):
    """Samples whose weights are a matrix, or share one, draw as many rows."""
    torch.manual_seed(1)
    weights, each = grid(torch, 3, 2, 6) + 1, grid(torch, 3)
    draw = partial(torch.func.vmap, randomness="different")
    return [
        draw(lambda w: torch.multinomial(w, 3))(weights),
        draw(lambda w: torch.multinomial(w, 3, True), in_dims=2)(weights),
        draw(lambda _: torch.multinomial(weights[0], 3))(each),
        draw(draw(lambda w: torch.multinomial(w, 2)))(grid(torch, 2, 3, 2, 4) + 1),
    ]


# -- a user's Function of lists of tensors ---------------------------------------------------------


@program
def functions_of_lists(torch):
    class Line(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, line):
            return x * line[0] + line[1]

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs[1])

        @staticmethod
        def backward(ctx, g):
            return 10 * g * ctx.saved_tensors[0], None

    class Told(Line):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x, line):
            seen.append(in_dims)
            return Line.apply(x, line), 0

    seen = []
    x, a = grid(torch, 3).requires_grad_(), grid(torch, 3) + 2
    ours = torch.func.vmap(lambda x, a: Line.apply(x, [a, x]))(x, a)
    shared = torch.func.vmap(Line.apply, in_dims=(None, [0, None]))(x, [a, x])
    told = torch.func.vmap(Told.apply)(x, [a, x])
    torch.func.vmap(Told.apply, in_dims=(0, [0, None]))(x, [a, x])
    each = torch.func.vmap(torch.func.grad(lambda x, a: Line.apply(x, [a, x])))(x, a)
    return ours, shared, told, each, seen, torch.autograd.grad(ours.sum() + told.sum(), x)


def test_the_rule_of_a_function_gives_outputs_and_their_dims():
    def rule(answer):
        return type(
            "Odd",
            (rushlight.autograd.Function,),
            {
                "forward": staticmethod(lambda x: x),
                "setup_context": staticmethod(lambda ctx, inputs, output: None),
                "vmap": staticmethod(lambda info, in_dims, x: answer(x)),
            },
        ).apply

    for answer in (lambda x: x, lambda x: (x, x, 0, 0)):
        with pytest.raises(RuntimeError, match="to have two returns"):
            vmap(rule(answer))(rushlight.ones(2))
    for answer in (lambda x: (x, (None,)), lambda x: ([x], (None,))):
        with pytest.raises(RuntimeError, match="returned an incompatible"):
            vmap(rule(answer))(rushlight.ones(2))


@pytest.mark.parametrize("layer", ["BatchNorm1d", "InstanceNorm1d"])
def test_a_refused_norm_leaves_its_running_statistics(layer):
    """Per-sample gradients: each sample has its own statistics, and all share the running ones."""
    nn, func = rushlight.nn, rushlight.func
    model = nn.Sequential(nn.Unflatten(1, (1, 4)), getattr(nn, layer)(1, affine=True, track_running_stats=True))
    model[1].running_mean.fill_(1.0)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, sample):
        return func.functional_call(model, parameters, (sample[None],)).pow(2).mean()

    with pytest.raises(RuntimeError, match="were not batched"):
        func.vmap(func.grad(loss), in_dims=(None, 0))(parameters, rushlight.arange(12.0).view(3, 4))
    assert model[1].running_mean.item() == 1.0
    assert model[1].num_batches_tracked.item() == 0
