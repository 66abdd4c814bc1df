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
    \"\"\"out[n, o, p] = bias[o] + sum over c, k of x[n, c, p + k - padding] w[o, c, k], for n from first to end.
    Returns False if a result is not finite, or if a number is so large that its rounding errors would show elsewhere.

    x: flat (N, given, within pixels), channels innermost if `last`; out: likewise (N, made, beyond). For each tile of `some`
    images, sources has 16 indices in xs, and targets 4 indices in ys. filters: made by `transform`. Workspaces: xs (some
    within + 1, deep), vs and ms (16, block tiles, deep or broad), ys (some beyond + 1, broad); deep and broad are the
    numbers of channels, padded to whole vectors.
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
    \"\"\"total[q, o, c] += sum over tiles of (A g A^T)[q, o] (B^T d B)[q, c]; otherwise as `CONV`.

    total: flat (16, rows, deep); rows is `made`, rounded up to blocks of {height}. Workspaces: vs, es (16, block tiles, deep
    or broad).
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
    \"\"\"Copy images into the workspace, channels innermost. Returns whether no number is far larger than the mean.\"\"\"
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
    \"\"\"out: G w G^T, 16 planes of (read, broad) numbers, stored as blocks of {block} columns.

    filters: flat (read, 9, broad); the taps are read from `begin` on, `along` apart; half: 0.5.
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


Step = Callable[..., list[str]]  # (names of the variables to read, then of the variables to make) -> lines


def square(n: int) -> list[str]:
    """The numbers of the variables of an n x n square: 00, 01..."""
    return [f"{r}{s}" for r in range(n) for s in range(n)]


def of_sides(step: Step, read: int, made: int, x: str, y: str) -> list[str]:
    """Applies `step`, which makes `made` numbers from `read` numbers, to the columns and then to the rows of a square
    of variables x. The results are the variables y."""
    lines: list[str] = []
    for s in range(read):
        lines += step(*[f"{x}{r}{s}" for r in range(read)], *[f"q{r}{s}" for r in range(made)])
    for r in range(made):
        lines += step(*[f"q{r}{s}" for s in range(read)], *[f"{y}{r}{s}" for s in range(made)])
    return lines


def times_bt(a: str, b: str, c: str, d: str, *to: str) -> list[str]:
    values = f"sub({a}, {c})", f"add({b}, {c})", f"sub({c}, {b})", f"sub({d}, {b})"
    return [f"{name} = {value}" for name, value in zip(to, values)]


def times_a(a: str, b: str, *to: str) -> list[str]:
    return [f"{name} = {value}" for name, value in zip(to, (a, f"add({a}, {b})", f"sub({a}, {b})", b))]


def times_at(a: str, b: str, c: str, d: str, *to: str) -> list[str]:
    return [f"{to[0]} = add({a}, add({b}, {c}))", f"{to[1]} = add(sub({b}, {c}), {d})"]


def times_g(a: str, b: str, c: str, *to: str) -> list[str]:
    """Lines that multiply by G, whose rows are (1, 0, 0), (1, 1, 1) / 2, (1, -1, 1) / 2 and (0, 0, 1)."""
    values = a, f"fma(h, add(add({a}, {c}), {b}), none())", f"fma(h, sub(add({a}, {c}), {b}), none())", c
    return [f"{name} = {value}" for name, value in zip(to, values)]


def lines_of(kind: str) -> list[str]:
    """The arithmetic of one vector of channels of one tile."""
    if kind == "contract":
        return [
            *[f"x{rs} = load(ms, to + {k} * plane)" for k, rs in enumerate(square(4))],
            "b = load(bias, c)",
            *of_sides(times_at, 4, 2, "x", "y"),
            *[
                line
                for k, rs in enumerate(square(2))
                for line in (
                    f"y{rs} = add(y{rs}, b)",
                    f"store(ys, i{k} + c, y{rs})",
                    f"finite = fma(y{rs}, none(), finite)",
                )
            ],
        ]
    step, read, source, result = (times_bt, 4, "xs", "vs") if kind == "expand" else (times_a, 2, "gs", "es")
    return [
        *[f"x{rs} = load({source}, i{k} + c)" for k, rs in enumerate(square(read))],
        *of_sides(step, read, 4, "x", "v"),
        *[f"store({result}, to + {k} * plane, v{rs})" for k, rs in enumerate(square(4))],
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
    lines = [
        *[
            f"w{r}{s} = load(filters, (9 * c + begin + {3 * r + s} * along) * broad + o)"
            for r in range(3)
            for s in range(3)
        ],
        *of_sides(times_g, 3, 4, "w", "v"),
        *[f"store(out, {k} * plane + to, v{rs})" for k, rs in enumerate(square(4))],
    ]
    return compiled(TRANSFORM.format(block=usual()[0] * lanes(), lanes=lanes(), lines=indented(lines, 12)))
