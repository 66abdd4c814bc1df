"""Compiled loops of Winograd's convolution (fast/conv/winograd.py), for float32: a vector register holds channels.

Tiles are the rows of sixteen matrix products, whose blocks are computed in registers (channels_last.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rushlight.fast.conv.channels_last import block_added, block_stored, block_sums, blocks, indented, turning, usual
from rushlight.fast.conv.tiling import lanes
from rushlight.loops.cache import calling, compiled

CONV = """def kernel(x, last, given, within, sources, filters, bias, made, beyond, targets, out, xs, vs, ms, ys, some,
           block, first, end):
    \"\"\"out[n, o, p] = bias[o] + sum over c, k of x[n, c, p + k - padding] w[o, c, k], for n from first to end; whether it
    is finite, and no number so much larger than the others that its rounding would be seen beside it.

    x: flat, (N, given, within pixels), channels innermost where `last`; out: so too, (N, made, beyond). sources: for each
    tile of `some` images 16 places in xs; targets: 4 in ys. filters: `transform`'s. Rooms: xs (some within + 1, deep), vs
    and ms (16, block tiles, deep and broad), ys (some beyond + 1, broad); deep and broad are whole vectors of channels.
    \"\"\"
    restrict()
    deep, broad = (given + {lanes} - 1) // {lanes} * {lanes}, bias.shape[0]
    tiles = targets.shape[0] // (4 * some)
    va, ma, finite = (block + 16) * deep + {lanes}, (block + 16) * broad + {lanes}, f32(0)
    for start in range(first, end, some):
        images = min(some, end - start)
        if not laid(x, start, images, last, given, within, xs, deep):
            return False
        for top in range(0, images * tiles, block):
            count = min(block, images * tiles - top)
            expand(xs, sources, top, count, deep, vs, va)
            for q in range(16):
{products}
            finite += contract(ms, ma, top, count, broad, bias, targets, ys)
        for n in range(start, start + images):
            if last:
                for p in range(beyond):
                    copy(out, (n * beyond + p) * made, ys, ((n - start) * beyond + p) * broad, made)
            else:
                turn(ys, (n - start) * beyond * broad, beyond, made, broad, out, n * made * beyond, beyond)
    return finite == f32(0)
"""

WEIGHT_GRAD = """def kernel(x, last, given, within, sources, g, turned, made, beyond, targets, total, xs, vs, gs, es, some,
           block, first, end):
    \"\"\"total[q, o, c] += sum over tiles of their gradients, spread out to 16, times what they read; as `CONV`.

    total: flat, (16, rows, deep), rows: `made` and what is left of the last {height}. Rooms: vs, es (16, block tiles, deep
    and broad).
    \"\"\"
    restrict()
    deep, broad = (given + {lanes} - 1) // {lanes} * {lanes}, (made + {lanes} - 1) // {lanes} * {lanes}
    tiles, rows = targets.shape[0] // (4 * some), total.shape[0] // (16 * deep)
    va, ea = (block + 16) * deep + {lanes}, (block + 16) * broad + {lanes}
    for start in range(first, end, some):
        images = min(some, end - start)
        if not (laid(x, start, images, last, given, within, xs, deep)
                and laid(g, start, images, turned, made, beyond, gs, broad)):
            return False
        for top in range(0, images * tiles, block):
            count = min(block, images * tiles - top)
            expand(xs, sources, top, count, deep, vs, va)
            stretch(gs, targets, top, count, broad, es, ea)
            for q in range(16):
{products}
    return True
"""

LAY = """def kernel(x, start, images, last, channels, pixels, room, width):
    \"\"\"Images into the room, channels innermost; whether none of their numbers is far larger than the mean.\"\"\"
    restrict()
    wide()
    for n in range(images):
        at = (start + n) * channels * pixels
        if last:
            for p in range(pixels):
                copy(room, (n * pixels + p) * width, x, at + p * channels, channels)
        else:
            turn(x, at, channels, pixels, pixels, room, n * pixels * width, width)
    top, total = f32(0), f32(0)
    for i in range(images * pixels * width):
        top = largest(top, abs(room[i]))
        total = plus(total, abs(room[i]))
    return top * f32(images * pixels * width) <= f32({limit}) * total
"""

EXPAND = """def kernel(xs, sources, top, count, width, vs, plane):
    \"\"\"B^T d B of tiles d, 4 x 4.\"\"\"
    restrict()
    for t in range(count):
        at = (top + t) * 16
{places}
        for c in range(0, width, {lanes}):
            to = t * width + c
{lines}
"""

STRETCH = """def kernel(gs, targets, top, count, width, es, plane):
    \"\"\"A g A^T of tiles g, 2 x 2.\"\"\"
    restrict()
    for t in range(count):
        at = (top + t) * 4
{places}
        for c in range(0, width, {lanes}):
            to = t * width + c
{lines}
"""

CONTRACT = """def kernel(ms, plane, top, count, width, bias, targets, ys):
    \"\"\"A^T m A + bias of tiles m, 4 x 4; nan if any is not finite, else 0.\"\"\"
    restrict()
    finite = none()
    for t in range(count):
        at = (top + t) * 4
{places}
        for c in range(0, width, {lanes}):
            to = t * width + c
{lines}
    return along(finite)
"""

TRANSFORM = """def kernel(filters, half, begin, along, read, broad, out):
    \"\"\"out: G w G^T, 16 planes of read x broad numbers in blocks of {block} columns, which lie side by side.

    filters: flat, (read, 9, broad); the taps are read from `begin` on, `along` apart; half: 0.5.
    \"\"\"
    restrict()
    h = spread(half, 0)
    plane = read * broad
    for c in range(read):
        for o in range(0, broad, {lanes}):
            before = o // {block} * {block}
            to = before * read + c * min({block}, broad - before) + o - before
{lines}
"""

CHANNELS = 64  # products summed in registers, then added to the total: as accurate as torch
MAX_OVER_MEAN = 256  # limit of absolute value over mean: above it, rounding errors show in the whole tile


def lines_of(kind: str) -> list[str]:
    """The arithmetic of one vector of channels of one tile."""
    load_all = lambda room, at: [f"x{r}{s} = load({room}, {at(r, s)})" for r in range(4) for s in range(4)]
    save_all = lambda room: [f"store({room}, to + {4 * r + s} * plane, v{r}{s})" for r in range(4) for s in range(4)]
    four = lambda a, b, c, d, *to: [
        f"{to[0]} = sub({a}, {c})",
        f"{to[1]} = add({b}, {c})",
        f"{to[2]} = sub({c}, {b})",
        f"{to[3]} = sub({d}, {b})",
    ]
    two = lambda a, b, c, d, *to: [f"{to[0]} = add({a}, add({b}, {c}))", f"{to[1]} = add(sub({b}, {c}), {d})"]
    more = lambda a, b, *to: [
        f"{to[0]} = {a}",
        f"{to[1]} = add({a}, {b})",
        f"{to[2]} = sub({a}, {b})",
        f"{to[3]} = {b}",
    ]
    name = lambda letter, rs: [f"{letter}{r}{s}" for r, s in rs]
    columns, rows = [[(r, s) for r in range(4)] for s in range(4)], [[(r, s) for s in range(4)] for r in range(4)]
    if kind == "expand":
        return [
            *load_all("xs", lambda r, s: f"i{4 * r + s} + c"),
            *[line for rs in columns for line in four(*name("x", rs), *name("q", rs))],
            *[line for rs in rows for line in four(*name("q", rs), *name("v", rs))],
            *save_all("vs"),
        ]
    if kind == "stretch":
        return [
            *[f"x{r}{s} = load(gs, i{2 * r + s} + c)" for r in range(2) for s in range(2)],
            *[line for rs in columns[:2] for line in more(*name("x", rs[:2]), *name("q", rs))],
            *[line for rs in rows for line in more(*name("q", rs[:2]), *name("v", rs))],
            *save_all("es"),
        ]
    return [
        *load_all("ms", lambda r, s: f"to + {4 * r + s} * plane"),
        "b = load(bias, c)",
        *[line for rs in columns for line in two(*name("x", rs), *name("q", rs[:2]))],
        *[line for rs in rows[:2] for line in two(*name("q", rs), *name("y", rs[:2]))],
        *[
            line
            for r in range(2)
            for s in range(2)
            for line in (
                f"y{r}{s} = add(y{r}{s}, b)",
                f"store(ys, i{2 * r + s} + c, y{r}{s})",
                f"finite = fma(y{r}{s}, none(), finite)",
            )
        ],
    ]


@cache
def laying() -> Callable:
    return calling(LAY.format(limit=MAX_OVER_MEAN), turn=turning())


@cache
def through(kind: str) -> Callable:
    """The loop that moves tiles from one workspace to another: `expand`, `stretch` or `contract`."""
    text, table, count = {
        "expand": (EXPAND, "sources", 16),
        "stretch": (STRETCH, "targets", 4),
        "contract": (CONTRACT, "targets", 4),
    }[kind]
    places = [f"i{k} = get({table}, at + {k})" for k in range(count)]
    return compiled(text.format(lanes=lanes(), places=indented(places, 8), lines=indented(lines_of(kind), 12)))


def forward(width: int, height: int) -> list[str]:
    """A block of columns, from o on: vs times filters."""
    at = lambda a, k: f"ms, m + {a} * broad + {k * lanes()}"
    sums = block_sums(
        width,
        height,
        f"for c in range(begin, min(begin + {CHANNELS}, given)):",
        "filters",
        lambda a: f"vs, a{a} + c",
        after=(f"b += {width * lanes()}",),
    )
    return [
        f"for row in range(0, count, {height}):",
        "    m = q * ma + row * broad + o",
        f"    for begin in range(0, given, {CHANNELS}):",
        f"        b = (q * broad + o) * given + begin * {width * lanes()}",
        *[f"        a{a} = q * va + (row + {a}) * deep" for a in range(height)],
        *["        " + line for line in sums],
        "        if begin > 0:",
        *["            " + line for line in block_added(width, height, at)],
        *["        " + line for line in block_stored(width, height, at)],
    ]


def backward(width: int, height: int) -> list[str]:
    """A block of columns, from o on: es, transposed, times vs."""
    at = lambda a, k: f"total, m + {a} * deep + {k * lanes()}"
    sums = block_sums(
        width, height, "for t in range(count):", "vs", lambda a: f"es, e + {a}", after=("b += deep", "e += broad")
    )
    return [
        f"for row in range(0, made, {height}):",
        "    m = (q * rows + row) * deep + o",
        "    e = q * ea + row",
        "    b = q * va + o",
        *["    " + line for line in (*sums, *block_added(width, height, at), *block_stored(width, height, at))],
    ]


@cache
def conv(vectors: int) -> Callable:
    """The loop `CONV` for `kind` vectors of filters."""
    return calling(
        CONV.format(lanes=lanes(), products=blocks(forward, "broad", vectors, 16)),
        laid=laying(),
        expand=through("expand"),
        contract=through("contract"),
        turn=turning(),
    )


@cache
def weight_grad(vectors: int) -> Callable:
    """The loop `WEIGHT_GRAD` for `kind` vectors of channels."""
    height = usual()[1]
    products = blocks(backward, "deep", vectors, 16, height)
    return calling(
        WEIGHT_GRAD.format(lanes=lanes(), height=height, products=products),
        laid=laying(),
        expand=through("expand"),
        stretch=through("stretch"),
    )


@cache
def transform() -> Callable:
    """`TRANSFORM`: the rows of G are (1, 0, 0), (1, 1, 1) / 2, (1, -1, 1) / 2 and (0, 0, 1)."""

    def four(a: str, b: str, c: str, *to: str) -> list[str]:
        return [
            f"{to[0]} = {a}",
            f"{to[1]} = fma(h, add(add({a}, {c}), {b}), none())",
            f"{to[2]} = fma(h, sub(add({a}, {c}), {b}), none())",
            f"{to[3]} = {c}",
        ]

    lines = [
        f"w{r}{s} = load(filters, (9 * c + begin + {3 * r + s} * along) * broad + o)"
        for r in range(3)
        for s in range(3)
    ]
    for s in range(3):
        lines += four(*[f"w{r}{s}" for r in range(3)], *[f"u{r}{s}" for r in range(4)])
    for r in range(4):
        lines += four(*[f"u{r}{s}" for s in range(3)], *[f"v{r}{s}" for s in range(4)])
    lines += [f"store(out, {4 * r + s} * plane + to, v{r}{s})" for r in range(4) for s in range(4)]
    return compiled(TRANSFORM.format(block=usual()[0] * lanes(), lanes=lanes(), lines=indented(lines, 12)))
