"""Images sampled at given points, and grids of points transformed by affine maps."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from rushlight.base.dtypes import dtype
from rushlight.base.errors import not_implemented_error, runtime_error, value_error, warn
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.creation.ranges import evenly_spaced
from rushlight.ops.composites import composite
from rushlight.ops.linalg.matmul_api import matmul
from rushlight.ops.math import elementwise as e
from rushlight.ops.nn import grid_sample as g
from rushlight.ops.shape.views import reshape, select, stack, transpose, unsqueeze
from rushlight.ops.tensor.node_names import called

MODES = ("bilinear", "nearest", "bicubic")  # torch's codes are 0, 1, 2
MAX_CACHED_POINTS = 1 << 14  # larger grids are not cached; 200 KB
PADDINGS = ("zeros", "border", "reflection")
CHANGED = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
    "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """out[n, c, p] = input[n, c] at the point grid[n, p], interpolated between the elements around it.

    input (N, C, H, W), grid (N, Ho, Wo, 2) of points (x, y) from -1 to 1 -> (N, C, Ho, Wo); or (N, C, D, H, W) with
    points (x, y, z), not for 'bicubic'. `mode`: 'bilinear', 'nearest' or 'bicubic'; `padding_mode`: outside of the
    image, the value is 0 ('zeros'), the nearest element ('border'), or the mirrored image ('reflection').
    `align_corners`: -1 and 1 are the centres of the corner elements, rather than their outer edges. RuntimeError for
    shapes that do not fit, ValueError for another mode.

    >>> x = rushlight.tensor([[[[0., 1.], [2., 3.]]]])
    >>> rushlight.nn.functional.grid_sample(x, rushlight.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[1.5000]]]])
    """
    if mode not in MODES:
        raise value_error(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise value_error(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but "
            f"got: '{padding_mode}'"
        )
    if align_corners is None:
        warn(CHANGED)
    return at_points(input, grid, mode, padding_mode, bool(align_corners))


def at_points(input: Tensor, grid: Tensor, mode: str, padding: str, align: bool) -> Tensor:
    """The image at the points: their positions, the weights of the elements around them, and the weighted sum."""
    check_sizes(input, grid, mode)
    batch, channels, *size = input._array.shape
    out = grid._array.shape[1:-1]
    sizes = tuple(reversed(size))  # in the order of a point's coordinates: x first
    points = reshape(grid, (batch, prod(out), len(size)))
    position = g.grid_position(points, sizes, "zeros" if mode == "bicubic" else padding, align)
    part, at, weight = g.grid_taps(position, sizes, mode, padding, align)
    if mode == "bilinear":
        weight = g.bilinear(part, weight)
    elif mode == "bicubic":
        weight = e.mul(corner_weights(part), weight)
    made = g.sampled(reshape(input, (batch, channels, prod(size))), weight, at)
    return called(reshape(made, (batch, channels, *out)), f"GridSampler{len(size)}DBackward0")


def corner_weights(part: Tensor) -> Tensor:
    """Products of each dimension's weights: part (N, P, n) -> (N, K, P), x fastest."""
    batch, points, n = part._array.shape
    product = stack(cubic(select(part, 2, 0)), 1)
    for i in range(1, n):
        own = stack(cubic(select(part, 2, i)), 1)
        taps = own._array.shape[1] * product._array.shape[1]
        product = reshape(e.mul(unsqueeze(own, 2), unsqueeze(product, 1)), (batch, taps, points))
    return product


def cubic(t: Tensor, a: float = -0.75) -> list[Tensor]:
    """Weights of the four elements around a point that is t past the second: cubic convolution."""

    def near(d: Tensor) -> Tensor:
        return e.add(e.mul(e.mul(e.sub(e.mul(d, a + 2), a + 3), d), d), 1)

    def far(d: Tensor) -> Tensor:
        return e.sub(e.mul(e.add(e.mul(e.sub(e.mul(d, a), 5 * a), d), 8 * a), d), 4 * a)

    rest = 1 - t
    return [far(e.add(t, 1)), near(t), near(rest), far(e.add(rest, 1))]


def check_sizes(input: Tensor, grid: Tensor, mode: str) -> None:
    """RuntimeError, in torch's words, for shapes of image and grid that do not match."""
    x, y = list(input._array.shape), list(grid._array.shape)
    n = len(x) - 2
    sizes = f"got input with sizes {x} and grid with sizes {y}"
    if not x or not y or x[0] != y[0]:
        raise runtime_error(f"grid_sampler(): expected grid and input to have same batch size, but {sizes}")
    if y[-1] != n:
        raise runtime_error(
            f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes {y}",
            "pass a number for each spatial dimension of the input",
        )
    if n not in (2, 3) or len(y) != len(x):
        raise runtime_error(
            f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but {sizes}"
        )
    if 0 in x[2:]:
        raise runtime_error(
            f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {x} with "
            f"dimension {x.index(0, 2)} being empty"
        )
    if mode == "bicubic" and n != 2:
        raise runtime_error("grid_sampler(): bicubic interpolation only supports 4D input", sizes=sizes)
    if input.dtype is not grid.dtype:
        raise runtime_error(
            f"expected scalar type {input.dtype.scalar_type} but found {grid.dtype.scalar_type}",
            "convert one to the other's dtype: .to(dtype)",
        )
    if not input.is_floating_point():
        raise not_implemented_error(
            f"\"grid_sampler_{n}d\" not implemented for '{input.dtype.scalar_type}'", "convert with .float()"
        )


@composite(tensor=False)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """out[n, c, p] = input[n, c] at the point grid[n, p]: `nn.functional.grid_sample` with modes by number.

    0, 1, 2: bilinear, nearest, bicubic; padding modes zeros, border and reflection.

    >>> rushlight.grid_sampler(rushlight.tensor([[[[0., 1.], [2., 3.]]]]), rushlight.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.5000]]]])
    """
    return at_points(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


@composite(tensor=False)
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """out[n, c, p] = input[n, c] at the point grid[n, p]: `grid_sampler` of (N, C, H, W).

    >>> rushlight.grid_sampler_2d(rushlight.ones(1, 3, 4, 4), rushlight.zeros(1, 2, 5, 2), 0, 0, False).shape
    torch.Size([1, 3, 2, 5])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@composite(tensor=False)
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """out[n, c, p] = input[n, c] at the point grid[n, p]: `grid_sampler` of (N, C, D, H, W).

    >>> rushlight.grid_sampler_3d(rushlight.ones(1, 3, 4, 4, 4), rushlight.zeros(1, 2, 5, 6, 3), 0, 0, False).shape
    torch.Size([1, 3, 2, 5, 6])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """grid[n, p] = theta[n] (p, 1): the points of an image of `size`, transformed by affine maps, for `grid_sample`.

    theta (N, 2, 3), size (N, C, H, W) -> (N, H, W, 2); or (N, 3, 4), (N, C, D, H, W) -> (N, D, H, W, 3). ValueError or
    NotImplementedError for other shapes, ValueError for integers.

    >>> same = rushlight.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> rushlight.nn.functional.affine_grid(same, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    size = tuple(int(n) for n in size)
    check_affine(theta, size)
    if align_corners is None:
        warn(CHANGED)
    batch, _, *spatial = size
    if align_corners and 1 in spatial:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details."
        )
    make = pixel_centres if prod(spatial) <= MAX_CACHED_POINTS else pixel_centres.__wrapped__
    points = make(tuple(spatial), bool(align_corners), theta.dtype)
    moved = matmul(created(from_array(points)).to(theta.device), transpose(theta, 1, 2))
    return called(reshape(moved, (batch, *spatial, len(spatial))), "AffineGridGeneratorBackward0")


@lru_cache(maxsize=64)
def pixel_centres(size: tuple[int, ...], align: bool, d: dtype) -> np.ndarray:
    """The centres of all elements of an image, (points, n + 1), x first and 1 last. Cached and shared between calls: do
    not write to them.
    """
    axes = np.meshgrid(*[steps(n, align, d) for n in size], indexing="ij")
    points = np.stack([*reversed(axes), np.ones(size, d.numpy)], -1).reshape(-1, len(size) + 1)
    points.flags.writeable = False
    return points


def steps(n: int, align: bool, d: dtype) -> np.ndarray:
    """The centres of n elements, from -1 to 1, equal to torch's to the last bit. The gradient of a sampled image jumps
    at a centre, so a different rounding would give another gradient."""
    if n == 1:
        return np.zeros(1, d.numpy)
    edges = evenly_spaced(-1, 1, n, d)
    return edges if align else edges * d.numpy.type(n - 1) / d.numpy.type(n)


def check_affine(theta: Tensor, size: tuple[int, ...]) -> None:
    """ValueError, NotImplementedError or RuntimeError if theta and size do not match."""
    if not theta.is_floating_point():
        raise value_error(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise not_implemented_error(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    if theta._array.ndim != 3 or theta._array.shape[1:] != (n, n + 1):
        raise value_error(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise value_error(f"Expected non-zero, positive output size. Got {size}")
    if theta._array.shape[0] != size[0]:
        raise runtime_error(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {n + 1}] but got: "
            f"[{theta._array.shape[0]}, {n + 1}].",
            "pass one matrix for each image",
        )
