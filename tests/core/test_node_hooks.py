"""Nodes and hooks against torch; anomaly detection."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

import rushlight
from rushlight.nn import functional as F
from tests.support.programs import Programs, leaf, outcome

program = Programs()
test_program = program.test()


# -- the graph -------------------------------------------------------------------------------------


@program
def names_of_nodes(torch):
    x = torch.ones(2, 3, requires_grad=True)
    results = [
        x + 1,
        x * x,
        x / 2,
        x - x,
        x**2,
        -x,
        x.exp(),
        x.sum(),
        x.mean(),
        x @ x.T,
        x.T,
        x.reshape(6),
        x.relu(),
        x.log_softmax(1),
        x.softmax(0),
        x.max(1)[0],
        torch.cat([x, x]),
        torch.stack([x, x]),
        x.clone(),
        x.unsqueeze(0),
        x.tanh(),
        x.sigmoid(),
        x.abs(),
        torch.where(x > 0, x, x),
        x.double(),
        x.cumsum(0),
        x.gather(1, torch.zeros(2, 1, dtype=torch.int64)),
        x.expand(4, 2, 3),
        x.permute(1, 0),
    ]
    return [t.grad_fn.name() for t in results]


@program
def edges_of_nodes(torch):
    x, c = torch.ones(2, requires_grad=True), torch.ones(2)
    y = (x * c).exp()
    ((mul, i),) = y.grad_fn.next_functions
    (first, j), (second, k) = mul.next_functions
    return [mul.name(), i, type(first).__name__, j, second is None, k, first.variable is x, first.next_functions]


@program
def outputs_of_one_node(torch):
    x = leaf(torch, 3.0, 1.0, 2.0)
    values, indices = x.sort()
    parts = x.unbind()
    return [
        values.output_nr,
        indices.requires_grad,
        [p.output_nr for p in parts],
        len({id(p.grad_fn) for p in parts}),
        torch.autograd.grad(parts[1] * 2 + values[0], x),
    ]


@program
def saved_values(torch):
    x, y = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    return [(x * y).grad_fn._saved_other, (x * y).grad_fn._saved_self, x.exp().grad_fn._saved_result]


# -- hooks -----------------------------------------------------------------------------------------


@program
def hooks_on_tensors(torch):
    x, seen = leaf(torch, 1.0, 2.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.clone()))
    y.register_hook(lambda g: g * 10)
    handle = y.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: seen.append(g.clone()))
    (y * y).sum().backward(retain_graph=True)
    handle.remove()
    first, x.grad = x.grad, None
    (y * 3).sum().backward()
    return [seen, first, x.grad, outcome(lambda: torch.ones(1).register_hook(print))]


@program
def hooks_that_fail(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g[:1])
    return [outcome((y * 2).sum().backward), x.grad]


@program
def kept_gradients(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * y).sum().backward()
    return [y.grad, x.grad, y.retains_grad, x.retains_grad, outcome(torch.ones(1).retain_grad)]


@program
def hooks_after_accumulation(torch):
    x, seen = leaf(torch, 1.0, 2.0), []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    handle.remove()
    x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", None))
    (x * 3).sum().backward()
    return [seen, x.grad, outcome((x * 2).register_post_accumulate_grad_hook, print)]


@program
def hooks_on_nodes(torch):
    x, seen = leaf(torch, 1.0, 2.0), []
    y = x * x
    node = y.grad_fn
    node.register_hook(lambda inside, outside: seen.append([list(inside), list(outside)]))
    node.register_hook(lambda inside, outside: tuple(g * 2 for g in inside))
    node.register_prehook(lambda outside: (outside[0] * 10,))
    (y * 3).sum().backward()
    return [seen, x.grad]


@program
def hooks_see_the_sum(torch):
    """A hook runs once, when everything has arrived."""
    x, seen = leaf(torch, 1.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.clone()))
    (y + y * y + y.exp()).sum().backward()
    return [seen, x.grad]


@program
def kept_gradients_add_up(torch):
    x = leaf(torch, 1.0, 2.0)
    h = x * 3
    h.retain_grad()
    out = (h * h).sum()
    out.backward(retain_graph=True)
    out.backward()
    return h.grad


@program
def hooks_before_a_node_of_several_outputs(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k, y):
            ctx.k = k
            return x * k, k, y * k

        @staticmethod
        def backward(ctx, g, _, h):
            return g * ctx.k, None, h * ctx.k

    x, y, seen = leaf(torch, 1.0), leaf(torch, 2.0), []

    def doubled(grads):
        seen.extend(g is None for g in grads)
        return tuple(None if g is None else g * 2 for g in grads)

    a, _, b = Both.apply(x, 3, y)
    a.grad_fn.register_prehook(doubled)
    (a + b).sum().backward()
    return [seen, x.grad, y.grad]


@program
def hooks_where_backward_ends(torch):
    log = []

    def on_tensor(g):
        log.append("tensor")
        return g * 3

    def on_node(grads):
        log.append("node")
        return tuple(g * 2 for g in grads)

    a = leaf(torch, 1.0)
    b = a.clone()
    b.grad_fn.register_prehook(on_node)
    b.register_hook(on_tensor)
    leaf_node = b.grad_fn.next_functions[0][0]
    a.register_hook(on_tensor)
    leaf_node.register_prehook(on_node)
    leaf_node.register_hook(lambda inside, outside: log.append("after"))
    results = [torch.autograd.grad(b.sum(), ends, retain_graph=True) for ends in ((b,), (a,))]
    b.sum().backward(inputs=(a,), retain_graph=True)
    results.append(a.grad.clone())
    b.sum().backward()
    b.register_hook(lambda g: None)
    return [log, results, a.grad]


@program
def backward_hooks_of_modules_and_second_derivatives(torch):
    count = []
    loss = torch.nn.MSELoss()
    loss.register_full_backward_hook(lambda module, inside, outside: count.append(len(inside)))
    x = leaf(torch, 1.0)
    (g,) = torch.autograd.grad(loss(x, torch.zeros(1)), x, create_graph=True)
    return [count[:], torch.autograd.grad(g, x), count]


@program
def places_in_the_graph_as_ends(torch):
    Edge = torch.autograd.graph.GradientEdge
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    first, second = y.unbind()
    out = (y * y).sum() + 3 * second
    ends = [Edge(y.grad_fn, 0), torch.autograd.graph.get_gradient_edge(x), Edge(second.grad_fn, second.output_nr)]
    results = [torch.autograd.grad(out, end, retain_graph=True) for end in (*ends, ends[:2])]
    unused = torch.autograd.graph.get_gradient_edge(leaf(torch, 1.0))
    out.backward(inputs=ends[:2], retain_graph=True)
    return [
        results,
        x.grad,
        outcome(lambda: torch.autograd.grad(out, unused, materialize_grads=True, retain_graph=True)),
        torch.autograd.grad(out, unused, allow_unused=True, retain_graph=True),
        outcome(lambda: torch.autograd.grad(out, [])),
    ]


@program
def zeros_in_place_of_gradients(torch):
    x, a = leaf(torch, 0.5), leaf(torch, 1.0)
    g = torch.autograd.grad((x * a).sum(), x, create_graph=True)
    zero = torch.autograd.grad(g[0].sum(), x, create_graph=True, materialize_grads=True)
    return [zero[0].requires_grad, zero[0].detach(), torch.autograd.grad(zero[0].sum(), x, materialize_grads=True)]


@program
def hooks_that_return_too_much(torch):
    x = leaf(torch, 1.0)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    return outcome(lambda: x.sum().backward())


@program
def numbers_are_not_packed(torch):
    results = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        x = leaf(torch, 1.0, 2.0)
        y = x**3
        z = y.exp()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    results += [g, torch.autograd.grad(g.sum(), x), y.grad_fn._saved_self, z.grad_fn._saved_result.detach()]
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        results.append(outcome(lambda: (x.detach() * x).sum()))
    return results


@program
def generators_that_are_closed(torch):
    seen = []

    @torch.no_grad()
    def numbers():
        try:
            yield 1
        finally:
            seen.append(torch.is_grad_enabled())

    generator = numbers()
    next(generator)
    generator.close()
    return seen


@program
def packed_tensors(torch):
    x, seen = leaf(torch, 1.0, 2.0), []

    def pack(t):
        seen.append("pack")
        return t.detach().numpy().copy()

    def unpack(array):
        seen.append("unpack")
        return torch.from_numpy(array)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    before = list(seen)
    y.sum().backward()
    return [before, seen, x.grad]


# -- anomalies -------------------------------------------------------------------------------------


def test_anomaly_detection_names_the_statement():
    x = rushlight.tensor([0.0, 1.0], requires_grad=True)
    y = x.sqrt()  # THE STATEMENT
    with rushlight.autograd.detect_anomaly(), pytest.raises(RuntimeError) as caught:
        (y * rushlight.tensor([0.0, 1.0])).sum().backward()
    assert "SqrtBackward0" in str(caught.value)
    assert "nan" in str(caught.value)
    assert "THE STATEMENT" in str(caught.value)
    (x.sqrt() * rushlight.tensor([0.0, 1.0])).sum().backward()
    assert math.isnan(x.grad[0])  # outside, nan passes as in torch


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    "function", [F.leaky_relu, F.softplus, F.hardswish, lambda h: F.layer_norm(h, (5,)), rushlight.mean]
)
def test_gradients_that_hooks_see_have_their_tensors_dtype(function, again):
    x = rushlight.ones(5, dtype=rushlight.bfloat16, requires_grad=True)
    h, seen = x * 1, []
    h.register_hook(lambda g: seen.append(g.dtype))
    h.retain_grad()
    function(h).sum().backward(create_graph=again)
    assert [*seen, h.grad.dtype, x.grad.dtype] == 3 * [rushlight.bfloat16]


# -- what modules are told -------------------------------------------------------------------------


def told(lib):
    """What hooks on all modules are told when things are registered, called and go wrong."""
    nn, hooks, heard = lib.nn, importlib.import_module(f"{lib.__name__}.nn.modules.module"), []

    def about(kind):
        return lambda module, name, value: heard.append((kind, type(module).__name__, name, value is None))

    handles = [
        getattr(hooks, f"register_module_{kind}_registration_hook")(about(kind))
        for kind in ("parameter", "buffer", "module")
    ]
    doubled = hooks.register_module_buffer_registration_hook(
        lambda module, name, value: value * 2 if name == "kept" else None
    )
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    net.extra = nn.Linear(1, 1, bias=False)
    net.extra.weight = None
    net.extra = None
    net.register_buffer("kept", lib.ones(2))
    net.kept = lib.ones(2)
    net.add_module("late", nn.ReLU())
    for handle in (*handles, doubled):
        handle.remove()
    net.register_buffer("unheard", lib.ones(1))
    del net.extra
    heard += net.kept.tolist()

    class Failing(nn.Module):
        def forward(self, x, y=0):
            raise ValueError("no")

    with (
        hooks.register_module_forward_hook(lambda m, *given: heard.append(len(given)), with_kwargs=True),
        hooks.register_module_forward_hook(lambda m, *given: heard.append(("always", len(given))), always_call=True),
    ):
        net[0](lib.ones(1, 2))
        with pytest.raises(ValueError, match="no"):
            Failing()(1, y=2)
    failing = Failing()
    failing.register_forward_hook(lambda m, *given: given.nothing, always_call=True)
    with pytest.raises(ValueError, match="no"), pytest.warns(UserWarning, match="silenced as another error"):
        failing(1)
    return heard


def test_hooks_on_registration(torch):
    assert told(rushlight) == told(torch)


def older(lib):
    """What hooks of the older sort see: the gradients of the last node."""
    nn, seen = lib.nn, []
    x = lib.arange(3.0).requires_grad_()
    net = nn.Sequential(nn.Tanh(), nn.Sigmoid())

    def hook(module, grad_input, grad_output):
        seen.append((type(module).__name__, [g.tolist() for g in grad_input], [g.tolist() for g in grad_output]))
        return tuple(g * 2 for g in grad_input)

    net.register_backward_hook(hook)
    with pytest.warns(FutureWarning, match="missing some grad_input"):
        y = net(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="both regular backward hooks and full"):
        net.register_full_backward_hook(hook)
    return seen, x.grad.tolist()


def test_backward_hooks_of_the_older_sort(torch):
    (seen, grad), (expected, grad_expected) = older(rushlight), older(torch)
    assert np.allclose(grad, grad_expected)
    assert [len(given) for _, *given in seen] == [len(given) for _, *given in expected]
    assert all(np.allclose(a, b) for (_, *a), (_, *b) in zip(seen, expected, strict=True))


def test_backward_hooks_are_those_of_the_forward():
    seen, x, layer = [], rushlight.ones(2, requires_grad=True), rushlight.nn.Linear(2, 2)
    handle = layer.register_full_backward_hook(lambda *given: seen.append("first"))
    y = layer(x)
    handle.remove()
    layer.register_full_backward_hook(lambda *given: seen.append("later"))
    y.sum().backward()
    assert seen == ["first"]


def test_a_hook_that_returns_too_few_gradients():
    y = rushlight.ones(2, requires_grad=True).sigmoid()
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: ())
    with pytest.raises(RuntimeError, match=r"got 0, but expected 1"):
        y.sum().backward()
