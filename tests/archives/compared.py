"""Models of torch and of rushlight, compared: the largest difference, relative to the largest element."""

from __future__ import annotations

import numpy as np

import rushlight

TOLERANCE = 1e-6


def arrays(value):
    """The arrays of a result: tensors in tuples, lists and dicts."""
    if hasattr(value, "detach"):
        return [value.detach().numpy()]
    parts = value.values() if isinstance(value, dict) else value
    return [array for part in parts for array in arrays(part)]


def ours(value):
    """Arguments of torch as ours."""
    if hasattr(value, "detach"):
        return rushlight.from_numpy(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {key: ours(part) for key, part in value.items()}
    return type(value)(map(ours, value)) if isinstance(value, (list, tuple)) else value


def difference(got, expected):
    """The largest difference of two results, each relative to its largest element; infinite for other shapes."""
    worst = 0.0
    for a, b in zip(arrays(got), arrays(expected), strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return np.inf
        if a.size:
            wide = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (a, b)]
            worst = max(worst, np.abs(wide[0] - wide[1]).max() / max(np.abs(wide[1]).max(), 1e-30))
    return worst
