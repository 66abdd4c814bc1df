"""torch.distributed.checkpoint.hf_storage, as far as libraries import it."""
from __future__ import annotations

from typing import Any


class Absent:
    """A class of files of many processes: to make one raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError(f"{type(self).__name__} reads and writes files of many processes, which are not there; "
                                  "cure: rushlight.serialization.save_file and load_file")


class HuggingFaceStorageReader(Absent):
    """See `Absent`."""


class HuggingFaceStorageWriter(Absent):
    """See `Absent`."""


__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]
