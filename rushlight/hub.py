"""torch.hub: the folder of downloaded models. Files in this folder are loaded; nothing is downloaded."""

from typing import Any
from urllib.parse import urlparse as urlparse

from rushlight.base.missing_names import missing as _missing
from rushlight.serialization.hub import (
    HASH_REGEX,
    _get_torch_home,
    download_url_to_file,
    get_dir,
    load,
    load_state_dict_from_url,
    set_dir,
)


def __getattr__(name: str) -> Any:
    """`torch.hub.tqdm`: the progress bar of tqdm if tqdm is installed, else an error with a hint."""
    if name != "tqdm":
        return _missing(__name__, name)
    from tqdm import tqdm

    return tqdm


__all__ = ["download_url_to_file", "get_dir", "load", "load_state_dict_from_url", "set_dir"]
