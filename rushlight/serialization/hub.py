"""torch.hub: the folder of downloaded models. Existing files are loaded; nothing is downloaded."""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any
from urllib.parse import urlparse

from rushlight.base.errors import explain, not_implemented_error, runtime_error, value_error
from rushlight.serialization import load as load_file

__all__ = ["download_url_to_file", "get_dir", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the checksum in a file's name: resnet18-f37072fd.pth


chosen: str | None = None  # the folder given to set_dir


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
    """torch's folder of downloaded models.

    >>> import os
    >>> os.path.basename(rushlight.hub.get_dir())
    'hub'
    """
    return os.path.join(_get_torch_home(), "hub") if chosen is None else chosen


def _get_torch_home() -> str:
    """torch's folder: TORCH_HOME, or one in the user's cache."""
    return os.environ.get("TORCH_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "torch"
    )


def load(
    repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = None,
    force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """The result of the function `model` in a folder's hubconf.py, with source='local'.

    NotImplementedError for a repository on the network, since users should see the code before it runs. ValueError for
    another source, RuntimeError for an unknown function. A hubconf.py that imports torch gets the program's torch:
    rushlight under `rushlight run`.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "hubconf.py").write_text("def twice(x): return 2 * x")
    ...     rushlight.hub.load(folder, "twice", rushlight.ones(2), source="local")
    tensor([2., 2.])
    """
    if source not in ("github", "local"):
        raise value_error(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise not_implemented_error(
            f"torch.hub.load({repo_or_dir!r}, {model!r}) runs code from the network",
            "clone the repository and pass source='local', or load its weights with torch.load",
        )
    made = entry(os.path.expanduser(repo_or_dir), model)
    return made(*args, **kwargs)


def entry(folder: str, name: str) -> Any:
    """The function of that name in the folder's hubconf.py, which is run with the folder on Python's path."""
    path = os.path.join(folder, "hubconf.py")
    spec: Any = spec_from_file_location("hubconf", path)
    if not os.path.exists(path):
        raise FileNotFoundError(explain(f"{path} does not exist", "pass the folder that contains hubconf.py"))
    sys.path.insert(0, folder)
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    for needed in getattr(module, "dependencies", ()):
        if find_spec(needed) is None:
            raise runtime_error(f"Missing dependencies: {needed}", f"pip install {needed}")
    found = getattr(module, name, None)
    if not callable(found):
        raise runtime_error(f"Cannot find callable {name} in hubconf", file=path)
    return found


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = True,
) -> Any:  # fmt: skip
    """`torch.load` of the file in which torch would store the content of the address.

    This file is `model_dir` or `get_dir()`/checkpoints, plus `file_name` or the last part of the address. Nothing is
    downloaded: FileNotFoundError names the file to put there.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> rushlight.save({"w": rushlight.ones(1)}, os.path.join(folder, "w.pt"))
    >>> rushlight.hub.load_state_dict_from_url("https://example.org/w.pt", folder)
    {'w': tensor([1.])}
    """
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), name)
    if not os.path.exists(path):
        raise FileNotFoundError(
            explain(
                f"the weights {name} do not exist, and rushlight does not download",
                f"download {url} to {path}, or build the model with weights=None",
            )
        )
    return load_file(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """FileNotFoundError unless the file exists: nothing is downloaded.

    >>> try:
    ...     rushlight.hub.download_url_to_file("https://example.org/w.pt", "/nowhere/w.pt")
    ... except FileNotFoundError:
    ...     print("put it there")
    put it there
    """
    if not os.path.exists(dst):
        raise FileNotFoundError(
            explain(f"{dst} does not exist, and rushlight does not download", f"download {url} yourself")
        )
