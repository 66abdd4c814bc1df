"""Generators in pickles."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.origin("torch tests")
def test_generators_are_pickled_under_torchs_name():
    program = (
        "import pickle, torch; g = torch.Generator().manual_seed(3); h = pickle.loads(pickle.dumps(g)); assert "
        "torch.equal(torch.rand(2, generator=h), torch.rand(2, generator=g))"
    )
    subprocess.run(
        [sys.executable, "-c", "import rushlight.compat; rushlight.compat.install(); " + program], check=True
    )
