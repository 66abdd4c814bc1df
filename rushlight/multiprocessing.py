"""torch.multiprocessing: Python's own; tensors are copied between processes, not shared."""
from multiprocessing import *  # noqa: F403
from multiprocessing import get_context, get_start_method, set_start_method  # noqa: F401


def set_sharing_strategy(new_strategy: str) -> None:
    """Nothing to set: memory is not shared."""


def get_sharing_strategy() -> str:
    """'copy': memory is not shared."""
    return "copy"
