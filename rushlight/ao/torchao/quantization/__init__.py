"""torchao.quantization: `quantize_`, configurations for int8, and the tensor that holds such weights."""

from rushlight.ao.torchao.quantization.granularity import Granularity, MappingType, PerRow, PerTensor
from rushlight.ao.torchao.quantization.int8_tensor import Int8Tensor
from rushlight.ao.torchao.quantization.quant_api import (
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    quantize_,
)  # fmt: skip
from rushlight.base.missing_names import tell as _tell

__all__ = [
    "Granularity", "Int8DynamicActivationInt8WeightConfig", "Int8Tensor", "Int8WeightOnlyConfig", "MappingType",
    "PerRow", "PerTensor", "quantize_",
]  # fmt: skip

_tell(__name__)
