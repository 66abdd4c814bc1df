"""Functions that users define, against torch; and what gradcheck finds in them."""

from __future__ import annotations

import math

import pytest

import rushlight
from rushlight.autograd import Function, gradcheck, gradgradcheck
from tests.support.programs import Programs, leaf, outcome

program = Programs()
test_program = program.test()


@program
def a_function(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, power):
            ctx.save_for_backward(x)
            ctx.power = power
            return x**power

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.power * x ** (ctx.power - 1), None

    x = leaf(torch, 2.0, 3.0)
    y = Cube.apply(x, 3)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return [y, g, torch.autograd.grad(g.sum(), x), y.grad_fn.name(), Cube.apply(x.detach(), 2).requires_grad]


@program
def a_function_of_several(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, z):
            ctx.save_for_backward(x, y)
            low = (x > y).to(x.dtype)
            ctx.mark_non_differentiable(low)
            return x * y, x + y, low

        @staticmethod
        def backward(ctx, g, h, none):
            x, y = ctx.saved_tensors
            seen.append([list(ctx.needs_input_grad), h.clone(), none.clone()])
            return g * y + h, g * x + h, None

    seen = []
    x, y = leaf(torch, 1.0, 5.0), leaf(torch, 3.0, 4.0)
    a, b, c = Both.apply(x, y, torch.ones(1))
    a.sum().backward(retain_graph=True)
    (a * b).sum().backward()
    return [a, b, c, c.requires_grad, x.grad, y.grad, seen]


@program
def a_function_with_unused_outputs(torch):
    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            seen.append([g is None, h is None])
            return (0 if g is None else g) + (0 if h is None else 2 * h)

    seen, x = [], leaf(torch, 1.0)
    Split.apply(x)[1].sum().backward()
    return [seen, x.grad]


@program
def a_function_with_setup_context(torch):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            (out,) = ctx.saved_tensors
            return g * ctx.factor + 0 * out, None

    x = leaf(torch, 1.0, 2.0)
    y = Scale.apply(x, 5.0)
    y.sum().backward()
    return [y, x.grad]


def doubling(torch):
    """A function that writes to its input."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Double


@program
def a_function_that_writes(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 1
    z = doubling(torch).apply(y)
    (z * z).sum().backward()
    return [z is y, z, x.grad, y._version]


@program
def functions_that_are_wrong(torch):
    def made(answer):
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return answer(g)

        return outcome(Wrong.apply(leaf(torch, 1.0, 2.0)).sum().backward)

    class Bare(torch.autograd.Function):
        pass

    return [
        made(lambda g: (g, g)),
        made(lambda g: 1.0),
        made(lambda g: torch.ones(3)),
        made(lambda g: (g, None)),
        outcome(Bare.apply, torch.ones(1)),
    ]


@program
def a_function_once_differentiable(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x = leaf(torch, 1.0, 2.0)
    (g,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    return [g.detach(), outcome(g.sum().backward)]


@program
def views_that_forward_makes(torch):
    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:2], x[2:]

        @staticmethod
        def backward(ctx, first, second):
            return torch.cat([first * 10, second])

    class First(Halves):
        @staticmethod
        def forward(ctx, x):
            return x[:2]

        @staticmethod
        def backward(ctx, g):
            return torch.cat([g, g * 5])

    class Same(First):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf(torch, 1.0, 2.0, 3.0, 4.0)
    a, b = Halves.apply(x)
    (a.sum() + 3 * b.sum()).backward()
    results = [x.is_leaf, x.grad, a.grad_fn.name() == b.grad_fn.name(), b.output_nr, a._is_view()]
    y = x * 2
    c = First.apply(y)
    d = Same.apply(y)
    results += [c.grad_fn.name(), y.grad_fn.name(), torch.autograd.grad((c.sum() + d.sum() + y.sum()), x)]
    for view in (a, c, d, d[0]):
        results.append(outcome(lambda view=view: view.mul_(2)))
    return results


@program
def what_forward_says_of_its_outputs(torch):
    class Forgotten(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1).clone()

        @staticmethod
        def backward(ctx, g):
            return g

    class Constant(Forgotten):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(x)
            return x.add_(1)

    class Mixed(Forgotten):
        seen = []

        @staticmethod
        def forward(ctx, x):
            return 3, x * 2, None, x * 3

        @staticmethod
        def backward(ctx, *grads):
            Mixed.seen += [g is None for g in grads]
            return grads[1] * 2 + grads[3]

    class Power(torch.autograd.Function):
        @staticmethod
        def forward(x, y=3):
            return x**y

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.y = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.y * ctx.saved_tensors[0] ** (ctx.y - 1), None

    x = leaf(torch, 1.0, 2.0)
    return [
        outcome(lambda: Forgotten.apply(x.clone())),
        Constant.apply(x.clone()).requires_grad,
        torch.autograd.grad(Mixed.apply(x)[1].sum(), x),
        Mixed.seen,
        torch.autograd.grad(Power.apply(x).sum(), x),
    ]


@program
def a_straight_through_estimator(torch):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(torch, 0.4, 1.6)
    (Round.apply(x) * x).sum().backward()
    return x.grad


# -- gradcheck -------------------------------------------------------------------------------------


class WrongSine(Function):
    """The sine with a gradient that is wrong at one element, or only in its second derivative."""

    first, second = 1.0, 0.0

    @classmethod
    def of(cls, first, second):
        return type("WrongSine", (cls,), {"first": first, "second": second}).apply

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        own = ctx._forward_cls
        factor = rushlight.ones(3, dtype=x.dtype)
        factor[1] = own.first
        return g * (x.cos() * factor + own.second * (x - x.detach()))


def inputs():
    return rushlight.tensor([0.3, 1.1, 2.0], dtype=rushlight.float64, requires_grad=True)


@pytest.mark.parametrize("first", [1.01, -1.0, 0.0, math.nan])
def test_gradcheck_finds_one_wrong_element(first):
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(WrongSine.of(first, 0.0), inputs())
    assert not gradcheck(WrongSine.of(first, 0.0), inputs(), raise_exception=False)


def test_gradgradcheck_finds_what_gradcheck_does_not():
    wrong = WrongSine.of(1.0, 0.1)
    assert gradcheck(wrong, inputs())
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradgradcheck(wrong, inputs())


def test_right_gradients_pass():
    right = WrongSine.of(1.0, 0.0)
    assert gradcheck(right, inputs())
    assert gradgradcheck(right, inputs())
    z = rushlight.tensor([1 + 2j, 0.5 - 1j], dtype=rushlight.complex128, requires_grad=True)
    assert gradcheck(lambda z: (z * z.conj()).real + z.imag, z)
    assert gradcheck(lambda z: (z * z).exp(), z)
    assert gradgradcheck(lambda z: (z * z).exp(), z)
    with pytest.raises(ValueError, match="require gradient"):
        gradcheck(right, inputs().detach())


def test_gradcheck_finds_a_missing_conjugate():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]  # torch's gradient of a holomorphic function is g conj(f')

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, rushlight.tensor([1 + 2j], dtype=rushlight.complex128, requires_grad=True))


def test_any_name_may_be_kept_on_the_context():
    """Among them those that nodes themselves use."""
    names = [
        "shape",
        "edges",
        "saved",
        "seq",
        "where",
        "writes",
        "extra",
        "outputs",
        "places",
        "function",
        "op",
        "leaf",
        "hooks",
        "number",
        "arrays",
        "tensors",
        "dirty",
        "constant",
        "materialize",
        "to_save",
        "ctx",
        "node",
    ]

    class Twice(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            for name in names:
                setattr(ctx, name, name)
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            assert [getattr(ctx, name) for name in names] == names
            return 2 * g

    x = rushlight.ones(3, requires_grad=True)
    y = Twice.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert y.grad_fn.dirty == "dirty"  # as in torch, where the node is the context
    assert y.grad_fn.shape == (3,)


def test_outputs_that_were_saved_and_written_to():
    class Exp(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(out)
            return out, x * 1

        @staticmethod
        def backward(ctx, g, h):
            (out,) = ctx.saved_tensors
            return g * out

    x = rushlight.ones(2, requires_grad=True)
    out, other = Exp.apply(x)
    other.add_(1)
    out.sum().backward(retain_graph=True)
    out.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_dirty_views_and_leaves():
    double = doubling(rushlight).apply
    a = rushlight.ones(4, requires_grad=True)
    b = a * 3
    double(b[:2])
    (b * rushlight.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert a.grad.tolist() == [6.0, 12.0, 9.0, 12.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        double(a)


def test_arguments_by_name_are_recorded():
    class Times(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x, n=2.0):
            ctx.n = n
            return x * n

        @staticmethod
        def backward(ctx, g):
            return g * ctx.n, None

    x = rushlight.ones(2, requires_grad=True)
    Times.apply(x=x, n=3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_an_input_handed_back_is_saved_as_the_input():
    """Its second derivative goes through the input, not by way of the output and this very backward."""

    class Odd(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return -5 * g * x * x

    x = rushlight.tensor(3.0, requires_grad=True)
    (g,) = rushlight.autograd.grad(Odd.apply(x), x, create_graph=True)
    assert (g.item(), rushlight.autograd.grad(g, x)[0].item()) == (-45, -30)


@program.found_in("pytorch issues 73604")
def a_view_of_a_function_whose_base_is_rewritten(torch):
    """Backward from the view is refused after a write to the base, from what was computed before the write it is
    not."""
    forwards = {
        "slice": lambda x: x[:],
        "view": lambda x: x.view(-1),
        "view_as": lambda x: x.view_as(x),
        "t": lambda x: x.t(),
        "input": lambda x: x,
        "two": lambda x: (x[0], x[1]),
    }

    def unrecorded(z):
        with torch.no_grad():
            z.mul_(-1)

    writes = {
        "write": lambda z: z.mul_(-1),
        "through a view": lambda z: z.t().mul_(-1),
        "of an element": lambda z: z.__setitem__(0, 3.0),
        "in no_grad": unrecorded,
        "to an alias": lambda z: z.detach().mul_(-1),
        "none": lambda z: None,
    }

    def gradient(forward, write, use):
        class Alias(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return forward(x)

            @staticmethod
            def backward(ctx, *grads):
                return sum(g.reshape(-1)[:1].reshape(1, 1).expand(2, 1) for g in grads)

        x = torch.tensor([[1.0], [2.0]], requires_grad=True)
        z = x * 1
        made = Alias.apply(z)
        y = made[0] if isinstance(made, tuple) else made
        before, view = y.sum(), y.view(-1)
        write(z)
        {"view": y.sum, "view of it": view.sum, "before": lambda: before, "base": z.sum}[use]().backward()
        return x.grad

    return [
        [name, how, use, outcome(gradient, forward, write, use)]
        for name, forward in forwards.items()
        for how, write in writes.items()
        for use in ("view", "view of it", "before", "base")
    ]


@program.found_in("xitorch")
def gradients_of_arguments_that_are_no_tensors_are_none(torch):
    def gradient(given, k, create_graph):
        class Times(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, k):
                return x * k

            @staticmethod
            def backward(ctx, g):
                return g, given(g)

        x = torch.ones(2, requires_grad=True)
        Times.apply(x, k).sum().backward(create_graph=create_graph)
        return x.grad.detach()

    given = (lambda g: None, lambda g: 3.0, lambda g: g * 1, lambda g: g.sum())
    return [
        outcome(gradient, answer, k, create_graph)
        for answer in given
        for k in (2.0, torch.ones(2), torch.ones(2, requires_grad=True))
        for create_graph in (False, True)
    ]
