"""torch.utils.data._utils: where `collate` is found in torch."""

from rushlight.base.submodules import importable
from rushlight.utils.data import collate, worker
from rushlight.utils.data import fetcher as fetch

importable(__name__, "collate", "fetch", "worker")

__all__ = ["collate", "fetch", "worker"]
