"""torch.distributed.device_mesh: see torch.distributed.tensor."""

from __future__ import annotations

from typing import Any

from rushlight.distributed.tensor import DeviceMesh


def init_device_mesh(
    device_type: str, mesh_shape: Any, *, mesh_dim_names: Any = None, **options: Any
) -> Any:
    """NotImplementedError: there is only one process."""
    return DeviceMesh()


__all__ = ["DeviceMesh", "init_device_mesh"]
