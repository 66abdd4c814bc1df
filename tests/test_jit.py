"""torch.jit: what scripted modules say."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import nn


@pytest.mark.origin("courses")
def test_scripted_modules_say_what_to_write_for_save():
    scripted = rushlight.jit.script(nn.Linear(2, 1))
    assert not hasattr(scripted, "save")
    with pytest.raises(AttributeError, match=r"has no attribute 'save'.*torch\.save\(module\.state_dict\(\), file\)"):
        scripted.save("model.pt")
