"""Old names of mixed precision: `torch.amp` for 'cpu'."""

from __future__ import annotations

import sys

from rushlight.amp.legacy_api import legacy_names
from rushlight.base.dtypes import bfloat16
from rushlight.base.submodules import importable

_names = legacy_names("cpu", bfloat16)
autocast, GradScaler = _names["autocast"], _names["GradScaler"]
autocast_mode = grad_scaler = sys.modules[__name__]  # torch's files
importable(__name__, "autocast_mode", "grad_scaler")
