"""Where a program may differ from torch on purpose: patterns of its text, and the reason (docs/differences.md)."""
from __future__ import annotations

import re

# (pattern searched for in the program's text, why the answers differ)
ON_PURPOSE: list[tuple[str, str]] = []


def reason(text: str) -> str | None:
    """Why this program's answers differ on purpose; None if they should agree."""
    return next((why for pattern, why in ON_PURPOSE if re.search(pattern, text)), None)
