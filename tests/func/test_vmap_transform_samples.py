"""vmap: what a sample is. Samples without dimensions, what is made like one, keys that are True, and what samples
share."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import Tensor, equal, ones, stack, tensor
from rushlight.func import grad, jvp, vmap

X = tensor([[0.1, 0.5], [-0.3, 2.0], [0.7, -1.1]])
C = tensor([1.0, 2.0])


def check_loop(f, x):
    """vmap(f) and vmap(grad(f)) are the loops over the samples."""
    assert equal(vmap(f)(x), stack([f(one) for one in x]))
    g = grad(lambda one: f(one).sin().sum())
    assert rushlight.allclose(vmap(g)(x), stack([g(one) for one in x]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[None],
        lambda x: x[..., None],
        lambda x: x[None, None],
        lambda x: x[...],
        lambda x: x[None] * 2,
        lambda x: x.unsqueeze(0),
        lambda x: x.flatten(),
        lambda x: x.ravel(),
        lambda x: x.reshape(-1),
        lambda x: x.view(1, 1),
        lambda x: x.expand(2, 3),
        lambda x: x.repeat(2),
        lambda x: x.squeeze(),
        lambda x: x.squeeze(0),
        lambda x: x.flip(0),
        lambda x: x.transpose(0, 0),
        lambda x: x.permute(()),
        lambda x: x.movedim(0, 0),
        lambda x: x.roll(1),
        lambda x: x.unfold(0, 1, 1),
        lambda x: rushlight.atleast_2d(x),
        lambda x: stack([x, x]),
        lambda x: x.cumsum(0),
        lambda x: x.softmax(-1),
        lambda x: x.sort()[0],
        lambda x: x.sum(0),
        lambda x: x[True],
        lambda x: x[tensor(True), None],
        lambda x: x[False],
    ],
)
def test_samples_without_dimensions(f):
    check_loop(f, X[:, 0].clone())


@pytest.mark.parametrize("f", [lambda x: x.flatten(), lambda x: x.ravel(), lambda x: x.flatten() * 2])
def test_flat_samples_are_flat(f):
    check_loop(f, X)


LOOKS = {
    "plain": lambda x: x,
    "unsqueezed": lambda x: x.unsqueeze(0),
    "expanded": lambda x: x.expand(3, 2),
    "transposed": lambda x: x[None].t(),
    "selected": lambda x: x[:1],
}
LIKE = {
    "zeros_like": rushlight.zeros_like,
    "ones_like": rushlight.ones_like,
    "full_like": lambda v: rushlight.full_like(v, 3.0),
    "empty_like": lambda v: rushlight.empty_like(v).zero_(),
    "new_zeros": lambda v: v.new_zeros(v.shape),
    "contiguous": lambda v: rushlight.zeros_like(v, memory_format=rushlight.contiguous_format),
    "new_zeros with device": lambda v: v.new_zeros(v.shape, device=v.device),
    "new_ones": lambda v: v.new_ones(v.shape),
    "new_empty": lambda v: v.new_empty(v.shape).zero_(),
    "new_full": lambda v: v.new_full(v.shape, 2.0),
    "rand_like": lambda v: rushlight.rand_like(v).zero_(),
    "bernoulli_": lambda v: rushlight.empty_like(v).bernoulli_().zero_(),
}


@pytest.mark.parametrize("make", LIKE.values(), ids=LIKE)
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_is_made_like_a_sample_is_written_to_for_each(look, make):
    def f(x):
        return make(look(x)).add_(look(x))

    assert equal(vmap(f, randomness="different")(X), stack([f(x) for x in X]))


def test_given_numbers_are_shared():
    made = vmap(lambda x: (lambda v: v[v > 1.7])(x.new_tensor([1.5, 2.0])) * x)(X)
    assert equal(made, 2 * X)


KEYS = {
    "True": True,
    "False": False,
    "a tensor": tensor(True),
    "after a slice": (slice(None), True),
    "before an index": (True, tensor([1, 0])),
    "behind an index": (tensor([1, 0]), True),
    "before a number": (True, 0),
    "with None": (None, True, None),
    "twice": (True, True),
    "at the end": (..., True),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_masks_without_dimensions(key):
    check_loop(lambda x: x[key], X)
    check_loop(lambda x: grad(lambda one: one[key].sin().sum())(x), X)

    def written(x):
        y = x * 1
        y[key] = 5.0
        return y

    check_loop(written, X)


# -- what samples share ----------------------------------------------------------------------------


def test_keyword_arguments_are_shared():
    assert equal(vmap(lambda x, w: x * w)(X, w=C), X * C)
    assert equal(vmap(lambda x, *, d: x * d["w"][0])(X, d={"w": [X]}), stack([x * X for x in X]))


ASKED = {
    "bool": lambda c: bool(c.sum() > 0),
    "item": lambda c: c.sum().item(),
    "tolist": lambda c: sum(c.tolist()),
    "nonzero": lambda c: len(c.nonzero()),
    "mask": lambda c: c[c > 1.5].sum(),
    "unique": lambda c: c.detach().unique().sum(),
    "equal": lambda c: equal(c, C),
    "in": lambda c: 2.0 in c,
    "bincount": lambda c: c.long().bincount().sum(),
    "where": lambda c: rushlight.where(c > 1.5)[0].sum(),
    "histc": lambda c: c.histc(3).max(),
    "slice": lambda c: c[: int(c[0])].sum(),
    "as_tuple": lambda c: len(c.nonzero(as_tuple=True)),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_what_all_samples_share_may_be_asked_for_its_numbers(ask):
    """Also where it is a variable of a derivative inside the vmap."""

    def f(x, c):
        return (x * c).sum() * ask(c)

    both = grad(f, argnums=(0, 1))
    made = vmap(both, in_dims=(0, None))(X, C)
    for i in (0, 1):
        assert rushlight.allclose(made[i], stack([both(x, C)[i] for x in X]))
    along = vmap(lambda v: jvp(lambda c: f(c, c), (C,), (v,))[1])(X)
    assert rushlight.allclose(along, stack([jvp(lambda c: f(c, c), (C,), (v,))[1] for v in X]))


def test_results_of_chunks_are_copies():
    for size in (1, 2, 5):
        x = X.clone()
        vmap(lambda p: p.view_as(p), chunk_size=size)(x).mul_(0)
        assert equal(x, X), size
    x = X.clone()
    vmap(lambda p: p.view_as(p))(x).mul_(0)  # without chunks it is a view
    assert not x.any()


def test_index_put_takes_tensors_alone():
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got int"):
        vmap(lambda x, i: x.clone().index_put_((i, 0), ones(())), in_dims=(0, None))(ones(2, 3, 3), tensor(1))


def test_numbers_of_samples_are_not_known():
    for ask in (bool, float, Tensor.tolist, lambda x: x.nonzero(), lambda x: x.bool()[x > 0], lambda x: equal(x, x)):
        with pytest.raises(RuntimeError):
            vmap(ask)(X[:, 0] if ask in (bool, float) else X)


def test_an_eager_flat_tensor_is_its_own_flatten():
    x = rushlight.from_numpy(np.ones(3))
    assert x.flatten() is x
    assert ones(3, 1).flatten(0, 0).shape == (3, 1)


def test_the_padding_row_of_tables_has_a_tangent_and_no_gradient():
    """Of each sample its own."""
    index, tables = tensor([[0, 1], [1, 2], [0, 0]]), rushlight.arange(18.0).reshape(3, 3, 2) / 7

    def f(index, table):
        return rushlight.nn.functional.embedding(index, table, padding_idx=0).sin()

    samples = list(zip(index, tables))
    g = grad(lambda i, w: f(i, w).sum(), argnums=1)
    assert rushlight.allclose(grad(lambda w: vmap(f)(index, w).sum())(tables), stack([g(*one) for one in samples]))
    assert not grad(lambda w: vmap(f)(index, w).sum())(tables)[:, 0].any()
    along = [jvp(lambda w: f(i, w), (w,), (w + 1,))[1] for i, w in samples]  # noqa: B023
    assert rushlight.allclose(jvp(lambda w: vmap(f)(index, w), (tables,), (tables + 1,))[1], stack(along))
    assert rushlight.allclose(vmap(lambda i, w: jvp(lambda w: f(i, w), (w,), (w + 1,))[1])(index, tables), stack(along))


def test_what_nobody_differentiates_by_is_refused():
    """Not zero: a class's weight, running statistics."""
    f = rushlight.nn.functional
    for loss in (
        lambda w: f.nll_loss(X, tensor([0, 1, 0]), w),
        lambda w: f.cross_entropy(X, tensor([0, 1, 0]), w),
        lambda w: f.batch_norm(X, w, C).sum(),
        lambda w: f.batch_norm(X, C, w).sum(),
    ):
        for transform in (
            grad(loss),
            lambda w, loss=loss: jvp(loss, (w,), (w,)),
            lambda w, loss=loss: vmap(grad(loss))(X),
        ):
            with pytest.raises(RuntimeError, match="is not differentiable with respect to argument"):
                transform(C)


EMPTY = {
    "matmul": (lambda x, w: x @ w, (5, 4), (4, 2)),
    "vector": (lambda x, w: x @ w, (5, 4), (4,)),
    "linear": (lambda x, w: rushlight.nn.functional.linear(x, w), (5, 4), (3, 4)),
    "conv": (lambda x, w: rushlight.nn.functional.conv1d(x, w), (2, 4, 9), (3, 4, 2)),
    "pool": (lambda x, w: rushlight.nn.functional.adaptive_avg_pool1d(x, 2) * w, (2, 4, 9), (2,)),
    "nll": (lambda x, w: rushlight.nn.functional.nll_loss(x, w.long(), reduction="none"), (5, 4), (5,)),
    "embedding": (lambda x, w: rushlight.nn.functional.embedding(w.long(), x), (5, 4), (3,)),
    "median": (lambda x, w: x.median() + w, (5, 4), (3,)),
    "layer_norm": (lambda x, w: rushlight.nn.functional.layer_norm(x, (4,), w), (5, 4), (4,)),
    "gather": (lambda x, w: x.gather(0, w.long()), (5, 4), (3, 4)),
    "index": (lambda x, w: x[w.long()], (5, 4), (3,)),
    "pixels": (lambda x, w: rushlight.nn.functional.pixel_shuffle(x, 2) * w, (1, 4, 2, 2), (4,)),
}


@pytest.mark.parametrize(("f", "shape", "other"), EMPTY.values(), ids=EMPTY)
def test_no_samples(f, shape, other):
    """The result has the shape of a sample's; gradients of what is shared are 0."""
    x, w = ones(0, *shape), rushlight.zeros(other)
    expected = f(ones(shape), w).shape
    assert vmap(f, (0, None))(x, w).shape == (0, *expected)
    assert vmap(f)(x, rushlight.zeros(0, *other)).shape == (0, *expected)
    assert vmap(f, (None, 0))(ones(shape), rushlight.zeros(0, *other)).shape == (0, *expected)
    assert vmap(grad(lambda x, w: f(x, w).sum()), (0, None))(x, w).shape == x.shape
    assert not grad(lambda w: vmap(f, (0, None))(x, w).sum())(w).any()


DRAWS = {
    "rand_like": rushlight.rand_like,
    "randn_like": rushlight.randn_like,
    "uniform_": lambda v: v.clone().uniform_(),
    "normal_": lambda v: v.clone().normal_(),
    "zeros_like": lambda v: rushlight.zeros_like(v).uniform_(),
    "of twice": lambda v: (v * 2).exponential_(),
    "bernoulli_": lambda v: v.clone().bernoulli_(0.5),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_numbers_are_drawn_in_the_order_of_memory(draw, dim):
    """As for the tensor of all samples: torch's numbers."""
    x = rushlight.arange(60.0).reshape(3, 4, 5)
    for nested in (False, True):
        f = vmap(draw, randomness="different") if nested else draw
        rushlight.manual_seed(0)
        made = vmap(f, in_dims=dim, randomness="different")(x)
        rushlight.manual_seed(0)
        assert equal(made, draw(x.movedim(dim, 0)))


def test_dropout_draws_sample_by_sample():
    x = ones(4, 3)
    rushlight.manual_seed(0)
    made = vmap(rushlight.nn.functional.dropout, in_dims=1, randomness="different")(x)
    rushlight.manual_seed(0)
    assert equal(made, rushlight.nn.functional.dropout(ones(3, 4)))


COUNTS = rushlight.tensor([[0, 1, 2], [2, 0, 1]])
ENDS = rushlight.tensor([[0.0, 3.0], [1.0, 5.0]])
DIAGONAL = rushlight.eye(2).expand(2, 2, 2) * rushlight.tensor([1.0, 0.1])
LD, PIVOTS = rushlight.linalg.ldl_factor(rushlight.tensor([[[2.0, 1.0], [1.0, 3.0]], [[4.0, 1.0], [1.0, 5.0]]]))
NUMBERS = {
    "linspace": (lambda x: rushlight.linspace(x[0], x[1], 4), (ENDS,)),
    "logspace": (lambda x: rushlight.logspace(x[0], 2.0, 4), (ENDS,)),
    "bincount": (lambda n: rushlight.bincount(n, minlength=4), (COUNTS,)),
    "histogram": (lambda x: rushlight.histogram(x, 4, range=(0.0, 3.0))[0], (ENDS,)),
    "nonzero_static": (lambda n: rushlight.nonzero_static(n, size=2), (COUNTS,)),
    "repeat_interleave": (lambda n, x: rushlight.repeat_interleave(x.sum() * n, n), (COUNTS, ENDS)),
    "places repeated": (rushlight.repeat_interleave, (COUNTS,)),
    "pinv": (rushlight.linalg.pinv, (DIAGONAL, rushlight.tensor([0.5, 0.01]))),
    "pinv, atol": (lambda x, tol: rushlight.linalg.pinv(x, atol=tol), (DIAGONAL, rushlight.tensor([0.5, 0.01]))),
    "ldl_solve": (rushlight.linalg.ldl_solve, (LD, PIVOTS, DIAGONAL)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_functions_that_look_at_numbers_run_sample_by_sample(name):
    f, args = NUMBERS[name]
    assert rushlight.vmap(f)(*args).tolist() == rushlight.stack([f(*sample) for sample in zip(*args)]).tolist()


def test_samples_that_repeat_differently_are_refused():
    with pytest.raises(RuntimeError, match="dynamic shape"):
        rushlight.vmap(rushlight.repeat_interleave)(rushlight.tensor([[1, 2], [3, 4]]))


def test_the_gradient_of_repeated_samples():
    def repeated(x, n):
        return (rushlight.repeat_interleave(x, n) ** 2).sum()

    x = rushlight.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert rushlight.vmap(grad(repeated))(x, COUNTS).tolist() == (2 * x * COUNTS).tolist()
