"""torch's private functional collectives, for libraries that import them: with one process each
returns the input.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def wait_tensor(tensor: T) -> T:
    """The tensor itself: there is nothing to wait for."""
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
    """The tensor itself: the sum, mean or maximum over one process."""
    return self


__all__ = ["all_reduce", "all_to_all_single_autograd", "wait_tensor"]
