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

# -- elements of an array --------------------------------------------------------------------------

ROW_ELEMENTS = 1 << 13  # layer norm of 8,192: NumPy 60 us, the loop 15 us
ELEMENTWISE_ELEMENTS = 1 << 15  # gelu of 32,768: NumPy 270 us, the loop 50 us
UFUNC_ELEMENTS = 1 << 18  # of a function that NumPy has: from here all cores are worth waking
HALF_ELEMENTS = 512  # 16-bit floats: NumPy takes 30 times as long as by way of float32
REDUCTION_ELEMENTS = 1 << 16  # NumPy adds up so many in 15 us
SCAN_ELEMENTS = 1 << 12  # cumulative products of 51,200: NumPy 230 us, the loop 80 us
DEFERRED_ELEMENTS = 1 << 18  # gradients of elementwise ops from which fresh memory is what counts
SUM_ELEMENTS = 1 << 18  # a sum of two gradients: the pages of a new array cost more than the sum
TAP_ELEMENTS = 1 << 12  # elements that take NumPy as long as its calls for a tap of an image
WIDENED_ELEMENTS = 1 << 13  # float16 from which bits are moved: 100,000 in 40 us, not 165
REMAINDER_BLOCK_ELEMENTS = 1 << 11  # from which blocks are faster than libm, one by one
REMAINDER_LOOP_ELEMENTS = 1 << 15  # 2 million: by a loop 4 ms, by blocks 16
SCATTER_ELEMENTS = 1 << 15  # numbers that land on others, from which a loop is worth loading
SCATTER_PASSES = 20  # of NumPy over plain numbers, that take as long as its `ufunc.at`
MAX_POOL_TAPS = 16  # of a window, up to which a call of NumPy for each is soon done
ATTENTION_PRODUCTS = 1 << 17  # from which attention counts as large: NumPy takes 0.15 ms
# NumPy's passes over the scores that loops save; of many, a score takes NumPy 4 to 13 ns
ATTENTION_PASSES, ATTENTION_LARGE_PASSES = 100, 30
ATTENTION_PARALLEL_PRODUCTS = 1 << 22  # from which all cores share attention's heads
SIN_COS_ELEMENTS, SIN_COS_PASSES = 512, 60  # of float64; NumPy's passes that take as long
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


class Site(NamedTuple):
    """The faster way of a kernel that is called by other kernels, too: a function of the same name
    in `module`, called for arrays of `elements` elements or more (base/faster.py:site)."""

    module: str
    elements: float = 0


SITES: dict[str, Site] = {
    # 50,000 points, coordinate by coordinate: 0.2 ms instead of 0.4
    "grid_sample.moved": Site("rushlight.fast.coordinates", ROW_ELEMENTS),
    # 20,000 vectors: 0.44 ms instead of 1.4; 4 vectors: 30 us instead of 8
    "rare_functions.crossed": Site("rushlight.fast.coordinates", ROW_ELEMENTS),
    "grid_sample.sampled": Site("rushlight.fast.grid_loops"),
    "grid_sample.sampled_back": Site("rushlight.fast.grid_loops"),
    "grid_sample.sampled_slope": Site("rushlight.fast.grid_loops"),
    "norms.by_differences": Site("rushlight.fast.distance_loops"),
    "float16.converted": Site("rushlight.fast.float16_loops", HALF_ELEMENTS),
    "summation.add_to": Site("rushlight.fast.float16_loops", HALF_ELEMENTS),
    "attention.attend": Site("rushlight.fast.attention"),
    "attention.attend_back": Site("rushlight.fast.attention"),
    # 90,000 numbers of float64: 0.26 ms instead of 2
    "elementwise.of_angle": Site("rushlight.fast.sin_cos", SIN_COS_ELEMENTS),
    "elementwise.divided": Site("rushlight.fast.remainders"),
    "ufunc_at.each_at": Site("rushlight.fast.scatter_loops"),
    "ufunc_at.slices_at": Site("rushlight.fast.scatter_loops"),
    # 4 x 16 x 128 by twos: 12 us instead of 85
    "pool.max_values": Site("rushlight.fast.max_pool_values"),
    "pool.best_of_taps": Site("rushlight.fast.pool_loops"),
    "pool.scattered": Site("rushlight.fast.pool_loops"),
    # a sum's gradient is one number: a step takes 3.7 ms instead of 16
    "resize.mixed": Site("rushlight.fast.resize_loops"),
}


def least_of_site(name: str) -> float:
    """From how many elements on a kernel may have a faster way; inf where faster ways were off
    from the start."""
    return SITES[name].elements if ON_AT_START else inf


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
