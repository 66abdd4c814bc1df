"""torch.hub: models from the network are not there; the folder for them is."""
from __future__ import annotations

import os
from typing import Any


def get_dir() -> str:
    """Where torch keeps downloaded models."""
    home = os.environ.get("TORCH_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "torch")
    return os.path.join(home, "hub")


def load(repo_or_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: repositories from the network run code that was written for torch itself."""
    raise NotImplementedError(f"torch.hub.load({repo_or_dir!r}, {model!r}) runs code from the network; download the weights "
                              "and load them with torch.load")


def load_state_dict_from_url(url: str, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: nothing is downloaded."""
    raise NotImplementedError(f"nothing is downloaded; fetch {url} yourself and give torch.load the file")
