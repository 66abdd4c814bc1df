"""QConfig: the observers of a module's activations and weights."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight.ao.observers import (
    PlaceholderObserver,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_weight_observer,
)  # fmt: skip
from rushlight.base import dtypes


class QConfig(NamedTuple):
    """Functions that make the observers of activations and weights."""

    activation: Any
    weight: Any


default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
per_channel_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(default_placeholder_observer, default_float_qparams_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=dtypes.float32), PlaceholderObserver.with_args(dtype=dtypes.float16)
)
