"""Sums of buckets, in the gradients' dtype or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.base import dtypes
from rushlight.base.futures import Future
from rushlight.comm.collectives import all_reduce
from rushlight.comm.groups import member
from rushlight.core.tensor import Tensor

Hook = Callable[[Any, Any], Future]


def summed(tensor: Tensor, group: Any) -> Future:
    """The future of the summed tensors of all ranks."""
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future()


def allreduce_hook(process_group: Any, bucket: Any) -> Future:
    """The mean of the bucket: the default of DDP."""
    size = member(process_group).size()  # type: ignore[union-attr]
    tensor = bucket.buffer().div_(size)
    return summed(tensor, process_group).then(lambda f: f.value()[0])


def compressed(dtype: Any, process_group: Any, bucket: Any) -> Future:
    """The mean of the bucket, which is sent in a smaller dtype."""
    size = member(process_group).size()  # type: ignore[union-attr]
    buffer = bucket.buffer()
    small = buffer.to(dtype).div_(size)
    return summed(small, process_group).then(lambda f: buffer.copy_(f.value()[0]))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean in float16."""
    return compressed(dtypes.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean in bfloat16."""
    return compressed(dtypes.bfloat16, process_group, bucket)


def compress_wrapper(dtype: Any, hook: Hook) -> Hook:
    """A hook that gets the bucket in a smaller dtype."""

    def wrapped(state: Any, bucket: Any) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(state, bucket).then(lambda f: buffer.copy_(as_tensor(f.value())))

    return wrapped


def as_tensor(value: Any) -> Tensor:
    return value[0] if isinstance(value, (list, tuple)) else value


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets the bucket in float16."""
    return compress_wrapper(dtypes.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets the bucket in bfloat16."""
    return compress_wrapper(dtypes.bfloat16, hook)


__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip
