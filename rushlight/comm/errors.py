"""The exceptions of torch.distributed."""

from __future__ import annotations


class DistError(RuntimeError):
    """An error of torch.distributed."""


class DistBackendError(DistError):
    """A collective has failed: the ranks called different operations, a rank has ended, or a timeout."""


class DistNetworkError(DistError):
    """No connection to another process."""


class DistStoreError(DistError):
    """A key was not set in a store in time."""


class DistQueueEmptyError(DistStoreError):
    """A queue of a store is empty."""
