"""Uniform integers: `torch.randint`, `random_` and `torch.randperm`."""

from __future__ import annotations

from functools import cache
from operator import index

import numpy as np

from rushlight.base.errors import runtime_error, type_error
from rushlight.random.blocks import DType, Shape, blocks, count_of, empty, kind_of
from rushlight.random.choose_loop import Loop
from rushlight.random.fma import narrow

from .stream import MAX_SMALL_DRAW, Stream
from .uniform import largest

_LOOP = Loop("exchanged")
MIN_VECTORIZED = 1000  # below this many numbers a Python loop is faster than the vectorized exchange
MAX_LISTED = 16  # up to this many numbers, Python's integers are faster than NumPy's calls
_ONE_WORD = 2**28  # ranges below this take one word per number, others two
_LARGEST_PERMUTATION = (2**32 - 1) // 20


def randint(stream: Stream, low: int, high: int, shape: Shape, dtype: DType = np.int64) -> np.ndarray:
    """low + w mod (high - low), w a word of 32 bits, or of 64 bits if high - low >= 2^28.

    Shape: `shape`. Dtypes: bool, integers, float16, bfloat16, float32, float64; bounds that a floating dtype does not
    hold are moved inwards, as in torch. RuntimeError if low >= high or a bound does not fit the dtype.

    >>> rushlight.Generator().manual_seed(0).randint(0, 10, 5)
    array([4, 9, 3, 0, 3])
    """
    if dtype == np.int64 and 0 <= low < high < _ONE_WORD and (n := count_of(shape)) <= MAX_SMALL_DRAW:
        made = few(stream.words(n), low, high - low)
        return made if made.shape == shape else made.reshape(shape)
    out, flat = empty("randint", shape, dtype, "iubf")
    check_range(out.dtype, low, high)
    if kind_of(out.dtype) == "f":
        low, high = inner_range(low, high, out.dtype)
    _fill(stream, flat, low, high - low)
    return out


def few(words: np.ndarray, low: int, count: int) -> np.ndarray:
    """low + w mod count for a few words of 32 bits, (n,) int64."""
    if len(words) <= MAX_LISTED:
        return np.array([low + w % count for w in words.tolist()], np.int64)
    made = (words % np.uint32(count)).astype(np.int64)
    return made + low if low else made


def random_(stream: Stream, shape: Shape, dtype: DType = np.int64, low: int | None = None) -> np.ndarray:
    """Any number of the dtype from 0 on, or from `low` on: up to the largest integer, or 2^digits of a floating dtype.

    Shape: `shape`. Dtypes: bool, signed integers, uint8, float16, bfloat16, float32, float64, and with `low` also
    uint16 and uint32. RuntimeError if `low` does not fit the dtype.

    >>> rushlight.Generator().manual_seed(0).random_(2, np.uint8)
    array([172,  47], dtype=uint8)
    """
    out, flat = empty("random_", shape, dtype, "iubf")
    kind, top = kind_of(out.dtype), top_integer(out.dtype)
    if low is None and kind == "u" and out.itemsize > 1 or kind == "u" and out.itemsize == 8:
        raise type_error(f"random_ is not supported for dtype {out.dtype}: use randint with bounds")
    if low == -(2**63) and out.dtype.name in ("int64", "float64", "float32", "bfloat16"):
        for block in blocks(flat):
            block[...] = as_dtype(stream.double_words(len(block)).view(np.int64), out.dtype)
    elif low is not None:
        check_range(out.dtype, low, top + 1)
        _fill(stream, flat, low, top + 1 - low)
    else:
        _fill_from_zero(stream, flat, top + 1, wide=out.itemsize == 8)
    return out


def _fill(stream: Stream, flat: np.ndarray, low: int, count: int) -> None:
    """Write low + w mod count into every element."""
    for block in blocks(flat):
        if count < _ONE_WORD:
            values = stream.words(len(block)) % np.uint32(count)
        else:
            values = (stream.double_words(len(block)) % np.uint64(count)).view(np.int64)
        block[...] = as_dtype(values + np.int64(low) if low else values, block.dtype)


def _fill_from_zero(stream: Stream, flat: np.ndarray, count: int, wide: bool) -> None:
    """Write w mod count into every element; w has two words for int64 and float64, else one."""
    for block in blocks(flat):
        words = stream.double_words(len(block)) if wide else stream.words(len(block)).astype(np.uint64)
        block[...] = as_dtype((words % np.uint64(count)).view(np.int64), block.dtype)


def as_dtype(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers in `dtype`; half and bfloat16 are rounded from float32."""
    return narrow(values, dtype) if kind_of(dtype) == "f" else values.astype(dtype, copy=False)


def digits(dtype: np.dtype) -> int:
    """Binary digits of a floating dtype: it holds all integers up to 2^digits."""
    return 8 if dtype.name == "bfloat16" else np.finfo(dtype).nmant + 1


def top_integer(dtype: np.dtype) -> int:
    """The largest number that random_ may draw."""
    kind = kind_of(dtype)
    if kind == "f":
        return 2 ** digits(dtype)
    return 1 if kind == "b" else int(np.iinfo(dtype).max)


def check_range(dtype: np.dtype, low: int, high: int) -> None:
    """RuntimeError unless low < high, and low and high - 1 lie in the dtype's range."""
    if low >= high:
        raise runtime_error(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    least, most = ends(dtype)
    for name, bound in (("from", low), ("to - 1", high - 1)):
        if not least <= bound <= most:
            raise runtime_error(f"{name} is out of bounds for {dtype}: {bound} is outside of [{least}, {most}]")


@cache
def ends(dtype: np.dtype) -> tuple[float, float]:
    """The smallest and the largest bound that randint accepts for a dtype."""
    kind = kind_of(dtype)
    if kind == "f":
        return -largest(dtype), largest(dtype)
    return (0, 1) if kind == "b" else (int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), 2**63 - 1))


def inner_range(low: int, high: int, dtype: np.dtype) -> tuple[int, int]:
    """The bounds, moved inwards by a unit in the last place if a number next to a bound would round out of the
    range."""
    first, last = rounded(low + 1, dtype), rounded(high - 1, dtype)
    if first < low:
        low = first + last_place(low + 1, dtype)
    if last >= high:
        high = last - last_place(high - 1, dtype)
    if low >= high:
        raise runtime_error(
            f"random_ expects 'from' casted to {dtype} to be less than 'to' casted to {dtype}, but got from={low} "
            f">= to={high}"
        )
    return low, high


def rounded(value: int, dtype: np.dtype) -> int:
    """The integer, rounded to the dtype and converted back to int64; there 2^63 wraps around, as on x86."""
    near = int(narrow(np.array([value]), dtype).astype(np.float64)[0])
    return near if near < 2**63 else near - 2**64


def last_place(value: int, dtype: np.dtype) -> int:
    """The distance of the dtype's numbers near an integer of more than its digits."""
    return 1 << (abs(value).bit_length() - digits(dtype))


def randperm(stream: Stream, n: int, dtype: DType = np.int64) -> np.ndarray:
    """A permutation of 0, ..., n-1 by exchanging i with i + w mod (n - i), for i = 0, ..., n-2 (R. Fisher, F. Yates).

    Shape: (n,). Dtypes: integers, float16, bfloat16, float32, float64. RuntimeError if n < 0, n is more than the dtype
    can count, or more than 214,748,364.

    >>> rushlight.Generator().manual_seed(0).randperm(5)
    array([4, 0, 1, 3, 2])
    """
    n = index(n)  # TypeError for 1.5, before the stream is read
    check_count(n, np.dtype(dtype))
    partners = np.arange(n, dtype=np.int64)
    partners[:-1] += stream.words(max(n - 1, 0)) % np.arange(n, 1, -1)
    return as_dtype((_LOOP(n) or exchanged)(partners), np.dtype(dtype))


def exchanged(partners: np.ndarray) -> np.ndarray:
    """0, ..., n-1 after exchanging elements i and partners[i] >= i, for i = 0, 1, ..., without a loop.

    Step i takes the number at partners[i]: the number that the last earlier step with the same partner left there, or
    partners[i] itself without such a step. The step leaves there the number of its own place i, which is found in the
    same way."""
    if len(partners) < MIN_VECTORIZED:
        order = list(range(len(partners)))
        for i, other in enumerate(partners.tolist()):
            order[i], order[other] = order[other], order[i]
        return np.array(order, partners.dtype)
    steps = np.arange(len(partners), dtype=np.int64)
    moves = np.flatnonzero(partners != steps)
    # before step i, place i holds the number that place found[i] held before step found[i] ...
    found = steps.copy()
    found[partners[moves]] = moves  # ... and the last of equal partners wins
    while True:
        further = found[found]
        if (further == found).all():
            break
        found = further
    by_partner = np.sort((partners << 32) | steps)
    taken, when = by_partner >> 32, by_partner & 0xFFFF_FFFF
    again = np.flatnonzero(taken[1:] == taken[:-1])
    taken[again + 1] = found[when[again]]
    permuted = np.empty_like(partners)
    permuted[when] = taken
    return permuted


def check_count(n: int, dtype: np.dtype) -> None:
    """RuntimeError unless randperm can count n numbers in the dtype; TypeError if it has no numbers to count with."""
    kind = kind_of(dtype)
    if kind not in "iuf":
        raise type_error(f"randperm is not supported for dtype {dtype}: use an integer or floating dtype")
    if n < 0:
        raise runtime_error(f"randperm: n must be non-negative, but is {n}")
    if n - 1 > top_integer(dtype) and dtype.name != "bfloat16":  # torch rounds a permutation in bfloat16
        raise runtime_error(
            f"randperm: n cannot be greater than {top_integer(dtype) + 1} for {dtype}, but is {n}: use int64"
        )
    if n >= _LARGEST_PERMUTATION:
        raise runtime_error(f"randperm: n must be less than {_LARGEST_PERMUTATION}, but is {n}: permute blocks instead")
