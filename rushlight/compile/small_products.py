"""Products of small matrices as loops: a call of BLAS from Python takes 2 to 4 us, a product of thousands of numbers 0.2.

    def kernel(a, b, out):                    # out[i, j] = sum over k of a[i, k] b[k, j]
        for j in ...:                         # two vector registers of columns, or the last one, in part
            for i in ...:                     # eight rows
                for k in ...:                 # s0 = fma(spread(a[i, k]), b[k, j...], s0)
"""
from __future__ import annotations

from functools import cache

import numpy as np

from rushlight.compile.graph import Call
from rushlight.compile.vectors import machine

ROWS = 8                                          # of a block, with two registers of columns: 16 sums


MOST = 1 << 19                                    # multiplications up to which BLAS is no faster (64 x 128 by 128 x 64)
DEEPEST = 256                                     # numbers that are added up one after the other
COPY = "def (x0, out0):\n    restrict()\n    copy(out0, 0, x0, 0, x0.size)\n"


def is_small(call: Call) -> bool:
    """Whether a loop is the best way to a product `mm` or `mv`."""
    a, b = call.args
    depth = a.shape[-1]
    lanes = machine()[0]
    return (a.dtype == b.dtype == np.float32 and 0 < depth <= DEEPEST and b.size > 0
            and 0 < a.size * -(-b.size // depth // lanes) * lanes <= MOST)


@cache
def product(turned_a: bool, turned_b: bool) -> str:
    """The text; `turned_a`: a is given as its transpose, (k, i); `turned_b`: b as (j, k), which is turned here first."""
    lanes = machine()[0]
    lines = ["restrict()", "wide()"]
    lines += ["depth, m = a.shape[0], a.shape[1]", "row, step = 1, m"] if turned_a else [
        "m, depth = a.shape[0], a.shape[1]", "row, step = depth, 1"]
    lines += ["n = out.size // m"]
    if turned_b:
        lines += ["c = empty(depth * n, f32)", "for j in range(n):", "    for k in range(depth):",
                  "        put(c, k * n + j, get(b, j * depth + k))"]
    b = "c" if turned_b else "b"
    lines += ["j = 0", "while j < n:", f"    left = min(n - j, {2 * lanes})", f"    if left > {lanes}:"]
    lines += block(b, lanes, 2, "        ") + ["    else:"] + block(b, lanes, 1, "        ") + [f"    j += {2 * lanes}"]
    return "def (a, b, out):\n" + "\n".join("    " + line for line in lines) + "\n"


def block(b: str, lanes: int, columns: int, indent: str) -> list[str]:
    """All rows of one or two registers of columns: by eights, and one by one."""
    lines = ["i = 0", f"while i + {ROWS} <= m:", *rows(b, lanes, columns, ROWS), f"    i += {ROWS}",
             "while i < m:", *rows(b, lanes, columns, 1), "    i += 1"]
    return [indent + line for line in lines]


def rows(b: str, lanes: int, columns: int, count: int) -> list[str]:
    many = [(r, c) for r in range(count) for c in range(columns)]
    last = f"left - {lanes}" if columns == 2 else "left"
    lines = [f"{', '.join(f's{r}{c}' for r, c in many)} = {', '.join('none()' for _ in many)}" if len(many) > 1
             else "s00 = none()", "for k in range(depth):"]
    if columns == 2:
        lines.append(f"    v0 = load({b}, k * n + j)")
    at = f"j + {lanes}" if columns == 2 else "j"
    lines.append(f"    v{columns - 1} = load_first({b}, k * n + {at}, {last})")
    for r in range(count):
        lines.append(f"    x = spread(a, (i + {r}) * row + k * step)")
        lines += [f"    s{r}{c} = fma(x, v{c}, s{r}{c})" for c in range(columns)]
    for r in range(count):
        if columns == 2:
            lines.append(f"store(out, (i + {r}) * n + j, s{r}0)")
        lines.append(f"store_first(out, (i + {r}) * n + {at}, s{r}{columns - 1}, {last})")
    return ["    " + line for line in lines]
