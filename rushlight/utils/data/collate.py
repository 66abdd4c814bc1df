"""From a list of samples to a batch: tensors and numbers are stacked, containers are traversed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rushlight.base.dtypes import float64
from rushlight.base.errors import explain, runtime_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import as_tensor, tensor
from rushlight.ops.shape.views import stack

NON_NUMERIC_KINDS = "SUO"  # kinds of NumPy dtypes: bytes, text, objects
np_str_obj_array_pattern = re.compile(f"[{NON_NUMERIC_KINDS}a]")  # torch's name for it
Table = dict[Any, Callable]  # type or types of samples -> (samples, collate_fn_map=) -> batch


def default_collate(batch: Any) -> Any:
    """The batch of a list of samples; a new first dimension counts them.

    Tensors and arrays are stacked, floats become float64, integers int64, texts stay a list. Tuples and lists of k
    elements become a list of k batches, dicts a dict, named tuples a named tuple of the same class. RuntimeError for
    different shapes or lengths, TypeError for anything else.

    >>> rushlight.utils.data.default_collate([(rushlight.ones(2), 1), (rushlight.zeros(2), 0)])
    [tensor([[1., 1.],
            [0., 0.]]), tensor([1, 0])]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Any, *, collate_fn_map: Table | None = None) -> Any:
    """`default_collate` with a custom table."""
    first, table = batch[0], collate_fn_map or {}
    kind = type(first)
    chosen = table.get(kind) or next((table[known] for known in table if isinstance(first, known)), None)
    if chosen is not None:
        return chosen(batch, collate_fn_map=table)
    if isinstance(first, Mapping):
        return like(first, {key: collate([one[key] for one in batch], collate_fn_map=table) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(column, collate_fn_map=table) for column in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(one) != len(first) for one in batch):
            raise runtime_error(
                "each element in list of batch should be of equal size",
                "pad them, or pass a collate_fn to the DataLoader",
                lengths=[len(one) for one in batch],
            )
        columns = [collate(column, collate_fn_map=table) for column in zip(*batch)]
        return columns if isinstance(first, tuple) else like(first, columns)
    raise TypeError(wrong(kind))


def wrong(kind: Any) -> str:
    return explain(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}",
        "pass a collate_fn to the DataLoader",
    )


def like(old: Any, parts: Any) -> Any:
    """The elements in a container of the same class as `old`, or in a list if that is not possible."""
    if type(old) in (list, dict):
        return parts
    try:
        if isinstance(parts, dict) and hasattr(old, "update"):
            from copy import copy

            new = copy(old)
            new.update(parts)
            return new
        return type(old)(parts)
    except TypeError:
        return parts


# -- the default table -----------------------------------------------------------------------------


def collate_tensors(batch: Sequence[Tensor], *, collate_fn_map: Table | None = None) -> Tensor:
    return stack(list(batch))


def collate_arrays(batch: Sequence[np.ndarray], *, collate_fn_map: Table | None = None) -> Tensor:
    if batch[0].dtype.kind in NON_NUMERIC_KINDS:
        raise TypeError(wrong(batch[0].dtype))
    return stack([as_tensor(one) for one in batch])


def collate_scalars(batch: Sequence[np.generic], *, collate_fn_map: Table | None = None) -> Tensor:
    return as_tensor(np.array(batch))


def collate_floats(batch: Sequence[float], *, collate_fn_map: Table | None = None) -> Tensor:
    return tensor(list(batch), dtype=float64)


def collate_integers(batch: Sequence[int], *, collate_fn_map: Table | None = None) -> Tensor:
    return tensor(list(batch))


def collate_texts(batch: Any, *, collate_fn_map: Table | None = None) -> Any:
    return batch


default_collate_fn_map: Table = {
    Tensor: collate_tensors,
    np.ndarray: collate_arrays,
    (np.bool_, np.number): collate_scalars,
    float: collate_floats,
    int: collate_integers,
    str: collate_texts,
    bytes: collate_texts,
}


def default_convert(data: Any) -> Any:
    """A single sample without batching: arrays become tensors, also inside containers; other values unchanged.

    >>> import numpy as np
    >>> rushlight.utils.data.default_convert([np.ones(2), "text"])
    [tensor([1., 1.], dtype=torch.float64), 'text']
    """
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in NON_NUMERIC_KINDS else as_tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return like(data, [default_convert(value) for value in data])
    return data


# torch's names of the functions for each type
collate_tensor_fn, collate_numpy_array_fn = collate_tensors, collate_arrays
collate_numpy_scalar_fn, collate_float_fn = collate_scalars, collate_floats
collate_int_fn, collate_str_fn = collate_integers, collate_texts
