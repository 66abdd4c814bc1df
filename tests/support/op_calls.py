"""Calls of ops on samples, their gradients, and how results are compared."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import Tensor
from rushlight.autograd import grad
from tests.table.samples.by_hand import Constant

TOLERANCE = dict.fromkeys(["float32", "complex64"], (1e-5, 1e-6))  # relative, absolute; else (1e-9, 1e-11)


def put_into(value, tensor):
    """The value with `tensor(array)` for every array in it."""
    if isinstance(value, np.ndarray):
        return tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(put_into(v, tensor) for v in value)
    if isinstance(value, dict):
        return {k: put_into(v, tensor) for k, v in value.items()}
    return value


def arrays_in(value):
    """The arrays, or tensors, inside arguments or results, in order."""
    if isinstance(value, (np.ndarray, Tensor)) or hasattr(value, "untyped_storage"):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [a for v in value for a in arrays_in(v)] if isinstance(value, (list, tuple)) else []


def call(function, sample, dtype, tensor, **more):
    """The result, and the tensors that went in."""
    args, kwargs = (put_into(value, tensor) for value in sample.make(dtype))
    return function(*args, **kwargs, **more), arrays_in([args, kwargs])


def varies(array):
    """Whether an op may be differentiated by this argument."""
    return array.dtype.kind in "fc" and not isinstance(array, Constant)


def fixed(array):
    return rushlight.from_numpy(np.array(array))


def leaf(array):
    return fixed(array).requires_grad_(varies(array))


def weights(shape, dtype):
    """A gradient to start from: not all equal, so that mixed-up elements show."""
    return (0.3 + np.cos(np.arange(1, 1 + int(np.prod(shape))))).reshape(shape).astype(dtype)


def gradients(function, sample, dtype, **how):
    """The same of ours."""
    made, inside = call(function, sample, dtype, leaf)
    outs = arrays_in(made)
    chosen = [t for t in outs if t.requires_grad]
    leaves = [t for t in inside if t.requires_grad]
    seeds = [rushlight.from_numpy(weights(t.shape, t._array.dtype)) for t in chosen]
    grads = grad(chosen, leaves, seeds, allow_unused=True, **how) if chosen and leaves else ()
    return {
        "requires": [t.requires_grad for t in outs],
        "grads": [rushlight.zeros_like(t) if g is None else g for t, g in zip(leaves, grads)],
    }


def check_all(pairs, check):
    """Run `check(sample, expected)` on all pairs, then fail with a line for each problem found."""
    problems = []
    for sample, expected in pairs:
        if isinstance(expected, str) and expected == "refused":
            continue
        try:
            check(sample, expected)
        except Exception as error:
            problems.append(f"{sample}: {type(error).__name__}: {error}".splitlines()[0])
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def agree(ours, expected, where="result", rtol=None):
    """AssertionError unless structure, dtypes, shapes and values are the same."""
    if isinstance(expected, list):
        assert isinstance(ours, (list, tuple)), f"{where}: {type(ours).__name__}, not {len(expected)} results"
        assert len(ours) == len(expected), f"{where}: {len(ours)} results, not {len(expected)}"
        for i, (a, b) in enumerate(zip(ours, expected)):
            agree(a, b, f"{where}[{i}]", rtol)
    elif isinstance(expected, np.ndarray):
        assert isinstance(ours, Tensor), f"{where}: {type(ours).__name__}"
        agree_arrays(ours._array, expected, where, rtol)
    else:
        assert ours == expected, f"{where}: {ours}, not {expected}"


def agree_arrays(a, b, where, rtol):
    assert a.dtype == b.dtype, f"{where}: dtype {a.dtype}, not {b.dtype}"
    assert a.shape == b.shape, f"{where}: shape {a.shape}, not {b.shape}"
    if b.dtype.kind in "fc":
        usual, atol = TOLERANCE.get(b.dtype.name, (1e-9, 1e-11))
        assert np.allclose(a, b, rtol or usual, atol, equal_nan=True), f"{where}: {a.tolist()}, not {b.tolist()}"
    else:
        assert np.array_equal(a, b), f"{where}: {a.tolist()}, not {b.tolist()}"
