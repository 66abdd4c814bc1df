"""Sampling images at points: three ops, each linear in two operands and the derivative of the other two; and the op
that computes positions and weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, inner
from rushlight.core.worlds import ARRAYS, shared
from rushlight.kernels import grid_sample as kernels

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import stack, zeros_like

for name in ("grid_position", "grid_slope", "grid_taps", "bilinear", "sampled", "sampled_back", "sampled_slope"):
    ARRAYS[name] = getattr(kernels, name)

# x (N, P, n): points in parts of the image -> positions in elements -> the taps around them
# fmt: off
grid_position = inner(lambda x, /, size, padding, align: grid_position(x, size, padding, align),
    x=lambda g, x, size, padding, align: g * grid_slope(x, size, padding, align), batched="fold")
grid_slope = inner(lambda x, /, size, padding, align: grid_slope(x, size, padding, align), batched="fold")
grid_taps = inner(lambda x, /, size, mode, padding, align: grid_taps(x, size, mode, padding, align), x=lambda gs: gs[0],
    outputs="part at inside", batched="fold")
bilinear = inner(lambda x, inside, /: bilinear(x, inside), x=lambda g, x, inside: bilinear_slope(g * inside, x),
    inside=lambda g, x, inside: g * bilinear(x, zeros_like(inside) + 1), batched="fold")
# fmt: on


@shared
def bilinear_slope(g, x):
    """The gradient of the weights (N, 2^n, P) -> the gradient of the points (N, P, n): the weights' difference along
    each dimension.
    """
    slopes = []
    for i in range(x.shape[2]):
        r = g
        for d in range(x.shape[2] - 1, -1, -1):  # the first half of the taps is the lower one in dimension d
            half = r.shape[1] // 2
            low, high, t = r[:, :half], r[:, half:], x[:, None, :, d]
            r = high - low if d == i else low * (1 - t) + high * t
        slopes.append(r[:, 0])
    return stack(slopes, 2)


# x (N, C, S), weight (N, K, P), at (N, K, P) -> (N, C, P): the elements x[n, c, at], times their weights, added up
# fmt: off
sampled = inner(lambda x, weight, at, /: sampled(x, weight, at),
    x=lambda g, weight, at, x_shape: sampled_back(g, weight, at, x_shape[2]),
    weight=lambda g, x, at: sampled_slope(g, x, at), batched="fold")
sampled_back = inner(lambda x, weight, at, /, size: sampled_back(x, weight, at, size),
    x=lambda g, weight, at: sampled(g, weight, at), weight=lambda g, x, at: sampled_slope(x, g, at), batched="fold")
sampled_slope = inner(lambda x, y, at, /: sampled_slope(x, y, at), x=lambda g, y, at: sampled(y, g, at),
    y=lambda g, x, at, y_shape: sampled_back(x, g, at, y_shape[2]), batched="fold")
# fmt: on

build(globals())
