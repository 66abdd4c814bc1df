"""torch._functorch.vmap: the parts of vmap that libraries import.

`rushlight.vmap` does not call these functions. If a library replaces them, vmap stays the same."""

from __future__ import annotations

from typing import Any

from rushlight._C._functorch import _add_batch_dim, _remove_batch_dim, is_batchedtensor

from rushlight.base.errors import value_error
from rushlight.base.pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.func.vmap_transform import name_of as _get_name
from rushlight.func.vmap_transform import vmap


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """A result of the function `name` as a tensor of all samples, with the batch in `out_dim`."""
    if out_dim is None:
        if isinstance(batched_output, Tensor) and is_batchedtensor(batched_output):
            raise value_error(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise value_error(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}.")
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


__all__ = [
    "Tensor", "_add_batch_dim", "_broadcast_to_and_flatten", "_get_name", "_maybe_remove_batch_dim",
    "_remove_batch_dim", "tree_flatten", "tree_unflatten", "vmap",
]  # fmt: skip
