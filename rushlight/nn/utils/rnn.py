"""Sequences of different lengths: padded to one length, or packed without padding.

Packed data hold step 0 of all sequences, then step 1 of the sequences that have one, and so on; the longest sequence
comes first. `batch_sizes`: the number of rows of each step. So a recurrent layer computes no padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.device import present
from rushlight.base.errors import index_error, runtime_error, value_error
from rushlight.base.intp import as_intp
from rushlight.base.memory_format import contiguous_format
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.ops.index.along_dim import index_copy, index_select
from rushlight.ops.shape.views import cat, reshape, transpose
from rushlight.ops.tensor.casts import clone

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class _Parts(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(_Parts):
    """`data` (rows, *), `batch_sizes` (steps,), and the order of the sequences before sorting, or None.

    Made by `pack_padded_sequence` and `pack_sequence`; all recurrent modules accept and return packed sequences.

    >>> rushlight.nn.utils.rnn.pack_sequence([rushlight.tensor([1, 2, 3]), rushlight.tensor([4])]).data
    tensor([1, 4, 2, 3])
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:  # fmt: skip
        if batch_sizes is None:  # PackedSequence((data, batch_sizes))
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __getnewargs__(self) -> tuple:
        return tuple(self)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """A sequence with the data converted by `Tensor.to`; the sequence itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequence itself: the data are on the CPU."""
        return self.to(*args, **{**kwargs, "device": "cpu"})

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """RuntimeError: there are no GPUs."""
        return self.to(*args, **{**kwargs, "device": present("cuda")})

    def pin_memory(self) -> PackedSequence:
        """The sequence itself: pinned memory exists only for GPUs."""
        return self

    def is_pinned(self) -> bool:
        """False: pinned memory exists only for GPUs."""
        return False

    @property
    def is_cuda(self) -> bool:
        return False


def _conversion(name: str, dtype: str) -> Any:
    def convert(self: PackedSequence) -> PackedSequence:
        data = getattr(self.data, name)()
        return self if data is self.data else type(self)(data, *self[1:])

    convert.__name__, convert.__doc__ = name, f"With the data as {dtype}."
    return convert


for _name, _dtype in {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
}.items():
    setattr(PackedSequence, _name, _conversion(_name, _dtype))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """out[permutation[i]] = i; None for None.

    >>> rushlight.nn.utils.rnn.invert_permutation(rushlight.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else of(np.argsort(permutation.tolist()))


def steps_of(sequence: PackedSequence) -> tuple[int, ...]:
    """The number of rows of each step, as Python ints."""
    return tuple(sequence.batch_sizes.tolist())


def of(array: ndarray) -> Tensor:
    return created(from_array(array))


# -- padded <-> packed -----------------------------------------------------------------------------


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The first lengths[b] steps of each sequence, without padding: input (T, B, *), or (B, T, *) if `batch_first`.

    With `enforce_sorted` the lengths must not increase; else the sequences are sorted; unpacking restores their order.
    RuntimeError for lengths that are not sorted, not positive, longer than T or not B in number.

    >>> x = rushlight.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    >>> packed = rushlight.nn.utils.rnn.pack_padded_sequence(x, [2, 1, 3], batch_first=True, enforce_sorted=False)
    >>> packed.data, packed.batch_sizes
    (tensor([4, 1, 3, 5, 2, 6]), tensor([3, 2, 1]))
    """
    n = np.array(lengths.tolist() if isinstance(lengths, Tensor) else lengths).astype(np.int64)
    order = None if enforce_sorted else np.argsort(-n, kind="stable")
    n = n if order is None else n[order]
    _check_lengths(n, input, batch_first)
    steps, batch = input._array.shape[batch_first], len(n)
    step, row = _places(n)
    row = row if order is None else order[row]
    places = row * steps + step if batch_first else step * batch + row
    flat = reshape(input, (steps * batch, *input._array.shape[2:]))
    return PackedSequence(index_select(flat, 0, of(places)), of(_batch_sizes(n)), None if order is None else of(order))


def _check_lengths(n: ndarray, input: Tensor, batch_first: bool) -> None:
    """RuntimeError unless the lengths n, sorted by now, fit the input."""
    shape = input._array.shape
    if n.ndim != 1:
        raise runtime_error(f"'lengths' argument should be a 1D CPU int64 tensor, but got {n.ndim}D cpu Long tensor")
    if input._array.size == 0:
        raise runtime_error("Cannot pack empty tensors.")
    if len(shape) < 2:
        raise index_error(
            "Dimension out of range (expected to be in range of [-1, 0], but got 1): pack_padded_sequence takes "
            f"(steps, batch, *), not {len(shape)}D"
        )
    if len(n) != shape[1 - batch_first]:
        raise runtime_error(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(n)} (batch_size={shape[1 - batch_first]})"
        )
    if np.any(n[1:] > n[:-1]):
        raise runtime_error(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if "
            "you do not need ONNX exportability."
        )
    if n[-1] <= 0:
        raise runtime_error(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if n[0] > shape[batch_first]:
        raise runtime_error(
            f"pack_padded_sequence: a length is {n[0]}, but the input has {shape[batch_first]} steps",
            "is it batch_first=True?",
            input=tuple(shape),
        )


def _batch_sizes(lengths: ndarray) -> ndarray:
    """The number of sequences that have a step t, for each t."""
    return np.count_nonzero(lengths > np.arange(lengths.max())[:, None], axis=1).astype(np.int64)


def _places(lengths: ndarray) -> tuple[ndarray, ndarray]:
    """Step and sequence of each row of packed data."""
    step, row = np.nonzero(lengths > np.arange(lengths.max())[:, None])
    return step, row


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(padded, lengths) from packed data, in the order of the sequences before packing.

    Padded is (T, B, *), or (B, T, *) if `batch_first`; T is the longest length or `total_length`. ValueError if that is
    too short.

    >>> packed = rushlight.nn.utils.rnn.pack_sequence([rushlight.tensor([1, 2, 3]), rushlight.tensor([4])])
    >>> rushlight.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
    sizes = np.array(steps_of(sequence))
    longest, batch = len(sizes), int(sizes[0])
    if total_length is not None and total_length < longest:
        raise value_error(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    steps = longest if total_length is None else total_length
    lengths = np.count_nonzero(sizes[:, None] > np.arange(batch), axis=0)
    step, row = _places(lengths)
    if sequence.sorted_indices is not None:
        row = np.array(sequence.sorted_indices.tolist())[row]
        lengths = lengths[sequence.unsorted_indices.tolist()]
    if batch_first and sequence.sorted_indices is not None:
        padded = _spread(sequence.data, row * steps + step, (batch, steps), padding_value)
    else:  # a view of (T, B, *), as in torch: dropout draws in memory order
        padded = _spread(sequence.data, step * batch + row, (steps, batch), padding_value)
        padded = transpose(padded, 0, 1) if batch_first else padded
    return padded, of(lengths.astype(np.int64))


def _spread(rows: Tensor, places: ndarray, shape: tuple[int, int], padding_value: float) -> Tensor:
    """A tensor (*shape, *) with rows (n, *) at flat indices, and padding elsewhere."""
    rest = rows._array.shape[1:]
    dtype = rows._array.dtype
    blank = of(np.full((shape[0] * shape[1], *rest), np.asarray(padding_value).astype(dtype), dtype))
    return reshape(index_copy(blank, 0, of(places), rows), (*shape, *rest))


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences, (length, *) each, that `pack_sequence` packed.

    >>> packed = rushlight.nn.utils.rnn.pack_sequence([rushlight.tensor([1, 2, 3]), rushlight.tensor([4])])
    >>> rushlight.nn.utils.rnn.unpack_sequence(packed)
    [tensor([1, 2, 3]), tensor([4])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


# -- lists of sequences <-> padded and packed ------------------------------------------------------


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences (length, *) side by side: (T, B, *), or (B, T, *) if `batch_first`, of the first one's dtype.

    Shorter sequences are filled with `padding_value` at the end, or at the beginning with `padding_side="left"`.
    RuntimeError for no sequences, and for shapes that differ in more than the length.

    >>> rushlight.nn.utils.rnn.pad_sequence([rushlight.tensor([1, 2]), rushlight.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise runtime_error(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    given = list(sequences)
    _check_sequences(given, padding_side)
    lengths = np.array([len(t._array) for t in given])
    steps, batch = int(lengths.max()), len(given)
    lengths = as_intp(lengths)
    row = np.repeat(np.arange(batch), lengths)
    step = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    if padding_side == "left":
        step += steps - lengths[row]
    places = row * steps + step if batch_first else step * batch + row
    dtype = given[0].dtype
    joined = cat([t if t.dtype is dtype else t.to(dtype) for t in given])
    return _spread(joined, places, (batch, steps) if batch_first else (steps, batch), padding_value)


def _check_sequences(given: list[Tensor], padding_side: str) -> None:
    if not given:
        raise runtime_error("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise runtime_error(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    rest = given[0]._array.shape[1:]
    for t in given:
        if t._array.ndim == 0 or t._array.shape[1:] != rest:
            raise runtime_error(
                f"pad_sequence: sequences have shapes {tuple(given[0].shape)} and {tuple(t.shape)}: The size of "
                "tensor a must match the size of tensor b",
                "sequences may differ only in the first dimension, the length",
            )


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The first lengths[b] steps of each sequence, from (T, B, *), or (B, T, *) if `batch_first`.

    >>> rushlight.nn.utils.rnn.unpad_sequence(rushlight.tensor([[1, 2], [3, 0]]), rushlight.tensor([2, 1]), True)
    [tensor([1, 2]), tensor([3])]
    """
    n = lengths.tolist()
    found = padded_sequences.unbind(0 if batch_first else 1)
    if len(n) != len(found):
        raise value_error(
            f"unpad_sequence: {len(found)} sequences, but {len(n)} lengths: zip() argument 2 is "
            f"{'longer' if len(n) > len(found) else 'shorter'} than argument 1"
        )
    return [clone(sequence[:k], memory_format=contiguous_format) for sequence, k in zip(found, n)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (length, *) without padding; `enforce_sorted`: the lengths must not grow.

    >>> rushlight.nn.utils.rnn.pack_sequence([rushlight.tensor([1, 2, 3]), rushlight.tensor([4, 5])]).batch_sizes
    tensor([2, 2, 1])
    """
    return pack_padded_sequence(
        pad_sequence(sequences), [len(t._array) for t in sequences], enforce_sorted=enforce_sorted
    )
