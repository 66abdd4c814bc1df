"""torch.distributed.elastic.multiprocessing: `errors.record`."""

from __future__ import annotations

from rushlight.base.missing_names import tell as _tell
from rushlight.distributed.elastic.multiprocessing import errors

__all__ = ["errors"]

_tell(__name__)
