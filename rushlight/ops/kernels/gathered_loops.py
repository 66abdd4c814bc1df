"""Compiled loops of convolution as a product of matrices whose rows are gathered (kernels/gathered.py), for float32: results
lie in vector registers channel by channel, `height` places of the image times `width` vectors at once.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rushlight.compile.cache import calling
from rushlight.ops.kernels.innermost import blocks, lanes, step, sums, turning, usual

CORRELATE = """def kernel(x, last, given, size, low, extent, cuts, bases, places, ends, offsets, picks, filters, bias, made,
           beyond, out, xs, ys, some, first, end):
    \"\"\"out[n, o, place] = bias[o] + sum over k of xs[n, base + offsets[k]] filters[picks[k] + o], for n from first to end.

    x: flat, (N, given, *size), channels innermost where `last`, laid out in xs with a frame: (some, *extent, given), from
    `low` on. out: as x, (N, made, beyond); ys: room for (some, beyond + 1, broad). Target t adds up the taps from ends[t] to
    ends[t + 1] for its places of an image, as many as cuts[t + 1] - cuts[t]; bases and places list them for `some` images.
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

WEIGH = """def kernel(x, last, given, size, low, extent, bases, offsets, g, turned, made, beyond, total, xs, gs, some, first,
           end):
    \"\"\"total[k, o] += sum over places of xs[n, base + offsets[k]] g[n, o, place]; as `CORRELATE`.

    total: flat, (offsets, broad); gs: room for (some, beyond, broad). offsets: of a whole number of blocks of {height}.
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
    \"\"\"An image into its frame, channels innermost; what lies beside it is left as it is.\"\"\"
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

CHUNK = 64           # products are added up one after the other, then to what was added up before


def forward(width: int, height: int) -> list[str]:
    """A block of channels, from o on."""
    pairs = sums(width, height)
    at = {(a, k): f"ys, y{a} + o + {k * lanes()}" for a, k in pairs}
    return [f"for begin in range(ends[t], max(ends[t + 1], ends[t] + 1), {CHUNK}):",
            f"    for row in range(cuts[t] * some, cuts[t] * some + count, {height}):",
            *[f"        a{a}, y{a} = get(bases, row + {a}), get(places, row + {a})" for a in range(height)],
            *[f"        s{a}_{k} = none()" for a, k in pairs],
            f"        for k in range(begin, min(begin + {CHUNK}, ends[t + 1])):",
            "            b, near = get(picks, k) + o, get(offsets, k)",
            *["            " + line for line in step(width, height, "filters", lambda a: f"xs, a{a} + near")],
            "        if begin > ends[t]:",
            *[f"            s{a}_{k} = add(s{a}_{k}, load({at[a, k]}))" for a, k in pairs],
            "        else:",
            *[f"            s{a}_{k} = add(s{a}_{k}, load(bias, o + {k * lanes()}))" for a, k in pairs],
            *[f"        store({at[a, k]}, s{a}_{k})" for a, k in pairs]]


def backward(width: int, height: int) -> list[str]:
    """A block of channels, from o on."""
    pairs = sums(width, height)
    at = {(a, k): f"total, m + {a} * broad + {k * lanes()}" for a, k in pairs}
    return [f"for row in range(0, offsets.shape[0], {height}):",
            "    m = row * broad + o",
            *[f"    a{a} = get(offsets, row + {a})" for a in range(height)],
            *[f"    s{a}_{k} = none()" for a, k in pairs],
            "    for p in range(begin, stop):",
            "        near, b = get(bases, p), p * broad + o",
            *["        " + line for line in step(width, height, "gs", lambda a: f"xs, a{a} + near")],
            *[f"    store({at[a, k]}, add(s{a}_{k}, load({at[a, k]})))" for a, k in pairs]]


@cache
def framing() -> Callable:
    return calling(FRAME, turn=turning())


@cache
def correlate(vectors: int) -> Callable:
    """`CORRELATE` for so many vectors of results (`kind`)."""
    return calling(CORRELATE.format(products=blocks(forward, "broad", vectors, 12)), frame=framing(), turn=turning())


@cache
def weigh(vectors: int) -> Callable:
    """`WEIGH` for so many vectors of gradients (`kind`)."""
    height = usual()[1]
    text = WEIGH.format(height=height, chunk=CHUNK, products=blocks(backward, "broad", vectors, 12, height))
    return calling(text, frame=framing(), turn=turning())
