"""Sampling images at points: three ops, linear in two operands each, and each the derivative of the other two."""
from __future__ import annotations

from rushlight.ops.build import build, inner
from rushlight.ops.kernels import grid as kernels
from rushlight.ops.worlds import ARRAYS

for name in ("grid_position", "grid_slope", "grid_taps", "sampled", "sampled_back", "sampled_slope"):
    ARRAYS[name] = getattr(kernels, name)

# x (N, P, n): points in parts of the image -> positions in elements -> the taps around them
grid_position = inner(lambda x, /, size, padding, align: grid_position(x, size, padding, align),
                      x=lambda g, x, size, padding, align: g * grid_slope(x, size, padding, align), batched="fold")
grid_slope = inner(lambda x, /, size, padding, align: grid_slope(x, size, padding, align), batched="fold")
grid_taps = inner(lambda x, /, size, mode, padding, align: grid_taps(x, size, mode, padding, align),
                  outputs="part at inside", x=lambda gs: gs[0], batched="fold")

# x (N, C, S), weight (N, K, P), at (N, K, P) -> (N, C, P): the elements x[n, c, at], times their weights, added up
sampled = inner(lambda x, weight, at, /: sampled(x, weight, at),
                x=lambda g, weight, at, x_shape: sampled_back(g, weight, at, x_shape[2]),
                weight=lambda g, x, at: sampled_slope(g, x, at), batched="fold")
sampled_back = inner(lambda x, weight, at, /, size: sampled_back(x, weight, at, size),
                     x=lambda g, weight, at: sampled(g, weight, at),
                     weight=lambda g, x, at: sampled_slope(x, g, at), batched="fold")
sampled_slope = inner(lambda x, y, at, /: sampled_slope(x, y, at),
                      x=lambda g, y, at: sampled(y, g, at),
                      y=lambda g, x, at, y_shape: sampled_back(x, g, at, y_shape[2]), batched="fold")

build(globals())
