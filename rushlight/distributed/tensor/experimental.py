"""torch.distributed.tensor.experimental: the names that libraries import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def implicit_replication() -> Iterator[None]:
    """A context without effect: no tensor is distributed."""
    yield


__all__ = ["implicit_replication"]
