"""Copies of a module on several devices."""

from __future__ import annotations

from typing import Any

from rushlight.nn.module import Module


def replicate(network: Module, devices: Any, detach: bool = False) -> list[Module]:
    """RuntimeError, as for any tensor on a GPU: there is no second device."""
    return [network.to(device) for device in devices]
