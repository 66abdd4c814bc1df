"""torch.fx.experimental.proxy_tensor: the names that libraries import; no tracing."""

from __future__ import annotations


def get_proxy_mode() -> None:
    """Always None: no tracing is active."""
    return None


__all__ = ["get_proxy_mode"]
