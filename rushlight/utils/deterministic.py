"""torch.utils.deterministic: `fill_uninitialized_memory`, whether `empty` and so on return nan (integers: the dtype's
largest value) under `use_deterministic_algorithms(True)`.

>>> rushlight.utils.deterministic.fill_uninitialized_memory
True
"""

from __future__ import annotations

import sys
from types import ModuleType

from rushlight.creation import process_settings


class Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return process_settings.chosen.fill_uninitialized_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fill: bool) -> None:
        process_settings.fill_uninitialized_memory(fill)


sys.modules[__name__].__class__ = Deterministic
