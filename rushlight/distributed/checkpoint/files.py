"""Checkpoints of several ranks in a folder: each rank writes its tensors. Another number
of ranks can load them: each reads the rows that are missing.

`RANK.pt` has the tensors and objects of a rank, by name; `metadata.json` has, of each name, the
files and the rows of its parts. A folder is written beside its place and renamed when it is
whole: a checkpoint is there or it is not."""

from __future__ import annotations

import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.base.errors import explain
from rushlight.comm.arrays import written
from rushlight.comm.groups import member
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.tensor import Tensor, from_array
from rushlight.serialization import load as load_file
from rushlight.serialization import save as save_file

METADATA = "metadata.json"
STEP_SECONDS = 0.02


def named(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any, Callable[[Any], None]]]:
    """(name, value, function that puts another value in its place) of the leaves of nested dicts
    and lists."""
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    for key, value in items:
        name = f"{prefix}{key}"
        if isinstance(value, (dict, list)) and value:
            yield from named(value, name + ".")
        else:
            yield name, value, partial(tree.__setitem__, key)


def with_states(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Objects that have a state_dict() replaced by it."""
    return {
        key: value.state_dict() if hasattr(value, "load_state_dict") else value
        for key, value in state_dict.items()
    }


class Part:
    """A value of a rank, and which rows of the whole it is."""

    def __init__(self, name: str, value: Any):
        self.name, self.value = name, value
        piece = getattr(value, "_piece", None)
        self.divided = piece is not None
        if piece is not None:
            self.shape = list(piece.shape)
            self.first = min(piece.group.rank() * piece.rows, piece.shape[0] if piece.shape else 1)
        elif isinstance(value, Tensor):
            self.shape, self.first = list(value.shape), 0

    @property
    def rows(self) -> int:
        """The number of rows; 1 of a tensor without dimensions."""
        return self.value.shape[0] if self.value.ndim else 1

    def described(self, file: str) -> dict[str, Any]:
        """What metadata.json says of it."""
        if not isinstance(self.value, Tensor):
            return {"file": file, "object": True}
        return {"file": file, "shape": self.shape, "first": self.first, "rows": self.rows}


def parts_to_write(state_dict: dict[str, Any], rank: int, size: int) -> list[Part]:
    """The parts that this rank writes: its own, and a share of what all ranks have."""
    found = []
    for name, value, _ in named(with_states(state_dict)):
        part = Part(name, value)
        whole_here = not part.divided and zlib.crc32(name.encode()) % size == rank
        if whole_here or (part.divided and part.rows):
            found.append(part)
    return found


def world_of(process_group: Any, no_dist: bool) -> ProcessGroup | None:
    """The group of the ranks that save together; None for one process."""
    from rushlight.comm.groups import is_initialized

    return None if no_dist or not is_initialized() else member(process_group)


class Writing:
    """A checkpoint that is being written: `snapshot` of the values, then `write`."""

    counts: dict[str, int] = {}  # of checkpoints, by folder: the keys of each in the store differ

    def __init__(self, state_dict: dict[str, Any], path: Any, group: ProcessGroup | None):
        self.path, self.group = Path(path), group
        self.rank, self.size = (0, 1) if group is None else (group.rank(), group.size())
        self.parts = parts_to_write(state_dict, self.rank, self.size)
        count = Writing.counts[str(self.path)] = Writing.counts.get(str(self.path), 0) + 1
        self.beside = self.path.with_name(f".{self.path.name}.{count}.unfinished")
        self.key = f"rushlight/checkpoint/{self.path}/{count}"

    def snapshot(self) -> None:
        """Copy the tensors, so that training may go on."""
        for part in self.parts:
            if isinstance(part.value, Tensor):
                part.value = from_array(part.value._array.copy())

    def write(self) -> None:
        """Write the file of this rank; rank 0 makes the checkpoint of all files."""
        if self.rank == 0:
            shutil.rmtree(self.beside, ignore_errors=True)
            self.beside.mkdir(parents=True)
        self.meet("begun", 1)
        file = f"{self.rank}.pt"
        tensors = {
            part.name: part.value.detach() if isinstance(part.value, Tensor) else part.value
            for part in self.parts
        }
        save_file(tensors, self.beside / file)
        described = {part.name: part.described(file) for part in self.parts}
        (self.beside / f"{self.rank}.json").write_text(json.dumps(described))
        self.meet("written", self.size)
        if self.rank == 0:
            self.finish()
        self.meet("there", 1)

    def meet(self, stage: str, ranks: int) -> None:
        """Wait until rank 0, or all ranks, have come so far."""
        if self.group is None:
            return
        world, keys = self.group.world, [f"{self.key}/{stage}/{i}" for i in range(ranks)]
        if self.rank < ranks:
            world.store.set(keys[self.rank], "")
        end = time.monotonic() + self.group.timeout.total_seconds()
        while not world.store.check(keys):
            if time.monotonic() > end:
                raise RuntimeError(explain(f"the checkpoint {self.path} was not {stage} in time"))
            time.sleep(STEP_SECONDS)

    def finish(self) -> None:
        """Put the descriptions together and rename the folder."""
        names: dict[str, list[dict[str, Any]]] = {}
        for rank in range(self.size):
            file = self.beside / f"{rank}.json"
            for name, described in json.loads(file.read_text()).items():
                names.setdefault(name, []).append(described)
            file.unlink()
        (self.beside / METADATA).write_text(json.dumps({"version": 1, "names": names}))
        old = self.path.with_name(f".{self.path.name}.old")
        if self.path.exists():
            shutil.rmtree(old, ignore_errors=True)
            self.path.rename(old)
        os.replace(self.beside, self.path)
        shutil.rmtree(old, ignore_errors=True)


class Reading:
    """A checkpoint that is read: each file once, when it is needed."""

    def __init__(self, path: Any):
        self.path = Path(path)
        try:
            self.names = json.loads((self.path / METADATA).read_text())["names"]
        except OSError as error:
            raise FileNotFoundError(
                explain(f"{path} is no checkpoint of torch.distributed.checkpoint: {error}")
            ) from None
        self.files: dict[str, dict] = {}

    def file(self, name: str) -> dict:
        if name not in self.files:
            self.files[name] = load_file(self.path / name, weights_only=False, mmap=None)
        return self.files[name]

    def value(self, name: str) -> Any:
        """The object, or the whole tensor."""
        parts = self.names[name]
        if "object" in parts[0]:
            return self.file(parts[0]["file"])[name]
        first = self.file(parts[0]["file"])[name]
        whole = np.empty(parts[0]["shape"], first._array.dtype)
        self.fill(name, whole, 0)
        return from_array(whole)

    def fill(self, name: str, rows: np.ndarray, first: int) -> None:
        """Fill an array with the rows of a tensor from a row on."""
        rows = rows.reshape(rows.shape or (1,))
        for part in self.names[name]:
            start, end = part["first"], part["first"] + part["rows"]
            low, high = max(first, start), min(first + len(rows), end)
            if low < high:
                source = self.file(part["file"])[name]._array
                source = source.reshape(source.shape or (1,))
                rows[low - first : high - first] = source[low - start : high - start]

    def load(self, name: str, value: Any) -> Any:
        """What a leaf becomes: a tensor is filled in place."""
        if name not in self.names:
            raise RuntimeError(explain(f"Missing key in checkpoint state_dict: {name}."))
        if not isinstance(value, Tensor):
            return self.value(name)
        part, there = Part(name, value), self.names[name][0].get("shape")
        if part.shape != there:
            raise ValueError(
                explain(f"Size mismatch between saved {there} and current: {part.shape} for {name}")
            )
        self.fill(name, value._array, part.first)
        written(value)
        return value
