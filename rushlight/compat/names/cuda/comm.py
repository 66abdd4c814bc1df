"""torch.cuda.comm: copies between GPUs, of which there are none."""

from rushlight.cuda import absent

broadcast, broadcast_coalesced, reduce_add, reduce_add_coalesced, scatter, gather = (
    absent(name)
    for name in ("broadcast", "broadcast_coalesced", "reduce_add", "reduce_add_coalesced", "scatter", "gather")
)

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]
