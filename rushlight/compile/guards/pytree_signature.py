"""Nested arguments and results: tensors in tuples, lists, dicts, named tuples and dataclass objects."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

from rushlight.base.errors import NoArray
from rushlight.compile.guards.guard_predicates import PLAIN
from rushlight.core.node import Node, tick
from rushlight.core.tensor import Tensor


class Frame(NamedTuple):
    """A container without its elements: its class, and the keys or field names of the elements."""

    kind: type
    names: tuple = ()

    def filled(self, inside: list) -> Any:
        """A container of this class with the elements `inside`."""
        kind, names = self
        if issubclass(kind, tuple):
            return kind._make(inside) if hasattr(kind, "_make") else kind(inside)
        if kind is OrderedDict:
            return OrderedDict(zip(names, inside))
        if hasattr(kind, "__post_init__") or issubclass(kind, dict):
            fields = kind.__dataclass_fields__  # type: ignore[attr-defined]
            return kind(**{k: v for k, v in zip(names, inside) if k in fields and fields[k].init})
        made = object.__new__(kind)
        for name, value in zip(names, inside):
            object.__setattr__(made, name, value)
        return made


def opened(value: Any) -> tuple[Frame, list] | None:
    """(frame, elements) of a tuple, an OrderedDict or a dataclass object that holds tensors; None for other values.

    A dataclass object without tensors is treated as a setting.
    """
    kind = type(value)
    if isinstance(value, tuple):
        return Frame(kind), list(value)
    if kind is OrderedDict:
        return Frame(kind, tuple(value)), list(value.values())
    if hasattr(kind, "__dataclass_fields__"):
        known = (
            vars(value)
            if hasattr(value, "__dict__")
            else {k: getattr(value, k) for k in kind.__dataclass_fields__ if hasattr(value, k)}
        )
        if any([isinstance(v, Tensor) for v in known.values()]):
            return Frame(kind, tuple(known)), list(known.values())
    return None


def signature(value: Any, flat: list[Any], others: list[Any]) -> Any:
    """The kind of an argument: a program applies to arguments with equal signatures.

    Appends the tensors to `flat`, and other objects to `others`.
    """
    if isinstance(value, Tensor):
        if value._overrides:  # a user's subclass of Tensor: a program would return plain tensors
            raise NoArray
        a, place = value._array, 0
        for t in flat:  # `place`: the index of the first tensor with the same array
            if t._array is a:
                break
            place += 1
        flat.append(value)
        node, own = value._node, value.__dict__
        # hooks may run inside the call and read state without guards
        if node is not None and node.hooks is not None:
            raise NoArray
        return (
            a.shape,
            a.dtype.num,
            a.flags.c_contiguous or a.strides,
            None if node is None else node.leaf,
            value._grad is None,
            place,
            attributes(own, others) if own else None,
        )
    if type(value) in (tuple, list):
        return (type(value), *[signature(v, flat, others) for v in value])
    if type(value) is dict:
        return (dict, *[(k, signature(v, flat, others)) for k, v in value.items()])
    if type(value) is slice:
        return (slice, *[signature(v, flat, others) for v in (value.start, value.stop, value.step)])
    if isinstance(value, PLAIN):  # repr() tells 0.0 from -0.0, and makes nan equal to itself
        return type(value), value if value and value == value else repr(value)
    found = opened(value)
    if found is not None:
        return (found[0], *[signature(v, flat, others) for v in found[1]])
    others.append(value)
    return type(value), id(value)


def attributes(own: dict, others: list[Any]) -> Any:
    """The signature of the attributes that a user has set on a tensor."""
    others += [v for v in own.values() if not isinstance(v, PLAIN)]
    return tuple([(k, repr(v) if isinstance(v, PLAIN) else id(v)) for k, v in own.items()])


def contents(value: Any) -> Iterator[Any]:
    """All elements of nested containers, with classes, keys and lengths: changes if an element is added or replaced."""
    if isinstance(value, (Tensor, PLAIN)):
        yield value
        if isinstance(value, Tensor):
            yield from (part for item in value.__dict__.items() for part in item)
        return
    if type(value) is dict:
        found: Any = (dict, *value), [*value.values()]
    else:
        found = ((list,), value) if type(value) is list else opened(value)
    if found is None:
        yield value
        return
    for part in found[0]:  # the class, and the names of the elements
        yield from part if isinstance(part, tuple) else (part,)
    yield len(found[1])
    for v in found[1]:
        yield from contents(v)


class SpentBackward(Node):
    """The node of a result whose backward ran inside the program: a second backward raises an error."""

    __slots__ = ()

    def __init__(self, shape: tuple):
        self.edges, self.saved, self.seq, self.shape, self.where = (), None, tick(), shape, None


def rebuilt(plan: Any, tensors: list[Tensor], arguments: list[Any]) -> Any:
    """The function's result, made from its plan: `tensors` by number, other values as in the traced run.

    A "placed" plan also puts tensors into lists and dicts: (container, key, plan).
    """
    kind, what = plan
    if kind == "tensor":
        i, spent = what
        if spent:
            tensors[i]._node = SpentBackward(tensors[i]._array.shape)
        return tensors[i]
    if kind == "argument":
        return arguments[what]
    if kind == "value":
        return what
    if kind == "placed":
        result, places = what
        for container, key, p in places:
            container[key] = rebuilt(p, tensors, arguments)
        return rebuilt(result, tensors, arguments)
    cls, parts = what
    inside = [rebuilt(p, tensors, arguments) for p in parts]
    return dict(zip(cls, inside)) if kind == "dict" else cls.filled(inside) if kind == "object" else cls(inside)


def planned(
    result: Any,
    arguments: list[Any],
    state: dict[int, Tensor],
    place: Callable[[Tensor], tuple[int, bool]],
    known: Container = (),
) -> Any:
    """The plan of a result. `place` numbers the tensors. TypeError for a value that cannot be recreated.

    `known`: ids of objects that existed before the run: the plan returns these objects themselves.
    """
    if isinstance(result, Tensor):
        for i, a in enumerate(arguments):
            if a is result:
                return "argument", i
        return ("value", result) if id(result) in state else ("tensor", place(result))
    if result is None or isinstance(result, (bool, int, float, complex, str, bytes)) or id(result) in known:
        return "value", result
    if type(result) in (tuple, list):
        return "list", (type(result), [planned(r, arguments, state, place, known) for r in result])
    if type(result) is dict:
        return "dict", (list(result), [planned(r, arguments, state, place, known) for r in result.values()])
    found = opened(result)
    if found is None:
        raise TypeError(f"returns a {type(result).__name__}")
    return "object", (found[0], [planned(r, arguments, state, place, known) for r in found[1]])
