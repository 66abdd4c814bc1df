"""ONNX's tensors as NumPy arrays, and back; large data in a file beside the model.

>>> import numpy as np
>>> from rushlight.onnx.tensors import array_of, tensor_of
>>> tensor_of(np.float32([1, 2]), "weight")
TensorProto(dims=[2], data_type=1, name='weight', raw_data=b'\\x00\\x00\\x80?\\x00\\x00\\x00@')
>>> array_of(tensor_of(np.float32([1, 2]), "weight"))
array([1., 2.], dtype=float32)
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rushlight.base.dtypes import DTYPES
from rushlight.base.errors import not_implemented_error
from rushlight.serialization.archive import Damaged
from rushlight.serialization.atomic_write import replacing

from .messages import Message, StringStringEntryProto, TensorProto

STRING = 8
EXTERNAL = 1  # data_location
MAX_BYTES = 2**62  # NumPy's sizes are 63 bits
MAX_DIMENSIONS = 64  # NumPy's
MAX_DENSE_BYTES = 2**28  # of an array made from a sparse tensor
ALIGNMENT = 4096  # of external data: a page, so that data can be mapped
EXTERNAL_THRESHOLD = 1024  # smaller tensors stay in the model


class Element(NamedTuple):
    """A type of elements: NumPy's name or ml_dtypes', bits an element, the field of a TensorProto for it."""

    name: str
    bits: int
    field: str


# TensorProto.DataType -> Element. Types of 2 and 4 bits are packed, the first element in the low bits.
ELEMENTS = {
    1: Element("float32", 32, "float_data"),
    2: Element("uint8", 8, "int32_data"),
    3: Element("int8", 8, "int32_data"),
    4: Element("uint16", 16, "int32_data"),
    5: Element("int16", 16, "int32_data"),
    6: Element("int32", 32, "int32_data"),
    7: Element("int64", 64, "int64_data"),
    8: Element("object", 0, "string_data"),
    9: Element("bool", 8, "int32_data"),
    10: Element("float16", 16, "int32_data"),
    11: Element("float64", 64, "double_data"),
    12: Element("uint32", 32, "uint64_data"),
    13: Element("uint64", 64, "uint64_data"),
    14: Element("complex64", 64, "float_data"),
    15: Element("complex128", 128, "double_data"),
    16: Element("bfloat16", 16, "int32_data"),
    17: Element("float8_e4m3fn", 8, "int32_data"),
    18: Element("float8_e4m3fnuz", 8, "int32_data"),
    19: Element("float8_e5m2", 8, "int32_data"),
    20: Element("float8_e5m2fnuz", 8, "int32_data"),
    21: Element("uint4", 4, "int32_data"),
    22: Element("int4", 4, "int32_data"),
    23: Element("float4_e2m1fn", 4, "int32_data"),
    24: Element("float8_e8m0fnu", 8, "int32_data"),
    25: Element("uint2", 2, "int32_data"),
    26: Element("int2", 2, "int32_data"),
}
CODES = {element.name: code for code, element in ELEMENTS.items()}
TENSOR_TYPES = frozenset(dtype.name for dtype in DTYPES)


def numpy_type(code: int) -> np.dtype:
    """NumPy's dtype for ONNX's code of an element type; ml_dtypes has the types that NumPy lacks."""
    element = ELEMENTS.get(code)
    if element is None:
        raise Damaged(f"{code} is not a type of elements")
    if element.name == "object" or hasattr(np, element.name):
        return np.dtype(element.name)
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(f"tensors of {element.name} need the package ml_dtypes: pip install ml_dtypes") from None
    if not hasattr(ml_dtypes, element.name):
        raise not_implemented_error(f"ml_dtypes {ml_dtypes.__version__} has no {element.name}: install a newer version")
    return np.dtype(getattr(ml_dtypes, element.name))


def code_of(dtype: np.dtype) -> int:
    """ONNX's code for a dtype of NumPy or ml_dtypes."""
    name = "object" if dtype.kind in "OSUT" else dtype.name
    if name not in CODES:
        raise not_implemented_error(f"ONNX has no tensors of {dtype}: convert the array to another dtype")
    return CODES[name]


def has_tensors(dtype: np.dtype) -> bool:
    """Whether tensors of NumPy's dtype exist; not for strings, float8 or int4."""
    return dtype.name in TENSOR_TYPES


# -- reading ---------------------------------------------------------------------------------------


def array_of(tensor: Message, folder: str | None = None) -> np.ndarray:
    """The array of a TensorProto: a read-only view of the file's bytes where possible.

    `folder`: the folder of external data; None refuses external data. Strings are an array of str objects. Raises
    `Damaged` if the data does not fit the shape, before memory is taken.
    """
    element, dtype = ELEMENTS.get(tensor.data_type), numpy_type(tensor.data_type)
    assert element is not None
    shape, count = checked_shape(tensor, max(element.bits, 8))
    if tensor.has("segment"):
        raise not_implemented_error(f"tensor {tensor.name!r} is a segment of a tensor, which ONNX's tools do not write")
    if tensor.data_type == STRING:
        return strings_of(tensor, shape, count)
    if tensor.data_location == EXTERNAL:
        data = external_bytes(tensor, folder)
    elif tensor.has("raw_data"):
        data = np.frombuffer(tensor.raw_data, np.uint8)
    else:
        return from_field(tensor, element, dtype, shape, count)
    needed = -(-count * element.bits // 8)
    if len(data) != needed:
        raise Damaged(f"tensor {tensor.name!r} of shape {list(shape)} has {len(data):,} bytes instead of {needed:,}")
    if element.bits < 8:
        return unpacked(data, element.bits, dtype, count).reshape(shape)
    if dtype == np.bool_:
        return (data != 0).reshape(shape)
    return data.view(dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def checked_shape(tensor: Message, bits: int) -> tuple[tuple[int, ...], int]:
    """(shape, number of elements); `Damaged` for sizes that no array has."""
    shape = tuple(tensor.dims)
    big = math.prod(size for size in shape if size) * bits // 8
    if len(shape) > MAX_DIMENSIONS or min(shape, default=0) < 0 or big >= MAX_BYTES:
        raise Damaged(f"tensor {tensor.name!r} has the shape {list(shape)[:10]}, which no array has")
    return shape, math.prod(shape)


def strings_of(tensor: Message, shape: tuple[int, ...], count: int) -> np.ndarray:
    if len(tensor.string_data) != count:
        raise Damaged(f"tensor {tensor.name!r} of shape {list(shape)} has {len(tensor.string_data)} strings")
    try:
        found = [text.decode() for text in tensor.string_data]
    except UnicodeDecodeError:
        raise Damaged(f"a string of tensor {tensor.name!r} is not UTF-8") from None
    return np.array([*found, None], object)[:-1].reshape(shape)


def from_field(tensor: Message, element: Element, dtype: np.dtype, shape: tuple[int, ...], count: int) -> np.ndarray:
    """The array of a tensor whose numbers stand in a typed field, such as float_data."""
    data = getattr(tensor, element.field)
    if element.bits < 8:
        data = unpacked(data.astype(np.uint8), element.bits, dtype, count)
    elif dtype.kind == "c":
        data = data.view(dtype) if not len(data) % 2 else data
    elif dtype.kind in "fV" and element.field == "int32_data":  # float16, bfloat16, float8: the bits as integers
        data = data.astype(f"u{dtype.itemsize}").view(dtype)
    if len(data) != count:
        raise Damaged(f"tensor {tensor.name!r} of shape {list(shape)} has {len(data):,} numbers in {element.field}")
    return data.astype(dtype, copy=False).reshape(shape)


def unpacked(data: np.ndarray, bits: int, dtype: np.dtype, count: int) -> np.ndarray:
    """Elements of 2 or 4 bits from bytes, the first element in the low bits."""
    each = (data.reshape(-1, 1) >> np.arange(0, 8, bits, dtype=np.uint8)) & ((1 << bits) - 1)
    flat = each.reshape(-1)[:count]
    if dtype.kind == "V" and dtype.name.startswith("float"):
        return flat.astype(np.uint8).view(dtype)
    if dtype.name.startswith("int"):
        flat = flat.astype(np.int8)
        flat = np.where(flat >= 1 << (bits - 1), flat - (1 << bits), flat)
    return flat.astype(dtype)


def external_bytes(tensor: Message, folder: str | None) -> np.ndarray:
    """The bytes of a tensor in a file beside the model, mapped. The file must be in `folder`, and no link."""
    about = {entry.key: entry.value for entry in tensor.external_data}
    path = checked_path(about.get("location", ""), folder, tensor.name)
    try:
        offset, length = int(about.get("offset", 0)), int(about.get("length", -1))
        size = os.stat(path).st_size
    except ValueError:
        raise Damaged(f"tensor {tensor.name!r} has external data whose offset or length is not a number") from None
    length = size - offset if length < 0 else length
    if offset < 0 or length < 0 or offset + length > size:
        raise Damaged(
            f"tensor {tensor.name!r}: bytes {offset} to {offset + length} of {path!r}, which has {size} bytes"
        )
    if not length:
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, "r", offset, (length,)).view(np.ndarray)


def checked_path(location: str, folder: str | None, name: str) -> str:
    """The path of external data; `Damaged` for a path that leaves the folder: absolute, with `..`, or a link."""
    if folder is None:
        raise Damaged(
            f"tensor {name!r} has external data {location[:100]!r}: load the model from its path, not from bytes"
        )
    parts = location.replace("\\", "/").split("/")
    if (
        not location
        or "\0" in location
        or os.path.isabs(location)
        or ".." in parts
        or parts[0] == ""
        or ":" in parts[0]
    ):
        raise Damaged(f"tensor {name!r} has external data at {location[:100]!r}, which is outside the model's folder")
    path = folder
    for part in parts:
        path = os.path.join(path, part)
        if os.path.islink(path):
            raise Damaged(f"tensor {name!r} has external data at {location[:100]!r}, which is a link")
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise Damaged(f"tensor {name!r} has external data at {location[:100]!r}: {error.strerror}") from None
    if not regular:
        raise Damaged(f"tensor {name!r} has external data at {location[:100]!r}, which is not a file")
    return path


def dense_of(sparse: Message, folder: str | None = None) -> np.ndarray:
    """The dense array of a SparseTensorProto, whose indices are flat or a row of coordinates for each value."""
    values, indices = sparse.values, sparse.indices
    if values is None or indices is None:
        raise Damaged("a sparse tensor has no values or no indices")
    found, at = array_of(values, folder), array_of(indices, folder)
    shape, count = checked_shape(TensorProto(name=values.name, dims=sparse.dims), found.dtype.itemsize * 8)
    if count * found.dtype.itemsize > MAX_DENSE_BYTES:
        raise Damaged(f"the sparse tensor {values.name!r} has {count:,} elements: too many for a dense array")
    if at.dtype != np.int64 or found.ndim != 1 or at.ndim not in (1, 2) or len(at) != len(found):
        raise Damaged(f"the sparse tensor {values.name!r} has {at.dtype} indices of shape {list(at.shape)}")
    if at.ndim == 2:
        if at.shape[1] != len(shape) or (at < 0).any() or (at >= np.array(shape)).any():
            raise Damaged(f"the sparse tensor {values.name!r} has indices outside its shape {list(shape)}")
        at = np.ravel_multi_index(tuple(at.T), shape) if len(at) else at.reshape(-1)
    if len(at) and (at.min() < 0 or at.max() >= count):
        raise Damaged(f"the sparse tensor {values.name!r} has indices outside its shape {list(shape)}")
    out = np.zeros(count, found.dtype)
    out[at] = found
    return out.reshape(shape)


# -- writing ---------------------------------------------------------------------------------------


def tensor_of(array: np.ndarray, name: str = "") -> Any:
    """The TensorProto of an array, with raw data; strings in string_data."""
    array = np.asarray(array)
    code = code_of(array.dtype)
    made: Any = TensorProto(dims=list(array.shape), data_type=code, name=name)
    if code == STRING:
        made.string_data = [str(text).encode() for text in array.reshape(-1)]
        return made
    bits = ELEMENTS[code].bits
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1)
    made.raw_data = packed_bits(little, bits) if bits < 8 else little.tobytes()
    return made


def packed_bits(flat: np.ndarray, bits: int) -> bytes:
    """Elements of 2 or 4 bits in bytes, the first element in the low bits."""
    small = flat.view(np.uint8) if flat.dtype.name.startswith("float") else flat.astype(np.int8).view(np.uint8)
    per_byte = 8 // bits
    padded = np.zeros(-(-len(small) // per_byte) * per_byte, np.uint8)
    padded[: len(small)] = small & ((1 << bits) - 1)
    shifted = padded.reshape(-1, per_byte) << np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(shifted, 1).astype(np.uint8).tobytes()


def tensors_in(graph: Message) -> Iterator[Any]:
    """All TensorProtos of a graph: initializers, constants of nodes, and the same in graphs of nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.t is not None:
                yield attribute.t
            yield from attribute.tensors if attribute.has("tensors") else ()
            inner = [attribute.g] if attribute.g is not None else []
            for g in (*inner, *(attribute.graphs if attribute.has("graphs") else ())):
                yield from tensors_in(g)


def move_data(graph: Any, path: str | os.PathLike[str], threshold: int = EXTERNAL_THRESHOLD) -> int:
    """Move raw data of at least `threshold` bytes from the graph's tensors to the file `path`, which must be in the
    model's folder; the number of bytes written. The tensors keep name, offset and length."""
    at = 0
    with replacing(path) as file:
        for tensor in tensors_in(graph):
            data = tensor.__dict__.get("raw_data")
            if data is None or len(data) < threshold:
                continue
            file.write(bytes(-at % ALIGNMENT))
            at += -at % ALIGNMENT
            file.write(data)
            about = {"location": os.path.basename(path), "offset": str(at), "length": str(len(data))}
            tensor.external_data = [StringStringEntryProto(key=key, value=value) for key, value in about.items()]
            tensor.data_location = EXTERNAL
            del tensor.__dict__["raw_data"]
            at += len(data)
    return at
