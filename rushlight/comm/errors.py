"""The exceptions of torch.distributed."""

from __future__ import annotations


class DistError(RuntimeError):
    """An error of torch.distributed."""


class DistBackendError(DistError):
    """A collective has failed: ranks that do not agree, a rank that ended, a timeout."""


class DistNetworkError(DistError):
    """There is no connection to another process."""


class DistStoreError(DistError):
    """A key of a store did not come in time."""


class DistQueueEmptyError(DistStoreError):
    """A queue of a store has nothing in it."""
