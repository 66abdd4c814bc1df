"""Instructions that loops add to Numba's."""

from __future__ import annotations

import numpy as np
import pytest

numba = pytest.importorskip("llvmlite")

from rushlight.loops.intrinsics import backend  # noqa: E402

restrict = backend().restrict


@numba.njit
def copied(x, out):
    restrict()
    for place in np.ndindex(x.shape):
        out[place] = x[place]


@pytest.mark.parametrize("ndim", [1, 4, 5, 6])
def test_restrict_takes_arrays_of_any_number_of_dimensions(ndim, capfd):
    """The size of dimension 4 is an argument, too: it was taken for a pointer, and LLVM refused the function."""
    x = np.arange(2.0**ndim).reshape((2,) * ndim)
    out = np.zeros_like(x)
    copied(x, out)
    assert (out == x).all()
    assert capfd.readouterr().err == ""
