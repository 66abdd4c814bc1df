"""Backward, grad, leaves and modes against torch, program by program."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.autograd import grad
from tests.support.programs import Programs, leaf, outcome

program = Programs()
test_program = program.test()


# -- backward and grad -----------------------------------------------------------------------------


@program
def gradients_add_up(torch):
    x = leaf(torch, 1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad.clone()
    (x * 3).sum().backward()
    (x.exp() * x.exp()).sum().backward()
    return [first, x.grad]


@program
def one_backward_of_several_tensors(torch):
    x = leaf(torch, 1.0, 2.0)
    y, z = x * 2, x * x
    torch.autograd.backward([y, z], [torch.ones_like(y), torch.tensor([1.0, 10.0], dtype=torch.float64)])
    return x.grad


@program
def the_same_tensor_twice(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    torch.autograd.backward([y, y], [torch.ones_like(y), torch.ones_like(y)])
    return [x.grad, torch.autograd.grad((x * x).sum(), [x, x])]


@program
def a_leaf_as_root(torch):
    x = leaf(torch, 3.0)
    g = torch.ones_like(x)
    x.backward(g)
    g += 1
    return [x.grad, torch.autograd.grad(x, x, torch.ones_like(x))]


@program
def freed_and_retained(torch):
    x = leaf(torch, 1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return [x.grad, outcome(y.backward), x.grad, outcome(lambda: y.grad_fn.next_functions[0][0]._saved_self)]


@program
def backward_with_inputs(torch):
    x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    y = x * w
    (y * y).sum().backward(inputs=[w])
    return [x.grad, w.grad, outcome(lambda: (x * w).sum().backward(inputs=[]))]


@program
def backward_into_a_tensor_between(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    y.retain_grad()
    z.backward(inputs=[x, y])
    return [x.grad, y.grad]


@program
def hooks_of_chosen_inputs(torch):
    x, w, seen = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0), []
    x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
    w.register_post_accumulate_grad_hook(lambda t: seen.append("never"))
    (x * w).sum().backward(inputs=[x])
    (x * w).sum().backward(inputs=[x])
    return [seen, x.grad, w.grad]


@program
def grad_leaves_grad_alone(torch):
    x = leaf(torch, 1.0, 2.0)
    g = torch.autograd.grad((x**3).sum(), x)
    return [g, x.grad, g[0].requires_grad]


@program
def grad_by_tensors_between(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x.exp()
    z = y * y * x
    return [torch.autograd.grad(z.sum(), [y, x], retain_graph=True), torch.autograd.grad(z.sum(), [x, y, z])[:2]]


@program
def unused_inputs(torch):
    x, w = leaf(torch, 1.0), leaf(torch, 2.0)

    def run(**how):
        return torch.autograd.grad((x * 2).sum(), [x, w], **how)

    return [
        outcome(run),
        run(allow_unused=True),
        run(materialize_grads=True),
        outcome(run, materialize_grads=True, allow_unused=False),
    ]


@program
def what_requires_no_grad(torch):
    x, c = leaf(torch, 1.0), torch.ones(1)
    return [
        outcome(torch.autograd.grad, (x * 2).sum(), [c]),
        outcome((c * 2).sum().backward),
        outcome((x * torch.ones(2)).backward),
        outcome(torch.autograd.grad, c, x),
        outcome((x * 2).backward, torch.ones(3)),
    ]


@program
def starting_gradients(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    y = x * x
    y.backward(torch.tensor([1.0, 0.1, 0.01], dtype=torch.float64))
    g = torch.autograd.grad([x * 2, (x * 3).sum()], x, [torch.ones(3, dtype=torch.float64), None])
    return [x.grad, g]


@program
def many_gradients_at_once(torch):
    x = leaf(torch, 1.0, 2.0)
    return torch.autograd.grad(x * x, x, torch.eye(2, dtype=torch.float64), is_grads_batched=True)


@program
def higher_derivatives(torch):
    x = leaf(torch, 0.5, 2.0)
    found, y = [], (x**4).sin().sum()
    for _ in range(4):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(y)
        y = y.sum()
    return [*found, [g.requires_grad for g in found]]


@program
def backward_with_create_graph(torch):
    x = leaf(torch, 2.0)
    (x**3).sum().backward(create_graph=True)
    penalty = (x.grad**2).sum()
    first, x.grad = x.grad, None
    penalty.backward()
    return [first, x.grad]


@program
def hessian_vector_product(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    v = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
    (g,) = torch.autograd.grad((x.prod() + x.sin().sum()), x, create_graph=True)
    return torch.autograd.grad((g * v).sum(), x)


@program
def gradient_of_a_gradient_by_its_seed(torch):
    x, v = leaf(torch, 1.0, 2.0), leaf(torch, 0.5, 0.25)
    (g,) = torch.autograd.grad(x.tanh(), x, v, create_graph=True)
    return torch.autograd.grad(g.sum(), [x, v])


@program
def broadcasting_is_undone(torch):
    a, b, c = (torch.full(shape, 2.0, dtype=torch.float64, requires_grad=True) for shape in ((2, 1, 3), (4, 1), ()))
    (a * b + c).sum().backward()
    return [a.grad, b.grad, c.grad]


@program
def types_of_gradients(torch):
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.float64, requires_grad=True)
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    ((x * y) * z).abs().sum().backward()
    return [x.grad, y.grad, z.grad]


@program
def complex_gradients(torch):
    z = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128, requires_grad=True)
    w = torch.tensor([2 - 1j, 3 + 0j], dtype=torch.complex128, requires_grad=True)
    (z * w).abs().sum().backward()
    by_parts = torch.autograd.grad((z.real * z.imag + (z * z.conj()).real).sum(), z)
    return [
        z.grad,
        w.grad,
        by_parts,
        outcome((z * w).sum().backward),
        torch.autograd.grad((z / w).exp(), [z, w], torch.ones(2, dtype=torch.complex128) * 1j),
    ]


# -- leaves and flags ------------------------------------------------------------------------------


@program
def what_is_a_leaf(torch):
    x = leaf(torch, 1.0)
    y = x * 2
    with torch.no_grad():
        z = x * 2
    d = y.detach()
    return [[t.is_leaf, t.requires_grad, t.grad_fn is None] for t in (x, y, z, d, torch.ones(1), y.data)]


@program
def flags_that_cannot_be_set(torch):
    x = leaf(torch, 1.0)
    y = x * 2

    def unset():
        y.requires_grad = False

    return [
        outcome(unset),
        outcome(lambda: torch.ones(2, dtype=torch.int64).requires_grad_()),
        outcome(lambda: torch.tensor([1], requires_grad=True)),
        y.requires_grad_().requires_grad,
    ]


@program
def detaching(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    d = y.detach()
    y.sum().backward()
    w = leaf(torch, 1.0) * 2
    w.detach_()
    return [x.grad, d.requires_grad, w.requires_grad, w.is_leaf, outcome(lambda: (x * 2)[0].detach_())]


@program
def grad_can_be_given(torch):
    x = leaf(torch, 1.0, 2.0)

    def give(value):
        x.grad = value

    give(torch.ones(2, dtype=torch.float64))
    (x * 2).sum().backward()
    found = x.grad.clone()
    bad = [outcome(give, value) for value in (torch.ones(3, dtype=torch.float64), torch.ones(2), 1.0)]
    give(None)
    return [found, bad, x.grad]


@program
def freezing_a_leaf(torch):
    x = leaf(torch, 1.0)
    y = (x * 3).sum()
    x.requires_grad_(False)
    z = x * 2
    y.backward()
    return [x.grad, z.requires_grad]


@program
def grad_modes(torch):
    x, seen = leaf(torch, 1.0), []
    with torch.no_grad():
        seen.append((x * 2).requires_grad)
        with torch.enable_grad():
            seen.append((x * 2).requires_grad)
        with torch.set_grad_enabled(True):
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())
    with torch.inference_mode():
        seen += [torch.is_grad_enabled(), torch.is_inference_mode_enabled(), (x * 2).requires_grad]
    with torch.inference_mode(False):
        seen.append((x * 2).requires_grad)
    torch.set_grad_enabled(False)
    seen.append((x * 2).requires_grad)
    torch.set_grad_enabled(True)
    return [*seen, (x * 2).requires_grad]


@program
def modes_as_decorators(torch):
    x = leaf(torch, 1.0)

    @torch.no_grad()
    def plain():
        return (x * 2).requires_grad

    @torch.enable_grad()
    def recorded():
        return (x * 2).requires_grad

    @torch.inference_mode()
    def inferred():
        return (x * 2).requires_grad

    @torch.set_grad_enabled(False)
    def off():
        return (x * 2).requires_grad

    @torch.no_grad()
    def steps():
        for _ in range(2):
            yield (x * 2).requires_grad

    with torch.no_grad():
        inside = recorded()
    seen = []
    for flag in steps():
        seen += [flag, torch.is_grad_enabled()]
    return [plain(), inside, inferred(), off(), seen, torch.is_grad_enabled(), plain.__name__]


@program
def modes_and_exceptions(torch):
    def fail():
        with torch.no_grad():
            raise KeyError

    return [outcome(fail), torch.is_grad_enabled()]


# -- by themselves ---------------------------------------------------------------------------------


def test_a_gradient_is_never_shared():
    """Writing into one gradient leaves the others, the inputs and the one given to backward as they were."""
    a, b = (rushlight.ones(3, requires_grad=True) for _ in range(2))
    seed = rushlight.ones(3)
    (a + b).backward(seed)
    (a.reshape(3, 1) + b.unsqueeze(1)).backward(rushlight.ones(3, 1))
    a.grad.zero_()
    assert b.grad.tolist() == [2.0] * 3
    assert seed.tolist() == [1.0] * 3
    x = rushlight.ones(3, requires_grad=True)
    g, h = grad((x + 0).sum() + (x * 1).sum(), [x, x])
    g += 1
    assert h.tolist() == [2.0] * 3
    for create_graph in (False, True):
        c, d = (rushlight.ones(2, requires_grad=True) for _ in range(2))
        (c + d).sum().backward(create_graph=create_graph)
        with rushlight.no_grad():
            c.grad.mul_(5)
        assert d.grad.tolist() == [1.0, 1.0]


def test_a_gradient_keeps_nothing_else_alive():
    """`.grad` of a leaf is memory of its own: no view of the whole that it was a part of."""
    x = rushlight.ones(2, requires_grad=True)
    big = rushlight.cat([x, rushlight.ones(1000)])
    (big * 2).sum().backward()
    memory = x.grad.numpy()
    while memory.base is not None:
        memory = memory.base
    assert memory.size == 2


def test_the_graph_is_freed_piece_by_piece():
    x = rushlight.ones(3, requires_grad=True)
    y = x * x
    z = y.exp()
    z.sum().backward()
    assert z.grad_fn.saved is None
    assert y.grad_fn.saved is None
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_numpy_scalars_do_not_slip_through():
    """0-d results stay tensors with arrays, through forward, backward and double backward."""
    x = rushlight.tensor(2.0, requires_grad=True)
    y = x.exp().log().sin() * x / 3 - x**2
    (g,) = grad(y, x, create_graph=True)
    (h,) = grad(g, x)
    assert all(type(t._array) is np.ndarray for t in (y, g, h))


@pytest.mark.origin("fuzzing")
def test_backward_to_a_tensor_that_is_no_leaf_retains_its_gradient():
    x = rushlight.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.sum().backward(inputs=[y], retain_graph=True)
    assert y.grad.tolist() == [1, 1]
    assert x.grad is None
    y.sum().backward()
    assert y.grad.tolist() == [2, 2]
    assert x.grad.tolist() == [2, 2]


def twice(torch, make):
    """The gradient after two backward passes through one result, or the name of the error."""
    w = torch.arange(1.0, 5.0, dtype=torch.float64).view(2, 2).requires_grad_()
    y = make(w)
    y.backward(torch.ones_like(y))
    return [outcome(y.backward, torch.ones_like(y)), w.grad]


@program.found_in("libraries")
def what_saved_no_array_runs_backward_again(torch):
    b = torch.arange(4.0, dtype=torch.float64).view(2, 2)
    makes = [
        lambda w: w + b,
        lambda w: w - b,
        lambda w: 1 - w,
        lambda w: -w,
        lambda w: w.sum(),
        lambda w: w.sum(0),
        lambda w: w.mean(),
        lambda w: w.mean(1),
        lambda w: w.view(4),
        lambda w: w.t(),
        lambda w: w.expand(3, 2, 2),
        lambda w: torch.cat([w, w]),
        lambda w: torch.stack([w, w]),
        lambda w: w[1:],
        lambda w: w[0],
        lambda w: w.float(),
        lambda w: w.permute(1, 0),
        lambda w: w.unsqueeze(0),
        lambda w: torch.nn.functional.pad(w, (1, 1)),
        lambda w: w.cumsum(0),
        lambda w: w.flip(0),
        lambda w: w.roll(1),
        lambda w: w.repeat(2, 1),
        lambda w: w.split(1)[0],
        lambda w: w.unbind(0)[1],
        lambda w: w.tril(),
        lambda w: w.diagonal(),
        lambda w: w.t().reshape(-1),
        lambda w: w + torch.ones(2, 1, 2),
        lambda w: w.clone(),
        lambda w: w * b,
        lambda w: w.exp(),
        lambda w: w @ b,
        lambda w: w**2,
        lambda w: w.relu(),
        lambda w: w.amax(0),
        lambda w: torch.where(b > 1, w, b),
    ]
    return [twice(torch, make) for make in makes]


@program.found_in("libraries")
def attacks_ask_one_graph_for_gradients_several_times(torch):
    x = torch.rand(2, 3, requires_grad=True)
    near = x + 0.5 * torch.ones(2, 3)  # nothing in it is freed
    found = sum(torch.autograd.grad((near / 2**i).pow(2).sum(), x)[0] for i in range(3))
    return [torch.allclose(found, 2 * near * (1 + 1 / 4 + 1 / 16))]


@program.found_in("torch tests")
def writes_to_indices_that_a_gradient_needs_are_noticed(torch):
    f, a = torch.nn.functional, torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]], dtype=torch.float64)
    calls = [
        lambda x: x.max(1),
        lambda x: x.sort(1),
        lambda x: x.topk(1, 1),
        lambda x: x.kthvalue(3, 1),
        lambda x: x.cummax(1),
        lambda x: f.max_pool1d(x, 2, return_indices=True),
        torch.linalg.svd,
        lambda x: f.adaptive_max_pool2d(x[None], 2, return_indices=True),
        lambda x: torch.linalg.qr(x)[::-1],
    ]

    def written(call, after):
        x = a.clone().requires_grad_()
        found = call(x)
        used, other = found[0], found[1] if after else found[1].clone()
        if after:
            used.sum().backward()
        other.zero_()
        if not after:
            used.sum().backward()
        return x.grad

    def too_early(call):
        found = call(a.clone().requires_grad_())
        found[1].zero_()
        found[0].sum().backward()

    return [outcome(too_early, call) for call in calls] + [
        written(call, after) for call in calls for after in (True, False)
    ]


def callbacks(torch):
    """What is called at the end of a backward, in which another one runs."""
    engine, told = torch.autograd.Variable._execution_engine, []
    x = torch.ones(2, requires_grad=True)

    def inner():
        engine.queue_callback(lambda: told.append("inner"))
        told.append("inside")

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            def last():
                told.append(["last", x.grad.tolist()])

            engine.queue_callback(lambda: engine.queue_callback(last))
            with torch.enable_grad():
                y = torch.ones(1, requires_grad=True) * 2
            y.register_hook(lambda g: inner())
            y.backward()
            told.append("after the inner one")
            return g * 2

    Nested.apply(x).sum().backward()
    return told


def test_callbacks_are_called_when_their_backward_ends(oracle):
    assert callbacks(rushlight) == oracle(callbacks)


def test_a_callback_outside_of_backward_is_an_error():
    with pytest.raises(RuntimeError, match="can only be installed during backward pass"):
        rushlight.autograd.Variable._execution_engine.queue_callback(print)


def test_callbacks_of_a_backward_that_fails_are_forgotten():
    engine, told = rushlight.autograd.Variable._execution_engine, []
    x = rushlight.ones(1, requires_grad=True)

    def fails(g):
        engine.queue_callback(lambda: told.append("called"))
        raise ValueError

    y = x * 2
    y.register_hook(fails)
    with pytest.raises(ValueError):
        y.backward()
    (x * 2).backward()
    assert told == []
