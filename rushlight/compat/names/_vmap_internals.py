"""torch's private module of vmap's first form, which libraries import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.func.vmap_transform import vmap


def _vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Callable:
    """`vmap`. With `allow_none_pass_through`, results that are None stay None."""
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)

    def mapped(*args: Any) -> Any:
        several: list[bool | None] = []  # whether the result is a tuple; then, for each result, whether it is not None

        def tensors(*args: Any) -> Any:
            out = func(*args)
            outs = out if isinstance(out, tuple) else (out,)
            several[:] = [isinstance(out, tuple), *[o is not None for o in outs]]
            return tuple(o for o in outs if o is not None)

        made = iter(vmap(tensors, in_dims, out_dims)(*args))
        outs = tuple(next(made) if there else None for there in several[1:])
        return outs if several[0] else outs[0]

    return mapped


__all__ = ["_vmap", "vmap"]
