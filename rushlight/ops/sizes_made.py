"""The shapes that ops make which compute with sizes (standing_in.py does the others): of arrays without elements, no array
is made. A rule is given what the op is, tensors of one dtype in C order, and answers the shapes and dtypes of its outputs;
None where the op itself is to say what is wrong.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Made = list[tuple[tuple, np.dtype]]


def alike(arrays: Sequence[Any], dim: int | None = None) -> bool:
    """Whether the shapes differ in no dimension but `dim`."""
    first = arrays[0].shape
    return all(len(a.shape) == len(first) and all(m == n or d == dim for d, (m, n) in enumerate(zip(a.shape, first)))
               for a in arrays)


def cat(tensors: Sequence[Any], dim: int) -> Made | None:
    first = tensors[0].shape
    if not first or not -len(first) <= dim < len(first) or not alike(tensors, dim % len(first)):
        return None
    dim %= len(first)
    return [((*first[:dim], sum(a.shape[dim] for a in tensors), *first[dim + 1:]), tensors[0].dtype)]


def stack(tensors: Sequence[Any], dim: int) -> Made | None:
    first = tensors[0].shape
    if not -len(first) - 1 <= dim <= len(first) or not alike(tensors):
        return None
    dim %= len(first) + 1
    return [((*first[:dim], len(tensors), *first[dim:]), tensors[0].dtype)]


def padded(x: Any, amounts: tuple) -> Made | None:
    shape = tuple([n + a + b for n, (a, b) in zip(x.shape, amounts)])
    return [(shape, x.dtype)] if min(shape, default=0) >= 0 else None


def repeat(x: Any, shape: tuple) -> Made | None:
    if len(shape) < len(x.shape) or min(shape, default=0) < 0:
        return None
    return [(tuple([n * k for n, k in zip((1,) * (len(shape) - len(x.shape)) + x.shape, shape)]), x.dtype)]


def topk(x: Any, k: int, dim: int, *how: Any) -> Made | None:
    if not x.shape or not -len(x.shape) <= dim < len(x.shape) or not 0 <= k <= x.shape[dim]:
        return None
    dim %= len(x.shape)
    shape = (*x.shape[:dim], k, *x.shape[dim + 1:])
    return [(shape, x.dtype), (shape, np.dtype(np.int64))]


def group_norm(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Made | None:
    if x.shape[1] % groups:
        return None
    return [(x.shape, x.dtype), *[((x.shape[0], groups, 1), x.dtype)] * 2]


def recurrent(states: int, saved: bool) -> Callable:
    """Of a direction of a layer: what comes out of each step, the last states, and what the way back would need."""
    def rule(tensors: Sequence[Any], *how: Any) -> Made:
        x, *kept = tensors[:1 + states]
        out = [((*x.shape[:-1], kept[0].shape[-1]), x.dtype), *[(h.shape, x.dtype) for h in kept]]
        return [*out, ((0,), x.dtype)] if saved else out
    return rule


RULES: dict[str, Callable[..., Made | None]] = {
    "cat": cat, "stack": stack, "repeat": repeat, "topk": topk, "group_norm": group_norm,
    "constant_pad": lambda x, amounts, value: padded(x, amounts),
    "lstm_layer": recurrent(2, True), "gru_layer": recurrent(1, True), "rnn_layer": recurrent(1, False),
}
