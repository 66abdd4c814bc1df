"""torchao: int8 weights for linear layers and embeddings, by `quantize_`. `import torchao` finds it."""

from rushlight.ao.torchao import quantization
from rushlight.ao.torchao.quantization import quantize_
from rushlight.base.missing_names import tell as _tell

__all__ = ["quantization", "quantize_"]

# below all versions of torchao: for a newer version, transformers would import parts that are missing here
__version__ = "0.0"

_tell(__name__)
