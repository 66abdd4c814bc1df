"""Sampling at points and over random windows: grid_sample, affine_grid, fractional_max_pool."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F


def sampled(lib, functional, n, mode, padding, align):
    """Output and gradients at random points, also far outside, of a random image with n dimensions."""
    rng = np.random.default_rng(7)
    x = lib.tensor(rng.normal(size=(2, 3, *(4, 5, 3)[:n])), requires_grad=True)
    grid = lib.tensor(rng.uniform(-2.5, 2.5, size=(2, *(3, 4, 2)[:n], n)), requires_grad=True)
    out = functional.grid_sample(x, grid, mode, padding, align)
    (out * lib.tensor(rng.normal(size=tuple(out.shape)))).sum().backward()
    return [out.detach(), x.grad, grid.grad]


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("n", "mode"), [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"), (3, "nearest")]
)
def test_grid_sample(oracle, n, mode, padding, align):
    expected = oracle(lambda torch: sampled(torch, torch.nn.functional, n, mode, padding, align))
    for got, want in zip(sampled(rl, F, n, mode, padding, align), expected):
        got = np.zeros(want.shape) if got is None else got.numpy()  # nearest: no gradient, or zeros
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_grid_sample_differentiates_twice(mode):
    x = rl.randn(1, 2, 4, 4, dtype=rl.float64, requires_grad=True)
    grid = (rl.rand(1, 3, 2, 2, dtype=rl.float64) * 1.6 - 0.8).requires_grad_()

    def sample(x, grid):
        return F.grid_sample(x, grid, mode, "reflection", align_corners=False)

    assert rl.autograd.gradcheck(sample, (x, grid))
    assert rl.autograd.gradgradcheck(sample, (x, grid))


def test_points_that_are_no_numbers(oracle):
    def ask(lib, functional):
        x = lib.arange(9.0).reshape(1, 1, 3, 3)
        grid = lib.tensor([[[[float("nan"), 0.0], [0.0, float("inf")], [1e30, -1e30]]]])
        return [functional.grid_sample(x, grid, padding_mode=p, align_corners=False) for p in ("zeros", "border")]

    expected = oracle(lambda torch: ask(torch, torch.nn.functional))
    for got, want in zip(ask(rl, F), expected):
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 1, 2), (2, 5, 2, 3, 4)])
@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_affine_grid(oracle, size, align):
    n = len(size) - 2
    theta = np.random.default_rng(1).normal(size=(2, n, n + 1))

    def ask(lib, functional):
        t = lib.tensor(theta, requires_grad=True)
        grid = functional.affine_grid(t, size, align)
        grid.sin().sum().backward()
        return [grid.detach(), t.grad]

    for got, want in zip(ask(rl, F), oracle(lambda torch: ask(torch, torch.nn.functional))):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-12)


X, G = rl.ones(1, 1, 3, 3), rl.zeros(1, 2, 2, 2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.grid_sample(X, G, "cubic"), ValueError, "expected mode to be 'bilinear', 'nearest' or 'bicubic'"),
        (lambda: F.grid_sample(X, G, padding_mode="edge"), ValueError, "expected padding_mode to be 'zeros', 'border'"),
        (
            lambda: F.grid_sample(X, G[..., :1], align_corners=True),
            RuntimeError,
            "expected grid to have size 2 in last",
        ),
        (lambda: F.grid_sample(X, rl.zeros(2, 2, 2, 2), align_corners=True), RuntimeError, "to have same batch size"),
        (lambda: F.grid_sample(X[:, :, :0], G, align_corners=True), RuntimeError, "dimension 2 being empty"),
        (
            lambda: F.grid_sample(X, G.double(), align_corners=True),
            RuntimeError,
            "expected scalar type Float but found",
        ),
        (lambda: F.affine_grid(rl.ones(1, 2, 3), (1, 1, 2)), NotImplementedError, "only supports 4D and 5D sizes"),
        (lambda: F.affine_grid(rl.ones(1, 2, 2), (1, 1, 2, 2)), ValueError, "Expected a batch of 2D affine matrices"),
        (lambda: F.affine_grid(rl.ones(1, 2, 3), (2, 1, 2, 2), True), RuntimeError, "Expected size for first two"),
        (lambda: F.fractional_max_pool2d(X, 2), ValueError, "requires specifying either an output_size or"),
        (lambda: F.fractional_max_pool2d(X, 2, 3), RuntimeError, "pool height 2 too large relative to input height 3"),
        (
            lambda: F.fractional_max_pool2d(X, 2, 2, _random_samples=rl.rand(1, 2, 2)),
            RuntimeError,
            r"_random_samples.size\(1\) equals to input channel size",
        ),
        (lambda: nn.FractionalMaxPool2d(2), ValueError, "either an output size, or a pooling ratio"),
        (lambda: nn.FractionalMaxPool3d(2, output_ratio=1.5), ValueError, "output_ratio must be between 0 and 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:Default grid_sample")
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("size", "kernel", "out"), [((7, 9), (2, 3), (5, 4)), ((6, 6), 2, 1), ((6, 7, 8), 2, (3, 4, 5))]
)
def test_fractional_max_pool(oracle, size, kernel, out):
    x = np.random.default_rng(0).integers(-9, 9, (2, 3, *size)).astype("float32")

    def ask(lib, functional):
        lib.manual_seed(3)
        t = lib.tensor(x, requires_grad=True)
        values, indices = getattr(functional, f"fractional_max_pool{len(size)}d")(t, kernel, out, return_indices=True)
        values.sum().backward()
        return [values.detach(), indices, t.grad]

    for got, want in zip(ask(rl, F), oracle(lambda torch: ask(torch, torch.nn.functional))):
        np.testing.assert_array_equal(got.numpy(), want)


def test_fractional_module_keeps_its_samples():
    m = nn.FractionalMaxPool2d(2, output_ratio=0.6, _random_samples=rl.rand(1, 2, 2))
    x = rl.rand(1, 2, 8, 8)
    assert rl.equal(m(x), m(x))
    assert list(m.state_dict()) == ["_random_samples"]


def turned(t, n):
    """The gradient of an image sampled at its own pixels (spatial transformers begin there): it depends on the last bit
    of where they are, as each lies on the border of two elements' pieces."""
    theta = t.eye(2, 3)[None].requires_grad_()
    image = t.arange(1.0 * n * n).sin().view(1, 1, n, n)
    grid = t.nn.functional.affine_grid(theta, (1, 1, n, n), align_corners=False)
    (t.nn.functional.grid_sample(image, grid, align_corners=False) * image.roll(5, 3)).mean().backward()
    return theta.grad


@pytest.mark.origin("tutorials")
@pytest.mark.parametrize("n", [7, 10, 28, 33])
def test_images_sampled_at_their_pixels(oracle, n):
    assert rl.allclose(turned(rl, n), rl.tensor(oracle(lambda t: turned(t, n))), 1e-5, 1e-5)
