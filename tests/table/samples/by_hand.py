"""What samples are made of, and those that no entry of the table implies: shapes that must fit, indices, options."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from rushlight.kernels.index import HERE

SHAPE = (2, 3)


class Constant(np.ndarray):
    """An array that an op does not differentiate by."""


class Data:
    """Stands for a tensor: of the dtype that a test asks for, unless it has its own.

    `low` and `high` bound the size of its numbers; `signed` gives half of them a minus. None of them is whole, and no
    two are equal, also among several tensors, so that derivatives exist. A `constant` has none."""

    def __init__(self, *shape, low=0.13, high=1.96, signed=True, constant=False, dtype=None, values=None):
        self.shape, self.low, self.high, self.signed, self.constant = shape, low, high, signed, constant
        self.dtype, self.values = dtype, values

    def make(self, dtype, random):
        made = self.array(np.dtype(self.dtype or dtype), random)
        return made.view(Constant) if self.constant else made

    def array(self, kind, random):
        if self.values is not None:
            whole = kind.kind in "iub"
            return np.array(np.nan_to_num(self.values, posinf=9, neginf=-9) if whole else self.values).astype(kind)
        x = self.numbers(random)
        if kind.kind == "b":
            return np.asarray(x > np.median(x) if x.size else x, bool)
        if kind.kind in "iu":
            return np.asarray(np.ceil(np.abs(x) * 2) * np.sign(x)).astype(kind)
        return np.asarray(x + 1j * self.numbers(random) if kind.kind == "c" else x).astype(kind)

    def numbers(self, random):
        x = random.permutation(np.linspace(self.low, self.high, int(np.prod(self.shape))))
        x = (x + random.uniform(0, 0.03)).round(3)
        sign = random.choice([-1.0, 1.0], x.shape) if self.signed else 1.0
        return np.asarray(x * sign).reshape(self.shape)


class Sample:
    """The arguments of one call. `smooth`: derivatives exist there, and finite differences find them. `slopes`: or
    there is a gradient by torch's convention, at a corner or among equal numbers."""

    def __init__(self, *args, smooth=True, slopes=None, **kwargs):
        self.args, self.kwargs, self.smooth, self.name = args, kwargs, smooth, ""
        self.slopes = smooth if slopes is None else slopes

    def make(self, dtype):
        """(args, kwargs) with arrays for tensors; the same numbers at every call."""
        random = np.random.default_rng(crc32(self.name.encode()))
        return made(self.args, dtype, random), made(self.kwargs, dtype, random)

    def __repr__(self):
        return self.name


def made(value, dtype, random):
    """The value with an array for each `Data` in it."""
    if isinstance(value, Data):
        return value.make(dtype, random)
    if isinstance(value, (list, tuple)):
        return type(value)(made(v, dtype, random) for v in value)
    if isinstance(value, dict):
        return {k: made(v, dtype, random) for k, v in value.items()}
    return value


def x(*shape, **how):
    return Data(*(shape or SHAPE), **how)


def scalar(**how):
    return Data(**how)


def positions(values):
    return Data(values=values, dtype="int64")


def mask(values):
    return Data(values=values, dtype="bool")


def exactly(values):
    return Data(values=values)


INSIDE_ONE = {"low": 0.13, "high": 0.87}
POSITIVE = {"low": 0.31, "high": 2.9, "signed": False}
SMALL = {"low": 0.13, "high": 1.2}
PROBABILITY = {"low": 0.13, "high": 0.87, "signed": False}

ROW = slice(1, 3)
PAIRS = [[0, 1, 1], [2, 0, 1]]


def indexed(*more):
    """Samples of the ops behind x[key] with index tensors."""
    yield [positions([2, 0, 2])], (HERE, ...), (3, 4)
    yield [positions([[1, -1], [0, 1]])], (slice(None), HERE, ...), (2, 2, 2)
    yield [positions([0, 2]), positions([1, 1])], (HERE, HERE, ...), (2,)
    yield [positions([0, 2]), positions([1, 3])], (HERE, slice(None), HERE), None
    yield [mask([True, False, True])], (HERE, ...), (2, 4)


HAND = {
    # shapes
    "reshape": [
        Sample(x(2, 3), (3, 2)),
        Sample(x(2, 3), (-1,)),
        Sample(scalar(), (1, 1)),
        Sample(x(0, 3), (3, 0)),
        Sample(x(2, 3), (2, 3)),
    ],
    "view": [Sample(x(2, 3), 3, 2), Sample(x(2, 3), (-1,)), Sample(x(2, 3), 6), Sample(scalar(), (1,))],
    "view_as_shape": [Sample(x(2, 3), (3, 2))],
    "unflatten": [Sample(x(2, 6), 1, (2, 3)), Sample(x(2, 6), -1, (-1, 2)), Sample(x(4), 0, (2, 2))],
    "squeeze": [
        Sample(x(2, 1, 3, 1)),
        Sample(x(2, 1, 3, 1), 1),
        Sample(x(2, 1, 3, 1), (1, 3)),
        Sample(scalar()),
        Sample(x(2, 1, 3, 1), 0),
        Sample(x(2, 1, 3, 1), (0, -1)),
        Sample(scalar(), 0),
    ],
    "permute": [Sample(x(2, 3, 2), (2, 0, 1)), Sample(x(2, 3, 2), (-1, 1, 0)), Sample(scalar(), ())],
    "unpermute": [Sample(x(2, 3, 2), (2, 0, 1))],
    "expand": [
        Sample(x(3), 2, 3),
        Sample(x(2, 1), (2, 3)),
        Sample(x(2, 1), -1, 3),
        Sample(scalar(), 2),
        Sample(x(3), 0, 3),
        Sample(scalar(), ()),
    ],
    "narrow": [
        Sample(x(4, 3), 0, 1, 2),
        Sample(x(4, 3), -1, 0, 3),
        Sample(x(4, 3), 1, -2, 2),
        Sample(x(4, 3), 0, 2, 0),
    ],
    "select": [Sample(x(4, 3), 0, 1), Sample(x(4, 3), -1, -1), Sample(x(4), 0, 2)],
    "getitem": [Sample(x(4, 3), (ROW, ...)), Sample(x(4, 3), (..., 0)), Sample(x(4, 3), (None, slice(0, 4, 2), ...))],
    "diagonal": [
        Sample(x(3, 3)),
        Sample(x(2, 3), 1),
        Sample(x(2, 3), offset=-1),
        Sample(x(2, 3, 4), 1, 0, 2),
        Sample(x(2, 3, 4), 0, -1, 1),
    ],
    "unfold_dim": [Sample(x(5, 2), 0, 2, 2), Sample(x(5), 0, 3, 1)],
    "embed": [Sample(x(2, 3), (4, 3), (ROW, ...)), Sample(x(3), (3, 4), (..., 1))],
    "rolled": [Sample(x(2, 3), (1, -2), (0, 1)), Sample(x(3), (4,), (0,), True)],
    "embed_diagonal": [Sample(x(2), (2, 3), 1, 0, 1), Sample(x(3), (3, 3), 0, 0, 1)],
    "add_windows": [Sample(x(2, 2, 2), (5, 2), 0, 2, 2), Sample(x(3, 3), (5,), 0, 3, 1)],
    "flip": [
        Sample(x(2, 3), (0,)),
        Sample(x(2, 3), (0, -1)),
        Sample(x(2, 3), ()),
        Sample(x(0, 3), (0,)),
        Sample(scalar(), (0,)),
    ],
    "tril": [Sample(x(3, 3)), Sample(x(2, 3), 1), Sample(x(2, 3, 2), -1), Sample(x(0, 3))],
    "triu": [Sample(x(3, 3)), Sample(x(2, 3), 1), Sample(x(2, 3, 2), -1), Sample(x(0, 3))],
    "repeat": [Sample(x(2, 3), 2, 1), Sample(x(3), (2, 2)), Sample(scalar(), 2), Sample(x(2, 3), 0, 1)],
    "fold_repeats": [Sample(x(4, 3), (2, 3), (2, 1)), Sample(x(2, 6), (3,), (2, 2))],
    "overwrite": [Sample(x(2, 3), x(3)), Sample(x(2, 3), scalar())],
    "to": [],  # conversions: core/test_tensor.py
    "view_as": [Sample(x(2, 3), x(3, 2))],
    "reshape_as": [Sample(x(2, 3), x(3, 2))],
    "expand_as": [Sample(x(3), x(2, 3))],
    "type_as": [Sample(x(2, 3), x(1))],
    "cat": [
        Sample([x(2, 3), x(1, 3)]),
        Sample([x(2, 3), x(2, 2)], 1),
        Sample([x(2, 3), x(2, 1), x(2, 2)], dim=-1),
        Sample([x(0), x(2, 3)]),
        Sample([x(3), mask([True, False])]),
        Sample([x(2, 3)]),
    ],
    "split_sizes": [Sample(x(5, 2), (2, 3)), Sample(x(2, 5), (1, 4, 0), 1)],
    "split": [Sample(x(5, 2), 2), Sample(x(5, 2), [1, 4]), Sample(x(2, 4), 2, dim=-1), Sample(x(0, 2), 1)],
    "split_with_sizes": [Sample(x(5, 2), [2, 3]), Sample(x(2, 4), [1, 3], dim=1)],
    "chunk": [Sample(x(5, 2), 2), Sample(x(2, 5), 3, 1), Sample(x(2), 4)],
    "broadcast_to": [Sample(x(3), (2, 3)), Sample(x(2, 1), (2, 3)), Sample(scalar(), (2,))],
    "broadcast_tensors": [Sample(x(3), x(2, 1)), Sample(x(3), scalar())],
    "movedim": [Sample(x(2, 3, 4), 0, 2), Sample(x(2, 3, 4), (0, 1), (-1, 0)), Sample(x(2, 3, 4), -1, 0)],
    "repeat_interleave": [Sample(x(2, 3), 2), Sample(x(2, 3), 2, dim=1), Sample(x(2, 3), positions([1, 2]), dim=0)],
    "tile": [Sample(x(2, 3), (2,)), Sample(x(3), (2, 2)), Sample(x(2, 3), (1, 2)), Sample(scalar(), (2,))],
    "roll": [
        Sample(x(2, 3), 1),
        Sample(x(2, 3), 1, 0),
        Sample(x(2, 3), (1, -1), (0, 1)),
        Sample(x(2, 3), 7, 1),
        Sample(x(0, 3), 1, 0),
    ],
    "hstack": [Sample([x(2, 3), x(2, 1)]), Sample([x(2), x(3)]), Sample([scalar(), x(2)])],
    "vstack": [Sample([x(2, 3), x(1, 3)]), Sample([x(3), x(3)]), Sample([scalar(), scalar()])],
    "meshgrid": [
        Sample(x(2), x(3), indexing="ij"),
        Sample(x(2), x(3), indexing="xy"),
        Sample(x(2), scalar(), indexing="ij"),
    ],
    "atleast_1d": [Sample(scalar()), Sample(x(2, 3))],
    "t": [Sample(x(2, 3)), Sample(x(3)), Sample(scalar())],
    "contiguous": [Sample(x(2, 3))],
    "clone": [Sample(x(2, 3)), Sample(scalar()), Sample(x(0, 3))],
    # picking and writing at positions
    "index": [Sample(x(3, 3, 4), ts, key) for ts, key, _ in indexed()],
    "index_add_zeros": [
        Sample(x(3, 4), [positions([2, 0, 2])], (HERE, ...), (3, 4)),
        Sample(x(2, 4), [mask([True, False, True])], (HERE, ...), (3, 4)),
        Sample(x(2), [positions([0, 2]), positions([1, 1])], (HERE, HERE), (3, 3)),
    ],
    "write_at": [
        Sample(x(3, 4), x(2, 4), [positions([2, 0])], (HERE, ...)),
        Sample(x(3, 4), scalar(), [mask([True, False, True])], (HERE, ...)),
        Sample(x(3, 4), x(3, 4), [positions([2, 0, 2])], (HERE, ...), True),
    ],
    "clear": [Sample(x(3, 4), [positions([2, 0])], (HERE, ...))],
    "gather": [
        Sample(x(3, 3), 0, positions(PAIRS)),
        Sample(x(2, 4), 1, positions(PAIRS)),
        Sample(x(2, 4), -1, positions([[3]])),
        Sample(scalar(), 0, positions(0)),
        Sample(x(2, 3), 0, positions(np.zeros((0, 3)))),
    ],
    "scatter_add": [
        Sample(x(3, 3), 0, positions(PAIRS), x(2, 3)),
        Sample(x(2, 4), 1, positions(PAIRS), x(2, 4)),
        Sample(scalar(), 0, positions(0), scalar()),
        Sample(x(2, 3), 1, positions(np.zeros((2, 0))), x(2, 3)),
    ],
    "scatter": [
        Sample(x(3, 3), 0, positions([[0, 1, 1], [2, 0, 0]]), x(2, 3)),
        Sample(x(2, 4), 1, positions([[1, 3], [0, 2]]), 2.5),
        Sample(x(2, 4), -1, positions([[1, 3], [0, 2]]), x(2, 4)),
        Sample(x(2, 4), 1, positions([[1, 3]]), value=1),
        Sample(scalar(), 0, positions(0), scalar()),
        Sample(x(2, 4), 1, positions([[1, 1]]), x(2, 4), reduce="add"),
        Sample(x(2, 4), 1, positions([[1, 1]]), 2, reduce="add"),
    ],
    "index_select": [
        Sample(x(3, 2), 0, positions([2, 0, 2])),
        Sample(x(2, 3), -1, positions([1])),
        Sample(x(3, 2), 0, positions([])),
        Sample(scalar(), 0, positions([0])),
    ],
    "index_add": [
        Sample(x(3, 2), 0, positions([2, 0, 2]), x(3, 2)),
        Sample(x(2, 3), 1, positions([0, 0]), x(2, 2), alpha=2),
        Sample(x(3), 0, positions([1]), x(1)),
    ],
    "index_copy": [
        Sample(x(3, 2), 0, positions([2, 0]), x(2, 2)),
        Sample(x(2, 3), -1, positions([1]), x(2, 1)),
        Sample(scalar(), 0, positions([0]), x(1)),
    ],
    "index_fill": [Sample(x(3, 2), 0, positions([2, 0]), 1.0), Sample(x(2, 3), 1, positions([1]), scalar())],
    "index_put": [
        Sample(x(3, 2), (positions([2, 0]),), x(2, 2)),
        Sample(x(3, 2), (positions([0, 2]), positions([1, 1])), x(2)),
        Sample(x(3, 2), (positions([2, 2]),), x(2, 2), accumulate=True),
        Sample(x(3), (mask([True, False, True]),), scalar()),
    ],
    "masked_fill": [
        Sample(x(2, 3), mask([[True, False, True], [False] * 3]), 2),
        Sample(x(2, 3), mask([True, False, True]), scalar()),
        Sample(scalar(), mask(True), 1),
    ],
    "masked_select": [
        Sample(x(2, 3), mask([[True, False, True], [False] * 3])),
        Sample(x(2, 3), mask([True, False, True])),
        Sample(x(3), mask([[True, False, True], [False] * 3])),
    ],
    "nonzero": [
        Sample(exactly([[0, 1, 0], [2, 0, 3]])),
        Sample(exactly([0, 1]), as_tuple=True),
        Sample(exactly(3)),
        Sample(exactly(0)),
    ],
    "argwhere": [Sample(exactly([[0, 1, 0], [2, 0, 3]])), Sample(exactly([])), Sample(exactly(1))],
    "embedding": [
        Sample(x(4, 2), positions([[0, 3, 3], [1, 0, 2]])),
        Sample(x(4, 2), positions([1, 1, 0]), 1, smooth=False, slopes=True),
        Sample(x(4, 2), positions(2)),
    ],
    # the share is 1: the derivatives are not those of the forward
    "with_scaled_gradient": [Sample(x(3, 2), x(3, 1, values=[[1.0]] * 3, constant=True))],
    "scaled_once": [Sample(x(3, 2), x(3, 1, values=[[1.0]] * 3, constant=True))],
    "without_gradient": [Sample(x(3, 2), mask([[False, False]] * 3))],
    "embedding_grad": [Sample(x(3, 2), positions([0, 3, 3]), 4), Sample(x(3, 2), positions([0, 3, 3]), 4, 3)],
    # recurrent layers: all steps of one length, or sequences of 3, 2 and 1
    "lstm_layer": [
        Sample([x(6, 8), x(2, 2), x(2, 2), x(8, 2)], None, False),
        Sample([x(2, 3, 8), x(3, 1), x(3, 2), x(8, 1), x(8), x(1, 2)], None, True),
        Sample([x(6, 4), x(3, 1), x(3, 1), x(4, 1)], (3, 2, 1), True),
    ],
    # the ways back take what the layers saved: no slope of theirs can be found by moving an input alone
    "lstm_back": [
        Sample(
            [x(2, 2, 4), x(2, 1), x(2, 1), x(4, 1), x(2, 2, 1), x(5, 4, 1), x(2, 2, 1), x(2, 1), x(2, 1)],
            None,
            False,
            smooth=False,
        )
    ],
    "gru_back": [
        Sample(
            [x(2, 2, 3), x(2, 1), x(3, 1), x(3), x(2, 2, 1), x(4, 4, 1), x(2, 2, 1), x(2, 1)], None, True, smooth=False
        )
    ],
    "rnn_back": [
        Sample([x(2, 2, 1), x(2, 1), x(1, 1), x(2, 2, 1), x(2, 2, 1), x(2, 1)], True, None, False, smooth=False)
    ],
    "gru_layer": [
        Sample([x(6, 6), x(2, 2), x(6, 2), x(6)], None, False),
        Sample([x(6, 3), x(3, 1), x(3, 1)], (3, 2, 1), True),
    ],
    "rnn_layer": [
        Sample([x(6, 2), x(2, 2), x(2, 2), x(2)], False, None, False),
        Sample([x(2, 3, 2), x(3, 2), x(2, 2)], True, None, True),
        Sample([x(6, 1), x(3, 1), x(1, 1)], False, (3, 2, 1), False),
    ],
    # products
    "mm": [Sample(x(2, 3), x(3, 4)), Sample(x(2, 0), x(0, 3)), Sample(x(0, 2), x(2, 3))],
    "dot": [Sample(x(3), x(3)), Sample(x(0), x(0))],
    "linear": [
        Sample(x(2, 3), x(4, 3), x(4)),
        Sample(x(2, 2, 3), x(4, 3), None),
        Sample(x(3), x(4, 3), x(4)),
        Sample(x(0, 3), x(2, 3), x(2)),
    ],
    "matmul": [
        Sample(x(2, 3), x(3, 2)),
        Sample(x(3), x(3)),
        Sample(x(3), x(3, 2)),
        Sample(x(2, 3), x(3)),
        Sample(x(2, 2, 3), x(3, 2)),
        Sample(x(2, 1, 2, 3), x(3, 3, 2)),
        Sample(x(3), x(2, 3, 2)),
        Sample(x(2, 2, 3), x(3)),
        Sample(x(2, 0), x(0, 3)),
    ],
    "mv": [Sample(x(2, 3), x(3))],
    "bmm": [Sample(x(2, 2, 3), x(2, 3, 2)), Sample(x(0, 2, 3), x(0, 3, 2))],
    "outer": [Sample(x(2), x(3)), Sample(x(0), x(3))],
    "addmm": [
        Sample(x(2, 4), x(2, 3), x(3, 4)),
        Sample(x(4), x(2, 3), x(3, 4), beta=2, alpha=3),
        Sample(scalar(), x(2, 3), x(3, 2), beta=0),
    ],
    "addmv": [Sample(x(2), x(2, 3), x(3)), Sample(scalar(), x(2, 3), x(3), beta=2, alpha=3)],
    "baddbmm": [Sample(x(2, 2, 2), x(2, 2, 3), x(2, 3, 2)), Sample(x(2), x(2, 2, 3), x(2, 3, 2), beta=2, alpha=3)],
    "einsum": [
        Sample("ij,jk->ik", x(2, 3), x(3, 2)),
        Sample("ii->i", x(3, 3)),
        Sample("ij->", x(2, 3)),
        Sample("i,j", x(2), x(3)),
        Sample("bij,bjk,bk->bi", x(2, 2, 3), x(2, 3, 2), x(2, 2)),
        Sample("...ij->...ji", x(2, 2, 3)),
    ],
    # arithmetic with more arguments
    "add": [Sample(x(), x(3), alpha=2), Sample(x(), 3, alpha=2)],
    "sub": [Sample(x(), x(3), alpha=2), Sample(x(), 3, alpha=2)],
    "rsub": [Sample(x(), x(3)), Sample(x(), 3, alpha=2), Sample(x(), 1.5)],
    "div": [
        Sample(x(), x(3), rounding_mode="trunc"),
        Sample(x(), x(3), rounding_mode="floor"),
        Sample(x(), 0.7, rounding_mode="trunc"),
    ],
    "round": [Sample(x(), decimals=1), Sample(x(high=300), decimals=-2)],
    "clamp": [
        Sample(x(), -1, 0.75),
        Sample(x(), min=0.5),
        Sample(x(), max=x(3)),
        Sample(x(), x(), x()),
        Sample(x(), 1, -1),
        Sample(exactly([-1, 0, 1, np.nan]), 0, 1, smooth=False),
    ],
    "where": [
        Sample(mask([True, False, True]), x(), 2),
        Sample(mask([True, False, True]), 1.5, x()),
        Sample(mask([True, False]), 1, 2.5),
    ],
    "conj": [Sample(x()), Sample(scalar())],
    "real": [Sample(x()), Sample(scalar())],
    "imag": [Sample(x()), Sample(scalar())],
    "real_part": [Sample(x(dtype="complex128"))],
    "imag_part": [Sample(x(dtype="complex128"))],
    "resolve_conj": [Sample(x())],
    "resolve_neg": [Sample(x())],
    "view_as_real": [Sample(x()), Sample(scalar())],
    "view_as_complex": [Sample(x(3, 2)), Sample(x(2))],
    # reductions with more arguments
    "max": [
        Sample(x(2, 3)),
        Sample(x(2, 3), 1),
        Sample(x(2, 3), 0, True),
        Sample(x(2, 3), x(3)),
        Sample(scalar(), 0),
        Sample(exactly([[1, 3, 3], [2, 2, 1]]), 1, smooth=False, slopes=True),
        Sample(exactly([1, 3, 3]), smooth=False, slopes=True),
        Sample(exactly([[1, np.nan, np.nan], [2, np.inf, 1]]), 1, smooth=False),
        Sample(exactly([1, np.nan]), smooth=False),
    ],
    "var": [
        Sample(x(2, 3)),
        Sample(x(2, 3), 1),
        Sample(x(2, 3), False),
        Sample(x(2, 3), (0, 1), keepdim=True),
        Sample(x(2, 3), 0, correction=0),
        Sample(x(2, 3), 1, False, True),
        Sample(x(2, 1), 1, correction=0, smooth=False, slopes=True),
        Sample(x(2, 1), 1, smooth=False),
        Sample(x(0, 3), 0, smooth=False),
    ],
    "var_core": [Sample(x(2, 3), None, 1), Sample(x(2, 3), (1,), 0)],
    "norm": [
        Sample(x(2, 3)),
        Sample(x(2, 3), 1),
        Sample(x(2, 3), 3, 1),
        Sample(x(2, 3), float("inf"), 0, True),
        Sample(x(2, 3), 0),
        Sample(x(2, 3), -float("inf")),
        Sample(x(2, 3), 2, (0, 1)),
        Sample(exactly([0, 0]), smooth=False, slopes=True),
    ],
    "topk": [
        Sample(x(2, 4), 2),
        Sample(x(4, 2), 2, 0),
        Sample(x(2, 4), 3, -1, False),
        Sample(x(2, 4), 0),
        Sample(scalar(), 1),
    ],
    "sort": [
        Sample(x(2, 4)),
        Sample(x(4, 2), 0, True),
        Sample(x(2, 3), stable=True, dim=-1),
        Sample(scalar()),
        Sample(exactly([2, 1, 2, np.nan, 1]), stable=True, smooth=False),
        Sample(exactly([2, 1, 2, 1]), stable=True, descending=True, smooth=False),
    ],
    "argsort": [Sample(x(2, 4)), Sample(x(4, 2), 0, True), Sample(exactly([2, 1, 2, 1]), stable=True, smooth=False)],
    "prod": [Sample(exactly([[0.5, 0, 2], [0, 3, 0]]), 1), Sample(exactly([1.5, 0, 2]))],
    "cumsum": [Sample(x(2, 3), 0), Sample(x(2, 3), -1), Sample(scalar(), 0), Sample(x(0, 3), 0)],
    "cumprod": [
        Sample(x(2, 3), 0),
        Sample(x(2, 3), -1),
        Sample(scalar(), 0),
        Sample(x(0, 3), 0),
        Sample(exactly([[0.5, 0, 2], [0, 3, 0]]), 1),
        Sample(exactly([1.5, 0, 2, 0]), 0),
    ],
    "argmax": [
        Sample(x(2, 3)),
        Sample(x(2, 3), 1),
        Sample(x(2, 3), 0, True),
        Sample(x(2, 3), keepdim=True),
        Sample(scalar()),
        Sample(exactly([1, 3, 3]), smooth=False),
        Sample(exactly([1, np.nan, 3]), smooth=False),
    ],
    "softmax": [
        Sample(x(2, 3), 1),
        Sample(x(2, 3), dim=-2),
        Sample(scalar(), 0),
        Sample(x(0, 3), 0),
        Sample(exactly([1000, 0, -np.inf]), 0, smooth=False),
    ],
    "count_nonzero": [
        Sample(exactly([[0, 1, 0], [2, 0, 3]])),
        Sample(exactly([[0, 1, 0], [2, 0, 3]]), 1),
        Sample(exactly([[0, 1]]), (0, 1)),
    ],
    "isclose": [
        Sample(exactly([1, 1, np.inf, np.nan, 1]), exactly([1, 1.000001, np.inf, np.nan, 1.1])),
        Sample(exactly([1, np.nan, np.inf]), exactly([1.1, np.nan, -np.inf]), 0.2, 0.1, True),
    ],
    "equal": [
        Sample(x(2, 3), x(2, 3)),
        Sample(exactly([1, 2]), exactly([1, 2])),
        Sample(exactly([1, 2]), exactly([[1, 2]])),
    ],
    # networks
    "layer_norm": [Sample(x(2, 3), x(3), x(3), (-1,), 1e-5), Sample(x(2, 3, 2), None, None, (1, 2), 1e-5)],
    "batch_norm": [Sample(x(4, 2), x(2), x(2), (0,), 1e-5), Sample(x(3, 2, 2), None, None, (0, 2), 1e-5)],
    "batch_dots": [Sample(x(4, 2), x(4, 2), x(1, 2), (0,)), Sample(x(3, 2, 2), x(3, 2, 2), x(1, 2, 1), (0, 2))],
    "group_norm": [Sample(x(3, 4, 2), x(4), x(4), 2, 1e-5), Sample(x(2, 6), None, None, 3, 1e-5)],
    "frozen_batch_norm": [Sample(x(4, 2), x(2), x(2), x(2, constant=True), x(2, constant=True, signed=False), 1e-5)],
    "nll_loss": [Sample(x(3, 4), positions([1, 0, 3]), None, reduction=r) for r in ("mean", "sum", "none")]
    + [
        Sample(x(3, 4), positions([1, -100, 3]), x(4, constant=True, **POSITIVE)),
        Sample(x(2, 3, 2), positions([[1, 0], [2, 2]]), None),
    ],
    "nll_loss_grad": [
        Sample(scalar(), positions([1, 0, 3]), None, (3, 4), -100, "mean"),
        Sample(x(3), positions([1, 0, 3]), None, (3, 4), 0, "none"),
    ],
    "convolution": [
        Sample(x(2, 2, 4), x(2, 2, 3), x(2), (1,), (1,), (1,), 1),
        Sample(x(1, 2, 3, 3), x(2, 1, 2, 2), None, (2, 1), (1, 0), (1, 1), 2),
    ],
    "conv_input_grad": [Sample(x(2, 2, 4), x(2, 2, 3), (4,), (1,), (1,), (1,), 1)],
    "conv_weight_grad": [Sample(x(2, 2, 4), x(2, 2, 4), (3,), (1,), (1,), (1,), 1)],
    "max_pool": [
        Sample(x(1, 2, 5), (2,), (2,), (0,), (1,), False),
        Sample(x(1, 1, 4, 4), (2, 2), (1, 1), (1, 1), (1, 1), True),
    ],
    "max_values": [
        Sample(x(1, 2, 5), (2,), (2,), (0,), (1,), False),
        Sample(x(1, 1, 4, 4), (2, 2), (1, 1), (1, 1), (1, 1), True),
    ],
    "avg_pool": [
        Sample(x(1, 2, 5), (2,), (2,), (0,), True, True, None),
        Sample(x(1, 1, 4, 4), (3, 3), (2, 2), (1, 1), False, False, None),
    ],
    "avg_pool_grad": [Sample(x(1, 2, 2), (5,), (2,), (2,), (0,), False, True, None)],
    "adaptive_max_pool": [Sample(x(1, 2, 5), (2,)), Sample(x(1, 1, 3, 4), (2, 2))],
    "adaptive_avg_pool": [Sample(x(1, 2, 5), (2,)), Sample(x(1, 1, 3, 4), (2, 2))],
    "adaptive_avg_pool_grad": [Sample(x(1, 2, 2), (5,))],
    "scatter_spatial": [Sample(x(1, 2, 2), positions([[[1, 3], [0, 4]]]), (5,))],
    "gather_spatial": [Sample(x(1, 2, 5), positions([[[1, 3], [0, 4]]]))],
    "blend": [
        Sample(x(2, 3), 1, ("linear", 3, 5, 0.6, False)),
        Sample(x(3, 2), 0, ("nearest", 3, 5, 0.6, 0.0)),
        Sample(x(2, 5), 1, ("nearest", 3, 5, 0.6, 0.0), True),
        Sample(x(2, 3, 2), 1, ("bicubic", 3, 2, 1.5, True)),
    ],
    "constant_pad": [Sample(x(2, 3), ((1, 0), (0, 2)), 1.5), Sample(x(2, 3), ((0, -1), (1, -1)), 0)],
    "bordered": [Sample(x(2, 3), mode, ((1, 0), (1, 2))) for mode in ("reflect", "replicate", "circular")],
    "unbordered": [Sample(x(3, 6), mode, ((1, 0), (1, 2))) for mode in ("reflect", "replicate", "circular")],
    "dropout_mask": [Sample(x(2, 3), 0.5), Sample(x(2, 3, 2), 0.5, True)],
    "moved": [Sample(x(3), x(1, 3, 1), 0.9, 0.2)],
    "im2col": [
        Sample(x(1, 2, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1)),
        Sample(x(1, 1, 3, 4), (2, 2), (1, 1), (1, 1), (2, 2)),
    ],
    "col2im": [Sample(x(1, 8, 4), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1))],
}
LIKE = {
    "min": "max",
    "std": "var",
    "var_mean": "var",
    "std_mean": "var",
    "argmin": "argmax",
    "log_softmax": "softmax",
    "allclose": "isclose",
}
HAND |= {name: HAND[other] for name, other in LIKE.items()}
ALSO_DERIVED = {"add", "sub", "div", "round", "where", "prod"}  # these on top of what the entry says
