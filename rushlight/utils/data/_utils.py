"""torch.utils.data._utils: where `collate` is found in torch."""
from rushlight.parts import importable
from rushlight.utils.data import collate, fetch, worker

importable(__name__, "collate", "fetch", "worker")

__all__ = ["collate", "fetch", "worker"]
