"""torch.distributed.tensor.experimental, as far as libraries import it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def implicit_replication() -> Iterator[None]:
    """A context without effect: no tensor is distributed."""
    yield


__all__ = ["implicit_replication"]
