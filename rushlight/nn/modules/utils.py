"""Functions that expand one value to one for each dimension, under the names that users' modules import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """A function from one value to a tuple of n equal values; an iterable becomes a tuple."""

    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (
    _ntuple(n, name) for n, name in ((1, "_single"), (2, "_pair"), (3, "_triple"), (4, "_quadruple"))
)


def _reverse_repeat_tuple(t: tuple, n: int) -> tuple:
    """The elements from the last to the first, each n times: settings of a convolution in the form of F.pad."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix such as "module." from the names in a state dict and in its `_metadata`, in place. A model that
    was saved inside another module has such a prefix.

    >>> values = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(values, "module.")
    >>> values
    {'bias': 2, 'weight': 1}
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    versions = getattr(state_dict, "_metadata", {})
    for key in [key for key in versions if key and (key.startswith(prefix) or key == prefix.replace(".", ""))]:
        versions[key[len(prefix) :]] = versions.pop(key)
