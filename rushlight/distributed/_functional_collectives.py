"""torch's private collectives that are functions, which libraries import: in one process each gives
its input."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def wait_tensor(tensor: T) -> T:
    """The tensor: it is there already."""
    return tensor


def all_to_all_single_autograd(
    self: T,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    tag: str = "",
) -> T:
    """The tensor: one process sends all to itself."""
    return self


def all_reduce(self: T, reduceOp: str, group: Any = None, tag: str = "") -> T:
    """The tensor: its sum, mean or maximum over one process."""
    return self


__all__ = ["all_reduce", "all_to_all_single_autograd", "wait_tensor"]
