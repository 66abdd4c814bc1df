"""Old names of mixed precision: `torch.amp` for 'cuda'. Without a GPU they have no effect."""

from __future__ import annotations

import sys

from rushlight.amp.legacy_api import legacy_names
from rushlight.base.dtypes import float16
from rushlight.base.submodules import importable

globals().update(legacy_names("cuda", float16))
autocast_mode = grad_scaler = common = sys.modules[__name__]  # torch's files
importable(__name__, "autocast_mode", "common", "grad_scaler")


def amp_definitely_not_available() -> bool:
    """True: there is only the CPU."""
    return True
