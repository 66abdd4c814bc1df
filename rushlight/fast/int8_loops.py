"""Loops of kernels/int8.py, in LLVM IR by llvmlite. Without llvmlite, NumPy's kernels run.

The machine code is written in int8_code.py. Buffers: `table`: int64, the addresses and sizes of a weight. `q`: for `rows` rows the scales (float32), then
the zero points (int32), then the uint8 numbers, whose rows are `quads` times 4 bytes long."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.threads import cores
from rushlight.kernels.int8 import INPUTS, OUTPUTS, Int8Weight
from rushlight.loops.parallel import pool

# What a core does in a second, and the seconds of work that all cores share: to wake a thread takes up to 50 us
PRODUCTS_PER_SECOND, WEIGHT_BYTES_PER_SECOND, PARALLEL_SECONDS = 4e11, 6e10, 1e-4


# -- calls from the kernels ------------------------------------------------------------------------


def linear_by_tensor(x: ndarray, weight: Int8Weight, most: int) -> ndarray | None:
    """kernels/int8.py: linear_by_tensor; None if the kernel should run."""
    return run("by_tensor", x, weight, most)


def linear_by_rows(x: ndarray, weight: Int8Weight, symmetric: bool) -> ndarray | None:
    """kernels/int8.py: linear_by_rows."""
    return run("by_rows", x, weight, 0) if symmetric else None


def linear_of_floats(x: ndarray, weight: Int8Weight) -> ndarray | None:
    """kernels/int8.py: linear_of_floats."""
    code = machine_code()
    if code is None or not x.size or not x.flags.c_contiguous:
        return None
    missing = -x.shape[1] % INPUTS
    padded = np.pad(x, ((0, 0), (0, missing))) if missing else x
    out = np.empty((len(x), weight.shape[0]), np.float32)
    over_panels(code["linear_of_floats"], (table_of(weight), padded, padded, out, *x.shape, 0), weight)
    return out


def run(name: str, x: ndarray, weight: Int8Weight, most: int) -> ndarray | None:
    """Quantize x (rows, in) by the function `name`, and multiply."""
    code = machine_code()
    if code is None or not x.size or weight.zeros is not None or not x.flags.c_contiguous:
        return None
    (rows, k), (panels, quads) = x.shape, weight.tiles.shape[:2]
    q, out = np.empty(rows * (8 + quads * INPUTS), np.uint8), np.empty((rows, weight.shape[0]), np.float32)
    given = (table_of(weight), x, q, out, rows, k, most)
    if seconds(rows, weight) < PARALLEL_SECONDS:
        code[f"linear_{name}"](*given, 0, panels)
    else:
        code[f"quantize_{name}"](*given, 0, 0)
        over_panels(code["multiply"], given, weight)
    return out


def over_panels(function: Callable, given: tuple, weight: Int8Weight) -> None:
    """Call a function for all panels; the cores share the panels of large products."""
    panels, rows = weight.tiles.shape[0], given[4]
    parts = min(cores(), panels) if seconds(rows, weight) >= PARALLEL_SECONDS else 1
    if parts == 1:
        function(*given, 0, panels)
        return
    bounds = [panels * i // parts for i in range(parts + 1)]
    pool.run(function, [(*given, *bounds[i : i + 2]) for i in range(parts)])


def seconds(rows: int, weight: Int8Weight) -> float:
    """About the seconds of a product on one core."""
    size = weight.shape[0] * weight.shape[1]
    return size * (rows / PRODUCTS_PER_SECOND + 1 / WEIGHT_BYTES_PER_SECOND)


def address(array: ndarray) -> int:
    return array.__array_interface__["data"][0]


def table_of(weight: Int8Weight) -> int:
    """The address of a weight's table, made when the weight is first used, and again for another bias."""
    place = weight.place
    if place is None or place.source is not weight.bias:
        weight.place = place = new_place(weight)
    return place.address


def new_place(weight: Int8Weight) -> Place:
    bias = np.zeros(weight.shape[0], np.float32) if weight.bias is None else weight.bias
    arrays = [weight.tiles, *map(filled, (np.broadcast_to(weight.scales, weight.shape[:1]), weight.sums, bias))]
    table = np.array([*map(address, arrays), weight.shape[0], weight.tiles.shape[1]], np.int64)
    return Place(address(table), [table, *arrays], weight.bias)


class Place(NamedTuple):
    """The address of a weight's table, and the arrays that the table refers to. `source`: the bias."""

    address: int
    arrays: list[ndarray]
    source: ndarray | None


def filled(array: ndarray) -> ndarray:
    """The array, lengthened by zeros to a whole number of panels."""
    made = np.zeros(-(-len(array) // OUTPUTS) * OUTPUTS, array.dtype)
    made[: len(array)] = array
    return made


@cache
def machine_code() -> dict[str, Callable] | None:
    """int8_code.compiled(); None without llvmlite."""
    if importlib.util.find_spec("llvmlite") is None:
        return None
    from rushlight.fast.int8_code import compiled

    return compiled()
