"""torch.hub: the folder of downloaded models. Files in this folder are loaded; nothing is
downloaded."""

from rushlight.base.missing_names import tell as _tell
from rushlight.serialization.hub import (
    HASH_REGEX,
    _get_torch_home,
    download_url_to_file,
    get_dir,
    load,
    load_state_dict_from_url,
    set_dir,
)

__all__ = [
    "download_url_to_file",
    "get_dir",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

_tell(__name__)
