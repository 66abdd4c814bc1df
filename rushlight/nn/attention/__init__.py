"""torch.nn.attention: which kernel computes attention. rushlight has one kernel, so every choice is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """torch's kernels for `scaled_dot_product_attention`: accepted, without effect.

    >>> rushlight.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __str__ = IntEnum.__repr__


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """A context without effect: `scaled_dot_product_attention` has one kernel, which returns the results of all of
    torch's kernels.

    AssertionError unless `backends` is a backend or a list of backends.

    >>> with rushlight.nn.attention.sdpa_kernel(rushlight.nn.attention.SDPBackend.MATH):
    ...     x = rushlight.ones(1, 2, 3)
    ...     y = rushlight.nn.functional.scaled_dot_product_attention(x, x, x)
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    yield {}
