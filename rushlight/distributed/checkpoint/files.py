"""Checkpoints of several ranks in a folder, in the format of torch: each rank writes its tensors. Another number of
ranks can load them: each reads the rows that are missing.

`__RANK_0.distcp` has the tensors and objects of a rank, one after the other, each as torch.save writes it; `.metadata`
has for each name the files and the positions of its parts (metadata.py). A folder is written under another name and
renamed when it is complete, so a checkpoint is either complete or absent.
"""

from __future__ import annotations

import io
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.base.errors import explain, runtime_error, value_error
from rushlight.comm.arrays import written
from rushlight.comm.groups import member
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.tensor import Tensor, from_array
from rushlight.distributed.checkpoint.metadata import Entry, Stored, read_metadata, written_metadata
from rushlight.distributed.pieces import piece_of
from rushlight.serialization import load as load_file
from rushlight.serialization import save as save_file

METADATA = ".metadata"
STEP_SECONDS = 0.02


def dotted(path: Sequence[str | int]) -> str:
    """The name of a value in the checkpoint."""
    return ".".join(map(str, path))


def is_leaf(value: Any) -> bool:
    """Whether a value is stored as one object. False for dicts, and for lists that contain a tensor or a dict."""
    if isinstance(value, dict):
        return False
    if not isinstance(value, list):
        return True
    return all(
        not isinstance(one, Tensor) and (is_leaf(one) if isinstance(one, (dict, list)) else True) for one in value
    )


def named(
    tree: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any, Callable[[Any], None]]]:
    """(path, value, function that replaces the value) for each leaf of nested dicts and lists."""
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    for key, value in items:
        here = (*path, str(key) if isinstance(tree, dict) else key)
        if is_leaf(value):
            yield here, value, partial(tree.__setitem__, key)
        else:
            yield from named(value, here)


def with_states(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The dict, with the state_dict() of objects that have one."""
    return {
        key: value.state_dict() if hasattr(value, "load_state_dict") else value for key, value in state_dict.items()
    }


class Part:
    """A value of a rank, and its position in the whole tensor. `path`: the keys of the value."""

    def __init__(self, path: Sequence[str | int], value: Any):
        self.path, self.name, self.value = tuple(path), dotted(path), value
        piece = self.piece = piece_of(value)
        self.shape: tuple[int, ...] | None = None
        self.offsets: tuple[int, ...] = ()
        if isinstance(value, Tensor):
            self.shape = tuple(value.shape)
            self.offsets = (0,) * len(self.shape)
            if piece is not None and self.shape:
                self.offsets = (piece.first, *self.offsets[1:])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the part; () for a tensor without dimensions."""
        return self.value._array.shape if self.shape else ()

    def written_here(self, rank: int, size: int) -> bool:
        """Whether this rank writes the value: its rows, or its share of replicated values."""
        if self.piece is None:
            return zlib.crc32(self.name.encode()) % size == rank
        return self.piece.first_replica and self.piece.rows_here > 0

    def content(self) -> bytes:
        """The value as the bytes of a file of torch.save."""
        file, value = io.BytesIO(), self.value
        if isinstance(value, Tensor):
            value = from_array(value._array.reshape(self.sizes))
        save_file(value, file)
        return file.getvalue()

    def entry(self, file: str, start: int, length: int) -> Entry:
        """The description of the value in the metadata."""
        if self.shape is None:
            return Entry(self.path, [Stored(file, start, length)])
        stored = Stored(file, start, length, self.offsets, self.sizes)
        return Entry(self.path, [stored], self.value.dtype, self.shape)


def parts_to_write(state_dict: dict[str, Any], rank: int, size: int) -> list[Part]:
    """The parts that this rank writes."""
    parts = [Part(path, value) for path, value, _ in named(with_states(state_dict))]
    return [part for part in parts if part.written_here(rank, size)]


def world_of(process_group: Any, no_dist: bool) -> ProcessGroup | None:
    """The group of the ranks that save together; None for one process."""
    from rushlight.comm.groups import is_initialized

    return None if no_dist or not is_initialized() else member(process_group)


class Writing:
    """A checkpoint that is being written: `snapshot` of the values, then `write`."""

    counts: dict[str, int] = {}  # {folder: number of checkpoints}; the number makes the keys in the store unique

    def __init__(self, state_dict: dict[str, Any], path: Any, group: ProcessGroup | None):
        self.path, self.group = Path(path), group
        self.rank, self.size = (0, 1) if group is None else (group.rank(), group.size())
        self.parts = parts_to_write(state_dict, self.rank, self.size)
        count = Writing.counts[str(self.path)] = Writing.counts.get(str(self.path), 0) + 1
        self.beside = self.path.with_name(f".{self.path.name}.{count}.unfinished")
        self.key = f"rushlight/checkpoint/{self.path}/{count}"

    def snapshot(self) -> None:
        """Copy the tensors, so that training can continue."""
        for part in self.parts:
            if isinstance(part.value, Tensor):
                part.value = from_array(part.value._array.copy())

    def write(self) -> None:
        """Write the file of this rank. Rank 0 then completes the checkpoint."""
        if self.rank == 0:
            shutil.rmtree(self.beside, ignore_errors=True)
            self.beside.mkdir(parents=True)
        self.meet("begun", 1)
        file, described = f"__{self.rank}_0.distcp", {}
        with open(self.beside / file, "wb") as out:
            for part in self.parts:
                start, content = out.tell(), part.content()
                out.write(content)
                described[part.name] = part.entry(file, start, len(content))
        (self.beside / f"{self.rank}.part").write_bytes(written_metadata(described))
        self.meet("written", self.size)
        if self.rank == 0:
            self.finish()
        self.meet("there", 1)

    def meet(self, stage: str, ranks: int) -> None:
        """Wait until the first `ranks` ranks have reached this stage."""
        if self.group is None:
            return
        world, keys = self.group.world, [f"{self.key}/{stage}/{i}" for i in range(ranks)]
        if self.rank < ranks:
            world.store.set(keys[self.rank], "")
        end = time.monotonic() + self.group.timeout.total_seconds()
        while not world.store.check(keys):
            if time.monotonic() > end:
                raise runtime_error(f"the checkpoint {self.path} was not {stage} in time")
            time.sleep(STEP_SECONDS)

    def finish(self) -> None:
        """Merge the descriptions of all ranks, and rename the folder."""
        entries: dict[str, Entry] = {}
        for rank in range(self.size):
            file = self.beside / f"{rank}.part"
            for name, entry in read_metadata(file.read_bytes()).items():
                if name in entries:
                    entries[name].parts.extend(entry.parts)
                else:
                    entries[name] = entry
            file.unlink()
        (self.beside / METADATA).write_bytes(written_metadata(entries))
        old = self.path.with_name(f".{self.path.name}.old")
        if self.path.exists():
            shutil.rmtree(old, ignore_errors=True)
            self.path.rename(old)
        os.replace(self.beside, self.path)
        shutil.rmtree(old, ignore_errors=True)


class Reading:
    """A checkpoint to read. Each part is read when it is needed."""

    def __init__(self, path: Any):
        self.path = Path(path)
        try:
            content = (self.path / METADATA).read_bytes()
        except OSError as error:
            raise FileNotFoundError(
                explain(f"{path} is not a checkpoint of torch.distributed.checkpoint: {error}")
            ) from None
        self.entries = read_metadata(content)

    def stored(self, part: Stored) -> Any:
        """The value of a part: a tensor, or containers, numbers and text."""
        with open(self.path / part.file, "rb") as file:
            file.seek(part.start)
            return load_file(io.BytesIO(file.read(part.length)), weights_only=True)

    def value(self, name: str) -> Any:
        """The object, or the whole tensor."""
        entry: Any = self.entries[name]
        if entry.shape is None:
            return self.stored(entry.parts[0])
        whole = np.empty(entry.shape, entry.dtype.numpy)
        self.fill(name, whole, (0,) * whole.ndim)
        return from_array(whole)

    def fill(self, name: str, array: np.ndarray, first: Sequence[int]) -> None:
        """Fill an array with the elements of a tensor from the index `first` on."""
        for part in self.entries[name].parts:
            start, sizes = part.offsets or (), part.sizes or ()
            low = [max(a, b) for a, b in zip(first, start)]
            high = [min(a + n, b + m) for a, n, b, m in zip(first, array.shape, start, sizes)]
            if any(a >= b for a, b in zip(low, high)):
                continue
            source = self.stored(part)._array.reshape(sizes)
            into = tuple(slice(a - f, b - f) for a, b, f in zip(low, high, first))
            of = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, start))
            array[into] = source[of]

    def load(self, path: Sequence[str | int], value: Any) -> Any:
        """The value to put in place of a leaf. A tensor is filled in place."""
        name = dotted(path)
        if name not in self.entries:
            raise runtime_error(f"Missing key in checkpoint state_dict: {name}.")
        if not isinstance(value, Tensor):
            return self.value(name)
        part, there = Part(path, value), self.entries[name].shape
        if part.shape != there:
            raise value_error(f"Size mismatch between saved {there} and current: {part.shape} for {name}")
        if value._array.size:
            self.fill(name, value._array.reshape(part.sizes), part.offsets)
        written(value)
        return value

    def tree(self) -> dict[str, Any]:
        """All values, nested as they were saved."""
        made: dict[str | int, Any] = {}
        for name, entry in self.entries.items():
            inside = made
            for key in entry.path[:-1]:
                inside = inside.setdefault(key, {})
            inside[entry.path[-1]] = self.value(name)
        return lists(made)


def lists(tree: Any) -> Any:
    """Dicts with the keys 0, 1, ... as lists."""
    if not isinstance(tree, dict):
        return tree
    inside = {key: lists(value) for key, value in tree.items()}
    if inside and all(isinstance(key, int) for key in inside):
        return [inside[key] for key in sorted(inside)]
    return inside
