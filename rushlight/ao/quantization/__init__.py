"""torch.ao.quantization: dynamic quantization."""

from rushlight.ao.observers import (
    MinMaxObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_weight_observer,
)  # fmt: skip
from rushlight.ao.quantization.qconfig import (
    QConfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    per_channel_dynamic_qconfig,
)  # fmt: skip
from rushlight.ao.quantization.quantize import get_default_dynamic_quant_module_mappings, quantize_dynamic
from rushlight.base.missing_names import tell as _tell
from rushlight.nn.module import Module as _Module


class FakeQuantizeBase(_Module):
    """torch's base of modules for quantization-aware training; no module is an instance."""


__all__ = [
    "FakeQuantizeBase", "MinMaxObserver", "ObserverBase", "PerChannelMinMaxObserver", "PlaceholderObserver", "QConfig",
    "default_dynamic_qconfig", "default_dynamic_quant_observer", "default_float_qparams_observer",
    "default_per_channel_weight_observer", "default_placeholder_observer", "default_weight_observer",
    "float16_dynamic_qconfig", "float_qparams_weight_only_qconfig", "get_default_dynamic_quant_module_mappings",
    "per_channel_dynamic_qconfig", "quantize_dynamic",
]  # fmt: skip

_tell(__name__)
