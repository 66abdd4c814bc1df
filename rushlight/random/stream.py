"""The stream of 32-bit random words under all distributions: MT19937, seeded, read and saved as in torch."""

from __future__ import annotations

import os
from _thread import RLock  # threading's lock, without importing that module
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.random.choose_loop import Loop

WORDS = 624  # words in a block of the twister
DEFAULT_SEED = 67280421310721  # the seed of a new torch.Generator
STATE_BYTES = 5056
MAX_SMALL_DRAW = 128  # draws of up to this many numbers convert the whole block, for later draws, too

# torch's CPUGeneratorImplState, byte for byte. `key` is the block before tempering. `left` is the number of unread
# words plus 1; a twister that was seeded and not yet read has left 1 and next 0. The single normal is never set on a
# CPU.
_STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("key", "<u8", WORDS),
        ("normal_x", "<f8"),
        ("normal", "<f8"),
        ("normal_rho", "<f8"),
        ("has_normal", "<i4"),
        ("pad", "<i4"),
        ("single_normal", "<f4"),
        ("has_single_normal", "<i4"),
    ]
)

_LOOP = Loop("words", cost=1 / 16, call=1)
_NO_WORDS = np.empty(0, np.uint32)
_LOW_24 = np.array(2**24 - 1, np.uint32)
_LOW_53 = np.array(2**53 - 1, np.uint64)
_SHIFT_32 = np.array(32, np.uint64)
_ULP_24 = np.array(2.0**-24, np.float32)
_ULP_53 = np.array(2.0**-53, np.float64)


class Stream:
    """A stream of 32-bit words, with torch's further state: the seed and the second normal of a pair.

    A draw takes the next words of the present block, a slice; the twister itself is always at the end of a block. The
    twister is made on the first draw. A draw holds `lock`, so that the words of one call are consecutive."""

    def __init__(self, seed: int | None = DEFAULT_SEED) -> None:
        self.lock = RLock()
        # sets that get the ids of threads that draw
        self.witnesses: tuple[set[int], ...] = ()
        self.variant = "portable"  # or "intel": see Generator
        self._twister: Any = None  # np.random.MT19937
        self.restart(seed)

    def restart(self, seed: int | None) -> None:
        """Restart from `seed` modulo 2^64; for None, from the operating system's noise at the first use."""
        self._seed = None if seed is None else seed & 0xFFFF_FFFF_FFFF_FFFF
        self._twister_is_seeded = False
        self._block, self._next = _NO_WORDS, WORDS
        # cache: function -> (block, function(block))
        self._work: dict[Callable, tuple[np.ndarray, np.ndarray]] = {}
        # (block, index of the first converted word, the result for those words)
        self._ahead = (_NO_WORDS, 0, _NO_WORDS)
        self.spare_normal: float | None = None

    @property
    def started_from(self) -> int:
        """The seed; drawn now if none was given."""
        if self._seed is None:
            self._seed = int.from_bytes(os.urandom(8), "little")
        return self._seed

    # -- words -------------------------------------------------------------------------------------

    def words(self, n: int) -> np.ndarray:
        """The next n words, (n,) uint32, read-only."""
        start, end = self._next, self._next + n
        if end <= WORDS:
            self._next = end
            return self._block[start:end]
        return self._words_of_new_blocks(n)

    def _words_of_new_blocks(self, n: int) -> np.ndarray:
        left = self._block[self._next :]
        blocks = -(-(n - len(left)) // WORDS)
        words = np.empty(len(left) + blocks * WORDS, np.uint32)
        words[: len(left)] = left
        self._twist(words[len(left) :])
        # a copy, because a view would keep the memory of a large draw alive
        self._block = words[-WORDS:].copy()
        self._next = WORDS - (len(words) - n)
        return words[:n]

    def _twist(self, out: np.ndarray) -> None:
        """Fill whole blocks, (624 k,), with the words after the present block."""
        twister, loop = self._seeded_twister(), _LOOP(len(out))
        if loop is not None and key_is_first():
            loop(key_of(twister), out)
        else:
            out[...] = twister.random_raw(len(out))

    def _seeded_twister(self) -> Any:
        if self._twister is None:
            self._twister = unseeded_twister()
        # RandomState seeds by init_genrand, as torch does; MT19937(seed) does not
        if not self._twister_is_seeded:
            np.random.RandomState(self._twister).seed(self.started_from & 0xFFFF_FFFF)
            self._twister_is_seeded = True
        return self._twister

    def double_words(self, n: int) -> np.ndarray:
        """The next n pairs of words, (n,) uint64; the first of a pair is the high half."""
        words = self.words(2 * n)
        return paired(words[0::2], words[1::2])

    def uniform24(self, n: int) -> np.ndarray:
        """(n,) float32, multiples of 2^-24 in [0, 1), one word each; read-only."""
        start, end = self._next, self._next + n
        if n > MAX_SMALL_DRAW or end > WORDS:
            return units24(self.words(n))
        self._next = end
        return self._worked_on(units24)[start:end]

    def uniform53(self, n: int) -> np.ndarray:
        """(n,) float64, multiples of 2^-53 in [0, 1), two words each; read-only."""
        start, end = self._next, self._next + 2 * n
        if n > MAX_SMALL_DRAW or end > WORDS:
            return units53(self.double_words(n))
        self._next = end
        return self._worked_on(every_unit53)[start:end:2]

    def _worked_on(self, work: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """work(block), computed once for all small draws from the current block: a draw is then a slice."""
        block, made = self._work.get(work, (None, None))
        if block is not self._block:
            made = work(self._block)
            self._work[work] = self._block, made
        return made  # type: ignore[return-value]

    def in_groups(self, n: int, size: int, work: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """work(uniform24(n)), read-only, for n <= `left`; `work` treats each group of `size` numbers independently.

        For small arrays the calls cost more than the numbers. So all remaining words of the block are converted at
        once, and the next draws take slices of the result."""
        block, first, made = self._ahead
        start = self._next
        if block is not self._block or start < first or (start - first) % size:
            first, made = start, work(self.uniform24(self.left // size * size))
            self._ahead = self._block, first, made
        self._next = start + n
        return made[start - first : start - first + n]

    # -- reading ahead -----------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """The number of unread words of the present block."""
        return len(self._block) and WORDS - self._next

    def mark(self, n: int) -> tuple:
        """The present position, for `back_to` after at most n words."""
        twister = self._seeded_twister().state if self._next + n > WORDS else None
        return twister, self._block, self._next

    def back_to(self, mark: tuple) -> None:
        """Go back to a position from `mark`."""
        twister, self._block, self._next = mark
        if twister is not None:
            self._twister.state = twister

    # -- saving ------------------------------------------------------------------------------------

    def state(self) -> np.ndarray:
        """The state, (5056,) uint8, in the format of torch.get_rng_state()."""
        record = np.zeros(1, _STATE)
        fresh = len(self._block) == 0
        record["key"] = self._seeded_twister().state["state"]["key"]
        record["seed"], record["seeded"] = self.started_from, 1
        record["left"], record["next"] = (1, 0) if fresh else (WORDS + 1 - self._next, self._next)
        if self.spare_normal is not None:
            record["has_normal"], record["normal"] = 1, self.spare_normal
        return record.view(np.uint8)

    def restore(self, state: np.ndarray) -> None:
        """Set the state to one from `state()` or torch.get_rng_state(). RuntimeError for an invalid state."""
        record = np.frombuffer(state.tobytes(), _STATE)[0]
        left, following = int(record["left"]), int(record["next"])
        fresh = left == 1 and following == 0
        if record["seeded"] != 1 or not (fresh or 0 <= following == WORDS + 1 - left <= WORDS):
            raise runtime_error("Invalid mt19937 state: pass what get_state() or get_rng_state() returned, unchanged")
        self.restart(int(record["seed"]))
        self._twister = self._twister or unseeded_twister()
        self._twister.state = {
            "bit_generator": "MT19937",
            "state": {"key": record["key"].astype(np.uint32), "pos": WORDS if fresh else 0},
        }
        self._twister_is_seeded = True
        if not fresh:
            self._block, self._next = self._twister.random_raw(WORDS).astype(np.uint32), following
        if record["has_normal"]:
            self.spare_normal = float(record["normal"])


@cache
def nothing_to_mix() -> Any:
    from numpy.random.bit_generator import ISeedSequence

    class Nothing(ISeedSequence):
        def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
            return np.zeros(n_words, dtype)

    return Nothing()


def unseeded_twister() -> Any:
    """A twister that the caller will seed. It skips NumPy's mixing of a seed, which takes most of the time of
    MT19937(0)."""
    return np.random.MT19937(nothing_to_mix())


def paired(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """(n,) words and (n,) words -> (n,) uint64."""
    pairs = np.left_shift(high, _SHIFT_32, dtype=np.uint64)
    pairs |= low
    return pairs


def units24(words: np.ndarray) -> np.ndarray:
    """(n,) words -> (n,) float32, multiples of 2^-24 in [0, 1)."""
    bits = words & _LOW_24
    # int32: SIMD instructions convert int32, not uint32
    return bits.view(np.int32).astype(np.float32) * _ULP_24


def units53(pairs: np.ndarray) -> np.ndarray:
    """(n,) uint64, overwritten, -> (n,) float64, multiples of 2^-53 in [0, 1)."""
    pairs &= _LOW_53
    return pairs.view(np.int64).astype(np.float64) * _ULP_53


def every_unit53(words: np.ndarray) -> np.ndarray:
    """(n,) words -> (n - 1,) float64, one for each pair of adjacent words: a draw may begin at any word."""
    return units53(paired(words[:-1], words[1:]))


def key_of(twister: Any) -> np.ndarray:
    """The block of an np.random.MT19937 before tempering, (624,) uint32: a view of NumPy's own state."""
    from ctypes import c_uint32

    return np.frombuffer(memoryview((c_uint32 * WORDS).from_address(twister.ctypes.state_address)), np.uint32)


@cache
def key_is_first() -> bool:
    """Whether NumPy's C state of a twister begins with its key. If not, or without ctypes, NumPy must make the
    words."""
    twister = np.random.MT19937(1)
    try:
        return np.array_equal(key_of(twister), twister.state["state"]["key"])
    except ImportError:
        return False
