"""Attention with a function that changes scores and a function that masks scores: torch.nn.attention.flex_attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.base.dtypes import bool_
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import ones
from rushlight.creation.ranges import arange
from rushlight.nn.functional import pad

_DEFAULT_SPARSE_BLOCK_SIZE = 128
# (b, h, q_idx, kv_idx) -> bool, or (score, b, h, q_idx, kv_idx) -> score
Mod = Callable[..., Tensor]


def indices(*sizes: int | None) -> list[Any]:
    """The index along each dimension, as tensors that broadcast against each other: (n, 1, 1), (n, 1), (n,)."""
    left = len(sizes)
    return [arange(n or 1).reshape(-1, *[1] * (left - 1 - i)) for i, n in enumerate(sizes)]


def create_mask(mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = "cpu") -> Any:
    """(B, H, Q_LEN, KV_LEN) bool: `mod_fn(b, h, q_idx, kv_idx)`. It is called once, with all indices.

    >>> from rushlight.nn.attention import flex_attention as flex
    >>> flex.create_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 2)[0, 0]
    tensor([[ True, False],
            [ True,  True]])
    """
    return mod_fn(*indices(B, H, Q_LEN, KV_LEN)).expand(B or 1, H or 1, Q_LEN, KV_LEN)


class AuxRequest(NamedTuple):
    """Additional results that `flex_attention` should return.

    >>> from rushlight.nn.attention import flex_attention as flex
    >>> x = rushlight.ones(1, 1, 4, 8)
    >>> out, aux = flex.flex_attention(x, x, x, return_aux=flex.AuxRequest(lse=True))
    >>> aux.lse.shape, aux.max_scores
    (torch.Size([1, 1, 4]), None)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Additional results of `flex_attention`; None unless requested.

    >>> from rushlight.nn.attention import flex_attention as flex
    >>> flex.AuxOutput()
    AuxOutput(lse=None, max_scores=None)
    """

    lse: Any = None
    max_scores: Any = None


class BlockMask:
    """A mask with the blocks that contain allowed pairs; made by `create_block_mask`. The blocks are for display only.

    >>> from rushlight.nn.attention import flex_attention as flex
    >>> mask = flex.create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256)
    >>> mask.to_dense()[0, 0], mask.sparsity()
    (tensor([[1, 0],
            [1, 1]], dtype=torch.int32), 25.0)
    """

    def __init__(self, mask_mod: Mod, shape: tuple[int, int, int, int], BLOCK_SIZE: int | tuple[int, int]):
        self.mask_mod, self.shape = mask_mod, shape
        self.BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE

    @property
    def seq_lengths(self) -> tuple[int, int]:
        """(number of queries, number of keys)."""
        return self.shape[2], self.shape[3]

    def numel(self) -> int:
        """The number of scores."""
        return math.prod(self.shape)

    def mask(self) -> Any:
        """The mask of all scores."""
        return create_mask(self.mask_mod, *self.shape)

    def to_dense(self) -> Any:
        """(B, H, blocks of queries, blocks of keys) int32: 1 for a block with an allowed pair."""
        (q, kv), (rows, columns) = self.seq_lengths, self.BLOCK_SIZE
        whole = pad(self.mask().int(), (0, -kv % columns, 0, -q % rows))
        return whole.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows)).amax((-1, -3))

    def sparsity(self) -> float:
        """The percentage of scores in blocks without an allowed pair; a partial block counts as a block."""
        return 100 * (1 - self.to_dense().sum().item() * math.prod(self.BLOCK_SIZE) / self.numel())

    def to(self, device: Any) -> BlockMask:
        """Itself."""
        return self

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128, _compile: bool = False, **options: Any,
) -> BlockMask:  # fmt: skip
    """mask[b, h, q, kv] = mask_mod(b, h, q, kv), with the blocks in which it is true. B or H None: the same mask for
    all.

    >>> from rushlight.nn.attention import flex_attention as flex
    >>> flex.create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256).shape
    (1, 1, 256, 256)
    """
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), BLOCK_SIZE)


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Any:
    """True: nothing is left out.

    >>> from rushlight.nn.attention import flex_attention as flex
    >>> zero = rushlight.tensor(0)
    >>> flex.noop_mask(zero, zero, zero, zero)
    tensor(True)
    """
    return ones((), dtype=bool_)


def and_masks(*mask_mods: Mod) -> Mod:
    """mask_1 & mask_2 & ...: pairs that all masks allow.

    >>> from rushlight.nn.attention import flex_attention as flex
    >>> near = flex.and_masks(lambda b, h, q, kv: q >= kv, lambda b, h, q, kv: q - kv < 2)
    >>> flex.create_mask(near, 1, 1, 3, 3)[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    """

    def both(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        kept = noop_mask(b, h, q_idx, kv_idx)
        for mod in mask_mods:
            kept = kept & mod(b, h, q_idx, kv_idx)
        return kept

    return both


def or_masks(*mask_mods: Mod) -> Mod:
    """mask_1 | mask_2 | ...: pairs that at least one mask allows.

    >>> from rushlight.nn.attention import flex_attention as flex
    >>> either = flex.or_masks(lambda b, h, q, kv: q == kv, lambda b, h, q, kv: kv == 0)
    >>> flex.create_mask(either, 1, 1, 3, 3)[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 0, 1]], dtype=torch.int32)
    """

    def either(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        kept = ~noop_mask(b, h, q_idx, kv_idx)
        for mod in mask_mods:
            kept = kept | mod(b, h, q_idx, kv_idx)
        return kept

    return either


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Mod | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(scale query key^T, b, h, q_idx, kv_idx)) value, over the pairs that the mask allows; 0 for a
    query without allowed keys.

    query (B, H, L, E), key (B, H, S, E), value (B, H, S, V) -> (B, H, L, V); with `enable_gqa` keys may have fewer
    heads. `return_lse`: also the logsumexp of the scores (B, H, L); `return_aux`: the results that it requests.
    `score_mod` is called once, with all scores and with indices that broadcast against them, so it may use elementwise
    ops and index tables. All scores are held in memory. ValueError for shapes that do not fit.

    >>> from rushlight.nn.attention.flex_attention import flex_attention
    >>> x = rushlight.tensor([1., 2.]).reshape(1, 1, 2, 1)
    >>> flex_attention(x, x, x, lambda score, b, h, q_idx, kv_idx: score - kv_idx).flatten()
    tensor([1.5000, 1.7311])
    """
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise value_error("NYI: query, key, and value must be 4D tensors")
    if query.shape[1] != key.shape[1]:
        if not enable_gqa:
            raise value_error(
                f"Expect query and key/value to have the same number of heads but got Hq={query.shape[1]} and "
                f"Hkv={key.shape[1]}. Try setting enable_gqa=True for GQA."
            )
        groups = query.shape[1] // key.shape[1]
        key, value = (t.repeat_interleave(groups, 1) for t in (key, value))
    scores: Any = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *indices(*scores.shape))
    if block_mask is not None:
        kept = block_mask.mask()[..., : scores.shape[-2], : scores.shape[-1]]
        scores = scores.masked_fill(~kept, -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(lse == -math.inf, 0.0).unsqueeze(-1)).exp()
    out = weights.to(query.dtype) @ value
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (out, lse) if return_lse else out


__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip
