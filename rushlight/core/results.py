"""Where results go: into `out=`, or into a tuple with names."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import describe, runtime_error, type_error, warn
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.core.views import write, wrote


def into(out: Any, result: Any, *apart: Tensor) -> Any:
    """Fill `out` with the result and return `out`, resized to the result's shape.

    `apart`: the tensors whose memory `out` must not share.
    """
    if isinstance(result, tuple):
        for o, r in zip(out, result):
            same_dtype(o, r)
        return type(result)([into(o, r, *apart) for o, r in zip(out, result)])
    check_out(out)
    if result._node is not None or (out._node is not None and mode().grad):
        raise runtime_error(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad.",
            "leave out= away, or use no_grad()",
        )
    if out.dtype.category < result.dtype.category:
        raise runtime_error(
            f"result type {result.dtype.scalar_type} can't be cast to the desired output type {out.dtype.scalar_type}",
            f"give an out= of dtype {result.dtype}",
        )
    check_memory(out._array, [t._array for t in apart])
    watch = mode().watch
    if watch is not None:
        watch.on_write_start(out)
    if out._array.shape == result._array.shape:
        write(out, result)
    else:
        if out._array.size:
            warn(
                f"An output with one or more elements was resized since it had shape {list(out._array.shape)}, which "
                f"does not match the required output shape {list(result._array.shape)}. This behavior is deprecated, "
                "and in a future PyTorch release outputs will not be resized unless they have zero elements. You can "
                "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
            )
        out._array = result._array.astype(out._array.dtype)
        wrote(out)
    if watch is not None:
        watch.on_write(out, result)
    return out


def filled(out: Any, result: Any) -> Any:
    """The result of an op on operands that are no arrays, sparse tensors: in `out`, where that is given."""
    if out is None:
        return result
    return out.copy_(result) if out.is_sparse or result.is_sparse else into(out, result)


def check_out(out: Any) -> None:
    """TypeError unless `out` is a tensor."""
    if not isinstance(out, Tensor):
        raise type_error(f"argument 'out' must be Tensor, not {type(out).__name__}", got=describe(out))


def same_dtype(out: Tensor, result: Tensor) -> None:
    """RuntimeError for results of which torch converts none: values and indices, the parts of a decomposition."""
    check_out(out)
    if out.dtype is not result.dtype:
        raise runtime_error(
            f"Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead",
            f"expected scalar type {result.dtype.scalar_type} but got {out.dtype.scalar_type}",
        )


def check_memory(out: ndarray, apart: list[ndarray]) -> None:
    """RuntimeError if elements of `out` share memory with each other, or with one of the other arrays."""
    what = None
    if out.size and 0 in out.strides and any(n > 1 and step == 0 for n, step in zip(out.shape, out.strides)):
        what = "more than one element of the written-to tensor refers"
    elif any(np.shares_memory(out, a) for a in apart if np.may_share_memory(out, a)):
        what = "some elements of the input tensor and the written-to tensor refer"
    if what is not None:
        raise runtime_error(
            f"unsupported operation: {what} to a single memory location. Please clone() the tensor before "
            "performing the operation."
        )


RETURN_TYPES: dict[str, type] = {}  # those of torch.return_types that were made


def return_type(name: str, fields: list[str]) -> type:
    """A tuple with names, as `torch.max(x, dim)` returns: `.values`, `.indices`."""
    if name in RETURN_TYPES:
        return RETURN_TYPES[name]

    def show(self: tuple) -> str:
        return f"torch.return_types.{name}(\n" + ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self)) + ")"

    places = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    made = RETURN_TYPES[name] = type(
        name,
        (tuple,),
        {
            "__slots__": (),
            "_fields": tuple(fields),
            "__repr__": show,
            **places,
            "__module__": "torch.return_types",
            "__reduce__": lambda self: (tuple, (tuple(self),)),
        },
    )
    return made


def result_type(op: Any) -> type:
    """The tuple of an op's results: with names if its entry tells them (`outputs`)."""
    fields = op.options.get("outputs", "").split()
    return return_type(op.options.get("called", op.name).replace(".", "_"), fields) if fields else tuple
