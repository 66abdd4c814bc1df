"""Padding by nothing gives a copy."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.origin("torch tests")
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_by_nothing_is_a_tensor_of_its_own(mode):
    x = rushlight.zeros(1, 1, 4, 4)
    rushlight.nn.functional.pad(x, (0, 0, 0, 0), mode=mode).fill_(4)
    assert not x.any()
