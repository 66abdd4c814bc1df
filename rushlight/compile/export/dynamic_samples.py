"""Which arguments of an exported model have any number of samples, and inputs of several samples for checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import value_error

FORM = 'dynamic=True, or dynamic={"x": {0: "samples"}} with the names of arguments'


def dynamic_paths(dynamic: Any, paths: Sequence[str]) -> list[bool]:
    """For each tensor of the example, whether its first dimension may have any size. `paths`: `x`, `pair[0]`.

    `dynamic`: None, True for all tensors, or {name of an argument: {0: anything}}, as torch's `dynamic_shapes`."""
    if dynamic is None or isinstance(dynamic, bool):
        return [bool(dynamic)] * len(paths)
    if not isinstance(dynamic, Mapping):
        raise value_error(f"dynamic is a {type(dynamic).__name__}", f"pass {FORM}")
    names = [path.partition("[")[0] for path in paths]
    for name, dims in dynamic.items():
        if name not in names:
            raise value_error(f"dynamic names {name!r}, but the arguments are {', '.join(dict.fromkeys(names))}", FORM)
        if dims is not None and [*dims] not in ([], [0]):
            raise value_error(f"dynamic: dimension {[*dims]} of {name}", "only the first dimension, 0, can be dynamic")
    return [bool(dynamic.get(name)) for name in names]


def with_samples(a: np.ndarray, count: int, which: int) -> np.ndarray:
    """`count` samples made of an example's samples, in which the numbers stand in other orders.

    `which`: the number of the argument. Only numbers of the example occur: each is a valid index if it was one."""
    rng = np.random.default_rng(which)
    drawn = [rng.permutation(a[k % len(a)].reshape(-1)).reshape(a.shape[1:]) for k in range(count)]
    return np.ascontiguousarray(np.stack(drawn), a.dtype)
