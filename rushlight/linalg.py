"""torch.linalg: linear algebra. These are the ops named linalg_... in rushlight/ops."""

from __future__ import annotations

from rushlight.base.errors import LinAlgError as LinAlgError
from rushlight.base.missing_names import tell as _tell
from rushlight.ops import rest as library
from rushlight.ops.composites import members

__all__ = ["LinAlgError", *sorted(members("linalg"))]
globals().update(members("linalg"))

_tell(__name__)
