"""torch.utils._foreach_utils, for users' optimizers: groups of tensors for _foreach functions."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.base.device import device
from rushlight.base.dtypes import dtype
from rushlight.core.tensor import Tensor

Group = tuple[list[list], list[int]]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[device, dtype], Group]:
    """The n-th elements of all lists by device and dtype of the first list's: {(device, dtype): (lists, indices)}.

    >>> x = rushlight.ones(2)
    >>> found = rushlight.utils._foreach_utils._group_tensors_by_device_and_dtype([[x, x.double(), x]], True)
    >>> [indices for _, indices in found.values()]
    [[0, 2], [1]]
    """
    groups: dict[tuple[device, dtype], Group] = {}
    for i, first in enumerate(tensorlistlist[0]):
        assert first is not None, "the first list has no None"
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for own, given in zip(lists, tensorlistlist):
            if given:  # an empty list stands for None
                own.append(given[i])
        if with_indices:
            indices.append(i)
    return groups


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Accelerators with _foreach functions: none."""
    return []


def _get_fused_kernels_supported_devices() -> list[str]:
    """Devices with fused optimizers."""
    return ["cpu"]


def _device_has_foreach_support(device: device) -> bool:
    """Whether _foreach functions support the device."""
    return device.type == "cpu"


def _has_foreach_support(tensors: Sequence[Tensor | None], device: device) -> bool:
    """Whether _foreach functions accept these tensors."""
    return _device_has_foreach_support(device) and all(t is None or type(t) is Tensor for t in tensors)
