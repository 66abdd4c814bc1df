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

PARALLEL_PRODUCTS = 1 << 22  # the least multiplications that all cores share: 30 us on one core


# -- calls from the kernels ------------------------------------------------------------------------


def linear_by_tensor(x: ndarray, weight: Int8Weight, most: int) -> ndarray | None:
    """kernels/int8.py: linear_by_tensor; None if the kernel should run."""
    return run("by_tensor", x, weight, most)


def linear_by_rows(x: ndarray, weight: Int8Weight, symmetric: bool) -> ndarray | None:
    """kernels/int8.py: linear_by_rows."""
    return run("by_rows", x, weight, 0) if symmetric else None


def linear_of_floats(x: ndarray, weight: Int8Weight) -> ndarray | None:
    """kernels/int8.py: linear_of_floats."""
    return None


def run(name: str, x: ndarray, weight: Int8Weight, most: int) -> ndarray | None:
    """Quantize x (rows, in) by the function `name`, and multiply."""
    if not x.size or weight.zeros is not None or not x.flags.c_contiguous:
        return None
    code = machine_code()
    if code is None:
        return None
    rows, k = x.shape
    outputs, (panels, quads) = weight.shape[0], weight.tiles.shape[:2]
    q, out = np.empty(rows * (8 + quads * INPUTS), np.uint8), np.empty((rows, outputs), np.float32)
    given = (table_of(weight), x, q, out, rows, k, most)
    parts = min(cores(), panels) if rows * k * outputs >= PARALLEL_PRODUCTS else 1
    if parts == 1:
        code[f"linear_{name}"](*given, 0, panels)
        return out
    code[f"quantize_{name}"](*given, 0, 0)
    bounds = [panels * i // parts for i in range(parts + 1)]
    pool.run(code["multiply"], [(*given, *bounds[i : i + 2]) for i in range(parts)])
    return out


def address(array: ndarray) -> int:
    return array.__array_interface__["data"][0]


def table_of(weight: Int8Weight) -> int:
    """The address of a weight's table, made when the weight is first used; the bias is read each time."""
    if weight.place is None:
        scales, sums = filled(np.broadcast_to(weight.scales, weight.shape[:1])), filled(weight.sums)
        table = np.zeros(6, np.int64)  # the order: TABLE in int8_code.py
        table[[0, 1, 2]] = [address(a) for a in (weight.tiles, scales, sums)]
        table[[4, 5]] = weight.shape[0], weight.tiles.shape[1]
        weight.place = Place(table, address(table), [scales, sums], None, None)
    place = weight.place
    if place.source is not weight.bias or place.bias is None:
        bias = filled(np.zeros(weight.shape[0], np.float32) if weight.bias is None else weight.bias)
        place.table[3] = address(bias)
        weight.place = place._replace(bias=bias, source=weight.bias)
    return place.address


class Place(NamedTuple):
    """A weight's table, its address, and the arrays that it refers to. `source`: the array that `bias` is made of."""

    table: ndarray
    address: int
    arrays: list[ndarray]
    bias: ndarray | None
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
