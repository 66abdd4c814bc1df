"""Whatever is written to after an op has run, its inputs or its outputs: backward says so, or gives the same
gradients."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.core.tensor import Tensor
from tests.support.op_calls import arrays_in, call, fixed, leaf, weights
from tests.table.samples import NAMES, SAMPLES, function_of

REFUSED = ("modified by an inplace operation", "more than one element of the written-to tensor")


def written(name, sample, number):
    """The gradients after a write to the tensor of this number (none: None), and how many tensors there are."""
    leaves = []

    def tensor(array):
        if array.dtype.kind not in "fc":
            return fixed(array)
        leaves.append(leaf(array))
        return leaves[-1] * 1

    rushlight.manual_seed(0)
    made, inside = call(function_of(name), sample, "float64", tensor)
    outs = [t for t in arrays_in(made) if isinstance(t, Tensor)]
    tensors = [t for t in inside if isinstance(t, Tensor)] + outs
    if number is not None:
        one = tensors[number].detach()
        one.zero_() if one.dtype in (rushlight.bool, rushlight.int64) else one.mul_(3).add_(1)
    chosen = [t for t in outs if t.requires_grad]
    rushlight.autograd.backward(chosen, [fixed(weights(t.shape, t._array.dtype)) for t in chosen])
    return [None if t.grad is None else t.grad._array for t in leaves], len(tensors)


def same(ours, theirs):
    return all(
        a is b is None or a is not None and b is not None and np.allclose(a, b, equal_nan=True)
        for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("_")])
def test_no_write_gives_other_gradients(name):
    for sample in SAMPLES[name][:2]:
        try:
            expected, count = written(name, sample, None)
        except (RuntimeError, TypeError, NotImplementedError):  # no double precision, nothing to differentiate
            continue
        for number in range(count):
            try:
                found, _ = written(name, sample, number)
            except RuntimeError as error:
                if not any(words in str(error) for words in REFUSED):
                    raise
                continue
            assert same(found, expected), f"{sample}: a write to tensor {number} went unnoticed"


def test_logical_writes_take_their_operands_for_constants():
    a, b = rushlight.tensor([1.0, 2.0]), rushlight.tensor([0.0, 3.0], requires_grad=True)
    for name in ("logical_and_", "logical_or_", "logical_xor_"):
        assert not getattr(a.clone(), name)(b).requires_grad
    c = b * 1
    c.logical_and_(a).sum().backward()
    assert c.tolist() == [0, 1]
    assert b.grad.tolist() == [0, 0]
