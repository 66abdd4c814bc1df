"""A user's `autograd.Function` in transforms and their nestings: what its derivatives say, as if it were made of
ops."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import allclose, stack, tensor
from rushlight.autograd import Function
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vmap

X = tensor([[0.1, 0.5], [-0.3, 2.0], [1.0, -0.2]], dtype=rushlight.float64)
C = tensor([1.0, 2.0], dtype=rushlight.float64)


def product(kind):
    """x ** p * y and x - y as a Function, which keeps `kind` of things for its derivatives."""

    class Product(Function):
        generate_vmap_rule = kind != "own rule"

        @staticmethod
        def forward(x, y, p):
            return x**p * y, x - y, (x > y).to(x.dtype)

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, y, ctx.p = inputs
            ctx.mark_non_differentiable(output[2])
            if kind == "attributes":
                ctx.x, ctx.y = x, y
            else:
                ctx.save_for_backward(x, y)
            if kind == "saved apart":
                ctx.save_for_forward(y, x)
            if kind == "no materialized gradients":
                ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, g, h, _):
            x, y = (ctx.x, ctx.y) if kind == "attributes" else ctx.saved_tensors
            g, h = (rushlight.zeros_like(x * y) if t is None else t for t in (g, h))
            if kind == "larger gradients":
                g, h = (rushlight.stack([t / 4, t * 3 / 4]) for t in (g, h))
            return g * ctx.p * x ** (ctx.p - 1) * y + h, g * x**ctx.p - h, None

        @staticmethod
        def jvp(ctx, u, v, _):
            x, y = (ctx.x, ctx.y) if kind == "attributes" else ctx.saved_tensors
            x, y = (y, x) if kind == "saved apart" else (x, y)
            u, v = (rushlight.zeros_like(x * y) if t is None else t for t in (u, v))
            return u * ctx.p * x ** (ctx.p - 1) * y + x**ctx.p * v, u - v, None

        @staticmethod
        def vmap(info, in_dims, x, y, p):
            x, y = (
                t.expand(info.batch_size, *t.shape) if d is None else t.movedim(d, 0) for t, d in zip((x, y), in_dims)
            )
            ndim = max(x.ndim, y.ndim)
            x, y = (t.reshape(len(t), *(1,) * (ndim - t.ndim), *t.shape[1:]) for t in (x, y))
            return Product.apply(x, y, p), 0

    if kind != "own rule":
        del Product.vmap
    return lambda x, y: Product.apply(x, y, 3)[:2]


def plain(x, y):
    return x**3 * y, x - y


def one(f):
    """A number made of both outputs, and not linear in them."""

    def number(x, y):
        a, b = f(x * 1, y * 1)
        return (a.sin() + 2 * (b * a).cos()).sum()

    return number


def vector(f):
    def values(x, y):
        a, b = f(x * 1, y * 1)
        return a.sin() + 2 * (b * a).cos()

    return values


both, dims = (0, 1), (0, None)
NESTINGS = {
    "jvp": lambda f: jvp(vector(f), (C, C + 1), (C, C)),
    "jacrev": lambda f: jacrev(vector(f), both)(C, C + 1),
    "jacfwd": lambda f: jacfwd(vector(f), both)(C, C + 1),
    "hessian": lambda f: hessian(one(f), both)(C, C + 1),
    "linearize": lambda f: linearize(vector(f), C, C + 1)[1](C, C),
    "jvp of jvp": lambda f: jvp(lambda *a: jvp(vector(f), a, (C, C))[1], (C, C + 1), (C, C)),
    "jacrev of jacfwd": lambda f: jacrev(jacfwd(one(f)))(C, C + 1),
    "grad of jvp": lambda f: grad(lambda *a: jvp(one(f), a, (C, C))[1], both)(C, C + 1),
    "vmap": lambda f: vmap(vector(f), dims)(X, C),
    "vmap of all": lambda f: vmap(vector(f))(X, X + 1),
    "vmap along 1": lambda f: vmap(vector(f), (1, 0))(X.T, X + 1),
    "chunks": lambda f: vmap(vector(f), dims, chunk_size=2)(X, C),
    "vmap of grad": lambda f: vmap(grad(one(f), both), dims)(X, C),
    "vmap of grad, what is shared alone": lambda f: vmap(
        grad(lambda x, a, b: one(f)(a, b) * x.sum(), (0, 1, 2)), (0, None, None)
    )(X, C, C + 1),
    "grad of vmap": lambda f: grad(lambda *a: vmap(one(f), dims)(*a).sum(), both)(X, C),
    "grad of vmap of grad": lambda f: grad(lambda *a: vmap(grad(one(f)), dims)(*a).sin().sum(), both)(X, C),
    "vmap of jvp": lambda f: vmap(lambda *a: jvp(vector(f), a, a), dims)(X, C),
    "vmap of jvp, tangents alone": lambda f: vmap(lambda t: jvp(vector(f), (C, C + 1), (t, C)))(X),
    "jvp of vmap": lambda f: jvp(vmap(vector(f), dims), (X, C), (X + 1, C)),
    "jvp of vmap, what is shared alone": lambda f: jvp(lambda c: vmap(lambda x: vector(f)(x, c))(X), (C,), (C,)),
    "jvp of vmap of grad": lambda f: jvp(vmap(grad(one(f)), dims), (X, C), (X, C)),
    "vmap of jvp of grad": lambda f: vmap(lambda *a: jvp(grad(one(f)), a, a), dims)(X, C),
    "vmap of grad of jvp": lambda f: vmap(lambda *a: grad(lambda *b: jvp(one(f), b, a)[1], both)(*a), dims)(X, C),
    "grad of jvp of vmap": lambda f: grad(lambda *a: jvp(vmap(one(f), dims), a, (X, C))[1].sum(), both)(X, C),
    "vmap of hessian": lambda f: vmap(hessian(one(f)), dims)(X, C),
    "vmap of vmap": lambda f: vmap(vmap(vector(f), dims), dims)(stack([X, X + 1]), C),
    "grad of vmap of vmap": lambda f: grad(lambda *a: vmap(vmap(one(f), dims), dims)(*a).sum(), both)(
        stack([X, X + 1]), C
    ),
    "jvp of vmap of vmap": lambda f: jvp(vmap(vmap(vector(f), dims), dims), (stack([X, X + 1]), C), (stack([X, X]), C)),
    "vmap of grad of vmap": lambda f: vmap(lambda a: grad(lambda b: vmap(lambda c: one(f)(c, b))(X).sum())(a))(X),
}


def leaves(made):
    return [t for part in made for t in leaves(part)] if isinstance(made, (tuple, list)) else [made]


@pytest.mark.parametrize("nesting", NESTINGS.values(), ids=NESTINGS)
@pytest.mark.parametrize(
    "kind", ["saved", "saved apart", "attributes", "larger gradients", "no materialized gradients", "own rule"]
)
def test_functions_in_nestings(kind, nesting):
    for made, expected in zip(leaves(nesting(product(kind))), leaves(nesting(plain)), strict=True):
        assert made.shape == expected.shape
        assert allclose(made, expected, rtol=1e-9, atol=1e-9)


def test_forward_runs_once():
    """Its random numbers, and what it counts, are those that the derivatives belong to."""
    runs = []

    class Noisy(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            runs.append(1)
            noise = rushlight.randn_like(x)
            return x * noise, noise

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(output[1])

        @staticmethod
        def backward(ctx, g, _):
            (noise,) = ctx.saved_tensors
            return g * noise

        @staticmethod
        def jvp(ctx, t):
            (noise,) = ctx.saved_tensors
            return t * noise, None

    f = vmap(Noisy.apply, randomness="different")
    x = X.clone().requires_grad_()
    made, noise = f(x)
    made.sum().backward()
    assert x.grad.equal(noise)
    assert len(runs) == 1
    (_, noise), (tangent, _) = jvp(f, (X,), (X,))
    assert allclose(tangent, noise * X)
    assert len(runs) == 2


def test_a_function_that_writes_to_its_argument():
    class Triple(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.mul_(3)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return 3 * g

    def f(x):
        y = x * 1
        assert Triple.apply(y) is y
        return y.sin().sum()

    assert allclose(vmap(grad(f))(X), 3 * (3 * X).cos())
    assert allclose(grad(lambda x: vmap(f)(x).sum())(X), 3 * (3 * X).cos())
    assert allclose(vmap(f)(X), (3 * X).sin().sum(1))


def test_without_a_rule_what_samples_share_is_refused_too():
    class Bare(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert allclose(vmap(lambda x: x + Bare.apply(C))(X), X + 2 * C)  # it meets no sample
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Bare.apply)(X)
