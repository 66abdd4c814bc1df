"""torch.nn.attention.bias: masks of causal attention for the argument `attn_mask`."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.creation.factories import ones

__all__ = ["causal_lower_right", "causal_upper_left"]


def causal_upper_left(*size: int) -> Tensor:
    """(L, S), true where a query i may look at a key j: j <= i. The first query sees the first key.

    >>> rushlight.nn.attention.bias.causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return mask(size, 0)


def causal_lower_right(*size: int) -> Tensor:
    """(L, S), true where a query i may look at a key j: j <= i + S - L. The last query sees the last key.

    >>> rushlight.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return mask(size, size[-1] - size[0])


def mask(size: tuple[int, ...], diagonal: int) -> Tensor:
    if len(size) != 2:
        raise AssertionError(f"causal masks only support 2D tensors, got {len(size)} sizes")
    return ones(size, dtype=bool).tril(diagonal)
