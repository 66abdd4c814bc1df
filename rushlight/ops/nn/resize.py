"""Resizing, one dimension at a time: a linear map, whose derivative is its transpose."""

from __future__ import annotations

from rushlight.core.build import build, inner
from rushlight.core.worlds import adopt
from rushlight.kernels import resize as kernels

adopt(kernels)

# `how`: the mode, the size of x along `dim`, and settings, all numbers; `back`: the transpose
# fmt: off
blend = inner(lambda x, /, dim, how, back=False: blend(x, dim, how, back),
    x=lambda g, dim, how, back: blend(g, dim, how, not back), batched="shift")
# fmt: on

build(globals())
