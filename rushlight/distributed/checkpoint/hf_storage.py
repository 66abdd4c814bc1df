"""torch.distributed.checkpoint.hf_storage: the names that libraries import."""

from __future__ import annotations

from rushlight.base.errors import Absent


class Storage(Absent):
    """Files of many processes."""

    because = "one process writes one file; hint: rushlight.serialization.save_file and load_file"


class HuggingFaceStorageReader(Storage):
    """A name that libraries import; a call raises NotImplementedError."""


class HuggingFaceStorageWriter(Storage):
    """A name that libraries import; a call raises NotImplementedError."""


__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]
