"""The JSON of a .pt2 archive: unions, dtypes, numbers, and the structure of arguments and results.

The names come from torch's schema of exported programs, version 8."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rushlight.base import dtypes
from rushlight.core.tensor import Tensor

MAJOR, MINOR = 8, 20
MAX_JSON = 2**25  # bytes of a record of JSON
MAX_BRACKETS = 3 * 10**6  # lists and objects in it: each takes about 64 bytes
MAX_DEPTH = 50  # structures inside each other

# ScalarType of the schema -> dtype
DTYPES = {
    1: dtypes.uint8, 2: dtypes.int8, 3: dtypes.int16, 4: dtypes.int32, 5: dtypes.int64, 6: dtypes.float16,
    7: dtypes.float32, 8: dtypes.float64, 10: dtypes.complex64, 11: dtypes.complex128, 12: dtypes.bool_,
    13: dtypes.bfloat16, 28: dtypes.uint16, 34: dtypes.uint32, 35: dtypes.uint64,
}  # fmt: skip
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
FLOATS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
STRIDED, CPU = 7, {"type": "cpu", "index": None}


class Malformed(Exception):
    """JSON that is not of the schema."""


def parsed(text: str) -> Any:
    """The value of a text in JSON; Malformed for other texts, and for long ones."""
    if text.count("[") + text.count("{") > MAX_BRACKETS:
        raise Malformed("its JSON has too many lists and objects")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"its JSON is damaged: {str(error)[:100]}") from None


def member(union: Any) -> tuple[str, Any]:
    """(kind, value) of a union: an object with one key."""
    if not isinstance(union, dict) or len(union) != 1:
        raise Malformed("a union has one kind")
    ((kind, value),) = union.items()
    return kind, value


def of_type(value: Any, kind: Any, what: str) -> Any:
    """The value, if it has a type; a bool is not an integer here."""
    if not isinstance(value, kind) or isinstance(value, bool) and kind is int:
        raise Malformed(f"{what} is a {type(value).__name__}")
    if kind is int and not -(2**63) <= value < 2**63:
        raise Malformed(f"{what} has more than 64 bits")
    return value


def at(value: Any, *path: str) -> Any:
    """A part of objects inside objects."""
    for name in path:
        if not isinstance(value, dict) or name not in value:
            raise Malformed(f"the part {'.'.join(path)} is missing")
        value = value[name]
    return value


def rows(value: Any, *path: str) -> list:
    """A list at a place."""
    return of_type(at(value, *path), list, ".".join(path))


def size(value: Any) -> int | None:
    """A size; None for an expression of dynamic sizes."""
    kind, inner = member(value)
    if kind == "as_int":
        return of_type(inner, int, "a size")
    if kind == "as_expr":
        return None
    raise Malformed(f"a size of the kind {kind}")


def dtype_of(number: Any) -> dtypes.dtype:
    """The dtype of a number of the schema."""
    if not isinstance(number, int) or number not in DTYPES:
        raise NotImplementedError(f"tensors of ScalarType {number} are not supported")
    return DTYPES[number]


def number(value: Any) -> float:
    """A float, which may be infinite."""
    if isinstance(value, str) and value in FLOATS:
        return FLOATS[value]
    return float(of_type(value, (int, float), "a float"))


def written_number(value: float) -> Any:
    """A float as JSON."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


# -- structures: torch's tree specs ------------------------------------------------------------------


class Leaf:
    """A tensor, or another value that is not a container."""


LEAF = Leaf()


class Structure(NamedTuple):
    """A container: its kind, the keys of a dict, and its parts."""

    kind: str
    keys: tuple | None
    parts: tuple[Any, ...]


KINDS: dict[str, Callable[[Any], Any]] = {
    "builtins.tuple": tuple, "builtins.list": list, "builtins.dict": dict, "collections.OrderedDict": OrderedDict,
    "collections.namedtuple": tuple,
}  # fmt: skip
DICTS = ("builtins.dict", "collections.OrderedDict")


def structure(text: Any) -> Any:
    """A structure of the text of a tree spec."""
    found = parsed(of_type(text, str, "a tree spec"))
    if not isinstance(found, list) or len(found) != 2 or found[0] != 1:
        raise Malformed("a tree spec of another version")
    return part(found[1], 0)


def part(spec: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise Malformed("its structures are nested too deeply")
    kind = at(spec, "type")
    if kind is None:
        return LEAF
    if kind not in KINDS:
        raise NotImplementedError(f"arguments and results of the type {str(kind)[:100]} are not supported")
    parts = tuple([part(each, depth + 1) for each in rows(spec, "children_spec")])
    keys = parsed(of_type(at(spec, "context"), str, "a context")) if kind in DICTS else None
    if keys is not None and (not isinstance(keys, list) or len(keys) != len(parts)):
        raise Malformed("a dict has a key for each part")
    if keys is not None and not all(isinstance(key, (str, int)) for key in keys):
        raise Malformed("the keys of a dict are texts or integers")
    return Structure(kind, None if keys is None else tuple(keys), parts)


def spec_text(value: Any) -> str:
    """The tree spec of a value: a container, or a leaf."""
    return json.dumps([1, spec_of(value)])


def spec_of(value: Any) -> dict[str, Any]:
    if type(value) in (tuple, list, dict, OrderedDict):
        named = isinstance(value, dict)
        kind = "collections.OrderedDict" if isinstance(value, OrderedDict) else f"builtins.{type(value).__name__}"
        parts = [spec_of(each) for each in (value.values() if named else value)]
        return {"type": kind, "context": json.dumps([*value] if named else None), "children_spec": parts}
    return {"type": None, "context": None, "children_spec": []}


def leaves(value: Any) -> Iterator[Any]:
    """The values inside containers, in order."""
    if type(value) in (tuple, list, dict, OrderedDict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value


def flattened(value: Any, spec: Any) -> Iterator[Any]:
    """The leaves of a value that has a structure. TypeError if it has another one."""
    if not isinstance(spec, Structure):
        yield value
        return
    if spec.keys is not None:
        if not isinstance(value, dict) or {*value} != {*spec.keys}:
            raise TypeError(f"the program takes a dict with the keys {', '.join(map(str, spec.keys))}")
        inside = [value[key] for key in spec.keys]
    else:
        if isinstance(value, Tensor) or not isinstance(value, (tuple, list)) or len(value) != len(spec.parts):
            raise TypeError(f"the program takes a {spec.kind.rpartition('.')[2]} of {len(spec.parts)} values here")
        inside = [*value]
    for each, inner in zip(inside, spec.parts):
        yield from flattened(each, inner)


def unflattened(values: Iterator[Any], spec: Any) -> Any:
    """A value of a structure, from its leaves."""
    if not isinstance(spec, Structure):
        return next(values)
    parts = [unflattened(values, inner) for inner in spec.parts]
    if spec.keys is not None:
        return KINDS[spec.kind](zip(spec.keys, parts))
    return KINDS[spec.kind](parts)
