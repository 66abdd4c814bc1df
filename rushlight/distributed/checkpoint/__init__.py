"""torch.distributed.checkpoint: the names that libraries import; one process saves with
torch.save.
"""

from __future__ import annotations

from typing import Any


def save(state_dict: dict, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: one process saves with torch.save."""
    raise NotImplementedError(
        "torch.distributed.checkpoint writes files of several processes, which rushlight does not "
        "support; hint: "
        "torch.save(state_dict, file)"
    )


def load(state_dict: dict, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: one process loads with torch.load."""
    raise NotImplementedError(
        "torch.distributed.checkpoint reads files of several processes, which rushlight does not "
        "support; hint: "
        "torch.load(file)"
    )


__all__ = ["load", "save"]
