"""All thresholds on one page: the ops and kernels with faster ways, the sizes from which ways are used, and measured
times. Sizes of blocks and tiles inside a loop are in the file of the loop.

A way is tried if the op's first array has at least `elements` elements. If a way's results differ from NumPy's in the
last bits, it has `passes`: the number of NumPy's passes over the array that the way saves. NumPy does such work until
it has cost as much as loading the loops (policy.py); for large arrays, a quarter of the passes count. `small`: once the
loops are loaded, the way is used from `small` elements on (0: for any size).
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from rushlight.loops import budget

ON_AT_START = budget.allowed  # False with RUSHLIGHT_FAST=0: then the core looks up no ways

# -- elements of an array --------------------------------------------------------------------------

ROW_ELEMENTS = 1 << 13  # layer norm of 8,192: NumPy 60 us, the loop 15 us
SOFTMAX_BACK_ELEMENTS = 1 << 11  # at this size NumPy takes 6 us for the rule, the loop 8
ELEMENTWISE_ELEMENTS = 1 << 15  # gelu of 32,768: NumPy 270 us, the loop 50 us
FEW_PASSES = 4  # the least NumPy passes for which loops over small arrays pay
UFUNC_ELEMENTS = 1 << 18  # the least size at which waking all cores pays for a single NumPy function
BROADCAST_ROW_ELEMENTS = 16  # the least run of one number for which a loop handles broadcast rows
HALF_PASSES = 40  # passes over float32 that take as long as one NumPy pass over 16-bit floats
HALF_ELEMENTS = 512  # 16-bit floats: NumPy takes 30 times as long as a conversion to float32
REDUCTION_ELEMENTS = 1 << 16  # NumPy adds up this many in 15 us
REDUCTION_ROW_ELEMENTS = 32  # the least elements of a row; for shorter rows a loop is not faster
REDUCTION_PARALLEL_ELEMENTS = 1 << 18  # the least size at which all cores share reductions, scans and norms
VARIANCE_ELEMENTS = 1 << 9  # the most elements for one loop in float64: 0.4 us, two passes of NumPy 5
SHORT_ROWS_ELEMENTS = 1 << 9  # the most elements for a loop across short rows: 1 us
SCAN_ELEMENTS = 1 << 12  # cumulative products of 51,200: NumPy 230 us, the loop 80 us
DEFERRED_ELEMENTS = 1 << 18  # gradients of elementwise ops: from this size on, fresh memory takes most of the time
SUM_ELEMENTS = 1 << 18  # a sum of two gradients: mapping pages for a new array costs more than the sum
TAP_ELEMENTS = 1 << 12  # NumPy's calls for one tap of an image cost as much as this many elements
WIDENED_ELEMENTS = 1 << 13  # the least size at which float16 is converted by its bits: 100,000 in 40 us, not 165
REMAINDER_BLOCK_ELEMENTS = 1 << 11  # the least size at which blocks are faster than libm's calls
REMAINDER_LOOP_ELEMENTS = 1 << 15  # 2 million: by a loop 4 ms, by blocks 16
# Least numbers in a point, and least points, for which one product gives all distances
DISTANCE_PRODUCT_NUMBERS, DISTANCE_PRODUCT_POINTS = 96, 25
DISTANCE_PASSES = 3  # NumPy's passes over the differences of all pairs of points
SCATTER_ELEMENTS = 1 << 15  # the least scattered additions for which loading a loop pays
SCATTER_PASSES = 20  # NumPy's passes over plain numbers that take as long as `ufunc.at`
# Most elements, and most elements of a row, for a loop that sorts by insertion: 0.5 us, 16 x 64 in 30 us
ORDER_ELEMENTS, ORDER_ROW_ELEMENTS = 1 << 10, 64
PLACES_ELEMENTS = 1 << 10  # the most indices for a loop that also checks them: 1 us
# The least size at which loops gather, scatter and reverse: gather of 65,536 in 35 us, by NumPy in 53
GATHER_ELEMENTS = 1 << 12
MULTIPLE_ELEMENTS = 1 << 13  # the least size at which a loop adds a multiple in place
GATHER_PARALLEL_ELEMENTS = 1 << 18  # the least size at which all cores share such copies
TAKEN_RUN_ELEMENTS = 8  # the longest contiguous run for which a loop is faster than NumPy's memmove
POOL_TABLE_ELEMENTS = 1 << 12  # the most elements of all windows for which an index table is faster
PAD_TABLE_ELEMENTS = 1 << 12  # the most elements of the result for an index table: 2 us instead of 6
POOL_PRODUCTS = 1 << 17  # the most multiplications for which a product adds up windows faster: 10 us
POOL_SCATTER_ELEMENTS = (1 << 10) + 1  # the least gradients for which loading a loop pays
MEAN_PRODUCT_ELEMENTS = 1 << 10  # the most elements of a row for BLAS, which takes a third of np.mean's time
POOL_CORE_ELEMENTS = 1 << 16  # the least elements of planes for one core: 45 us
POOL_OWN_LOOP_TAPS = 9  # the most taps of a window that has a loop of its own: 1/4 of the time
MAX_POOL_TABLE_TAPS = 2  # the least taps for which a table (3 us) is faster than a NumPy call for each (5 us)
MAX_POOL_TAPS = 16  # the most taps of a window for one NumPy call for each tap
ATTENTION_PRODUCTS = 1 << 17  # the least multiplications of a large attention: NumPy takes 0.15 ms
# NumPy's passes over the scores that loops save; for large attention, a score takes NumPy 4 to 13 ns
ATTENTION_PASSES, ATTENTION_LARGE_PASSES = 100, 30
ATTENTION_PARALLEL_PRODUCTS = 1 << 22  # the least multiplications for which all cores share attention's heads
# NumPy does this many multiplications before loops do products: 0.15 s of BLAS, or half of it if llvmlite is loaded.
# The loop of products takes 0.6 s to compile, and 2 ms from disk (benchmarks/products.py).
PRICE_PRODUCTS, PRICE_PRODUCTS_LOADED = 1 << 33, 1 << 32
BLAS_COPIES_PRODUCTS = 1_000_000  # the most multiplications for which OpenBLAS copies no operand
MIN_COLUMNS_OF_TRANSPOSED = 128  # the least columns of the result for which loops handle a transposed x
MATMUL_PARALLEL_PRODUCTS = 1 << 23  # the least multiplications for which all cores share a product: 0.14 ms
ONE_THREAD_PRODUCTS = 1 << 22  # the most multiplications for which BLAS is faster on one thread
ONE_THREAD_PRODUCTS_BESIDE_LOOPS = 1 << 26  # the same once loops do products: loops use the cores
# The least elements in the gates of all steps of a large layer: 2.5 ms, by loops 1.2
RECURRENT_ELEMENTS = 1 << 15
RECURRENT_PASSES = 16  # the NumPy passes that loops save in each step
RECURRENT_PARALLEL_PRODUCTS = 1 << 24  # the least multiplications for which all cores share the sequences: 0.3 ms
# The least size of float64 arrays, and the NumPy passes that take as long as one pass of libm
SIN_COS_ELEMENTS, SIN_COS_PASSES = 512, 60
# The least rows of a float32 matrix for which SciPy's LAPACK is faster: 128 in 0.48 ms instead of 0.93; and the seconds
# that NumPy works before SciPy is loaded, which takes as long
EQUATION_ROWS, SCIPY_SECONDS = 128, 0.2
PARALLEL_COST = 1 << 22  # the least work (elements times the cost of each) that all cores share: 0.5 ms
FRESH_ELEMENTS = 1 << 20  # from this size on, each element of NumPy's results costs 2 ns, because of fresh pages

# -- convolution of float32, on one core of a Cascade Lake Xeon with AVX-512 ------------------------
# (benchmarks/convolution.py)

MIN_PRODUCTS = 1 << 17  # 1 x 16 x 16 x 16 and 16 filters: loops take 33 us, im2col 55
IM2COL_PRODUCTS_PER_SECOND = 2e10  # im2col's speed, by which its seconds are charged; measured 1e10 to 3e10

# -- the bias' gradient
BIAS_GRAD_ELEMENTS = 1 << 15  # the least size at which a compiled loop pays
BIAS_GRAD_PASSES = 5  # NumPy's passes that the loop saves

# -- index_table: no loops, a table of all indices
TABLE_COLUMNS = 1 << 14  # most floats in the columns for which the table is fastest
# the same if the columns are the images
TABLE_PLAIN_COLUMNS = 1 << 16
TABLE_FILTERS = 64  # most filters in a group for which calling loops does not pay

# -- one_by_one: a product of matrices for each image
ONE_BY_ONE_MIN_PRODUCTS = 1 << 20  # the least multiplications in an image for one product per image

# -- winograd
WINOGRAD_MIN_CHANNELS = 16  # least channels on either side: fewer do not fill a vector
WINOGRAD_MIN_TILES = 64  # least positions: with fewer, transforming the filters costs more than it saves
WINOGRAD_MIN_TILES_LARGE = 130  # the same for filters that exceed every cache
WINOGRAD_LARGE_FILTERS = 1 << 17  # the least channels times filters for which filters exceed every cache
WINOGRAD_TILES = 72  # most tiles multiplied at a time, so that they stay in the L2 cache
WINOGRAD_TILE_FLOATS = 1 << 18  # most floats of transformed tiles that stay in the L2 cache
WINOGRAD_SUM_TILES = 1 << 12  # the most tiles whose weight gradients are summed sequentially

# -- whole_batch_im2col: the columns of all images in one product
WHOLE_BATCH_FILTERS = 1 << 19  # the least floats in filters that exceed a core's caches
WHOLE_BATCH_FILTERS_ONE_TAP = 1 << 17  # the same for 1x1 filters, whose columns are the input
WHOLE_BATCH_RESULTS = 1 << 10  # the most positions in the results of all images for which making columns pays
WHOLE_BATCH_FILTERS_PER_RESULT = 1 << 11  # the least floats in filters for each position, if the filters are smaller

# -- batch_innermost
INNERMOST_CHANNELS = 24  # most channels in a group, on either side: for more, vectors of channels are as good
INNERMOST_CHANNEL_PAIRS = 200  # most channels x filters: 16 x 16 is not faster, 1 x 32 slower
INNERMOST_MAX_DOT = 512  # longest dot product (channels x taps) that is summed without a break
INNERMOST_IMAGE_FLOATS = 1 << 17  # most floats of a vector of images: they stay in the L2 cache
INNERMOST_SUM_PLACES = 1 << 11  # the most positions whose weight gradients are summed sequentially
INNERMOST_BLOCK_VECTORS = 32  # most vectors of sums in a block

# -- indirect
INDIRECT_MIN_CHANNELS = 16  # least channels of the result: fewer do not fill a vector
INDIRECT_IMAGE_FLOATS = 1 << 16  # most floats of images that are copied at a time
INDIRECT_SUM_PLACES = 1 << 14  # the most positions whose weight gradients are summed sequentially

# -- direct
DIRECT_VECTOR_PLACES = 512  # for small images, this many positions are computed together, to fill vectors
DIRECT_TILE_PLACES = 1152  # most positions that one tile of filters processes before the next
DIRECT_SOURCE_FLOATS = 1 << 17  # most floats of the source that stay in the L2 cache meanwhile


class Way(NamedTuple):
    """`module`: the module of the way; `elements`, `passes`, `small`: explained at the top of this page; `dtypes`: the
    supported values of dtype.char, all if empty.
    """

    module: str
    elements: float = 0
    passes: int = 0
    small: float | None = None
    dtypes: str = ""


def rows(passes: int = 12, small: float = 0) -> Way:
    """Loops over rows or channels of float32, each element read and written once."""
    return Way("rushlight.fast.softmax_norm", ROW_ELEMENTS, passes, small)


def slow(passes: int) -> Way:
    """Elementwise ops with enough NumPy passes that the generated loop also pays for small arrays."""
    return Way("rushlight.fast.elementwise", ELEMENTWISE_ELEMENTS, passes, small=0)


def few() -> Way:
    """Elementwise ops that take several NumPy calls: the loop is faster at any size (0.2 us for small arrays)."""
    return Way("rushlight.fast.elementwise", ELEMENTWISE_ELEMENTS, small=0)


def reduced() -> Way:
    """Reductions of each row of float32 to one number."""
    return Way("rushlight.fast.reductions", REDUCTION_ELEMENTS, 4, dtypes="f")


def scanned() -> Way:
    """Cumulative sums and products of float32."""
    return Way("rushlight.fast.reductions", REDUCTION_ELEMENTS, 20, SCAN_ELEMENTS, dtypes="f")


# The way of every elementwise op that has no way of its own: a loop generated from the op's rule. If NumPy has the
# function, its passes are only divided between the cores.
ELEMENTWISE = Way("rushlight.fast.backward_chains", ELEMENTWISE_ELEMENTS)
OF_LIBM = {"hypot"}  # NumPy functions that call libm; a loop is as accurate
UFUNC = Way("rushlight.fast.backward_chains", UFUNC_ELEMENTS)

WAYS: dict[tuple[str, str], Way] = {
    # op, derivative by
    **{(name, of): rows() for name in ("logsumexp", "var_core") for of in ("", "x")},
    **{(name, ""): rows() for name in ("softmax", "log_softmax")},
    **{(name, "x"): rows(small=SOFTMAX_BACK_ELEMENTS) for name in ("softmax", "log_softmax")},
    # "x weight bias": one way computes the gradients of the three inputs
    **{("layer_norm", of): rows(20) for of in ("", "x weight bias", "weight")},
    **{("batch_norm", of): rows(40) for of in ("", "x weight bias", "weight", "bias")},
    **{("group_norm", of): rows(40) for of in ("", "x weight bias")},
    **{("frozen_batch_norm", of): rows() for of in ("", "x", "weight", "bias")},
    ("batch_dots", ""): rows(),
    **{(name, ""): reduced() for name in ("sum", "mean", "prod", "amax", "amin", "vector_norm")},
    **{(name, ""): scanned() for name in ("cumsum", "cumprod")},
    # 300 x 300: the loop takes 0.44 ms along rows and 0.1 across them, NumPy 1.1 and 1.6. The bits are the same, so the
    # loop has its own account (loops/tiering.py)
    **{(name, ""): Way("rushlight.fast.reductions", 0, dtypes="fd") for name in ("cummax", "cummin")},
    # sums of two gradients: 16-bit floats are added in float32; from SUM_ELEMENTS on, results reuse memory
    ("sum of gradients", ""): Way("rushlight.fast.backward_sums", HALF_ELEMENTS),
    **{(name, of): slow(25) for name in ("gelu", "gelu_slope") for of in ("", "x")},
    **{(name, of): slow(12) for name in ("gelu_tanh", "mish") for of in ("", "x")},
    # 32 numbers: 1.9 us instead of 3.7
    ("elu", ""): slow(6),
    ("softplus", ""): slow(7),
    **{
        (name, ""): few()
        for name in ("sigmoid", "silu", "log_sigmoid", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "sign")
    },
    **{(name, of): slow(80) for name in ("erf", "erfc") for of in ("", "x")},
    # 65,536 numbers: 0.2 ms instead of 1 (erfinv; lgamma 0.2 and 0.9)
    **{(name, ""): slow(80) for name in ("erfinv", "lgamma")},
}


# The ways of kernels that are also called by other kernels (base/faster.py:site): a function of the same name in
# `module`. Such a way charges its passes itself, with policy.py.
SITES: dict[str, Way] = {
    # 50,000 points, one coordinate at a time: 0.2 ms instead of 0.4
    "grid_sample.moved": Way("rushlight.fast.coordinates", ROW_ELEMENTS),
    # 20,000 vectors: 0.44 ms instead of 1.4; 4 vectors: 30 us instead of 8
    "rare_functions.crossed": Way("rushlight.fast.coordinates", ROW_ELEMENTS),
    "grid_sample.sampled": Way("rushlight.fast.grid_loops"),
    "grid_sample.sampled_back": Way("rushlight.fast.grid_loops"),
    "grid_sample.sampled_slope": Way("rushlight.fast.grid_loops"),
    "norms.euclidean": Way("rushlight.fast.distance_loops"),
    "float16.converted": Way("rushlight.fast.float16_loops", HALF_ELEMENTS),
    "summation.add_to": Way("rushlight.fast.float16_loops", HALF_ELEMENTS),
    "attention.attend": Way("rushlight.fast.attention"),
    "attention.attend_back": Way("rushlight.fast.attention"),
    # 90,000 numbers of float64: 0.26 ms instead of 2
    "elementwise.of_angle": Way("rushlight.fast.sin_cos", SIN_COS_ELEMENTS),
    "elementwise.divided": Way("rushlight.fast.remainders"),
    # 2 million: 1.6 ms instead of 10
    **{
        name: Way("rushlight.fast.gather_loops", GATHER_ELEMENTS)
        for name in ("index.gathered_many", "index.placed_many", "index.taken", "shape.flip")
    },
    # 2 million: 0.18 ms instead of 0.7
    "elementwise.add_multiple": Way("rushlight.fast.multiple_loops", MULTIPLE_ELEMENTS),
    "ufunc_at.each_at": Way("rushlight.fast.scatter_loops"),
    "ufunc_at.slices_at": Way("rushlight.fast.scatter_loops"),
    "index.rows_summed": Way("rushlight.fast.scatter_loops"),
    # 4 x 16 x 128 by twos: 12 us instead of 85
    **{
        f"conv.{name}": Way("rushlight.fast.conv")
        for name in ("conv_of_plan", "conv_input_grad_of_plan", "conv_weight_grad_of_plan", "conv_bias_grad")
    },
    **{
        f"recurrent.{cell}{back}": Way("rushlight.fast.recurrent_loops")
        for cell in ("lstm", "gru", "rnn")
        for back in ("", "_back")
    },
    # 384 x 384: 5 ms instead of 20, the determinant 1.7 instead of 3
    **{
        f"solving.{name}": Way("rushlight.fast.equations", EQUATION_ROWS**2)
        for name in ("solution", "linalg_inv_ex", "linalg_det")
    },
    "factorizations.linalg_cholesky_ex": Way("rushlight.fast.equations", EQUATION_ROWS**2),
    "matmul.large": Way("rushlight.fast.matmul"),
    # 8 x 128 by 384 x 128: 20 us instead of 57
    "matmul.few_rows": Way("rushlight.fast.matmul"),
    "pad_modes.bordered": Way("rushlight.fast.pad_table"),
    **{f"index.{name}": Way("rushlight.fast.few_places") for name in ("gathered", "placed", "added")},
    "reduce.ordered": Way("rushlight.fast.few_order"),
    "sorting.most_frequent": Way("rushlight.fast.few_order"),
    "pool.max_values": Way("rushlight.fast.max_pool_values"),
    "pool.best_of_taps": Way("rushlight.fast.pool_loops"),
    "pool.scattered": Way("rushlight.fast.pool_loops", POOL_SCATTER_ELEMENTS),
    **{
        f"pool.{name}": Way("rushlight.fast.pool_table")
        for name in ("best_of_windows", "best_of_parts", "window_sums", "window_spread", "means_of_rows")
    },
    # a sum's gradient is one number: a step takes 3.7 ms instead of 16
    "resize.mixed": Way("rushlight.fast.resize_loops"),
    # 1024 x 1024 and a row: 12 us instead of 1,300
    **{
        f"int8.{name}": Way("rushlight.fast.int8_loops")
        for name in ("linear_by_tensor", "linear_by_rows", "linear_of_floats")
    },
}


def least_of_site(name: str) -> float:
    """The least size for which a kernel may have a faster way; inf if faster ways were off from the start."""
    return SITES[name].elements if ON_AT_START else inf


def way_of(op: Any, of: str) -> Way | None:
    """The way of an op, or of its derivative by the input `of`; None if there is none."""
    own = WAYS.get((op.name, of))
    if own is not None or not op.elementwise:
        return own
    return UFUNC if not of and is_ufunc(op) and op.name not in OF_LIBM else ELEMENTWISE


def least(op: Any, of: str, of_half: bool) -> float:
    """The least size for which the op, or its derivative, may have a faster way; inf if there is none, or if faster
    ways were off from the start.
    """
    way = way_of(op, of) if ON_AT_START else None
    if way is None:
        return inf
    if way.small is not None:
        return way.small
    return HALF_ELEMENTS if of_half and op.elementwise else way.elements


def is_ufunc(op: Any) -> bool:
    return isinstance(getattr(op.kernel, "ufunc", op.kernel), np.ufunc)
