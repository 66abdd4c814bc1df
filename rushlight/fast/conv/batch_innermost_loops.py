"""Compiled loops of convolution with the batch innermost (fast/conv/batch_innermost.py), for float32: a block is
`height` filters times `width` places, each sum a vector of images.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rushlight.fast.conv.channels_last import indented, sums, turning
from rushlight.fast.conv.tiling import lanes
from rushlight.loops.cache import calling

CONV = """def kernel(x, size, shape, low, extent, plain, cuts, bases, places, firsts, lasts, ends, offsets, picks, filters,
           strides, bias, out, xs, ys, first, end):
    \"\"\"out[n, o, place] = bias[o] + sum over c, k of xs[c, base + offsets[k], n] filters[c, picks[k], o], n from first on.

    x: flat (N, groups given, *size); each group is copied to xs with a frame of zeros: (given, *extent, lanes), from position
    `low` on. shape: numbers of groups, of channels read and made in a group, of taps, of positions of a result. strides: of
    filters and of results between groups, and of filters between taps. out: flat (N, groups made, places); ys: workspace for
    `height` of its channels.
    \"\"\"
    restrict()
    groups, given, made, taps, beyond = shape[0], shape[1], shape[2], shape[3], shape[4]
    plane, behind = apart(extent[0] * extent[1] * extent[2]), apart(beyond)
    for start in range(first, end, {lanes}):
        images = min({lanes}, end - start)
        for group in range(groups):
            lay(x, start, images, groups * given, group * given, given, size, low, extent, plain, xs, 0, ys)
            for o in range(0, made, {height}):
                channel = group * made + o
                for t in range(cuts.shape[0] - 1):
                    for row in range(cuts[t], cuts[t + 1], {width}):
{block}
                at, wide = (start * groups * made + channel) * beyond, groups * made * beyond
                if beyond < {lanes}:
                    turn(ys, 0, min({height}, made - o) * beyond, images, {lanes}, out, at, wide)
                else:
                    for a in range(min({height}, made - o)):
                        turn(ys, a * behind, beyond, images, {lanes}, out, at + a * beyond, wide)
"""

WEIGHT_GRAD = """def kernel(x, size, shape, low, extent, plain, bases, rows, g, out, total, xs, gs, sums, some, first,
           end):
    \"\"\"total[o, k] += sum over n, places of xs[n, base + rows[k]] g[n, o, place], first <= n < end; otherwise as `CONV`.

    out: the spatial size of a result. Workspaces: gs for the gradients of `some` images, xs for these images, sums for a
    block. The number of rows is a multiple of {width}.
    \"\"\"
    restrict()
    groups, given, made, beyond = shape[0], shape[1], shape[2], shape[4]
    plane, behind = apart(extent[0] * extent[1] * extent[2]), apart(beyond)
    for start in range(first, end, some):
        blocks = (min(some, end - start) + {lanes} - 1) // {lanes}
        for group in range(groups):
            for n in range(blocks):
                image, images, to = start + n * {lanes}, min({lanes}, end - start - n * {lanes}), n * given * plane
                lay(x, image, images, groups * given, group * given, given, size, low, extent, plain, xs, to, gs)
            for n in range(blocks):
                image, images, to = start + n * {lanes}, min({lanes}, end - start - n * {lanes}), n * made * behind
                lay(g, image, images, groups * made, group * made, made, out, out, out, True, gs, to, gs)
            for o in range(0, made, {height}):
                for row in range(0, rows.shape[0], {width}):
{block}
"""

LAY = """def kernel(x, start, images, channels, channel, count, size, low, extent, plain, xs, to, room):
    \"\"\"Copy images to xs, from `to` on, batch innermost, with a frame of zeros. room: workspace for images without it.\"\"\"
    within, plane = size[0] * size[1] * size[2], apart(extent[0] * extent[1] * extent[2])
    if plain:
        batch_last(x, start, images, channels, channel, count, within, xs, to, plane)
    else:
        batch_last(x, start, images, channels, channel, count, within, room, 0, within * {lanes})
        begin = max(0, -low[2])
        many = max(0, min(extent[2], size[2] - low[2]) - begin)
        for c in range(count):
            at = to + c * plane
            for d in range(low[0], low[0] + extent[0]):
                for h in range(low[1], low[1] + extent[1]):
                    inside = 0 <= d < size[0] and 0 <= h < size[1]
                    blank(xs, at, begin if inside else extent[2])
                    if inside:
                        near = ((c * size[0] + d) * size[1] + h) * size[2] + begin + low[2]
                        copy(xs, at + begin * {lanes}, room, near * {lanes}, many * {lanes})
                        blank(xs, at + (begin + many) * {lanes}, extent[2] - begin - many)
                    at += extent[2] * {lanes}


@cached
def blank(out, at, many):
    for i in range(at, at + many * {lanes}, {lanes}):
        store(out, i, none())


@cached
def batch_last(x, start, images, channels, channel, count, within, out, to, plane):
    \"\"\"out[to + c plane + i, n] = x[start + n, channel + c, i]; zeros where images do not fill the lanes.\"\"\"
    if images < {lanes}:
        blank(out, to, count * plane // {lanes})
    wide = channels * within
    at = start * wide + channel * within
    if plane == within * {lanes}:
        turn(x, at, images, count * within, wide, out, to, {lanes})
    else:
        for c in range(count):
            turn(x, at + c * within, images, within, wide, out, to + c * plane, {lanes})
"""

APART = """

@cached
def apart(n):
    \"\"\"The distance between channels of n positions: an odd number of vectors, since channels at a distance of a power of
    two would map to the same cache sets.\"\"\"
    return (n | 1) * {lanes} if n >= {lanes} else n * {lanes}
"""


def conv_block(height: int, width: int) -> list[str]:
    """The sums of `height` channels for `width` positions, from `row` on."""
    pairs = sums(width, height)
    return [
        *[f"a{k}, y{k} = get(bases, row + {k}), get(places, row + {k})" for k in range(width)],
        *[f"s{a}_{k} = spread(bias, channel + {a})" for a, k in pairs],
        "for c in range(given):",
        "    near = c * plane",
        "    far = (group * strides[0] + c) * taps * strides[2] + group * strides[1] + o",
        "    for k in range(ends[t] + get(firsts, row), ends[t] + get(lasts, row)):",
        "        i, f = near + get(offsets, k), far + get(picks, k) * strides[2]",
        *[f"        v{k} = load(xs, a{k} + i)" for k in range(width)],
        *[
            line
            for a in range(height)
            for line in (
                f"        w = spread(filters, f + {a})",
                *[f"        s{a}_{k} = fma(w, v{k}, s{a}_{k})" for k in range(width)],
            )
        ],
        *[f"store(ys, {a} * behind + y{k}, s{a}_{k})" for a, k in pairs],
    ]


def weight_block(height: int, width: int) -> list[str]:
    """The sums over positions of `height` channels for `width` filter elements, from `row` on."""
    pairs = sums(width, height)
    return [
        *[f"a{k} = get(rows, row + {k})" for k in range(width)],
        *[f"g{a} = min(o + {a}, made - 1) * behind" for a in range(height)],
        *[f"s{a}_{k} = none()" for a, k in pairs],
        "for n in range(blocks):",
        "    for p in range(beyond):",
        f"        i, j = n * given * plane + get(bases, p), n * made * behind + p * {lanes()}",
        *[f"        v{k} = load(xs, a{k} + i)" for k in range(width)],
        *[
            line
            for a in range(height)
            for line in (
                f"        w = load(gs, g{a} + j)",
                *[f"        s{a}_{k} = fma(w, v{k}, s{a}_{k})" for k in range(width)],
            )
        ],
        *[f"store(sums, {(a * width + k) * lanes()}, s{a}_{k})" for a, k in pairs],
        f"for a in range(min({height}, made - o)):",
        f"    for k in range({width}):",
        f"        total[group * made + o + a, row + k] += along(load(sums, (a * {width} + k) * {lanes()}))",
    ]


def tiles() -> tuple[tuple[int, int], ...]:
    """(height, width) of blocks whose sums fit in registers, most reuse first."""
    from rushlight.loops.llvm import machine

    return ((6, 4), (8, 3), (4, 6), (2, 10), (1, 14)) if machine()[1] == 32 else ((4, 2), (2, 4), (1, 6))


def conv_tile(made: int) -> tuple[int, int]:
    """The block for this number of result channels: the one with the fewest unused rows."""
    return min(tiles(), key=lambda tile: -(-made // tile[0]) * tile[0])


def weight_tile(made: int, rows: int) -> tuple[int, int]:
    return min(tiles(), key=lambda tile: -(-made // tile[0]) * tile[0] * -(-rows // tile[1]) * tile[1])


@cache
def lay() -> Callable:
    return calling((LAY + APART).format(lanes=lanes()), turn=turning())


@cache
def conv(height: int, width: int) -> Callable:
    text = (CONV + APART).format(
        height=height, width=width, lanes=lanes(), block=indented(conv_block(height, width), 24)
    )
    return calling(text, lay=lay(), turn=turning())


@cache
def weight_grad(height: int, width: int) -> Callable:
    block = indented(weight_block(height, width), 20)
    return calling((WEIGHT_GRAD + APART).format(height=height, width=width, lanes=lanes(), block=block), lay=lay())
