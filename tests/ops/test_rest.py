"""Old names of functions and methods."""

from __future__ import annotations

import pytest

import rushlight

OLD = {
    "new of numbers": lambda t: t.ones(1, dtype=t.int32).new([1.7, 2]),
    "new of a size": lambda t: t.ones(1).new(2, 3).zero_(),
    "new of a Size": lambda t: t.ones(1).new(t.Size([2, 0])),
    "new of nothing": lambda t: t.ones(1).new(),
    "storage of a view": lambda t: t.tensor(t.arange(6.0).reshape(2, 3).t()[1:].storage().tolist()),
    "bytes": lambda t: t.tensor(list(t.arange(6.0).reshape(2, 3)[1].untyped_storage())),
    "sizes": lambda t: t.tensor([t.arange(6.0)[2:].storage().size(), t.arange(6.0)[2:].untyped_storage().nbytes()]),
}


@pytest.mark.origin("programs")
@pytest.mark.parametrize("name", OLD)
def test_old_names(oracle, name):
    expected, found = oracle(OLD[name]), OLD[name](rushlight).numpy()
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()
