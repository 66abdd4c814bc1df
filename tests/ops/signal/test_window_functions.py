"""Windows: lengths that no memory holds."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_a_length_beyond_64_bits(name):
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        getattr(rushlight, f"{name}_window")(2**63)
