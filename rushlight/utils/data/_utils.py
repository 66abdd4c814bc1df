"""torch.utils.data._utils: where `collate` is found in torch."""
from rushlight.utils.data import collate, fetch, worker

__all__ = ["collate", "fetch", "worker"]
