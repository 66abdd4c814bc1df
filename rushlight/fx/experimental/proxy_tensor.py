"""torch.fx.experimental.proxy_tensor, as far as libraries ask it: nothing is traced."""

from __future__ import annotations


def get_proxy_mode() -> None:
    """None: nothing is traced."""
    return None


__all__ = ["get_proxy_mode"]
