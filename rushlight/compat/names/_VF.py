"""torch._VF: the functions of torch by the names that modules of torch use."""

from __future__ import annotations

from typing import Any

import rushlight


def __getattr__(name: str) -> Any:
    return getattr(rushlight, name)
