"""torch.futures: results that come later (base/futures.py)."""

from rushlight.base.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
