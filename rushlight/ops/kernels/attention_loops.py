"""Compiled loops of attention, for float32: scores exist for a few queries and 64 keys at a time.

Queries lie along two vector registers, keys below each other: the largest score and the sum of a query run down the keys,
and no sum runs along a register. So what belongs to queries is packed, q^T (E, Q) and the like, while keys and values are
read where they are, one number at a time for all queries. After Rabe and Staats, "Self-attention Does Not Need O(n^2)
Memory" (2021), and Dao, "FlashAttention-2" (2023).

Arrays are given by their first element, with the steps from sample to sample, head to head and row to row; the numbers of
a row follow each other. Cascade Lake, one core, 48 heads of 64 queries, E = 32, causal: 0.64 ms forward and
1.1 ms back; torch's kernels 0.69 and 2.0 (benchmarks/modules.py measures calls).
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rushlight.compile.cache import compiled
from rushlight.compile.vectors import machine

KEYS = 64                                         # of a tile: its scores and their slopes stay in the L1 cache
TALL = {32: 8, 16: 4}                             # registers -> rows of a product that are added up at once, of two vectors

FORWARD = """def kernel(q, k, v, mask, out, lse, n, s, scale, causal, masked, start, stop):
    \"\"\"out = softmax(q k^T scale + mask) v, lse = log sum exp of the scores, for heads start to stop.

    n: heads in a sample, L, S, E, F; s: the steps of q, k, v, mask, out, and of mask along a row; lse (heads, L).
    \"\"\"
    heads, L, S, E, F = n[0], n[1], n[2], n[3], n[4]
    qr, kr, vr, mr, ro = s[0, 2], s[1, 2], s[2, 2], s[3, 2], s[4, 2]
    qt, ot = empty(E * {Q}, f32), empty(F * {Q}, f32)
    tile = empty({K} * {Q}, f32)
    top, shift, total, factor = empty({Q}, f32), empty({Q}, f32), empty({Q}, f32), empty({Q}, f32)
    for head in range(start, stop):
        b, h = head // heads, head % heads
        k0 = b * s[1, 0] + h * s[1, 1]
        v0 = b * s[2, 0] + h * s[2, 1]
        for i0 in range(0, L, {Q}):
            many = min({Q}, L - i0)
            pack(qt, q, b * s[0, 0] + h * s[0, 1] + i0 * qr, qr, E, many, scale)
            fill(top, {Q}, f32(-inf))
            fill(total, {Q}, f32(0))
            fill(ot, F * {Q}, f32(0))
            last = min(S, i0 + many) if causal else S
            for j0 in range(0, last, {K}):
                keys = min({K}, last - j0)
                score(tile, k, k0 + j0 * kr, kr, qt, E, keys, i0 - j0 if causal else keys)
                if masked:
                    add_mask(tile, mask, b * s[3, 0] + h * s[3, 1] + i0 * mr + j0 * s[3, 3], mr, s[3, 3], keys, many)
                weigh(tile, keys, top, shift, total, factor)
                if j0 > 0:
                    for f in range(F):
                        for i in range({Q}):
                            ot[f * {Q} + i] = ot[f * {Q} + i] * factor[i]
                product(ot, 0, {Q}, v, v0 + j0 * vr, 1, vr, tile, {Q}, F, keys)
            for i in range({Q}):
                factor[i] = f32(1) / where(total[i] == f32(0), f32(1), total[i])
                shift[i] = log(total[i]) + shift[i]
            for i in range(many):
                lse[head, i0 + i] = shift[i]
            unpack(out, b * s[4, 0] + h * s[4, 1] + i0 * ro, ro, ot, F, many, factor)
"""

BACK = """def kernel(q, k, v, mask, out, lse, g, dq, dk, dv, n, s, scale, causal, masked, start, stop):
    \"\"\"The gradients of q, k and v from g, that of out, for heads start to stop; scores are computed again.

    p = exp(scores - lse), dv = p^T g, ds = p (g v^T - sum(g out)), dq = ds k scale, dk = ds^T q scale. n and s as in the
    forward, with the steps of g, dq, dk and dv after those of out.
    \"\"\"
    heads, L, S, E, F = n[0], n[1], n[2], n[3], n[4]
    qr, kr, vr, mr, ro, gr = s[0, 2], s[1, 2], s[2, 2], s[3, 2], s[4, 2], s[5, 2]
    pe = (E + {Q} - 1) // {Q} * {Q}               # rows in whole vectors
    pf = (F + {Q} - 1) // {Q} * {Q}
    qt, dqt, gt = empty(E * {Q}, f32), empty(E * {Q}, f32), empty(F * {Q}, f32)
    qs, gs = empty({Q} * pe, f32), empty({Q} * pf, f32)
    dks, dvs = empty(S * pe, f32), empty(S * pf, f32)
    tile, slope = empty({K} * {Q}, f32), empty({K} * {Q}, f32)
    shift, delta, factor = empty({Q}, f32), empty({Q}, f32), empty({Q}, f32)
    fill(factor, {Q}, scale)
    fill(qs, {Q} * pe, f32(0))
    fill(gs, {Q} * pf, f32(0))
    for head in range(start, stop):
        b, h = head // heads, head % heads
        k0 = b * s[1, 0] + h * s[1, 1]
        v0 = b * s[2, 0] + h * s[2, 1]
        fill(dks, S * pe, f32(0))
        fill(dvs, S * pf, f32(0))
        for i0 in range(0, L, {Q}):
            many = min({Q}, L - i0)
            q0 = b * s[0, 0] + h * s[0, 1] + i0 * qr
            g0 = b * s[5, 0] + h * s[5, 1] + i0 * gr
            o0 = b * s[4, 0] + h * s[4, 1] + i0 * ro
            pack(qt, q, q0, qr, E, many, scale)
            pack(gt, g, g0, gr, F, many, f32(1))
            rows(qs, 0, pe, q, q0, qr, E, many, scale)
            rows(gs, 0, pf, g, g0, gr, F, many, f32(1))
            fill(shift, {Q}, f32(inf))
            for i in range(many):
                shift[i] = lse[head, i0 + i] if lse[head, i0 + i] != f32(-inf) else f32(inf)
                delta[i] = f32(0)
                for f in range(F):
                    delta[i] = plus(delta[i], gs[i * pf + f] * get(out, o0 + i * ro + f))
            for i in range(many, {Q}):
                delta[i] = f32(0)
            fill(dqt, E * {Q}, f32(0))
            last = min(S, i0 + many) if causal else S
            for j0 in range(0, last, {K}):
                keys = min({K}, last - j0)
                score(tile, k, k0 + j0 * kr, kr, qt, E, keys, i0 - j0 if causal else keys)
                if masked:
                    add_mask(tile, mask, b * s[3, 0] + h * s[3, 1] + i0 * mr + j0 * s[3, 3], mr, s[3, 3], keys, many)
                fill(slope, keys * {Q}, f32(0))
                product(slope, 0, {Q}, v, v0 + j0 * vr, vr, 1, gt, {Q}, keys, F)
                weigh_back(tile, slope, keys, shift, delta)
                product(dqt, 0, {Q}, k, k0 + j0 * kr, 1, kr, slope, {Q}, E, keys)
                for w in range(0, pe, {Q}):
                    product(dks, j0 * pe + w, pe, slope, 0, {Q}, 1, qs[w:], pe, keys, many)
                for w in range(0, pf, {Q}):
                    product(dvs, j0 * pf + w, pf, tile, 0, {Q}, 1, gs[w:], pf, keys, many)
            unpack(dq, b * s[6, 0] + h * s[6, 1] + i0 * s[6, 2], s[6, 2], dqt, E, many, factor)
        rows(dk, b * s[7, 0] + h * s[7, 1], s[7, 2], dks, 0, pe, E, S, f32(1))
        rows(dv, b * s[8, 0] + h * s[8, 1], s[8, 2], dvs, 0, pf, F, S, f32(1))
"""

PARTS = """

@cached
def fill(to, n, value):
    wide()
    for i in range(n):
        to[i] = value


@cached
def pack(to, x, at, row, size, many, factor):
    \"\"\"to[e, i] = x[i, e] factor, of `many` rows; 0 beyond.\"\"\"
    restrict()
    for e in range(size):
        for i in range(many):
            to[e * {Q} + i] = get(x, at + i * row + e) * factor
        for i in range(many, {Q}):
            to[e * {Q} + i] = f32(0)


@cached
def unpack(to, at, row, x, size, many, factor):
    \"\"\"to[i, e] = x[e, i] factor[i], of `many` rows.\"\"\"
    restrict()
    for e in range(size):
        for i in range(many):
            put(to, at + i * row + e, x[e * {Q} + i] * factor[i])


@cached
def rows(to, at, pitch, x, start, row, size, many, factor):
    \"\"\"to[i, e] = x[i, e] factor.\"\"\"
    restrict()
    for i in range(many):
        for e in range(size):
            put(to, at + i * pitch + e, get(x, start + i * row + e) * factor)


@cached
def score(tile, k, at, row, qt, size, keys, first):
    \"\"\"tile[j, i] = sum over e of k[j, e] qt[e, i], and -inf where j > i + first: keys that are to come.\"\"\"
    fill(tile, keys * {Q}, f32(0))
    product(tile, 0, {Q}, k, at, row, 1, qt, {Q}, keys, size)
    for j in range(max(0, first), keys):
        for i in range(min({Q}, j - first)):
            tile[j * {Q} + i] = f32(-inf)


@cached
def add_mask(tile, mask, at, row, along, keys, many):
    for j in range(keys):
        for i in range(many):
            tile[j * {Q} + i] += get(mask, at + i * row + j * along)


@cached
def small(d):
    \"\"\"exp(d), 0 from e^-80 on: denormal numbers take a hundred times as long.\"\"\"
    return where(d < f32(-80), f32(0), exp(where(d < f32(-80), f32(-80), d)))


@cached
def weigh(tile, keys, top, shift, total, factor):
    \"\"\"Scores become weights, exp(score - shift), and are added to `total`; `factor`: what those before shrink by.\"\"\"
    restrict()
    wide()
    n = shift.shape[0]                            # {Q}, not to be unrolled number by number
    for i in range(n):
        factor[i] = top[i]
    for j in range(keys):
        for i in range(n):
            top[i] = largest(top[i], tile[j * {Q} + i])
    for i in range(n):
        shift[i] = where(top[i] == f32(-inf), f32(0), top[i])
        factor[i] = small(factor[i] - shift[i])
        total[i] = total[i] * factor[i]
    for j in range(keys):
        for i in range(n):
            e = small(tile[j * {Q} + i] - shift[i])
            tile[j * {Q} + i] = e
            total[i] = total[i] + e


@cached
def weigh_back(tile, slope, keys, shift, delta):
    \"\"\"Scores become weights p, and g v^T becomes the slope of the scores, p (g v^T - delta).\"\"\"
    restrict()
    wide()
    n = shift.shape[0]                            # {Q}, not to be unrolled number by number
    for j in range(keys):
        for i in range(n):
            p = small(tile[j * {Q} + i] - shift[i])
            tile[j * {Q} + i] = p
            slope[j * {Q} + i] = p * (slope[j * {Q} + i] - delta[i])


@cached
def product(to, at, step, a, start, row, along, b, pitch, rows, depth):
    \"\"\"to += a b, of {Q} columns: a[i, t] is at start + i row + t along, rows of `to` and b are `step` and `pitch` apart.

    So many rows are added up at once as there are registers for, what is left over one by one.
    \"\"\"
    r = 0
    while r < rows:
        x, y, o = start + r * row, 0, at + r * step
        if r + {tall} <= rows:
{blocks}
            r += {tall}
        else:
{rest}
            r += 1
"""


def block(height: int, lanes: int) -> str:
    """`height` rows of two vectors each, added up over the depth."""
    sums = {f"c{i}_{j}": f"to, o + {i} * step + {j * lanes}" for i in range(height) for j in range(2)}
    lines = [*[f"{c} = load({at})" for c, at in sums.items()],
             "for t in range(depth):", "    y0 = load(b, y)", f"    y1 = load(b, y + {lanes})"]
    for i in range(height):
        lines += [f"    one = spread(a, x + {i} * row)", *[f"    c{i}_{j} = fma(one, y{j}, c{i}_{j})" for j in range(2)]]
    lines += ["    x += along", "    y += pitch", *[f"store({at}, {c})" for c, at in sums.items()]]
    return "\n".join([" " * 12 + line for line in lines])


def written(text: str) -> Callable:
    lanes, registers = machine()
    tall = TALL[registers]
    return compiled((text + PARTS).format(Q=2 * lanes, K=KEYS, tall=tall, blocks=block(tall, lanes), rest=block(1, lanes)))


@cache
def forward() -> Callable:
    return written(FORWARD)


@cache
def back() -> Callable:
    return written(BACK)
