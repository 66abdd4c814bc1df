"""What tutorials and programs like them do and no other test did: each line was once a wrong result, name or crash."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight


def gradient(t, f, *numbers):
    x = t.tensor(numbers, requires_grad=True)
    f(x).sum().backward()
    return x.grad


WHOLE = {
    "the part behind the point": lambda t, x: x - x.long(),
    "by to": lambda t, x: x * x.to(t.int32),
    "by the dtype of another": lambda t, x: x - x.type_as(t.tensor(1)),
    "a truth": lambda t, x: x * x.bool(),
    "and back": lambda t, x: x - x.int().float(),
    "written into whole numbers": lambda t, x: x * t.zeros(3, dtype=t.int64).copy_(x),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_have_no_gradient(oracle, name):
    f = WHOLE[name]
    expected = oracle(lambda t: gradient(t, lambda x: f(t, x), 1.25, 2.5, -3.75))
    assert gradient(rushlight, lambda x: f(rushlight, x), 1.25, 2.5, -3.75).tolist() == expected.tolist()
    compiled = rushlight.compile(lambda x: f(rushlight, x))
    for _ in range(4):
        assert gradient(rushlight, compiled, 1.25, 2.5, -3.75).tolist() == expected.tolist()


def test_whole_numbers_ask_for_none():
    x = rushlight.ones(2, requires_grad=True)
    assert not any(y.requires_grad for y in (x.int(), (x * 2).long(), x.bool(), x.to(rushlight.uint8), x.byte()))
    assert x.double().requires_grad
    assert x.int().numpy().tolist() == [1, 1]


@pytest.mark.parametrize("n", [7, 28, 64, 1000])
def test_evenly_spaced_to_the_last_bit(oracle, n):
    for of in (lambda t: t.linspace(-1, 1, n), lambda t: t.linspace(-3.3, 7.1, n, dtype=t.float64),
               lambda t: t.linspace(0.1, 2, n, dtype=t.float16)):
        assert of(rushlight).tolist() == oracle(of).tolist()


def turned(t, n):
    """The gradient of an image sampled at its own pixels (spatial transformers begin there): it depends on the last
    bit of where they are, as each lies on the border of two elements' pieces."""
    theta = t.eye(2, 3)[None].requires_grad_()
    image = t.arange(1.0 * n * n).sin().view(1, 1, n, n)
    grid = t.nn.functional.affine_grid(theta, (1, 1, n, n), align_corners=False)
    (t.nn.functional.grid_sample(image, grid, align_corners=False) * image.roll(5, 3)).mean().backward()
    return theta.grad


@pytest.mark.parametrize("n", [7, 10, 28, 33])
def test_images_sampled_at_their_pixels(oracle, n):
    assert rushlight.allclose(turned(rushlight, n), rushlight.tensor(oracle(lambda t: turned(t, n))), 1e-5, 1e-5)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 20])
def test_line_searches_end_with_the_evaluations(oracle, most):
    def minimized(t):
        p, seen = t.tensor([-1.5, 2.0], dtype=t.float64, requires_grad=True), []
        optimizer = t.optim.LBFGS([p], max_iter=most, line_search_fn="strong_wolfe", history_size=5)

        def closure():
            optimizer.zero_grad()
            loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
            loss.backward()
            seen.append(loss.item())
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return seen
    assert minimized(rushlight) == pytest.approx(oracle(minimized), rel=1e-6)


def test_arrays_of_parameters_under_no_grad():
    weight = rushlight.nn.Parameter(rushlight.ones(2))
    with rushlight.no_grad():
        assert weight.numpy() is weight.array
        assert np.asarray(weight * 2).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        weight.numpy()
    with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), rushlight.from_numpy):
        y = weight.exp() ** 2
    y.sum().backward()
    assert weight.grad.tolist() == pytest.approx([2 * np.exp(2)] * 2)


NAN = float("nan")
REFUSED = {
    "lists of different length": lambda t: t.tensor([[1, 2], [3]]),
    "deeper": lambda t: t.tensor([[[1, 2], [3, 4]], [[1, 2], [3]]]),
    "one list is missing": lambda t: t.tensor([[1, 2], 3]),
    "images without a batch": lambda t: t.ones(3, 4, 5).permute(0, 2, 3, 1),
    "a dimension left out": lambda t: t.ones(2, 2).permute(0),
    "expand what is not one": lambda t: t.ones(2, 3).expand(4, 2, 4),
    "broadcast_to": lambda t: t.broadcast_to(t.ones(2), (3,)),
    "expand_as": lambda t: t.ones(2).expand_as(t.ones(3)),
    "too many indices": lambda t: t.ones(2, 2)[0, 0, 0],
    "the element of a number": lambda t: t.tensor(1.0)[0],
    "a slice of a number": lambda t: t.tensor(1.0)[:],
    "the first of none": lambda t: t.tensor(1.0)[..., :1],
    "elements of a number": lambda t: t.tensor(1.0)[t.tensor([0])],
    "a mask of another shape": lambda t: t.ones(2, 2)[t.tensor([True, False, True])],
    "along columns": lambda t: t.ones(2, 2)[:, t.tensor([True, False, True])],
    "written where a mask does not fit": lambda t: t.ones(2, 2).__setitem__(t.ones(2, 3).bool(), 1.0),
    "one less a mask": lambda t: 1 - t.tensor([True]),
    "numbers less a mask": lambda t: t.ones(2) - (t.ones(2) > 0),
    "repeats that do not fit": lambda t: t.repeat_interleave(t.ones(2), t.tensor([1, 2, 3])),
    "Cholesky of nan": lambda t: t.linalg.cholesky(t.tensor([[1.0, 0.0], [NAN, 1.0]])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_the_same_words(oracle, name):
    def words(t):
        with pytest.raises(Exception) as caught:
            REFUSED[name](t)
        return f"{type(caught.value).__name__.strip('_')}: {caught.value}".split("\n")[0]
    assert words(rushlight) == oracle(words)


def test_which_of_several_has_no_cholesky_factor(oracle):
    def infos(t):
        matrices = t.tensor([[[1.0, 0.0], [NAN, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]])
        return t.linalg.cholesky_ex(matrices).info
    assert infos(rushlight).tolist() == oracle(infos).tolist() == [2, 0, 2]


NAMED = {
    "max": lambda t, x: x.max(), "min": lambda t, x: x.min(), "max along": lambda t, x: x.max(0).values,
    "std": lambda t, x: x.std(), "var": lambda t, x: x.var(0), "clamp": lambda t, x: x.clamp(0, 1),
    "clamp from below": lambda t, x: x.clamp(min=0.0), "clamp by a tensor": lambda t, x: x.clamp(max=t.ones(3, 3)),
    "t": lambda t, x: x.t(), "T": lambda t, x: x.T, "trace": lambda t, x: x.trace(), "dist": lambda t, x: t.dist(x, x * 2),
    "roll": lambda t, x: x.roll(1), "roll along": lambda t, x: x.roll(1, 0), "rot90": lambda t, x: x.rot90(),
    "pow": lambda t, x: x ** 3, "of a number": lambda t, x: 2 ** x, "of tensors": lambda t, x: x ** x,
    "addmm": lambda t, x: t.addmm(x, x, x), "aminmax": lambda t, x: x.aminmax().max, "celu": lambda t, x: t.celu(x),
    "masked_select": lambda t, x: x.masked_select(t.eye(3) > 0), "diag_embed": lambda t, x: x.diag_embed(),
    "svdvals": lambda t, x: t.linalg.svdvals(x), "eigvalsh": lambda t, x: t.linalg.eigvalsh(x),
    "deg2rad": lambda t, x: x.deg2rad(),
    "nearest": lambda t, x: t.nn.functional.interpolate(x[None, None], scale_factor=2),
    "bilinear": lambda t, x: t.nn.functional.interpolate(x[None, None], (2, 5), mode="bilinear"),
}


@pytest.mark.parametrize("name", NAMED)
def test_nodes_have_the_names_of_torch(oracle, name):
    def named(t):
        return NAMED[name](t, (t.arange(9.0).view(3, 3) / 9 + t.eye(3)).requires_grad_()).grad_fn.name()
    assert named(rushlight) == oracle(named)


def test_resized_to_its_own_size_is_a_copy():
    x = rushlight.ones(1, 1, 2, 2)
    for made in (rushlight.nn.functional.interpolate(x, **how) for how in ({"size": 2}, {"scale_factor": 1})):
        made.zero_()
    assert x.sum() == 4
