"""Special functions, as in torch.special: `rushlight.special.erfcx(x)` and so on."""

from __future__ import annotations

from rushlight.base.missing_names import tell as _tell
from rushlight.ops.composites import members
from rushlight.ops.math import special_functions as special_functions

__all__ = sorted(members("special"))
globals().update(members("special"))

_tell(__name__)
