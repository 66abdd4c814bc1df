"""Samples for views, copies of views, stacking and splitting: see by_hand.py."""

from __future__ import annotations

import numpy as np

from tests.table.samples.by_hand import HAND as CORE
from tests.table.samples.by_hand import Sample, exactly, mask, positions, scalar, x

CUBE = (2, 3, 4)

HAND = {
    # how elements lie in memory
    "as_strided": [
        Sample(x(6), (2, 2), (1, 2)),
        Sample(x(2, 3), (3,), (2,), 1),
        Sample(x(4), (3, 2), (1, 1)),
        Sample(scalar(), (2,), (0,)),
        Sample(x(2, 3), (0, 2), (1, 1)),
    ],
    "as_strided_scatter": [Sample(x(6), x(2, 2), (2, 2), (1, 2)), Sample(x(2, 3), x(3), (3,), (2,), 1)],
    "lie": [Sample(x(6), (2, 2), (1, 2), 1, (1,)), Sample(x(4), (3, 2), (1, 1), 0, (1,))],
    "lie_again": [Sample(x(6), (2, 2), (1, 2), 1, (1,)), Sample(x(3), (3, 2), (1, 1), 0, (1,))],
    "draw": [Sample("uniform", ((2, 3), np.dtype("f4")), ())],
    "region": [Sample(x(2, 3), (2, 2), (1, 2), 1)],
    "with_region": [Sample(x(2, 3), x(2, 2), (2, 2), (1, 2), 1), Sample(x(4), x(), (2,), (2,), 1)],
    "unlie": [Sample(x(2, 2), (6,), (2, 2), (1, 2), 1, (1,)), Sample(x(3, 2), (3,), (3, 2), (1, 1), 0, (1,))],
    "placed": [Sample(x(2, 3), (8, 32)), Sample(scalar(), ())],
    "laid_out": [Sample(x(*CUBE), (2, 0, 1)), Sample(scalar(), ())],
    "fill": [Sample(x(2, 3), 2), Sample(x(2, 3), scalar()), Sample(scalar(), 1.5)],
    "detach": [Sample(x(2, 3))],
    # views
    "ravel": [Sample(x(2, 3)), Sample(scalar()), Sample(x(0, 3))],
    "adjoint": [Sample(x(2, 3)), Sample(x(*CUBE)), Sample(scalar())],
    "linalg_diagonal": [Sample(x(2, 3)), Sample(x(*CUBE), offset=1), Sample(x(*CUBE), offset=-1, dim1=0, dim2=1)],
    "squeeze": [Sample(x(2, 1, 3, 1), dim=(1, 3)), *CORE["squeeze"]],
    "narrow": [*CORE["narrow"], Sample(x(4, 3), 0, positions(1), 2)],
    "unflatten": [*CORE["unflatten"], Sample(x(2, 6), dim=1, sizes=(3, 2))],
    "diagonal": [*CORE["diagonal"], Sample(x(2, 3, 4), dim1=1, dim2=2)],
    "broadcast_shapes": [Sample((2, 1), (3,)), Sample((), (2,))],
    "unravel_index": [Sample(positions([3, 5]), (2, 3)), Sample(positions(4), (2, 3))],
    # other orders
    "fliplr": [Sample(x(2, 3)), Sample(x(*CUBE))],
    "flipud": [Sample(x(2, 3)), Sample(x(3))],
    "rot90": [Sample(x(2, 3), k) for k in (0, 1, 2, 3, -1)] + [Sample(x(*CUBE), 1, (2, 0))],
    "constant_pad_nd": [Sample(x(2, 3), (1, 2)), Sample(x(2, 3), (1, -1, 0, 2), 1.5), Sample(x(2, 3), ())],
    # diagonals
    "diag": [Sample(x(3)), Sample(x(3), -1), Sample(x(2, 3)), Sample(x(2, 3), 1), Sample(x(3, 3), -1)],
    "diag_embed": [Sample(x(3)), Sample(x(2, 3), 1), Sample(x(2, 3), -1, 0, 2), Sample(x(2, 3), dim1=2, dim2=0)],
    "diagflat": [Sample(x(3)), Sample(x(2, 2), 1), Sample(scalar())],
    # joining
    "atleast_1d": [Sample(scalar()), Sample(x(2, 3)), Sample([scalar(), x(2)])],
    "atleast_2d": [Sample(scalar()), Sample(x(3)), Sample(x(2), scalar()), Sample(x(*CUBE))],
    "atleast_3d": [Sample(scalar()), Sample(x(3)), Sample(x(2, 3)), Sample(x(0)), Sample([scalar(), x(2)])],
    "hstack": [Sample([x(2, 3), x(2, 1)]), Sample([x(2), x(3)]), Sample([scalar(), x(2)])],
    "row_stack": [Sample([x(2, 3), x(1, 3)]), Sample([x(3), x(3)])],
    "dstack": [
        Sample([x(2), x(2)]),
        Sample([x(2, 3), x(2, 3)]),
        Sample([x(*CUBE), x(2, 3)]),
        Sample([scalar(), scalar()]),
    ],
    "column_stack": [Sample([x(2), x(2)]), Sample([x(2, 3), x(2)]), Sample([scalar(), scalar()]), Sample([x(0), x(0)])],
    "block_diag": [
        Sample(x(2, 3), x(2), scalar()),
        Sample(x(2, 2)),
        Sample(x(1, 0), x(2, 1)),
        Sample(x(2), mask([True])),
    ],
    "cartesian_prod": [Sample(x(2), x(3)), Sample(x(2)), Sample(x(2), x(1), x(2))],
    "combinations": [Sample(x(4)), Sample(x(3), 3), Sample(x(3), 2, True), Sample(x(2), 0), Sample(x(2), r=3)],
    # splitting
    "tensor_split": [
        Sample(x(5, 2), 3),
        Sample(x(5, 2), (1, 3)),
        Sample(x(2, 5), (1, 3), 1),
        Sample(x(5), (3, 1)),
        Sample(x(5), positions([1, -1])),
        Sample(x(5), positions(2)),
        Sample(x(2), 4),
    ],
    "hsplit": [Sample(x(4), 2), Sample(x(2, 4), 2), Sample(x(2, 4), (1, 3))],
    "vsplit": [Sample(x(4, 2), 2), Sample(x(4, 2), (1, 3))],
    "dsplit": [Sample(x(2, 3, 4), 2), Sample(x(2, 3, 4), (1, 3))],
    "unsafe_split": [Sample(x(5, 2), 2), Sample(x(2, 4), 3, 1)],
    "unsafe_split_with_sizes": [Sample(x(5, 2), (1, 4)), Sample(x(2, 4), (3, 1), 1)],
    "unsafe_chunk": [Sample(x(5, 2), 2), Sample(x(2, 5), 3, 1)],
    # complex numbers
    "of_parts": [Sample(x(2, 3), x(3)), Sample(scalar(), scalar())],
    "complex": [
        Sample(x(2, 3), x(3)),
        Sample(scalar(), scalar()),
        Sample(exactly([np.inf, 1]), exactly([1, np.nan]), smooth=False),
    ],
}

# A copy of a view takes what the view takes; a scatter takes also what is written there.
VIEWS = {
    "alias": [Sample(x(2, 3)), Sample(scalar())],
    "as_strided": HAND["as_strided"],
    "detach": HAND["detach"],
    "t": [Sample(x(2, 3)), Sample(x(3))],
    "transpose": [Sample(x(*CUBE), 0, 2), Sample(x(*CUBE), -1, 1)],
    "unbind": [Sample(x(2, 3)), Sample(x(2, 3), 1)],
    "unfold": [Sample(x(5, 2), 0, 2, 2), Sample(x(5), 0, 3, 1)],
    "unsqueeze": [Sample(x(2, 3), 0), Sample(x(2, 3), -1)],
    "expand": [Sample(x(3), (2, 3)), Sample(x(2, 1), (-1, 3))],
    "view": [Sample(x(2, 3), (3, 2)), Sample(x(2, 3), (-1,))],
    "permute": [Sample(x(*CUBE), (2, 0, 1))],
    "slice": [Sample(x(4, 3)), Sample(x(4, 3), 0, 1, 3), Sample(x(2, 5), 1, 0, 5, 2), Sample(x(4), 0, -3, None)],
    "split": [Sample(x(5, 2), 2), Sample(x(2, 4), 2, 1)],
    "split_with_sizes": [Sample(x(5, 2), (2, 3))],
    "view_as_real": [Sample(x(2, 2))],
    "view_as_complex": [Sample(x(3, 2))],
    **{name: CORE[name] for name in ("diagonal", "narrow", "select", "squeeze")},
}
HAND |= {f"{name}_copy": samples for name, samples in VIEWS.items()}
HAND |= {
    "select_scatter": [Sample(x(4, 3), x(3), 0, 1), Sample(x(4, 3), x(4), -1, -1)],
    "slice_scatter": [Sample(x(4, 3), x(2, 3), 0, 1, 3), Sample(x(2, 5), x(2, 3), 1, 0, 5, 2), Sample(x(3), x(3))],
    "diagonal_scatter": [Sample(x(3, 3), x(3)), Sample(x(2, 3), x(2), 1), Sample(x(2, 3, 4), x(3, 2), 0, 0, 2)],
}
