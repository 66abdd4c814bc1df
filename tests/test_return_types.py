"""Classes of results."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.origin("model zoos")
def test_types_of_results():
    x = rushlight.eye(2)
    assert isinstance(x.max(0), rushlight.return_types.max)
    assert isinstance(rushlight.func.vmap(lambda row: row.sort())(x), rushlight.return_types.sort)
    assert isinstance(rushlight.linalg.qr(x), rushlight.return_types.linalg_qr)
    assert repr(rushlight.return_types.topk) == "<class 'torch.return_types.topk'>"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rushlight.return_types.nothing
