"""Compiled loops of direct convolution (fast/conv/direct.py), for float32: copy images with their padding, sum products
in vector registers, and store the results.

Their text depends on the number of registers: `height` filters times `width` vectors of positions are added up at once,
with one load for each vector and one for each filter of a tap: 24 fused multiply-adds for 11 loads on AVX-512.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rushlight.fast.conv.channels_last import indented
from rushlight.loops.cache import compiled
from rushlight.loops.llvm import machine

FILL = """def kernel(x, shape, out, across, starts, steps, extent, first, images):
    \"\"\"out[c, p, n, u] = x[first + n, c, u steps + starts[p]] for positions inside x; the rest is not written.

    x: flat, of shape `shape` (N, C, *size); out: flat (C, phases, across); `across` holds images of size `extent`.
    \"\"\"
    restrict()
    deep, high, wide = shape[2], shape[3], shape[4]
    for c in range(shape[1]):
        for p in range(starts.shape[0]):
            begin, step = starts[p, 2], steps[2]
            low = max(0, -(begin // step))
            many = min(extent[2], (wide - 1 - begin) // step + 1) - low
            for n in range(images):
                plane = ((first + n) * shape[1] + c) * deep
                to = (c * starts.shape[0] + p) * across + n * extent[0] * extent[1] * extent[2] + low
                for d in range(extent[0]):
                    i = d * steps[0] + starts[p, 0]
                    for h in range(extent[1]):
                        k = h * steps[1] + starts[p, 1]
                        if 0 <= i < deep and 0 <= k < high and many > 0:
                            at = ((plane + i) * high + k) * wide + low * step + begin
                            if step == 1:
                                for j in range(0, many, {lanes}):
                                    store_first(out, to + j, load_first(x, at + j, many - j), many - j)
                            elif step == 2:
                                for j in range(0, many, {lanes}):
                                    rest, i2 = 2 * (many - j) - 1, at + 2 * j
                                    v = evens(load_first(x, i2, rest), load_first(x, i2 + {lanes} - 1, rest - {lanes} + 1))
                                    store_first(out, to + j, v, many - j)
                            else:
                                for j in range(many):
                                    put(out, to + j, get(x, at + j * step))
                        to += extent[2]
"""

CONV = """def kernel(x, room, groups, offsets, filters, bias, sums, out, shape, first, images, extent, count, starts, steps,
           lines):
    \"\"\"out[first + n, o, starts + steps p] = bias[o] + sum over t of filters[., t, o] x[place of (n, p) + offsets[t]].

    x: flat, `room` numbers for each group; an image has size `extent`, in lines of extent[2] positions. filters: flat (groups
    tiles, taps, height); out: flat, of shape `shape` (N, O, *size); sums: workspace for the sums of `lines` lines of height
    filters, plus a few vectors.
    \"\"\"
    restrict()
    taps = offsets.shape[0]
    pitch = extent[2]
    high = extent[1]
    deep = extent[0]
    wide = count[2]
    many = shape[1] // groups
    tiles = (many + {height} - 1) // {height}
    size = sums.shape[0] // {height}
    plane = shape[3] * shape[4]
    below = steps[1] * shape[4]                   # the step to the next line; extra steps to the next plane and image
    behind = steps[0] * plane - high * below
    beyond = (shape[1] * shape[2] - deep * steps[0]) * plane
    for top in range(0, images * deep * high, lines):
        bottom = min(top + lines, images * deep * high)
        last = bottom - 1
        while last >= top and (last % high >= count[1] or last // high % deep >= count[0]):
            last -= 1
        if last < top:
            continue
        stop = last * pitch + count[2]
        for group in range(groups):
            for tile in range(tiles):
                near = (group * tiles + tile) * {height}
                start = top * pitch
                q = start
                while q < stop:
{blocks}
                for a in range(min({height}, many - tile * {height})):
                    o = group * many + tile * {height} + a
                    h, d = top % high, top // high % deep
                    n = (first + top // (high * deep)) * shape[1] + o
                    i = n * shape[2] + d * steps[0] + starts[0]
                    to = (i * shape[3] + h * steps[1] + starts[1]) * shape[4] + starts[2]
                    at = a * size
                    for line in range(top, last + 1):
                        if h < count[1] and d < count[0]:
                            if steps[2] == 1:
                                for j in range(0, wide, {lanes}):
                                    store_first(out, to + j, load(sums, at + j), wide - j)
                            elif steps[2] == 2:
                                for j in range(0, wide, {lanes}):
                                    store_evens(out, to + 2 * j, load(sums, at + j), wide - j)
                            else:
                                for j in range(wide):
                                    put(out, to + j * steps[2], get(sums, at + j))
                        at += pitch
                        h += 1
                        to += below
                        if h == high:
                            h = 0
                            d += 1
                            to += behind
                        if d == deep:
                            d = 0
                            to += beyond
"""

PACK = """def kernel(w, shape, strides, kernel, out, height):
    \"\"\"out[group, tile, c, t, a] = w[group, tile height + a, c, kernel[t]], zero for filters beyond the last.

    w: flat, of shape `shape` (groups, filters, channels) with `strides`, and the kernel last; out: flat.
    \"\"\"
    restrict()
    to = 0
    for group in range(shape[0]):
        for first in range(0, shape[1], height):
            known = min(height, shape[1] - first)
            for c in range(shape[2]):
                at = group * strides[0] + first * strides[1] + c * strides[2]
                for t in range(kernel.shape[0]):
                    for a in range(known):
                        put(out, to + a, get(w, at + a * strides[1] + kernel[t]))
                    for a in range(known, height):
                        put(out, to + a, f32(0))
                    to += height
"""

WEIGHT_GRAD = """def kernel(g, x, room, across, offsets, out, images, size, used):
    \"\"\"out[o, t] += sum over q of g[o, q] x[q + offsets[t]], for each group of filters; q: the first `used` positions
    of images that are `size` positions apart.

    g: flat, `across` numbers for each filter, zero at positions without a result; x: flat, `room` numbers for each group; out
    (groups, filters in a group, taps).
    \"\"\"
    restrict()
    taps = offsets.shape[0]
    many = out.shape[1]
    pieces = (used + {chunk} - 1) // {chunk}
    length = ((used + pieces - 1) // pieces + {lanes} - 1) // {lanes} * {lanes}
    some = max(1, {chunk} // length)
    for group in range(out.shape[0]):
        for first in range(0, images, some):
            last = min(images, first + some)
            for begin in range(0, used, length):
                end = min(begin + length, used)
                for o in range(0, many, {height}):
{rows}
                    for t in range(0, taps, {width}):
{columns}
{sums}
                        for n in range(first, last):
                            for q in range(n * size + begin, n * size + end, {lanes}):
{products}
{totals}
"""

TAPS = 128  # products summed in registers, then added to the total: an error of 2e-7 for any number of taps
CHUNK = 1152  # positions summed at once for a weight: gradients and a channel stay in the L1 cache


def block(height: int, width: int, lanes: int) -> list[str]:
    """The sums of `height` filters over `width` vectors of positions, from q on."""
    pairs = [(a, k) for a in range(height) for k in range(width)]
    places = {(a, k): f"sums, {a} * size + q - start + {k * lanes}" for a, k in pairs}
    return [
        *[f"s{a}_{k} = spread(bias, near + {a})" for a, k in pairs],
        "at = near * taps",
        f"for begin in range(0, max(taps, 1), {TAPS}):",  # without taps, one pass writes the bias
        f"    for t in range(begin, min(begin + {TAPS}, taps)):",
        "        i = q + group * room + offsets[t]",
        *[f"        x{k} = load(x, i + {k * lanes})" for k in range(width)],
        *[
            line
            for a in range(height)
            for line in (
                f"        w = spread(filters, at + {a})",
                *[f"        s{a}_{k} = fma(w, x{k}, s{a}_{k})" for k in range(width)],
            )
        ],
        f"        at += {height}",
        "    if begin > 0:",
        *[f"        s{a}_{k} = add(s{a}_{k}, load({places[a, k]}))" for a, k in pairs],
        *[line for a, k in pairs for line in (f"    store({places[a, k]}, s{a}_{k})", f"    s{a}_{k} = none()")],
        f"q += {width * lanes}",
    ]


def widths(height: int) -> int:
    """The number of vectors of positions added up at once: all registers except those for the positions and a filter."""
    registers = machine()[1]
    return min(8, (registers - 1) // (height + 1))


@cache
def conv(height: int) -> Callable:
    """The loop `CONV` for filters in tiles of `height`; the last tile may be narrower."""
    lanes, width = machine()[0], widths(height)
    blocks: list[str] = []
    for k in range(width, 0, -1):
        blocks += [
            f"{'if' if k == width else 'elif'} stop - q > {(k - 1) * lanes}:",
            *["    " + line for line in block(height, k, lanes)],
        ]
        if k > 3:  # 4 or more vectors: the rest of a row goes one at a time
            blocks += ["else:", *["    " + line for line in block(height, 1, lanes)]]
            break
    return compiled(CONV.format(height=height, lanes=lanes, blocks=indented(blocks, 20)))


def weight_height(filters: int) -> int:
    """Filters whose weight gradients are summed at once. Few filters use a lower tile, which reads more vectors each."""
    cost = {4: 1.0, 3: 1.0, 2: 1.13, 1: 2.1} if machine()[1] == 32 else {2: 1.0, 1: 1.5}
    return min(cost, key=lambda h: -(-filters // h) * h * cost[h])


@cache
def weight_grad(height: int) -> Callable:
    """The loop `WEIGHT_GRAD` for filters in tiles of `height`."""
    lanes, registers = machine()
    width = min(9, (registers - 1) // (height + 1))
    pairs = [(a, k) for a in range(height) for k in range(width)]
    parts = {
        "rows": [f"g{a} = (group * many + min(o + {a}, many - 1)) * across" for a in range(height)],
        "columns": [f"x{k} = group * room + offsets[min(t + {k}, taps - 1)]" for k in range(width)],
        "sums": [f"s{a}_{k} = none()" for a, k in pairs],
        "products": [
            *[f"v{k} = load(x, x{k} + q)" for k in range(width)],
            *[
                line
                for a in range(height)
                for line in (f"w = load(g, g{a} + q)", *[f"s{a}_{k} = fma(w, v{k}, s{a}_{k})" for k in range(width)])
            ],
        ],
        "totals": [
            line
            for a, k in pairs
            for line in (
                f"if o + {a} < many and t + {k} < taps:",
                f"    out[group, o + {a}, t + {k}] += along(s{a}_{k})",
            )
        ],
    }
    depth = {"rows": 20, "columns": 24, "sums": 24, "products": 32, "totals": 24}
    return compiled(
        WEIGHT_GRAD.format(
            height=height,
            width=width,
            lanes=lanes,
            chunk=CHUNK,
            **{name: indented(lines, depth[name]) for name, lines in parts.items()},
        )
    )


@cache
def fill() -> Callable:
    return compiled(FILL.format(lanes=machine()[0]))


@cache
def pack() -> Callable:
    return compiled(PACK)
