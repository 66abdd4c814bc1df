"""Samples of order statistics, searches and sets."""

from __future__ import annotations

import numpy as np

from tests.table.samples.by_hand import Sample, exactly, positions, scalar, x

APART = exactly([[3.5, 1.2, 2.4, -4.1, 5.3], [-2.2, 0.3, -5.1, 7.4, 1.4]])
ALONG = [Sample(APART, 1), Sample(APART, 0, True), Sample(scalar(), 0), Sample(APART, -1)]
TIES = exactly([[1, 3, 3, 1, 3], [2, 2, 1, 2, 1]])
LOST = exactly([[1, np.nan, 3, np.nan, 3], [2, 2, 1, 2, 1]])
MEDIAN = [*ALONG, Sample(exactly([4, np.nan, 1, np.nan]), 0, smooth=False), Sample(x(0, 3), 1, smooth=False)]
OF_ALL = [
    Sample(x(2, 4)),
    Sample(x(5)),
    Sample(scalar()),
    Sample(TIES, smooth=False, slopes=True),
    Sample(LOST, smooth=False),
]
ORDERED = exactly([1, 3, 3, 5, 8])
ROWS = exactly([[1, 3, 3, 5], [0, 1, 2, 3]])
VALUES = exactly([[3, 0, 9], [4, 1, 3]])
NUMBERS = exactly([3, 1, 3, 3, 2, 1])
SLICES = exactly([[1, 2], [1, 2], [0, 1], [1, 2]])

HAND = {
    "kthvalue": [
        Sample(x(2, 4), 2),
        Sample(x(4, 2), 3, 0, True),
        Sample(scalar(), 1),
        Sample(x(2, 4), k=4, dim=1),
        Sample(exactly([1, np.nan, 3]), 3, 0, smooth=False),
    ],
    "mode": [Sample(x(2, 4)), Sample(x(4, 2), 0, True), Sample(scalar()), Sample(TIES, smooth=False)],
    "median_dim": MEDIAN,
    "nanmedian_dim": MEDIAN,
    "median_all": OF_ALL,
    "nanmedian_all": OF_ALL,
    "median": MEDIAN + OF_ALL,
    "nanmedian": MEDIAN + OF_ALL,
    "msort": [Sample(x(4, 2)), Sample(x(3)), Sample(scalar())],
    "places": [Sample(ORDERED, VALUES, None, False, False), Sample(ROWS, VALUES, None, True, True)],
    "searchsorted": [
        Sample(ORDERED, VALUES),
        Sample(ROWS, VALUES, right=True),
        Sample(ROWS, VALUES, side="left"),
        Sample(ORDERED, VALUES, out_int32=True, side="right"),
        Sample(ORDERED, 3),
        Sample(exactly([3, 1, 2]), VALUES, sorter=positions([1, 2, 0])),
    ],
    "bucketize": [Sample(VALUES, ORDERED), Sample(VALUES, ORDERED, right=True, out_int32=True), Sample(4, ORDERED)],
    "among": [Sample(NUMBERS, VALUES, False)],
    "isin": [
        Sample(NUMBERS, VALUES),
        Sample(NUMBERS, VALUES, invert=True),
        Sample(NUMBERS, 3),
        Sample(3, NUMBERS),
        Sample(exactly([1, np.nan]), exactly([np.nan, 1])),
    ],
    "distinct": [Sample(NUMBERS, None), Sample(SLICES, 0)],
    "changes": [Sample(NUMBERS, None), Sample(SLICES, 0)],
    "unique": [
        Sample(NUMBERS),
        Sample(SLICES, True, True, True, 0),
        Sample(SLICES, return_counts=True, dim=1),
        Sample(SLICES, return_inverse=True),
        Sample(x(0)),
        Sample(scalar(), return_inverse=True),
        Sample(exactly([1, np.nan, np.nan]), return_counts=True),
    ],
    "unique_consecutive": [
        Sample(NUMBERS),
        Sample(SLICES, True, True, 0),
        Sample(SLICES, return_counts=True),
        Sample(x(0), return_inverse=True),
        Sample(scalar(), return_inverse=True),
        Sample(SLICES, dim=1),
    ],
}
