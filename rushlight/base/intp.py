"""Index arrays on 32-bit systems such as Pyodide, where NumPy's own index type has 32 bits. Tensors of indices are
int64 everywhere."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

INTP_IS_INT64 = np.dtype(np.intp) == np.int64


def as_intp(index: ndarray) -> ndarray:
    """The index for NumPy's `take` and `bincount`, which reject int64 if intp has 32 bits."""
    return index if INTP_IS_INT64 else index.astype(np.intp)


def as_int64(index: ndarray) -> ndarray:
    """Indices computed by NumPy (argmax, argsort, nonzero) as int64 for a tensor."""
    return index if INTP_IS_INT64 else index.astype(np.int64)
