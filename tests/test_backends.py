"""torch.backends: contexts are decorators."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.origin("suites")
def test_contexts_of_backends_are_decorators():
    @rushlight.backends.cudnn.flags(enabled=False)
    def plain():
        return 1

    @rushlight.backends.cuda.sdp_kernel(enable_flash=False)
    def attended():
        return 2

    assert (plain(), plain(), attended()) == (1, 1, 2)
