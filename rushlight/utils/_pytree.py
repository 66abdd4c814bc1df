"""torch's private name of `rushlight.utils.pytree`, which programs import nevertheless."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rushlight.base.errors import not_implemented_error, type_error, value_error
from rushlight.base.pytree import *  # noqa: F403
from rushlight.base.pytree import KINDS as SUPPORTED_NODES
from rushlight.base.pytree import (  # noqa: F401  # torch's names
    LEAF,
    Context,
    GetAttrKey,
    MappingKey,
    SequenceKey,
    TreeSpec,
    _broadcast_to_and_flatten,
    chosen_by,
    register_pytree_node,
    tree_leaves,
    tree_unflatten,
)
from rushlight.base.pytree import tree_is_leaf as _is_leaf  # noqa: F401


def _register_pytree_node(
    cls: type, flatten_fn: Callable, unflatten_fn: Callable, to_str_fn: Any = None, maybe_from_str_fn: Any = None,
    **options: Any,
) -> None:  # fmt: skip
    """`register_pytree_node`, with two extra arguments that are ignored."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _dict_flatten(d: dict) -> tuple[list, list]:
    """(values, keys): the children and the context."""
    return list(d.values()), list(d.keys())


def _dict_unflatten(values: Iterable, context: list) -> dict:
    """The dict with these values and keys."""
    return dict(zip(context, values))


def _dict_flatten_with_keys(d: dict) -> tuple[list[tuple[Any, Any]], list]:
    """(key, value) pairs, and the keys."""
    return [(MappingKey(k), v) for k, v in d.items()], list(d.keys())


def _list_flatten(d: list) -> tuple[list, None]:
    """(items, None): the children and the context."""
    return d, None


def _list_flatten_with_keys(d: Iterable) -> tuple[list[tuple[Any, Any]], None]:
    """(index, item) pairs, and None."""
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


def _list_unflatten(values: Iterable, context: Any) -> list:
    """The list of these items."""
    return list(values)


def _get_node_type(tree: Any) -> type:
    """The key of a container in `SUPPORTED_NODES`."""
    return type(tree)


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list:
    """The leaves of all arguments of a call, positional ones first."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_leaves(tree)]


def map_only(type_or_types_or_pred: Any, /) -> Callable:
    """A decorator: the function is called for the selected leaves, and others are returned unchanged."""
    chosen = chosen_by(type_or_types_or_pred)

    def limited(func: Callable) -> Callable:
        return lambda leaf: func(leaf) if chosen(leaf) else leaf

    return limited


# -- containers of each class ----------------------------------------------------------------------

_tuple_flatten_with_keys = _list_flatten_with_keys
_ordereddict_flatten, _ordereddict_flatten_with_keys = _dict_flatten, _dict_flatten_with_keys


def _tuple_flatten(d: tuple) -> tuple[list, None]:
    """(items, None): the children and the context."""
    return list(d), None


def _tuple_unflatten(values: Iterable, context: Any) -> tuple:
    """The tuple of these items."""
    return tuple(values)


def _namedtuple_flatten(d: Any) -> tuple[list, type]:
    """(fields, class): the children and the context."""
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], type]:
    """(field, value) pairs, and the class."""
    return [(GetAttrKey(field), getattr(d, field)) for field in d._fields], type(d)


def _namedtuple_unflatten(values: Iterable, context: Any) -> Any:
    """The named tuple of the class `context` with these fields."""
    return context(*values)


def _ordereddict_unflatten(values: Iterable, context: list) -> OrderedDict:
    """The dict with these values and keys."""
    return OrderedDict(zip(context, values))


_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten


def _defaultdict_flatten(d: defaultdict) -> tuple[list, list]:
    """(values, [default factory, keys]): the children and the context."""
    return list(d.values()), [d.default_factory, list(d.keys())]


def _defaultdict_flatten_with_keys(d: defaultdict) -> tuple[list[tuple[Any, Any]], list]:
    """(key, value) pairs, and [default factory, keys]."""
    pairs, keys = _dict_flatten_with_keys(d)
    return pairs, [d.default_factory, keys]


def _defaultdict_unflatten(values: Iterable, context: list) -> defaultdict:
    """The dict with these values."""
    factory, keys = context
    return defaultdict(factory, zip(keys, values))


def _deque_flatten(d: deque) -> tuple[list, int | None]:
    """(items, maximum length): the children and the context."""
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: deque) -> tuple[list[tuple[Any, Any]], int | None]:
    """(index, item) pairs, and the maximum length."""
    return _list_flatten_with_keys(d)[0], d.maxlen


def _deque_unflatten(values: Iterable, context: Any) -> deque:
    """The deque of these items."""
    return deque(values, maxlen=context)


def is_namedtuple_class(cls: type) -> bool:
    """Whether this is a class of named tuples."""
    fields = getattr(cls, "_fields", None)
    named = isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple)
    return named and callable(getattr(cls, "_make", None))


def is_namedtuple(obj: Any) -> bool:
    """Whether this is a named tuple, or a class of named tuples."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether this is a named tuple."""
    return is_namedtuple_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls: type) -> bool:
    """Whether this is a class of tuples with names that is written in C, such as `time.struct_time`."""
    counts = (getattr(cls, f"n_{name}", None) for name in ("fields", "sequence_fields"))
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and all(isinstance(count, int) for count in counts)


def is_structseq(obj: Any) -> bool:
    """Whether this is an instance of such a class, or the class itself."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj: Any) -> bool:
    """Whether this is an instance of such a class."""
    return is_structseq_class(type(obj))


# -- registration ----------------------------------------------------------------------------------


class ConstantNode:
    """The context of an instance of a class from `register_constant`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantNode) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


CONSTANT_NODES: set[type] = set()


def register_constant(cls: type) -> None:
    """Let instances of `cls` be containers without leaves, which belong to a tree's structure. TypeError for a class
    without its own `__eq__` and `__hash__`."""
    if cls.__eq__ is object.__eq__ or cls.__hash__ is None:
        missing = "__eq__" if cls.__eq__ is object.__eq__ else "__hash__"
        raise type_error(f"register_constant(cls) expects `cls` to have a non-default `{missing}` implementation.")
    register_pytree_node(cls, lambda x: ([], ConstantNode(x)), lambda _, context: context.value)
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether `register_constant` was called for the class."""
    return cls in CONSTANT_NODES


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Let instances of a dataclass be containers. Children: the fields `field_names`; by default the constructor's
    fields without `drop_field_names`."""
    if not dataclasses.is_dataclass(cls):
        raise type_error(f"Only dataclasses can be registered: {cls} is none.")
    dropped = drop_field_names or []
    names = field_names or [f.name for f in dataclasses.fields(cls) if f.init and f.name not in dropped]

    def flatten(x: Any) -> tuple[list, list]:
        kept = [name for name in names if getattr(x, name) is not None]
        absent = [name for name in names if name not in kept]
        return [getattr(x, name) for name in kept], [kept, absent]

    def unflatten(values: Iterable, context: list) -> Any:
        kept, absent = context
        return cls(**dict(zip(kept, values)), **dict.fromkeys(absent))

    def flatten_with_keys(x: Any) -> tuple[list, list]:
        values, context = flatten(x)
        return [(GetAttrKey(k), v) for k, v in zip(context[0], values)], context

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys)


def _deregister_pytree_node(cls: type) -> None:
    """Undo `register_pytree_node`."""
    SUPPORTED_NODES.pop(cls, None)
    CONSTANT_NODES.discard(cls)


# -- structures ------------------------------------------------------------------------------------

PyTreeSpec = TreeSpec


def treespec_leaf() -> TreeSpec:
    """The structure of a single leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of trees with these structures."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Mapping | Iterable = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dict of trees with these structures."""
    children = dict(mapping, **kwargs)
    return TreeSpec(dict, list(children), list(children.values()))


class Star:
    """The text of a leaf in `treespec_pprint`."""

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree with this structure, with * for leaves."""
    return repr(tree_unflatten([Star()] * treespec.num_leaves, treespec))


NAMES_IN_FILES: dict[str, type] = {
    "builtins.tuple": tuple,
    "builtins.list": list,
    "builtins.dict": dict,
    "collections.OrderedDict": OrderedDict,
    "collections.deque": deque,
}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The structure as JSON, in torch's format. NotImplementedError for other containers than tuples, lists, dicts and
    deques."""
    if protocol not in (None, 1):
        raise value_error(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((1, as_json(treespec)))


def as_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    name = next((name for name, cls in NAMES_IN_FILES.items() if cls is spec.type), None)
    if name is None:
        raise not_implemented_error(
            f"No registered serialization name for {spec.type} found.", "tuples, lists, dicts and deques have one"
        )
    children = [as_json(child) for child in spec.children_specs]
    return {"type": name, "context": json.dumps(spec.context), "children_spec": children}


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure from the result of `treespec_dumps`."""
    protocol, written = json.loads(serialized)
    if protocol != 1:
        raise value_error(f"Unknown protocol {protocol}. Available protocols: [1]")
    return from_json(written)


def from_json(written: dict[str, Any]) -> TreeSpec:
    if written["type"] is None:
        return LEAF
    if written["type"] not in NAMES_IN_FILES:
        raise not_implemented_error(f"Deserializing {written['type']} in pytree is not registered.")
    children = [from_json(child) for child in written["children_spec"]]
    return TreeSpec(NAMES_IN_FILES[written["type"]], json.loads(written["context"]), children)


pytree_to_str, str_to_pytree = treespec_dumps, treespec_loads
