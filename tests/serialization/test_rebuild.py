"""Tensors from the parts that a file holds."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.serialization.name_map import StorageType
from rushlight.serialization.rebuild import storage_on, tensor_on


def test_a_tensor_on_no_memory_is_refused():
    """NumPy makes an array with elements on a buffer of 0 bytes, and reads what lies behind."""
    memory = storage_on(np.empty(0, np.uint8), StorageType(rushlight.float32))
    with pytest.raises(ValueError, match="needs memory"):
        tensor_on(memory, rushlight.float32, 0, [2, 3], [3, 1], False, None)
    assert tensor_on(memory, rushlight.float32, 0, [0, 3], [3, 1], False, None).shape == (0, 3)
