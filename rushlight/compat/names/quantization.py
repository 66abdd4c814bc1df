"""torch.quantization: the old name of torch.ao.quantization."""

from __future__ import annotations

from rushlight.ao.quantization import *  # noqa: F403
from rushlight.ao.quantization import __all__ as __all__
from rushlight.base.missing_names import tell as _tell

_tell(__name__)
