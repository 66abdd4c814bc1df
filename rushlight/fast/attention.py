"""Attention of float32 by the compiled loops of fast/attention_loops.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import has_llvmlite
from rushlight.fast.index import (
    ATTENTION_LARGE_PASSES,
    ATTENTION_PARALLEL_PRODUCTS,
    ATTENTION_PASSES,
    ATTENTION_PRODUCTS,
)
from rushlight.fast.policy import charge_passes

FLOAT = np.dtype(np.float32)
MADE = {"forward": (4, 5), "back": (7, 8, 9)}  # the arrays that each loop writes to


def attend(
    q: ndarray, k: ndarray, v: ndarray, mask: ndarray | None, out: ndarray, lse: ndarray, causal: bool, scale: float
) -> bool | None:
    """Writes attention into out and lse; returns None if NumPy should do it."""
    if not (suits(q, k, v, mask) and charge(q, k)):
        return None
    run("forward", (q, k, v, whole(mask, q, k), out, lse), causal, scale)
    return True


def attend_back(
    q: ndarray,
    k: ndarray,
    v: ndarray,
    mask: ndarray | None,
    out: ndarray,
    lse: ndarray,
    g: ndarray,
    dq: ndarray,
    dk: ndarray,
    dv: ndarray,
    causal: bool,
    scale: float,
) -> bool | None:
    """Writes the gradients into dq, dk and dv; returns None if NumPy should do it."""
    if not (suits(q, k, v, mask) and charge(q, k)):
        return None
    arrays = (q, k, v, whole(mask, q, k), out, np.ascontiguousarray(lse), g, dq, dk, dv)
    run("back", arrays, causal, scale)
    return True


def suits(q: ndarray, k: ndarray, v: ndarray, mask: ndarray | None) -> bool:
    """True if loops support these arrays."""
    floats = q.dtype is FLOAT is k.dtype and v.dtype is FLOAT
    return floats and (mask is None or mask.dtype is FLOAT) and q.size > 0 and has_llvmlite()


def charge(q: ndarray, k: ndarray) -> bool:
    """Charge NumPy's passes over the scores. Returns whether loops do the work: they take 16 us instead of 50 for 4
    heads of 16 queries.
    """
    scores = q.size // q.shape[-1] * k.shape[-2]
    many = scores * q.shape[-1] >= ATTENTION_PRODUCTS
    return charge_passes(ATTENTION_LARGE_PASSES if many else ATTENTION_PASSES, scores, many)


def whole(mask: ndarray | None, q: ndarray, k: ndarray) -> ndarray | None:
    return None if mask is None else np.broadcast_to(mask, (*q.shape[:-1], k.shape[-2]))


def run(name: str, arrays: Sequence[ndarray | None], causal: bool, scale: float) -> None:
    """The loop of this name on all heads; large work is split between cores. arrays: q, k, v, mask, out, lse, and for
    the backward pass g, dq, dk, dv.
    """
    loop, cores, pool = tools(name)
    q: ndarray = arrays[0]  # type: ignore[assignment]
    keys: int = arrays[1].shape[-2]  # type: ignore[union-attr]
    heads = prod(q.shape[:-2])
    parts = min(cores(), heads) if q.size * keys > ATTENTION_PARALLEL_PRODUCTS else 1
    # reading `base` makes a batch of vmap raise its error
    _ = [a.base for a in arrays[:4] if a is not None]
    given = [0 if a is None else id(a) for a in arrays]
    # the loop checks the layout first, and returns False for other layouts
    if not loop(*given, scale, causal, 0, heads if parts == 1 else 0):
        run(name, [a if a is None or i in MADE[name] else a.copy() for i, a in enumerate(arrays)], causal, scale)
    elif parts > 1:
        bounds = [heads * i // parts for i in range(parts + 1)]
        pool.run(loop, [(*given, scale, causal, *bounds[i : i + 2]) for i in range(parts)])


@cache
def tools(name: str) -> tuple[Callable, Callable, Any]:
    """The loop of this name, and the functions that run it on all cores: cached, since each import takes 1 us."""
    from rushlight.fast import attention_loops
    from rushlight.loops.parallel import cores, pool

    made = attention_loops.forward if name == "forward" else attention_loops.back
    return made(), cores, pool
