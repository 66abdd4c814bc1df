"""ONNX's messages in protobuf's wire format, read and written without a package.

A file is a `ModelProto`. `FIELDS` has each message's fields: number, name, kind. A message is an object with an
attribute per field; absent fields have protobuf's defaults, and None for an absent message.

>>> from rushlight.onnx.messages import ModelProto, NodeProto, read, written
>>> node = NodeProto(op_type="Add", input=["x", "y"], output=["z"])
>>> read(written(node), NodeProto)
NodeProto(input=['x', 'y'], output=['z'], op_type='Add')
>>> node.has("domain"), node.domain
(False, '')
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rushlight.serialization.archive import Damaged

# `number name kind`. Kinds: int (signed), uint, float, double, str, bytes, data (bytes, not copied), or a message.
# `kind*` is a list; `kind[]` is an array, which is written packed.
FIELDS = """
ModelProto: 1 ir_version int, 2 producer_name str, 3 producer_version str, 4 domain str, 5 model_version int,
    6 doc_string str, 7 graph GraphProto, 8 opset_import OperatorSetIdProto*, 14 metadata_props StringStringEntryProto*,
    20 training_info TrainingInfoProto*, 25 functions FunctionProto*
OperatorSetIdProto: 1 domain str, 2 version int
StringStringEntryProto: 1 key str, 2 value str
TrainingInfoProto: 1 initialization GraphProto, 2 algorithm GraphProto,
    3 initialization_binding StringStringEntryProto*, 4 update_binding StringStringEntryProto*
GraphProto: 1 node NodeProto*, 2 name str, 5 initializer TensorProto*, 10 doc_string str, 11 input ValueInfoProto*,
    12 output ValueInfoProto*, 13 value_info ValueInfoProto*, 14 quantization_annotation TensorAnnotation*,
    15 sparse_initializer SparseTensorProto*, 16 metadata_props StringStringEntryProto*
TensorAnnotation: 1 tensor_name str, 2 quant_parameter_tensor_names StringStringEntryProto*
NodeProto: 1 input str*, 2 output str*, 3 name str, 4 op_type str, 5 attribute AttributeProto*, 6 doc_string str,
    7 domain str, 8 overload str, 9 metadata_props StringStringEntryProto*
AttributeProto: 1 name str, 2 f float, 3 i int, 4 s bytes, 5 t TensorProto, 6 g GraphProto, 7 floats float*,
    8 ints int*, 9 strings bytes*, 10 tensors TensorProto*, 11 graphs GraphProto*, 13 doc_string str, 14 tp TypeProto,
    15 type_protos TypeProto*, 20 type int, 21 ref_attr_name str, 22 sparse_tensor SparseTensorProto,
    23 sparse_tensors SparseTensorProto*
FunctionProto: 1 name str, 4 input str*, 5 output str*, 6 attribute str*, 7 node NodeProto*, 8 doc_string str,
    9 opset_import OperatorSetIdProto*, 10 domain str, 11 attribute_proto AttributeProto*,
    12 value_info ValueInfoProto*, 13 overload str, 14 metadata_props StringStringEntryProto*
TensorProto: 1 dims int*, 2 data_type int, 3 segment Segment, 4 float_data float[], 5 int32_data int[],
    6 string_data bytes*, 7 int64_data int[], 8 name str, 9 raw_data data, 10 double_data double[],
    11 uint64_data uint[], 12 doc_string str, 13 external_data StringStringEntryProto*, 14 data_location int,
    16 metadata_props StringStringEntryProto*
Segment: 1 begin int, 2 end int
SparseTensorProto: 1 values TensorProto, 2 indices TensorProto, 3 dims int*
ValueInfoProto: 1 name str, 2 type TypeProto, 3 doc_string str, 4 metadata_props StringStringEntryProto*
TypeProto: 1 tensor_type TensorType, 4 sequence_type SequenceType, 5 map_type MapType, 6 denotation str,
    7 opaque_type OpaqueType, 8 sparse_tensor_type TensorType, 9 optional_type SequenceType
TensorType: 1 elem_type int, 2 shape TensorShapeProto
SequenceType: 1 elem_type TypeProto
MapType: 1 key_type int, 2 value_type TypeProto
OpaqueType: 1 domain str, 2 name str
TensorShapeProto: 1 dim Dimension*
Dimension: 1 dim_value int, 2 dim_param str, 3 denotation str
"""

# Limits of a file, checked before memory is taken.
MAX_NESTING = 100  # messages in messages: protobuf's own limit
MAX_MESSAGES = 200_000  # each takes 0.5 to 1.5 kB and 10 us until the module exists
MAX_ITEMS = 2**20  # strings, numbers and messages in lists, in all
MAX_NUMBERS = 2**24  # numbers of one to ten bytes in one tensor; larger tensors are raw data
VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5  # wire types
DEFAULTS: dict[str, Any] = {"int": 0, "uint": 0, "float": 0.0, "double": 0.0, "str": "", "bytes": b"", "data": b""}
FIXED = {"float": (FOUR_BYTES, "<f4"), "double": (EIGHT_BYTES, "<f8")}


class Field(NamedTuple):
    """One field: `kind` is a kind of FIELDS without its mark, `many` the mark: "", "*" or "[]"."""

    number: int
    name: str
    kind: str
    many: str


class Message:
    """The base of all messages; keyword arguments set fields."""

    fields: ClassVar[dict[int, Field]] = {}
    names: ClassVar[dict[str, Field]] = {}

    def __init__(self, **values: Any):
        for name, value in values.items():
            if name not in self.names:
                raise TypeError(f"{type(self).__name__} has no field {name!r}: its fields are {', '.join(self.names)}")
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """The default of a field that is not set; a new list is kept, so that programs can append to it."""
        field = type(self).names.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        if field.many == "*":
            made: list[Any] = []
            self.__dict__[name] = made
            return made
        return np.zeros(0, number_type(field.kind)) if field.many else DEFAULTS.get(field.kind)

    def has(self, name: str) -> bool:
        """Whether the field is set."""
        return name in self.__dict__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and written(self) == written(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        set_fields = (name for name in self.names if name in self.__dict__)
        parts = (f"{name}={shortened(self.__dict__[name])}" for name in set_fields)
        return f"{type(self).__name__}({', '.join(parts)})"


def shortened(value: Any) -> str:
    """`repr` of a field's value in at most 200 characters; long lists are not built."""
    if isinstance(value, memoryview):
        return f"<{value.nbytes} bytes>"
    if isinstance(value, (list, bytes)) and len(value) > 20:
        return f"<{len(value)} {'bytes' if isinstance(value, bytes) else 'items'}>"
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."


def message_types() -> dict[str, type[Message]]:
    """{name: class} of FIELDS."""
    found = {}
    for line in FIELDS.replace("\n    ", " ").strip().splitlines():
        name, _, rest = line.partition(": ")
        fields = [parsed(text) for text in rest.split(", ")]
        members = {"fields": {f.number: f for f in fields}, "names": {f.name: f for f in fields}}
        found[name] = type(name, (Message,), {**members, "__module__": __name__, "__doc__": f"ONNX's {name}: {rest}"})
    return found


def parsed(text: str) -> Field:
    """`5 attribute AttributeProto*` as a Field."""
    number, name, kind = text.split()
    many = "[]" if kind.endswith("[]") else "*" if kind.endswith("*") else ""
    return Field(int(number), name, kind.removesuffix(many), many)


TYPES = message_types()
ModelProto, GraphProto, NodeProto = TYPES["ModelProto"], TYPES["GraphProto"], TYPES["NodeProto"]
AttributeProto, TensorProto, SparseTensorProto = (
    TYPES["AttributeProto"],
    TYPES["TensorProto"],
    TYPES["SparseTensorProto"],
)
FunctionProto, ValueInfoProto, TypeProto = TYPES["FunctionProto"], TYPES["ValueInfoProto"], TYPES["TypeProto"]
TensorType, SequenceType, MapType = TYPES["TensorType"], TYPES["SequenceType"], TYPES["MapType"]
TensorShapeProto, Dimension = TYPES["TensorShapeProto"], TYPES["Dimension"]
OperatorSetIdProto, StringStringEntryProto = TYPES["OperatorSetIdProto"], TYPES["StringStringEntryProto"]


def number_type(kind: str) -> str:
    """NumPy's dtype of an array field."""
    return FIXED[kind][1] if kind in FIXED else "<i8" if kind == "int" else "<u8"


# -- reading ---------------------------------------------------------------------------------------


class Reader:
    """Reads messages from one buffer, within the limits of a file. `without`: names of fields that are skipped."""

    def __init__(self, without: Collection[str] = ()):
        self.without = frozenset(without)
        self.messages = self.items = 0

    def message(self, data: memoryview, kind: type[Message], depth: int = 0) -> Message:
        """The message of class `kind` in `data`."""
        self.messages += 1
        if self.messages > MAX_MESSAGES:
            raise Damaged(f"the file has over {MAX_MESSAGES:,} messages (nodes, attributes, tensors, types)")
        if depth > MAX_NESTING:
            raise Damaged(f"messages are nested over {MAX_NESTING} deep")
        made = kind()
        at, end, fields = 0, len(data), kind.fields
        while at < end:
            key, at = varint(data, at)
            wire, value, at = wire_value(data, at, key & 7)
            field = fields.get(key >> 3)
            if field is not None and field.name not in self.without:
                self.store(made.__dict__, field, wire, value, depth)
            elif not key >> 3:
                raise Damaged(f"a {kind.__name__} has a field of number 0: this is not an ONNX file")
        for name, pieces in made.__dict__.items():
            if kind.names[name].many == "[]":
                made.__dict__[name] = np.concatenate(pieces)
        return made

    def store(self, values: dict[str, Any], field: Field, wire: int, value: Any, depth: int) -> None:
        """Put one value of the wire into `values`; lists and arrays grow."""
        name, kind, many = field.name, field.kind, field.many
        if many and kind not in TYPES and wire == LENGTH and kind not in DEFAULTS_OF_TEXT:
            numbers = packed_numbers(value, kind, field)
            if many == "*":
                self.count_items(len(numbers))
                values.setdefault(name, []).extend(numbers.tolist())
            else:
                values.setdefault(name, []).append(numbers)
            return
        if many:
            self.count_items(1)
        found = self.single(field, wire, value, depth)
        if many == "[]":
            values.setdefault(name, []).append(np.array([found], number_type(kind)))
        elif many:
            values.setdefault(name, []).append(found)
        else:
            values[name] = found

    def count_items(self, count: int) -> None:
        """Count items of lists; too many are refused."""
        self.items += count
        if self.items > MAX_ITEMS:
            raise Damaged(f"the file has over {MAX_ITEMS:,} items in lists; large tensors must be raw data")

    def single(self, field: Field, wire: int, value: Any, depth: int) -> Any:
        """One value of the field's kind."""
        kind = field.kind
        if wire != wire_type(kind):
            raise Damaged(f"the field {field.name} has wire type {wire}, where a {kind} has {wire_type(kind)}")
        if kind == "str":
            return text_of(value, field)
        if kind == "int":
            return value - (1 << 64) if value >> 63 else value
        if kind in TYPES:
            return self.message(value, TYPES[kind], depth + 1)
        if kind in FIXED:
            return struct.unpack("<f" if kind == "float" else "<d", value)[0]
        return bytes(value) if kind == "bytes" else value


DEFAULTS_OF_TEXT = ("str", "bytes", "data")


def wire_type(kind: str) -> int:
    if kind in ("int", "uint"):
        return VARINT
    return FIXED[kind][0] if kind in FIXED else LENGTH


def text_of(value: memoryview, field: Field) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise Damaged(f"the field {field.name} is not UTF-8") from None


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """(an unsigned integer of at most 64 bits, the position after it)."""
    value = shift = 0
    try:
        while (byte := data[at]) > 127:
            value |= (byte & 127) << shift
            shift += 7
            at += 1
            if shift > 63:
                raise Damaged("an integer has over ten bytes: this is not an ONNX file")
    except IndexError:
        raise Damaged("the file ends inside an integer") from None
    return (value | byte << shift) & 0xFFFFFFFFFFFFFFFF, at + 1


def wire_value(data: memoryview, at: int, wire: int) -> tuple[int, Any, int]:
    """(wire type, the integer or the bytes, the position after them)."""
    if wire == VARINT:
        return wire, *varint(data, at)
    if wire == LENGTH:
        size, at = varint(data, at)
    elif wire in (EIGHT_BYTES, FOUR_BYTES):
        size = 8 if wire == EIGHT_BYTES else 4
    else:
        raise Damaged(f"a field has wire type {wire}, which ONNX does not use: this is not an ONNX file")
    if size > len(data) - at:
        raise Damaged(f"a field of {size:,} bytes stands in {len(data) - at:,} bytes: the file is truncated or damaged")
    return wire, data[at : at + size], at + size


def packed_numbers(data: memoryview, kind: str, field: Field) -> np.ndarray:
    """The numbers of a packed field, as an array of `number_type(kind)`."""
    if kind in FIXED:
        dtype = np.dtype(FIXED[kind][1])
        if len(data) % dtype.itemsize:
            raise Damaged(f"the field {field.name} has {len(data)} bytes, no multiple of {dtype.itemsize}")
        return np.frombuffer(data, dtype)
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 128)
    if len(raw) and (not len(ends) or ends[-1] != len(raw) - 1):
        raise Damaged(f"the field {field.name} ends inside an integer")
    if len(ends) > MAX_NUMBERS:
        raise Damaged(f"the field {field.name} has {len(ends):,} integers; a large tensor must be raw data")
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    if len(ends) and (ends - starts).max() > 9:
        raise Damaged(f"the field {field.name} has an integer of over ten bytes")
    out = np.zeros(len(ends), np.uint64)
    for byte in range(10):  # the byte-th byte of each integer that has one
        at = starts + byte
        there = at <= ends
        out[there] |= (raw[at[there]] & 127).astype(np.uint64) << np.uint64(7 * byte)
    return out.view(number_type(kind))


def read(
    data: bytes | bytearray | memoryview | np.ndarray, kind: type[Message] = ModelProto, without: Collection[str] = ()
) -> Any:
    """The message in `data`, a `ModelProto` by default.

    `without`: names of fields that are skipped, such as "value_info". Raw data of tensors is a memoryview of `data`.
    Raises `Damaged` for bytes that are not such a message, and for files over the limits of this module.
    """
    buffer: Any = data
    return Reader(without).message(memoryview(buffer).cast("B"), kind)


# -- writing ---------------------------------------------------------------------------------------


def written(message: Message) -> bytes:
    """The bytes of a message, with its fields in the order of their numbers. Fields that are not set are left out."""
    parts: list[Any] = []
    append(parts, message)
    return b"".join(parts)


def append(parts: list[Any], message: Message) -> int:
    """Append the bytes of a message to `parts`; the number of bytes."""
    total = 0
    for number in sorted(message.fields):
        field = message.fields[number]
        value = message.__dict__.get(field.name)
        if value is None:
            continue
        if field.many == "[]":
            if len(value):
                total += with_length(parts, field, packed(value, field.kind))
            continue
        for item in value if field.many else (value,):
            total += append_item(parts, field, item)
    return total


def append_item(parts: list[Any], field: Field, value: Any) -> int:
    """Append one value with its key; the number of bytes."""
    kind = field.kind
    if kind in TYPES:
        inner: list[Any] = []
        size = append(inner, value)
        head = integer(field.number << 3 | LENGTH) + integer(size)
        parts.append(head)
        parts.extend(inner)
        return len(head) + size
    if kind in DEFAULTS_OF_TEXT:
        return with_length(parts, field, value.encode() if isinstance(value, str) else value)
    if kind in FIXED:
        body = struct.pack("<f" if kind == "float" else "<d", value)
    else:
        body = integer(int(value))
    parts.append(integer(field.number << 3 | wire_type(kind)) + body)
    return len(parts[-1])


def with_length(parts: list[Any], field: Field, data: Any) -> int:
    size = data.nbytes if isinstance(data, (memoryview, np.ndarray)) else len(data)
    head = integer(field.number << 3 | LENGTH) + integer(size)
    parts += (head, data)
    return len(head) + size


def packed(values: Any, kind: str) -> bytes:
    if kind in FIXED:
        return np.asarray(values, FIXED[kind][1]).tobytes()
    return b"".join(integer(int(value)) for value in values)


def integer(value: int) -> bytes:
    """A varint: seven bits a byte, low bits first; a negative number as its 64 bits."""
    value &= 0xFFFFFFFFFFFFFFFF
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
