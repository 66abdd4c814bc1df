"""Compiled loops of attention, for float32: scores are computed for a few queries and 64 keys at a time.

Keys are the SIMD direction, and each query has its own registers. q k^T needs k^T (E, S), transposed once for each
head; all other products read their rows in place. `T` queries are computed together, and with a causal mask no keys
beyond the last one visible to any of the T are read. After Rabe and Staats, "Self-attention Does Not Need O(n^2)
Memory" (2021), and Dao, "FlashAttention-2" (2023).

Arrays are passed by their ids, as in fast/matmul_loops.py: the loop reads addresses and strides from NumPy's own
objects; Python would take 6 us to read them. The numbers of a row must be contiguous, or the loop returns False; a mask
(0: none) may have any strides. Rows come 8 at a time, or one at a time if at most two are left; otherwise they are
padded with zeros (39 queries: 0.85 of the time).

Cascade Lake, one core, 48 heads of 64 queries, E = 32, causal: 0.39 ms forward and 0.76 ms back; torch's kernels 0.69
and 2.0 (benchmarks/modules.py measures calls)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from textwrap import indent

from rushlight.loops.cache import calling, compiled
from rushlight.loops.llvm import machine

QUERIES, KEYS = 32, 64  # sizes of a tile: its scores and their slopes stay in the L1 cache
TALL = {32: 8, 16: 4}  # number of registers -> rows of a product that are added up at once, each of two vectors

FORWARD = """def kernel(q_id, k_id, v_id, mask_id, out_id, lse_id, scale, causal, start, stop):
    \"\"\"out = softmax(q k^T scale + mask) v, lse = log sum exp of the scores, for heads start to stop.\"\"\"
    if not (fits(q_id) and fits(k_id) and fits(v_id) and fits(out_id) and lines_up(mask_id)):
        return False
    above = dimensions(q_id) - 2
    L, S, E, F = size(q_id, above), size(k_id, above), size(q_id, above + 1), size(v_id, above + 1)
    q_row, k_row, v_row, out_row = step(q_id, above), step(k_id, above), step(v_id, above), step(out_id, above)
    pe, pf = whole(E), whole(F)
    small, keys_of, values_of = {R} * ({K} + pe + pf + 3) + 2, E * whole(S), S * pf
    room = empty(small + keys_of + values_of, f32)
    tile, qs, sums = part(room, 0), part(room, {R} * {K}), part(room, {R} * ({K} + pe))
    top, shift, total = part(sums, {R} * pf), part(sums, {R} * (pf + 1)), part(sums, {R} * (pf + 2))
    one, by, kt, vs = part(room, small - 2), part(room, small - 1), part(room, small), part(room, small + keys_of)
    one[0], by[0] = f32(1), scale
    seen = min(S, L) if causal else S             # keys
    lse = memory(word(lse_id + {data}))
    for head in range(start, stop):
        q, out = matrix(q_id, head), matrix(out_id, head)
        turned(kt, matrix(k_id, head), k_row, E, seen)
        rows(vs, 0, pf, matrix(v_id, head), 0, v_row, F, seen, pf, one, 0)
        for i0 in range(0, L, {R}):
            many = min({R}, L - i0)
            rows(qs, 0, pe, q, i0 * q_row, q_row, E, many, pe, by, 0)
            fill(part(qs, many * pe), (tall(many) - many) * pe, f32(0))
            fill(top, many, f32(-inf))
            fill(total, many, f32(0))
            fill(sums, tall(many) * pf, f32(0))
            last = min(seen, i0 + many) if causal else seen
            for j0 in range(0, last, {K}):
                for r in range(0, many, {T}):
                    high = min({T}, many - r)
                    first = i0 + r - j0 if causal else S          # the last key that row r may see
                    keys = min({K}, last - j0, first + {T})
                    if keys > 0:
                        score(tile, r * {K}, qs, r * pe, pe, kt, j0, high, keys, E)
                        if mask_id != 0:
                            add_mask(tile, r * {K}, mask_id, head, i0 + r, j0, high, keys)
                        weigh(tile, r, high, keys, first, top, shift, total, sums, pf)
                        for f in range(0, pf, {Q}):
                            product(sums, r * pf + f, pf, tile, r * {K}, {K}, 1, vs, j0 * pf + f, pf, high, keys)
            for i in range(many):
                put(lse, head * L + i0 + i, log(total[i]) + where(top[i] == f32(-inf), f32(0), top[i]))
                shift[i] = f32(1) / where(total[i] == f32(0), f32(1), total[i])
            rows(out, i0 * out_row, out_row, sums, 0, pf, F, many, F, shift, 1)
    return room.size > 0                          # keeps `room` alive while its parts are used
"""

BACK = """def kernel(q_id, k_id, v_id, mask_id, out_id, lse_id, g_id, dq_id, dk_id, dv_id, scale, causal, start, stop):
    \"\"\"The gradients of q, k and v from g, that of out, for heads start to stop; scores are computed again.

    p = exp(scores - lse), dv = p^T g, ds = p (g v^T - sum(g out)), dq = ds k scale, dk = ds^T q scale.
    \"\"\"
    if not (fits(q_id) and fits(k_id) and fits(v_id) and fits(out_id) and lines_up(mask_id)
            and fits(g_id) and fits(dq_id) and fits(dk_id) and fits(dv_id)):
        return False
    above = dimensions(q_id) - 2
    L, S, E, F = size(q_id, above), size(k_id, above), size(q_id, above + 1), size(v_id, above + 1)
    q_row, k_row, v_row, out_row = step(q_id, above), step(k_id, above), step(v_id, above), step(out_id, above)
    g_row, dq_row, dk_row, dv_row = step(g_id, above), step(dq_id, above), step(dk_id, above), step(dv_id, above)
    pe, pf, ps = whole(E), whole(F), whole(S)
    small = {R} * (2 * {K} + 2 * pe + pf + 2) + 2
    room = empty(small + (E + F) * ps + ps * (2 * pe + pf), f32)
    tile, slope, qs, gs = part(room, 0), part(room, {R} * {K}), part(room, {R} * 2 * {K}), part(room, {R} * (2 * {K} + pe))
    dqs, shift, delta = part(gs, {R} * pf), part(gs, {R} * (pf + pe)), part(gs, {R} * (pf + pe + 1))
    one, by, kt = part(room, small - 2), part(room, small - 1), part(room, small)
    vt, ks = part(kt, E * ps), part(kt, (E + F) * ps)
    dks, dvs = part(ks, ps * pe), part(ks, 2 * ps * pe)
    one[0], by[0] = f32(1), scale
    seen = min(S, L) if causal else S             # keys
    lse = memory(word(lse_id + {data}))
    for head in range(start, stop):
        q, k, out = matrix(q_id, head), matrix(k_id, head), matrix(out_id, head)
        g, dq = matrix(g_id, head), matrix(dq_id, head)
        turned(kt, k, k_row, E, seen)
        turned(vt, matrix(v_id, head), v_row, F, seen)
        rows(ks, 0, pe, k, 0, k_row, E, seen, pe, one, 0)
        fill(dks, ps * pe, f32(0))
        fill(dvs, ps * pf, f32(0))
        for i0 in range(0, L, {R}):
            many = min({R}, L - i0)
            rows(qs, 0, pe, q, i0 * q_row, q_row, E, many, pe, by, 0)
            rows(gs, 0, pf, g, i0 * g_row, g_row, F, many, pf, one, 0)
            fill(part(qs, many * pe), (tall(many) - many) * pe, f32(0))
            fill(part(gs, many * pf), (tall(many) - many) * pf, f32(0))
            for i in range(many):
                known = get(lse, head * L + i0 + i)
                shift[i] = known if known != f32(-inf) else f32(inf)
                delta[i] = dot(gs, i * pf, out, (i0 + i) * out_row, F)
            fill(dqs, tall(many) * pe, f32(0))
            last = min(seen, i0 + many) if causal else seen
            for j0 in range(0, last, {K}):
                for r in range(0, many, {T}):
                    high = min({T}, many - r)
                    first = i0 + r - j0 if causal else S
                    keys = min({K}, last - j0, first + {T})
                    if keys > 0:
                        score(tile, r * {K}, qs, r * pe, pe, kt, j0, high, keys, E)
                        score(slope, r * {K}, gs, r * pf, pf, vt, j0, high, keys, F)
                        if mask_id != 0:
                            add_mask(tile, r * {K}, mask_id, head, i0 + r, j0, high, keys)
                        weigh_back(tile, slope, r, high, keys, first, shift, delta)
                        for e in range(0, pe, {Q}):
                            product(dqs, r * pe + e, pe, slope, r * {K}, {K}, 1, ks, j0 * pe + e, pe, high, keys)
                keys = min({K}, last - j0)
                for j in range(0, keys, {T}):
                    high = min({T}, keys - j)
                    r = max(0, (j0 + j - i0) // {T} * {T}) if causal else 0      # the first that sees one of these keys
                    for e in range(0, pe, {Q}):
                        product(dks, (j0 + j) * pe + e, pe, slope, r * {K} + j, 1, {K}, qs, r * pe + e, pe, high, many - r)
                    for f in range(0, pf, {Q}):
                        product(dvs, (j0 + j) * pf + f, pf, tile, r * {K} + j, 1, {K}, gs, r * pf + f, pf, high, many - r)
            rows(dq, i0 * dq_row, dq_row, dqs, 0, pe, E, many, E, by, 0)
        rows(matrix(dk_id, head), 0, dk_row, dks, 0, pe, E, S, E, one, 0)
        rows(matrix(dv_id, head), 0, dv_row, dvs, 0, pf, F, S, F, one, 0)
    return room.size > 0                          # keeps `room` alive while its parts are used
"""

PLACES = """

@cached
def whole(n):
    \"\"\"n rounded up to pairs of vectors.\"\"\"
    return (n + {Q} - 1) // {Q} * {Q}


@cached
def tall(n):
    \"\"\"n rounded up to the rows of a product.\"\"\"
    return (n + {T} - 1) // {T} * {T}


@cached
def dimensions(array):
    return word(array + {dimensions}) & 255


@cached
def size(array, d):
    return word(word(array + {sizes}) + 8 * d)


@cached
def step(array, d):
    return word(word(array + {steps}) + 8 * d) >> 2


@cached
def lines_up(array):
    \"\"\"Whether all numbers are aligned to four bytes; True without an array.\"\"\"
    if array == 0:
        return True
    places = word(array + {data})
    for d in range(dimensions(array)):
        places |= word(word(array + {steps}) + 8 * d)
    return places & 3 == 0


@cached
def fits(array):
    \"\"\"Whether the numbers of a row follow each other.\"\"\"
    return lines_up(array) and step(array, dimensions(array) - 1) == 1


@cached
def matrix(array, head):
    \"\"\"The memory from this head's matrix on.\"\"\"
    at = word(array + {data})
    for d in range(dimensions(array) - 3, -1, -1):
        at += head % size(array, d) * word(word(array + {steps}) + 8 * d)
        head //= size(array, d)
    return memory(at)
"""

PARTS = {  # loops that both functions call, by name
    "fill": """def kernel(to, n, value):
    wide()
    for i in range(n):
        to[i] = value
""",
    "rows": """def kernel(to, at, pitch, x, start, row, size, many, width, factors, along):
    \"\"\"to[i, e] = x[i, e] factors[i along], and 0 from e = size to `width`.\"\"\"
    for i in range(many):
        a, b = at + i * pitch, start + i * row
        times = spread(factors, i * along)
        for e in range(0, size - {W} + 1, {W}):
            store(to, a + e, mul(load(x, b + e), times))
        for e in range(size // {W} * {W}, size):
            put(to, a + e, get(x, b + e) * factors[i * along])
        for e in range(size, width):
            put(to, a + e, f32(0))
""",
    "turned": """def kernel(to, x, row, size, many):
    \"\"\"to[c, e, i] = x[j, e] of `many` rows, j = c {Q} + i; 0 beyond them.\"\"\"
    squares, panel = many // {W} * {W}, size * {Q}
    for j in range(0, squares, {W}):
        o = j // {Q} * panel + j % {Q}
        for e in range(0, size - {W} + 1, {W}):
            transpose(x, j * row + e, row, to, o + e * {Q}, {Q})
        for e in range(size // {W} * {W}, size):
            for i in range({W}):
                to[o + e * {Q} + i] = get(x, (j + i) * row + e)
    for j in range(squares, whole(many), {W}):
        for e in range(size):
            store(to, j // {Q} * panel + j % {Q} + e * {Q}, none())
    for j in range(squares, many):
        for e in range(size):
            put(to, j // {Q} * panel + j % {Q} + e * {Q}, get(x, j * row + e))
""",
    "dot": """def kernel(x, i, y, j, n):
    total = none()
    for e in range(0, n - {W} + 1, {W}):
        total = fma(load(x, i + e), load(y, j + e), total)
    rest = along(total)
    for e in range(n // {W} * {W}, n):
        rest += get(x, i + e) * get(y, j + e)
    return rest
""",
    "add_mask": """def kernel(tile, at, mask_id, head, first, j0, many, keys):
    mask, above = matrix(mask_id, head), dimensions(mask_id) - 2
    row, along = step(mask_id, above), step(mask_id, above + 1)
    for i in range(many):
        x, y, done = at + i * {K}, (first + i) * row + j0 * along, 0
        if along == 1:
            done = keys // {W} * {W}
            for c in range(0, done, {W}):
                store(tile, x + c, add(load(tile, x + c), load(mask, y + c)))
        for j in range(done, keys):
            tile[x + j] += get(mask, y + j * along)
""",
    "weigh": """def kernel(tile, r, many, keys, first, top, shift, total, sums, pf):
    \"\"\"Replace the scores of the rows from r on by weights, exp(score - top), 0 beyond key first + row, and add these to
    `total`. If a row has a larger score than `top`, its `total` and `sums` are first scaled down.\"\"\"
    for i in range(many):
        at = (r + i) * {K}
        seen = min(keys, first + i + 1)
        best = spread(top, r + i)
        for c in range(0, keys, {W}):
            x = upto(load(tile, at + c), seen - c)
            store(tile, at + c, x)
            best = bigger(best, x)
        shift[r + i] = most(best)
    for i in range(r, r + many):
        if shift[i] != top[i]:
            if top[i] != f32(-inf):
                top[i] = exp(top[i] - shift[i])
                total[i] = total[i] * top[i]
                factor = spread(top, i)
                for f in range(i * pf, (i + 1) * pf, {W}):
                    store(sums, f, mul(load(sums, f), factor))
            top[i] = shift[i]
        shift[i] = where(top[i] == f32(-inf), f32(0), top[i])
    for i in range(r, r + many):
        at = i * {K}
        base, more = spread(shift, i), none()
        for c in range(0, keys, {W}):
            w = weight(sub(load(tile, at + c), base))
            store(tile, at + c, w)
            more = add(more, w)
        total[i] += along(more)
""",
    "weigh_back": """def kernel(tile, slope, r, many, keys, first, shift, delta):
    \"\"\"Scores become weights p, and g v^T becomes the slope of the scores, p (g v^T - delta).\"\"\"
    for i in range(many):
        at = (r + i) * {K}
        seen = min(keys, first + i + 1)
        base, less = spread(shift, r + i), spread(delta, r + i)
        for c in range(0, keys, {W}):
            p = weight(sub(upto(load(tile, at + c), seen - c), base))
            store(tile, at + c, p)
            store(slope, at + c, mul(p, sub(load(slope, at + c), less)))
""",
    "score": """def kernel(to, at, a, start, row, b, j0, many, keys, depth):
    \"\"\"to = a b^T: a has `many` rows; b is stored transposed, with `keys` columns.\"\"\"
    for c in range(0, keys, {Q}):
        if many > {few}:
            x, y, o = start, (j0 + c) * depth, at + c
{fresh}
        else:
            for r in range(many):
                x, y, o = start + r * row, (j0 + c) * depth, at + r * {K} + c
{fresh_rest}
""",
    "product": """def kernel(to, at, step, a, start, row, along, b, below, pitch, rows, depth):
    \"\"\"to += a b, of {Q} columns: a[i, t] at start + i row + t along, rows of `to` and b `step` and `pitch` apart.\"\"\"
    if rows > {few}:
        x, y, o = start, below, at
{blocks}
    else:
        for r in range(rows):
            x, y, o = start + r * row, below, at + r * step
{rest}
""",
}


def block(height: int, lanes: int, step: str, along: str, pitch: str, fresh: bool = False) -> str:
    """Add up `height` rows of two vectors each over the depth; the old values are added unless `fresh`."""
    sums = {f"c{i}_{j}": f"to, o + {i} * {step} + {j * lanes}" for i in range(height) for j in range(2)}
    lines = [
        *[f"{c} = none()" if fresh else f"{c} = load({at})" for c, at in sums.items()],
        "for t in range(depth):",
        "    y0 = load(b, y)",
        f"    y1 = load(b, y + {lanes})",
    ]
    for i in range(height):
        lines += [
            f"    one = spread(a, x + {i} * row)",
            *[f"    c{i}_{j} = fma(one, y{j}, c{i}_{j})" for j in range(2)],
        ]
    lines += [f"    x += {along}", f"    y += {pitch}", *[f"store({at}, {c})" for c, at in sums.items()]]
    return "\n".join(lines)


@cache
def sizes() -> dict[str, int]:
    lanes, registers = machine()
    tall, head = TALL[registers], object.__basicsize__
    return {
        "W": lanes,
        "Q": 2 * lanes,
        "R": QUERIES,
        "K": KEYS,
        "T": tall,
        "few": tall // 4,
        "data": head,
        "dimensions": head + 8,
        "sizes": head + 16,
        "steps": head + 24,
    }


@cache
def part(piece: str) -> Callable:
    lanes, tall = sizes()["W"], sizes()["T"]
    blocks = {
        name: indent(block(height, lanes, *how), " " * deep)
        for name, height, how, deep in (
            ("blocks", tall, ("step", "along", "pitch"), 8),
            ("rest", 1, ("step", "along", "pitch"), 12),
            ("fresh", tall, (str(KEYS), "1", str(2 * lanes), True), 12),
            ("fresh_rest", 1, (str(KEYS), "1", str(2 * lanes), True), 16),
        )
    }
    return compiled((PARTS[piece] + PLACES).format(**sizes(), **blocks))


def written(text: str) -> Callable:
    return calling((text + PLACES).format(**sizes()), **{name: part(name) for name in PARTS if f" {name}(" in text})


@cache
def forward() -> Callable:
    return written(FORWARD)


@cache
def back() -> Callable:
    return written(BACK)
