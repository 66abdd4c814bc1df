"""torch.ao: quantization to 8 bits."""

from rushlight.ao import nn, quantization
from rushlight.base.missing_names import tell as _tell

__all__ = ["nn", "quantization"]

_tell(__name__)
