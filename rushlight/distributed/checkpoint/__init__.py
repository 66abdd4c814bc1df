"""torch.distributed.checkpoint: checkpoints that all ranks write and read together; each rank handles its part. The
number of ranks may differ between saving and loading."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any

from rushlight.base.errors import explain, value_error
from rushlight.base.missing_names import missing
from rushlight.distributed.checkpoint.files import Reading, Writing, named, with_states, world_of


class FileSystemWriter:
    """A folder to write a checkpoint to."""

    def __init__(self, path: Any, *args: Any, **settings: Any):
        self.path = path


class FileSystemReader:
    """A folder to read a checkpoint from."""

    def __init__(self, path: Any, *args: Any, **settings: Any):
        self.path = path


def folder(checkpoint_id: Any, storage: Any) -> Any:
    path = checkpoint_id if checkpoint_id is not None else getattr(storage, "path", None)
    if path is None:
        raise value_error("there is no folder", "checkpoint_id='folder'")
    return path


def save(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False, **settings: Any,
) -> None:  # fmt: skip
    """Write a state into the folder `checkpoint_id`, all ranks together: each rank writes its parts of divided
    parameters; replicated values are written once. The folder appears when it is complete.

    Values may be tensors, objects with a state_dict(), other objects for pickle, and nested dicts and lists. The files
    have torch's format: torch.distributed.checkpoint.load reads them."""
    path = folder(checkpoint_id, storage_writer)
    Writing(state_dict, path, world_of(process_group, no_dist)).write()


_threads = ThreadPoolExecutor(1)  # checkpoints are written one after the other


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False, **settings: Any,
) -> Future:  # fmt: skip
    """`save` a copy of the current values in a thread. Returns a future."""
    path = folder(checkpoint_id, storage_writer)
    writing = Writing(state_dict, path, world_of(process_group, no_dist))
    writing.snapshot()
    return _threads.submit(writing.write)


def load(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_reader: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False, **settings: Any,
) -> None:  # fmt: skip
    """Read a checkpoint into a state, in place. Each rank fills its rows of the tensors, and calls load_state_dict() of
    objects that have it. The checkpoint may be torch's. RuntimeError for a name that was not saved,
    pickle.UnpicklingError for objects of foreign classes."""
    reading = Reading(folder(checkpoint_id, storage_reader))
    states = with_states(state_dict)
    for path, value, put in named(states):
        put(reading.load(path, value))
    for key, value in state_dict.items():
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def __getattr__(name: str) -> Any:
    if name in ("state_dict", "hf_storage", "format_utils", "metadata"):
        return import_module(f"rushlight.distributed.checkpoint.{name}")
    return missing(__name__, name)


__all__ = ["FileSystemReader", "FileSystemWriter", "async_save", "load", "save"]
