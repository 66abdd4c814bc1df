"""Samples for what reads and writes at positions: see by_hand.py."""

from __future__ import annotations

from tests.table.samples.by_hand import HAND as CORE
from tests.table.samples.by_hand import PAIRS, Sample, exactly, mask, positions, scalar, x

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
TWICE = [[0, 0, 1], [2, 0, 1]]
ZEROS = exactly([[0.0, 2.0, 0.0], [3.0, 0.0, 0.5]])

HAND = {
    "gather": [*CORE["gather"], Sample(x(2, 3), 0, positions([[0]])), Sample(x(3), 0, positions(1))],
    "scatter": [
        *CORE["scatter"],
        Sample(x(2, 4), 1, positions([[1, 1]]), x(2, 4), reduce="multiply"),
        Sample(x(2, 4), 1, positions([[1, 1]]), 2, reduce="multiply"),
    ],
    "scatter_reduce": [
        *[
            Sample(x(3, 3), 0, positions(TWICE), x(2, 3), r, include_self=kept)
            for r in REDUCTIONS
            for kept in (True, False)
        ],
        Sample(x(2, 4), 1, positions(PAIRS), x(2, 4), "mean"),
        Sample(x(3, 3), 0, positions(TWICE), ZEROS, "prod", smooth=False, slopes=True),
        Sample(exactly([1, 2]), 0, positions([0, 0, 1]), exactly([1, 1, 3]), "amax", smooth=False, slopes=True),
        Sample(scalar(), 0, positions(0), scalar(), "sum"),
        Sample(x(2), 0, positions([]), x(0), "sum"),
    ],
    "rows_summed": [
        Sample(x(4, 3), positions([0, 3, 1, 0]), positions([0, 0, 2, 2]), n=3),
        Sample(x(4, 3), positions([2, 2, 1]), positions([1, 0, 1]), n=2),
        Sample(x(4, 3), positions([]), positions([]), n=2),
    ],
    "reduce_at": [Sample(x(3, 3), positions(TWICE), x(2, 3), 0, r) for r in REDUCTIONS],
    "index_reduce": [
        *[
            Sample(x(3, 2), 0, positions([2, 0, 2]), x(3, 2), r, include_self=kept)
            for r in REDUCTIONS[1:]
            for kept in (True, False)
        ],
        Sample(x(2, 3), 1, positions([0, 0]), x(2, 2), "mean"),
        Sample(scalar(), 0, positions([0]), x(1), "prod"),
    ],
    "segment_reduce": [
        *[
            Sample(x(4, 2), r, lengths=positions(long), initial=first)
            for r in ("sum", "mean", "max", "min", "prod")
            for long, first in (([1, 3], None), ([1, 0, 3], 0.5))
        ],
        Sample(x(4), "sum", offsets=positions([1, 2, 4])),
        Sample(x(2, 3), "mean", lengths=positions([[1, 2], [2, 1]]), axis=1),
        Sample(exactly([1, 1, 2]), "max", lengths=positions([3]), initial=1.0, smooth=False, slopes=True),
        Sample(exactly([2, 2, 0]), "prod", lengths=positions([2, 1]), smooth=False, slopes=True),
    ],
    "index_fill": [
        Sample(x(3, 2), 0, positions([2, 0]), 1.0),
        Sample(x(2, 3), 1, positions([1, 1]), scalar()),
        Sample(scalar(), 0, positions([0]), 2),
        Sample(x(3), -1, positions(-1), 2),
    ],
    "index_put": [*CORE["index_put"], Sample(x(3, 2), (None, positions([1])), x(3, 1))],
    "take": [
        Sample(x(2, 3), positions([0, 5, -1])),
        Sample(x(2, 3), positions([[1, 1], [0, 2]])),
        Sample(scalar(), positions([0])),
        Sample(x(3), positions([])),
    ],
    "put": [
        Sample(x(2, 3), positions([0, 5]), x(2)),
        Sample(x(2, 3), positions([[1, 1], [0, 2]]), x(4), accumulate=True),
        Sample(x(2, 3), positions([-1]), x(1)),
    ],
    "take_along_dim": [
        Sample(x(2, 3), positions([[0, 2], [1, 1]]), 1),
        Sample(x(2, 3), positions([[1]]), 0),
        Sample(x(2, 3), positions([5, 0])),
        Sample(x(1, 3), positions([[0], [0]]), dim=0),
    ],
    "masked_scatter": [
        Sample(x(2, 3), mask([[True, False, True], [False] * 3]), x(4)),
        Sample(x(3), mask([[True, False, True], [False, True, False]]), x(2, 2)),
        Sample(x(2, 3), mask([False] * 3), x(1)),
    ],
    "nonzero_static": [
        Sample(exactly([[0, 1, 0], [2, 0, 3]]), size=2),
        Sample(exactly([0, 1]), size=3),
        Sample(exactly([0, 1]), size=2, fill_value=7),
    ],
    "where": [Sample(mask([True, False, True]), scalar(), x()), Sample(mask([[True], [False]]), x(3), x(2, 1))],
}
HAND["index_fill"] += CORE["index_fill"]
