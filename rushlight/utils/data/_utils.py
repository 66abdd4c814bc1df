"""torch.utils.data._utils: torch's module of `collate`."""

import sys

from rushlight.base.submodules import importable
from rushlight.utils.data import collate, worker
from rushlight.utils.data import fetcher as fetch

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between two checks that a worker is alive
HAS_NUMPY, IS_WINDOWS = True, sys.platform == "win32"
python_exit_status = False

importable(__name__, "collate", "fetch", "worker")

__all__ = ["collate", "fetch", "worker"]
