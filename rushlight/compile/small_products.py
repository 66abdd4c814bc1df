"""Products of small matrices as loops: a call of BLAS from Python takes 2 to 4 us, a product of thousands of numbers 0.2.

    def kernel(a, b, out):                    # out[i, j] = sum over k of a[i, k] b[k, j]
        for j in ...:                         # a vector register of columns, the last one in part
            for i in ...:                     # eight rows; beyond the last one that one again: there is but one inner loop
                for k in ...:                 # s0 = fma(spread(a[i, k]), b[k, j...], s0)
"""
from __future__ import annotations

from functools import cache

import numpy as np

from rushlight.compile.graph import Call
from rushlight.compile.tiles import SQUARE
from rushlight.compile.vectors import machine

ROWS = 8                                          # sums at a time: two units that take 4 cycles to add
MOST = 1 << 18                                    # multiplications up to which BLAS is no faster (64 x 64 by 64 x 64)
LONG, FEW = 1 << 12, 32                           # numbers of b from which, and rows of a to which it is slow to turn b
DEEPEST = 256                                     # numbers that are added up one after the other
COPY = "def (x0, out0):\n    restrict()\n    copy(out0, 0, x0, 0, x0.size)\n"


def is_small(call: Call) -> bool:
    """Whether a loop is the best way to a product `mm` or `mv`."""
    a, b = call.args
    depth = a.shape[-1]
    lanes = machine()[0]
    return (len(a.shape) == 2 >= len(b.shape) and a.dtype == b.dtype == np.float32 and 0 < depth <= DEEPEST and b.size > 0
            and 0 < a.size * -(-b.size // depth // lanes) * lanes <= MOST)


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
    """The loop for a product; `turned_a`: a is given as its transpose, (k, i); `turned_b`: b as (j, k)."""
    a, b = call.args
    rows, columns = SQUARE[machine()[0]]
    slow = turned_b and not turned_a and b.size >= LONG and a.size <= FEW * a.shape[-1]
    if slow and a.shape[-1] >= machine()[0] and b.shape[-1] >= columns:
        return DOTS.format(rows=rows, columns=columns)
    return product(turned_a, turned_b)


@cache
def product(turned_a: bool, turned_b: bool) -> str:
    """The text of any product; b as (j, k) is turned here first."""
    rows, lanes = range(ROWS), machine()[0]
    body = ["restrict()", "wide()", "depth, m = a.shape" if turned_a else "m, depth = a.shape",
            f"step, n = {'m' if turned_a else '1'}, out.size // m"]
    if turned_b:
        body += ["turned = empty(depth * n, f32)", "for j in range(n):", "    for k in range(depth):",
                 "        put(turned, k * n + j, get(b, j * depth + k))"]
    b = "turned" if turned_b else "b"
    body += [f"for j in range(0, n, {lanes}):", f"    for i in range(0, m, {ROWS}):",
             f"        {', '.join(f'i{r}' for r in rows)} = {', '.join(f'min(i + {r}, m - 1)' for r in rows)}",
             *(f"        a{r}, s{r} = {f'i{r}' if turned_a else f'i{r} * depth'}, none()" for r in rows),
             "        for k in range(depth):", f"            v = load_first({b}, k * n + j, n - j)",
             *(f"            s{r} = fma(spread(a, a{r} + k * step), v, s{r})" for r in rows),
             *(f"        store_first(out, i{r} * n + j, s{r}, n - j)" for r in rows)]
    return "def (a, b, out):\n" + "\n".join("    " + line for line in body) + "\n"
