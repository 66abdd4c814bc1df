"""Faster ways of convolution: each op computes a `Plan` (kernels/conv.py) by the first of its ways that suits the plan.

A way is a module with a test `suits(plan)`, and with `conv` and its gradients, functions of a plan and its operands. Ways
marked `compiled` have loops for float32, which are used once NumPy has worked for as long as loading the loops takes
(fast/policy.py). fast/index.py has the thresholds. Start reading with index_table.py and one_by_one.py.

    index_table         few numbers in the columns: copied by a table of indices
    one_by_one          one tap, stride 1: each image is a product of matrices
    winograd            3 x 3, stride 1, 16 channels and more: fewer products      compiled
    whole_batch_im2col  few places, large filters: one product for all images
    batch_innermost     many images of few channels, groups: vectors of images     compiled
    indirect            results of 16 channels and more: vectors of channels       compiled
    direct              the rest: vectors of places                                compiled
    im2col              the reference (kernels/conv.py), which suits all

benchmarks/convolution.py measures them beside im2col and torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import has_llvmlite
from rushlight.fast.conv import batch_innermost, direct, index_table, indirect, one_by_one, whole_batch_im2col, winograd
from rushlight.fast.conv.tiling import Inexact
from rushlight.fast.index import BIAS_GRAD_ELEMENTS, BIAS_GRAD_PASSES, IM2COL_PRODUCTS_PER_SECOND, MIN_PRODUCTS
from rushlight.fast.policy import charge_passes, charge_seconds
from rushlight.kernels import conv as reference
from rushlight.kernels.conv import Plan, columns_of


class Way(NamedTuple):
    suits: Callable[[Plan], bool]
    compute: Callable[..., ndarray]
    compiled: bool = False


class Ways:
    """The ways of one op, the fastest first. A call with a plan and its operands uses the first way that suits the plan
    and is exact for the operands.
    """

    def __init__(self, *ways: Way):
        self.ways = ways
        self.suiting = lru_cache(maxsize=256)(self.find)

    def __call__(self, p: Plan, *operands: ndarray) -> ndarray:
        ways, products = self.suiting(p)
        loops = products > 0 and charge_seconds(products / IM2COL_PRODUCTS_PER_SECOND)
        for way in ways:
            if loops or not way.compiled:
                try:
                    return way.compute(p, *operands)
                except Inexact:
                    continue
        raise AssertionError("im2col suits all plans and is exact")

    def find(self, p: Plan) -> tuple[list[Way], int]:
        """The ways that suit the plan, and the number of products charged for loops: 0 if no loop suits."""
        products = products_for_loops(p) if has_llvmlite() else 0
        return [way for way in self.ways if (products or not way.compiled) and way.suits(p)], products


def products_for_loops(p: Plan) -> int:
    """The number of products in the plan, with the products of groups counted up to 8 times; 0 if NumPy is always as
    fast as compiled loops.
    """
    products = p.images * p.groups * p.filters * p.channels * p.taps * prod(p.out) * min(p.groups, 8)
    suits = p.dtype == np.float32 and products >= MIN_PRODUCTS and len(p.out) <= 3
    # if the columns are the input itself, BLAS computes the whole convolution in one product
    if not suits or index_table.suits(p) or one_by_one.suits(p) or columns_of(p).plain:
        return 0
    return products


def always(p: Plan) -> bool:
    return True


# (test, whether the way is compiled) of each way, the fastest first
TESTS = (
    (index_table.suits, False),
    (one_by_one.suits, False),
    (winograd.suits, True),
    (whole_batch_im2col.suits, False),
    (batch_innermost.suits, True),
    (indirect.suits, True),
    (direct.suits, True),
    (always, False),
)


def ways(*functions: Callable[..., ndarray]) -> Ways:
    """The ways of an op: its function for each of TESTS."""
    return Ways(*[Way(suits, compute, compiled) for (suits, compiled), compute in zip(TESTS, functions, strict=True)])


conv_of_plan = ways(
    index_table.conv,
    one_by_one.conv,
    winograd.conv,
    whole_batch_im2col.conv,
    batch_innermost.conv,
    indirect.conv,
    direct.conv,
    reference.conv_im2col,
)
# compiled ways have one function for both: the plan states that g is read and the input's gradient is made
conv_input_grad_of_plan = ways(
    index_table.conv_input_grad,
    one_by_one.conv_input_grad,
    winograd.conv,
    whole_batch_im2col.conv_input_grad,
    batch_innermost.conv,
    indirect.conv,
    direct.conv,
    reference.conv_input_grad_im2col,
)
conv_weight_grad_of_plan = ways(
    index_table.conv_weight_grad,
    one_by_one.conv_weight_grad,
    winograd.conv_weight_grad,
    whole_batch_im2col.conv_weight_grad,
    batch_innermost.conv_weight_grad,
    indirect.conv_weight_grad,
    direct.conv_weight_grad,
    reference.conv_weight_grad_im2col,
)


def conv_bias_grad(g: ndarray) -> ndarray | None:
    """out[o] = sum over n, p of g[n, o, p], the bias' gradient, in a fifth of the time of NumPy's passes; None if NumPy
    should do it.
    """
    suits = g.dtype == np.float32 and g.size >= BIAS_GRAD_ELEMENTS and g.ndim > 2 and g.flags.carray
    if not (suits and charge_passes(BIAS_GRAD_PASSES, g.size, large=True) and has_llvmlite()):
        return None
    from rushlight.fast.row_text import loop_of

    out = np.empty(g.shape[1], g.dtype)
    sums = loop_of("batch_norm", "bias", "channels")
    sums(g.reshape(*g.shape[:2], -1), out, 0, len(out))
    return out
