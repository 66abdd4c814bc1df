"""Compiled loops of indirect convolution (fast/conv/indirect.py), for float32: a vector register holds channels of a
result, and a block is `height` image positions times `width` vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rushlight.fast.conv.channels_last import block_added, block_stored, block_sums, blocks, turning, usual
from rushlight.fast.conv.tiling import lanes
from rushlight.loops.cache import calling

CONV = """def kernel(x, last, given, size, low, extent, cuts, bases, places, ends, offsets, picks, filters, bias, made,
           beyond, out, xs, ys, some, first, end):
    \"\"\"out[n, o, place] = bias[o] + sum over k of xs[n, base + offsets[k]] filters[picks[k] + o], for n from first to end.

    x: flat (N, given, *size), channels innermost if `last`; copied to xs with a frame of zeros: (some, *extent, given), from
    position `low` on. out: likewise (N, made, beyond); ys: workspace (some, beyond + 1, broad). Target t sums the taps from
    ends[t] to ends[t + 1], at cuts[t + 1] - cuts[t] positions of each image; bases and places list these for `some` images.
    \"\"\"
    restrict()
    broad, within = bias.shape[0], size[0] * size[1] * size[2]
    framed = extent[0] * extent[1] * extent[2] * given
    for start in range(first, end, some):
        images = min(some, end - start)
        for n in range(images):
            frame(x, (start + n) * given * within, last, given, size, low, extent, xs, n * framed)
        for t in range(cuts.shape[0] - 1):
            count = images * (cuts[t + 1] - cuts[t])
{products}
        for n in range(start, start + images):
            if last:
                for p in range(beyond):
                    copy(out, (n * beyond + p) * made, ys, ((n - start) * beyond + p) * broad, made)
            else:
                turn(ys, (n - start) * beyond * broad, beyond, made, broad, out, n * made * beyond, beyond)
"""

WEIGHT_GRAD = """def kernel(x, last, given, size, low, extent, bases, offsets, g, turned, made, beyond, total, xs, gs, some,
           first, end):
    \"\"\"total[k, o] += sum over places of xs[n, base + offsets[k]] g[n, o, place]; otherwise as `CONV`.

    total: flat (offsets, broad); gs: workspace (some, beyond, broad). The number of offsets is a multiple of {height}.
    \"\"\"
    restrict()
    broad, within = total.shape[0] // offsets.shape[0], size[0] * size[1] * size[2]
    framed = extent[0] * extent[1] * extent[2] * given
    for start in range(first, end, some):
        images = min(some, end - start)
        for n in range(images):
            frame(x, (start + n) * given * within, last, given, size, low, extent, xs, n * framed)
            at = (start + n) * made * beyond
            if turned:
                for p in range(beyond):
                    copy(gs, (n * beyond + p) * broad, g, at + p * made, made)
            else:
                turn(g, at, made, beyond, beyond, gs, n * beyond * broad, broad)
        for begin in range(0, images * beyond, {chunk}):
            stop = min(begin + {chunk}, images * beyond)
{products}
"""

FRAME = """def kernel(x, at, last, given, size, low, extent, xs, to):
    \"\"\"Copy an image into its frame, channels innermost; the frame itself is not written.\"\"\"
    begin = max(0, -low[2])
    many = min(extent[2], size[2] - low[2]) - begin
    within = size[0] * size[1] * size[2]
    for d in range(max(0, -low[0]), min(extent[0], size[0] - low[0])):
        for h in range(max(0, -low[1]), min(extent[1], size[1] - low[1])):
            if many > 0:
                near = ((d + low[0]) * size[1] + h + low[1]) * size[2] + begin + low[2]
                far = to + ((d * extent[1] + h) * extent[2] + begin) * given
                if last or given == 1:
                    copy(xs, far, x, at + near * given, many * given)
                else:
                    turn(x, at + near, given, many, within, xs, far, given)
"""

CHUNK = 64  # products summed in registers, then added to the total: bounds the rounding error


def forward(width: int, height: int) -> list[str]:
    """A block of channels, from o on."""
    at = lambda a, k: f"ys, y{a} + o + {k * lanes()}"
    sums = block_sums(
        width,
        height,
        f"for k in range(begin, min(begin + {CHUNK}, ends[t + 1])):",
        "filters",
        lambda a: f"xs, a{a} + near",
        ("b, near = get(picks, k) + o, get(offsets, k)",),
    )
    return [
        f"for begin in range(ends[t], max(ends[t + 1], ends[t] + 1), {CHUNK}):",
        f"    for row in range(cuts[t] * some, cuts[t] * some + count, {height}):",
        *[f"        a{a}, y{a} = get(bases, row + {a}), get(places, row + {a})" for a in range(height)],
        *["        " + line for line in sums],
        "        if begin > ends[t]:",
        *["            " + line for line in block_added(width, height, at)],
        "        else:",
        *["            " + line for line in block_added(width, height, lambda a, k: f"bias, o + {k * lanes()}")],
        *["        " + line for line in block_stored(width, height, at)],
    ]


def backward(width: int, height: int) -> list[str]:
    """A block of channels, from o on."""
    at = lambda a, k: f"total, m + {a} * broad + {k * lanes()}"
    sums = block_sums(
        width,
        height,
        "for p in range(begin, stop):",
        "gs",
        lambda a: f"xs, a{a} + near",
        ("near, b = get(bases, p), p * broad + o",),
    )
    return [
        f"for row in range(0, offsets.shape[0], {height}):",
        "    m = row * broad + o",
        *[f"    a{a} = get(offsets, row + {a})" for a in range(height)],
        *["    " + line for line in (*sums, *block_added(width, height, at), *block_stored(width, height, at))],
    ]


@cache
def framing() -> Callable:
    return calling(FRAME, turn=turning())


@cache
def conv(vectors: int) -> Callable:
    """The loop `CONV` for results with `kind` vectors of channels."""
    return calling(CONV.format(products=blocks(forward, "broad", vectors, 12)), frame=framing(), turn=turning())


@cache
def weight_grad(vectors: int) -> Callable:
    """The loop `WEIGHT_GRAD` for gradients with `kind` vectors of channels."""
    height = usual()[1]
    text = WEIGHT_GRAD.format(height=height, chunk=CHUNK, products=blocks(backward, "broad", vectors, 12, height))
    return calling(text, frame=framing(), turn=turning())
