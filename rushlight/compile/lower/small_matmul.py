"""Products of small matrices as loops: a call of BLAS would cost more than the product.

def kernel(a, b, out):     # out[i, j] = sum over k of a[i, k] b[k, j]
    for j in ...:          # a vector register of columns; the last register may be partial
        for i in ...:      # 8 rows; past the last row, the last row again
            for k in ...:  # s0 = fma(spread(a[i, k]), b[k, j...], s0)
"""

from __future__ import annotations

from functools import cache

import numpy as np

from rushlight.compile.graph import Call
from rushlight.loops.llvm import machine
from rushlight.loops.matmul_tiles import SQUARE

ROWS = 8  # independent sums: two units, each with a latency of 4 cycles for an addition
MAX_PRODUCTS = 1 << 18  # multiplications up to which BLAS is not faster (64 x 64 by 64 x 64)
# If a transposed b has at least MIN_B_ELEMENTS, and a has at most MAX_A_ROWS rows, the loop computes dot products
# instead of transposing b.
MIN_B_ELEMENTS, MAX_A_ROWS = 1 << 12, 32
MAX_DEPTH = 256  # longest dot product: bounds the rounding error of summing in order
COPY = "def (x0, out0):\n    restrict()\n    copy(out0, 0, x0, 0, x0.size)\n"


def is_small(call: Call) -> bool:
    """Whether a loop is the fastest way to compute a product `mm` or `mv`."""
    a, b = call.args
    depth = a.shape[-1]
    lanes = machine()[0]
    return (
        len(a.shape) == 2 >= len(b.shape)
        and a.dtype == b.dtype == np.float32
        and 0 < depth <= MAX_DEPTH
        and b.size > 0
        and 0 < a.size * -(-b.size // depth // lanes) * lanes <= MAX_PRODUCTS
    )


DOTS = """def (a, b, out):
    restrict()
    m, depth = a.shape
    n, nothing = out.size // m, empty({columns}, f32)
    for c in range({columns}):
        nothing[c] = f32(0)
    for at in range(0, n, {columns}):
        j = min(at, n - {columns})
        for i in range(0, m, {rows}):
            dots(a, i * depth, depth, b, j * depth, depth, nothing, 0, out, i * n + j, n, depth, m - 1 - i)
"""


def text(call: Call, turned_a: bool, turned_b: bool) -> str:
    """The loop's text. `turned_a`: a is stored transposed, as (k, i). `turned_b`: b is stored transposed, as (j, k)."""
    a, b = call.args
    rows, columns = SQUARE[machine()[0]]
    slow = turned_b and not turned_a and b.size >= MIN_B_ELEMENTS and a.size <= MAX_A_ROWS * a.shape[-1]
    if slow and a.shape[-1] >= machine()[0] and b.shape[-1] >= columns:
        return DOTS.format(rows=rows, columns=columns)
    return product(turned_a, turned_b)


@cache
def product(turned_a: bool, turned_b: bool) -> str:
    """The text of a product; the loop first transposes a `turned_b`."""
    rows, lanes = range(ROWS), machine()[0]
    body = [
        "restrict()",
        "wide()",
        "depth, m = a.shape" if turned_a else "m, depth = a.shape",
        f"step, n = {'m' if turned_a else '1'}, out.size // m",
    ]
    if turned_b:
        body += [
            "turned = empty(depth * n, f32)",
            "for j in range(n):",
            "    for k in range(depth):",
            "        put(turned, k * n + j, get(b, j * depth + k))",
        ]
    b = "turned" if turned_b else "b"
    body += [
        f"for j in range(0, n, {lanes}):",
        f"    for i in range(0, m, {ROWS}):",
        f"        {', '.join(f'i{r}' for r in rows)} = {', '.join(f'min(i + {r}, m - 1)' for r in rows)}",
        *(f"        a{r}, s{r} = {f'i{r}' if turned_a else f'i{r} * depth'}, none()" for r in rows),
        "        for k in range(depth):",
        f"            v = load_first({b}, k * n + j, n - j)",
        *(f"            s{r} = fma(spread(a, a{r} + k * step), v, s{r})" for r in rows),
        *(f"        store_first(out, i{r} * n + j, s{r}, n - j)" for r in rows),
    ]
    return "def (a, b, out):\n" + "\n".join("    " + line for line in body) + "\n"
