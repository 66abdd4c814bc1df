"""torch.hub: the folder for models from the network. What is there is loaded; nothing is downloaded."""
from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import urlparse

from rushlight.absent import tell as _tell
from rushlight.errors import explain

__all__ = ["download_url_to_file", "get_dir", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")         # the sum in a file's name: resnet18-f37072fd.pth


chosen: str | None = None                         # by set_dir


def set_dir(d: str | os.PathLike) -> None:
    """get_dir() = d: keep models in this folder.

    >>> before = rushlight.hub.get_dir()
    >>> rushlight.hub.set_dir("models")
    >>> rushlight.hub.get_dir()
    'models'
    >>> rushlight.hub.set_dir(before)
    """
    global chosen
    chosen = os.path.expanduser(os.fspath(d))


def get_dir() -> str:
    """Where torch keeps downloaded models.

    >>> import os
    >>> os.path.basename(rushlight.hub.get_dir())
    'hub'
    """
    return os.path.join(_get_torch_home(), "hub") if chosen is None else chosen


def _get_torch_home() -> str:
    """torch's folder: TORCH_HOME, or one in the user's cache."""
    return os.environ.get("TORCH_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "torch")


def load(repo_or_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: repositories from the network run code that was written for torch itself.

    >>> try:
    ...     rushlight.hub.load("pytorch/vision", "resnet18")
    ... except NotImplementedError:
    ...     print("rushlight.vision.models has it")
    rushlight.vision.models has it
    """
    raise NotImplementedError(f"torch.hub.load({repo_or_dir!r}, {model!r}) runs code from the network; download the weights "
                              "and load them with torch.load")


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
                             check_hash: bool = False, file_name: str | None = None, weights_only: bool = True) -> Any:
    """What `torch.load` finds in the file that torch would keep the address's content in.

    That is `model_dir`, or `get_dir()`/checkpoints, and the last part of the address, or `file_name`. Nothing is
    downloaded: FileNotFoundError says which file to put where.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> rushlight.save({"w": rushlight.ones(1)}, os.path.join(folder, "w.pt"))
    >>> rushlight.hub.load_state_dict_from_url("https://example.org/w.pt", folder)
    {'w': tensor([1.])}
    """
    from rushlight.serialization import load as load_file  # not on the way of `import torch.hub`
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), name)
    if not os.path.exists(path):
        raise FileNotFoundError(explain(f"the weights {name} are not here, and rushlight downloads none",
                                        f"fetch {url} and put it at {path}, or build the model with weights=None"))
    return load_file(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """FileNotFoundError, unless the file is there already: nothing is downloaded.

    >>> try:
    ...     rushlight.hub.download_url_to_file("https://example.org/w.pt", "/nowhere/w.pt")
    ... except FileNotFoundError:
    ...     print("put it there")
    put it there
    """
    if not os.path.exists(dst):
        raise FileNotFoundError(explain(f"{dst} is not here, and rushlight downloads nothing", f"fetch {url} yourself"))

_tell(__name__)
