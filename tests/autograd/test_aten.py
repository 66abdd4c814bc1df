"""Functions by their aten names."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.origin("model zoos")
def test_functions_by_their_aten_names():
    from rushlight.autograd import aten

    add = rushlight.ops.aten.add
    assert add is aten.add
    assert add(rushlight.ones(2), 1).tolist() == add.Tensor(rushlight.ones(2), rushlight.ones(2)).tolist() == [2, 2]
    assert (str(add), repr(add.Tensor)) == ("aten.add", "<OpOverload(op='aten.add', overload='Tensor')>")
    assert (add.Tensor.name(), aten.mm.default.name()) == ("aten::add.Tensor", "aten::mm")
    assert aten.view.default(rushlight.eye(2), [4]).shape == (4,)
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'nothing'"):
        aten.nothing
    with pytest.raises(AttributeError):
        aten.Size
