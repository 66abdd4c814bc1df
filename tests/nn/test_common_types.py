"""Names of sizes."""

from __future__ import annotations

import pytest

from rushlight.nn import common_types


@pytest.mark.origin("model zoos")
def test_names_of_sizes(torch):
    theirs = torch.nn.common_types
    names = [
        n for n in dir(theirs) if n.endswith("_t") and "scalar" not in n and "tensor" not in n and "indices" not in n
    ]
    assert {n: getattr(common_types, n) for n in names} == {n: getattr(theirs, n) for n in names}
