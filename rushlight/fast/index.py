"""Which op has a faster way, from how many elements on, and what was measured: the one page of
thresholds.

A way is tried when the op's first array has `elements` elements or more. A way whose results differ
from NumPy's in the last bits has `passes`: NumPy's passes over the array that the way saves. NumPy
does such work until it has cost as much as loading the loops (policy.py); of large arrays, a
quarter of the passes count. `small`: from then on the way takes smaller arrays, too, from so many
elements on."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from rushlight.loops import budget

ON_AT_START = budget.allowed  # RUSHLIGHT_FAST=0: the core asks for no way at all

# -- seconds ---------------------------------------------------------------------------------------

# Loops read from disk take 0.3 s, of which Numba's import takes 0.25 s. Without this price, a first
# sum of 300 x 300 took 0.9 s instead of 20 us; with 0.5 s, the first 17 steps of a GPT took 85 ms
# each, loops take 50 ms. On a new machine loops cost 3 to 20 s, once.
LOADING_SECONDS, NUMBA_SECONDS = 0.3, 0.25

# -- elements of an array --------------------------------------------------------------------------

ROW_ELEMENTS = 1 << 13  # layer norm of 8,192: NumPy 60 us, the loop 15 us
ELEMENTWISE_ELEMENTS = 1 << 15  # gelu of 32,768: NumPy 270 us, the loop 50 us
UFUNC_ELEMENTS = 1 << 18  # of a function that NumPy has: from here all cores are worth waking
HALF_ELEMENTS = 512  # 16-bit floats: NumPy takes 30 times as long as by way of float32
REDUCTION_ELEMENTS = 1 << 16  # NumPy adds up so many in 15 us
SCAN_ELEMENTS = 1 << 12  # cumulative products of 51,200: NumPy 230 us, the loop 80 us
DEFERRED_ELEMENTS = 1 << 18  # gradients of elementwise ops from which fresh memory is what counts
SUM_ELEMENTS = 1 << 18  # a sum of two gradients: the pages of a new array cost more than the sum
PARALLEL_COST = 1 << 22  # elements times cost of each, from which all cores share: 0.5 ms
FRESH_ELEMENTS = 1 << 20  # elements from which NumPy's results cost 2 ns each: fresh pages


class Way(NamedTuple):
    """`module`: where the way is written; `elements`, `passes`, `small`: see the top of this page;
    `dtypes`: dtype.char of the arrays that it takes, all if empty."""

    module: str
    elements: float
    passes: int = 0
    small: float | None = None
    dtypes: str = ""


def rows(passes: int = 12) -> Way:
    """Loops over rows or channels of float32, each element read and written once."""
    return Way("rushlight.fast.softmax_norm", ROW_ELEMENTS, passes, small=0)


def slow(passes: int) -> Way:
    """Elementwise ops that take NumPy so many passes that the generated loop is worth while for
    small arrays, too."""
    return Way("rushlight.fast.elementwise", ELEMENTWISE_ELEMENTS, passes, small=0)


def reduced() -> Way:
    """One number from each row of float32."""
    return Way("rushlight.fast.reductions", REDUCTION_ELEMENTS, 4, dtypes="f")


def scanned() -> Way:
    """Cumulative sums and products of float32."""
    return Way("rushlight.fast.reductions", REDUCTION_ELEMENTS, 20, SCAN_ELEMENTS, dtypes="f")


# The way of every elementwise op that has none of its own: a loop generated from the op's rule.
# Where NumPy has the function, its passes are only shared by the cores.
ELEMENTWISE = Way("rushlight.fast.backward_chains", ELEMENTWISE_ELEMENTS)
UFUNC = Way("rushlight.fast.backward_chains", UFUNC_ELEMENTS)

WAYS: dict[tuple[str, str], Way] = {
    # op, derivative by
    **{
        (name, of): rows()
        for name in ("softmax", "log_softmax", "logsumexp", "var_core")
        for of in ("", "x")
    },
    # "x weight bias": one way gives the gradients of the three inputs
    **{("layer_norm", of): rows(20) for of in ("", "x weight bias", "weight")},
    **{("batch_norm", of): rows(40) for of in ("", "x weight bias", "weight", "bias")},
    **{("group_norm", of): rows(40) for of in ("", "x weight bias")},
    **{("frozen_batch_norm", of): rows() for of in ("", "x", "weight", "bias")},
    ("batch_dots", ""): rows(),
    **{(name, ""): reduced() for name in ("sum", "mean", "prod", "amax", "amin", "vector_norm")},
    **{(name, ""): scanned() for name in ("cumsum", "cumprod")},
    # 300 x 300: the loop takes 0.44 ms along rows and 0.1 across them, NumPy 1.1 and 1.6. To the
    # same bits, so the loop has an account of its own (loops/tiering.py)
    **{
        (name, ""): Way("rushlight.fast.reductions", 0, dtypes="fd")
        for name in ("cummax", "cummin")
    },
    # sums of two gradients: 16-bit floats by way of float32; from SUM_ELEMENTS on in memory that is
    # used again
    ("sum of gradients", ""): Way("rushlight.fast.backward_sums", HALF_ELEMENTS),
    **{(name, of): slow(25) for name in ("gelu", "gelu_slope") for of in ("", "x")},
    **{(name, of): slow(12) for name in ("gelu_tanh", "mish") for of in ("", "x")},
    **{(name, of): slow(80) for name in ("erf", "erfc") for of in ("", "x")},
}


def way_of(op: Any, of: str) -> Way | None:
    """The way of an op, or of its derivative by the input `of`; None if it has none."""
    own = WAYS.get((op.name, of))
    if own is not None or not op.elementwise:
        return own
    return UFUNC if not of and is_ufunc(op) else ELEMENTWISE


def least(op: Any, of: str, of_half: bool) -> float:
    """From how many elements on the op, or its derivative, may have a faster way; inf where it has
    none, or where faster ways were off from the start."""
    way = way_of(op, of) if ON_AT_START else None
    if way is None:
        return inf
    if way.small is not None:
        return way.small
    return HALF_ELEMENTS if of_half and op.elementwise else way.elements


def is_ufunc(op: Any) -> bool:
    return isinstance(getattr(op.kernel, "ufunc", op.kernel), np.ufunc)
