"""torch.distributed.elastic: the errors of a worker. `rushlight launch` starts programs."""

from __future__ import annotations

from rushlight.base.missing_names import tell as _tell
from rushlight.distributed.elastic import multiprocessing

__all__ = ["multiprocessing"]

_tell(__name__)
