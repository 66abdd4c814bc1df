"""torch.ao.nn: modules whose weights are quantized."""

from rushlight.ao.nn import quantized
from rushlight.base.missing_names import tell as _tell

__all__ = ["quantized"]

_tell(__name__)
