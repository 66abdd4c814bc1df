"""The mask of dropout as a separate op: a recorded program draws a new mask in each run."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from rushlight import random
from rushlight.base.memory_format import room_like
from rushlight.base.placeholder import Touched
from rushlight.core.build import build, inner
from rushlight.core.mode import mode


def kept(x: ndarray, p: float, features: bool) -> ndarray:
    """1 with probability 1 - p, else 0, in x's shape and dtype. `features`: one number for each (sample, channel) of
    x."""
    if mode().batch is not None:
        raise Touched("vmap draws the mask", mode().batch)
    if not isinstance(x, ndarray):  # no draw for an empty tensor
        raise x.touched("dropout")
    if x.flags.c_contiguous and not features:
        return random.default_generator.bernoulli_scalar(1 - p, x.shape, x.dtype)
    fresh = np.empty((*x.shape[:2], *(1,) * (x.ndim - 2)), x.dtype) if features else room_like(x, x.dtype)
    target = random.in_memory_order(fresh)
    target[...] = random.default_generator.bernoulli_scalar(1 - p, target.shape, fresh.dtype)
    return fresh


# fmt: off
dropout_mask = inner(lambda x, /, p, features=False: dropout_mask(x, p, features),
    kernel=kept, random=True, sizes="all", called="dropout", takes="f")
# fmt: on

build(globals())
