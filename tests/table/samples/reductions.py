"""Samples of scans, quantiles, counts, differences and areas."""

from __future__ import annotations

import numpy as np

from tests.table.samples.by_hand import POSITIVE, Sample, exactly, positions, scalar, x

TIES = exactly([[1, 3, 3, 1], [2, 2, 1, 2]])
LOST = exactly([[1, np.nan, 3], [np.nan, np.nan, np.nan]])
PARTS = exactly([0.27, 0.63])  # between elements
BY_PART = [
    Sample(x(2, 5), 0.4),
    Sample(x(2, 5), 0.3, 1),
    Sample(x(4, 3), PARTS, 0, True),
    Sample(scalar(), 0.5, 0),
    Sample(x(2, 3, 2), PARTS, 1),
    Sample(x(2, 3), PARTS, None, True),
    Sample(LOST, 0.4, 1, smooth=False),
    *[Sample(x(2, 5), PARTS, -1, interpolation=how) for how in ("lower", "higher", "nearest", "midpoint")],
]
EDGES = exactly([-1, 0, 0.5, 1.5])
COUNTS = positions([0, 3, 1, 3])
AREAS = [
    Sample(x(2, 4)),
    Sample(x(2, 4), dx=0.5, dim=0),
    Sample(x(2, 4), x(4)),
    Sample(x(2, 4), x(2, 4), dim=1),
    Sample(x(3, 2), x(3), dim=0),
    Sample(x(1)),
    Sample(x(0, 3), dim=0),
]

HAND = {
    "cummin": [
        Sample(x(2, 4), 1),
        Sample(x(4, 2), 0),
        Sample(scalar(), 0),
        Sample(x(0, 3), 0),
        Sample(TIES, 1, smooth=False),
        Sample(LOST, 1, smooth=False),
    ],
    "logcumsumexp": [
        Sample(x(2, 4), 1),
        Sample(x(5, 2), 0),
        Sample(scalar(), 0),
        Sample(x(0, 3), 0),
        Sample(x(1), 0),
        Sample(exactly([1000, 0, -1000, 999]), 0, smooth=False, slopes=True),
        Sample(exactly([-np.inf, -np.inf, 1]), 0, smooth=False),
    ],
    "aminmax": [
        Sample(x(2, 4)),
        Sample(x(2, 4), dim=1),
        Sample(x(2, 4), dim=0, keepdim=True),
        Sample(scalar()),
        Sample(TIES, dim=1, smooth=False, slopes=True),
        Sample(LOST, smooth=False),
    ],
    "nanmean": [
        Sample(x(2, 4)),
        Sample(x(2, 4), 1),
        Sample(x(2, 4), (0, 1), True),
        Sample(LOST, 0, smooth=False),
        Sample(LOST, 1, smooth=False),
        Sample(x(2, 3), 1, dtype=None),
    ],
    "hash_tensor": [Sample(x(2, 4)), Sample(x(2, 4), 1), Sample(x(2, 4), (0, 1), keepdim=True)],
    "hashed": [Sample(x(2, 4), (0,), True)],
    "quantile": BY_PART,
    "nanquantile": BY_PART,
    "bincount": [Sample(COUNTS), Sample(COUNTS, x(4)), Sample(COUNTS, minlength=6), Sample(positions([]), minlength=2)],
    "counted": [Sample(COUNTS, x(4), 6), Sample(COUNTS, None, 0)],
    "histc": [Sample(x(9), 4), Sample(x(2, 4), bins=3, min=-1, max=2), Sample(exactly([1, 1]), 3), Sample(x(0), 2)],
    "histogram": [
        Sample(x(9), 4),
        Sample(x(2, 4), 3, range=(-1.0, 2.0)),
        Sample(x(5), EDGES),
        Sample(x(2, 3), EDGES, weight=x(2, 3, **POSITIVE), density=True),
        Sample(exactly([1, 1]), 2),
    ],
    "histogramdd": [
        Sample(x(7, 2), [2, 3]),
        Sample(x(7, 2), [EDGES, EDGES]),
        Sample(x(2, 3, 2), 2, density=True),
        Sample(x(4, 2), [2, 2], range=[-1.0, 1.0, 0.0, 2.0], weight=x(4)),
    ],
    "unravel_index": [Sample(positions([5, 1]), (2, 3)), Sample(positions([[3]]), 4), Sample(positions(3), (2, 2))],
    "diff": [
        Sample(x(2, 5)),
        Sample(x(2, 5), 2),
        Sample(x(3, 2), 1, 0),
        Sample(x(4), 0),
        Sample(x(2), 3),
        Sample(x(2, 3), prepend=x(2, 1), append=x(2, 2)),
        Sample(x(0, 3), dim=0),
    ],
    "trapezoid": AREAS,
    "cumulative_trapezoid": AREAS,
    "trapz": AREAS,
    "gradient": [
        Sample(x(4)),
        Sample(x(3, 4)),
        Sample(x(3, 4), dim=1, edge_order=2),
        Sample(x(3, 4), spacing=0.5),
        Sample(x(3, 4), spacing=[0.5, 2.0]),
        Sample(scalar()),
        Sample(x(2)),
        Sample(x(3, 4), spacing=(exactly([0, 1, 3]), exactly([0, 1, 2, 4])), edge_order=2),
        Sample(x(4, 2), spacing=(exactly([0, 1, 3, 5]),), dim=0),
    ],
    "sum_to_size": [Sample(x(2, 3), 1, 3), Sample(x(2, 3), (3,)), Sample(x(2, 3), 2, 3), Sample(scalar(), ())],
}
