"""Generators in pickles."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rushlight import Generator


@pytest.mark.origin("torch tests")
def test_generators_are_pickled_under_torchs_name():
    program = (
        "import pickle, torch; g = torch.Generator().manual_seed(3); h = pickle.loads(pickle.dumps(g)); assert "
        "torch.equal(torch.rand(2, generator=h), torch.rand(2, generator=g))"
    )
    subprocess.run(
        [sys.executable, "-c", "import rushlight.compat; rushlight.compat.install(); " + program], check=True
    )


def test_a_seed_number_is_that_of_random_():
    """Also across the ends of blocks of words, and with the same state behind."""
    one, other = Generator().manual_seed(3), Generator().manual_seed(3)
    one.words(1), other.words(1)
    for _ in range(1000):
        assert one.seed_number() == int(other.random_((), np.int64))
    assert one.get_state().equal(other.get_state())
