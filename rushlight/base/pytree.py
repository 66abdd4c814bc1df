"""Trees of containers: nested tuples, lists and dicts as a flat list and a description of the structure, and back.

Leaves are objects that are not registered containers, such as None. Functions on nested containers of tensors flatten
their arguments, work on the list, and rebuild the containers.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any, NamedTuple

from rushlight.base.errors import type_error, value_error
from rushlight.base.size import Size

PyTree = Any
Context = Any
IsLeaf = Callable[[Any], bool] | None


class SequenceKey(NamedTuple):
    """An index in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, container: Any) -> Any:
        """The child at this key."""
        return container[self.idx]


class MappingKey(NamedTuple):
    """A key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, container: Any) -> Any:
        """The value of this key."""
        return container[self.key]


class GetAttrKey(NamedTuple):
    """An attribute, as of a namedtuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, container: Any) -> Any:
        """The attribute's value."""
        return getattr(container, self.name)


class Kind(NamedTuple):
    """A class of containers. `flatten`: container -> (children, context); `unflatten`: the inverse; `keys`: the keys of
    the children.
    """

    flatten_fn: Callable[[Any], tuple[Iterable, Context]]
    unflatten_fn: Callable[[Iterable, Context], Any]
    keys: Callable[[Any], Iterable] | None = None


def indices(tree: Any) -> Iterable:
    return map(SequenceKey, range(len(tree)))


def fields(tree: Any) -> Iterable:
    return map(GetAttrKey, tree._fields)


def mapping(make: Callable[[Iterable, Context], Any]) -> Kind:
    """Dicts and their subclasses; the context is the list of keys, in the dict's order."""
    return Kind(lambda d: (d.values(), list(d)), make, lambda d: map(MappingKey, d))


KINDS: dict[type, Kind] = {
    tuple: Kind(lambda t: (t, None), lambda leaves, _: tuple(leaves), indices),
    list: Kind(lambda t: (t, None), lambda leaves, _: list(leaves), indices),
    Size: Kind(lambda t: (t, None), lambda leaves, _: tuple(leaves), indices),  # for leaves that need not be ints
    dict: mapping(lambda leaves, keys: dict(zip(keys, leaves))),
    OrderedDict: mapping(lambda leaves, keys: OrderedDict(zip(keys, leaves))),
    defaultdict: Kind(
        lambda d: (d.values(), [d.default_factory, list(d)]),
        lambda leaves, context: defaultdict(context[0], zip(context[1], leaves)),
        lambda d: map(MappingKey, d),
    ),
    deque: Kind(lambda d: (d, d.maxlen), deque, indices),
}
# Named tuples: Python's classes take their fields as separate arguments, the classes of ops take one tuple.
NAMED = Kind(lambda t: (t, type(t)), lambda leaves, cls: cls(*leaves), fields)
RESULTS = Kind(lambda t: (t, type(t)), lambda leaves, cls: cls(tuple(leaves)), fields)


def register_pytree_node(
    cls: type, flatten_fn: Callable, unflatten_fn: Callable, *, serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None, from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:  # fmt: skip
    """Let instances of `cls` be containers: `flatten_fn(x) -> (children, context)`, `unflatten_fn(children, context) ->
    x`.

    `flatten_with_keys_fn(x) -> ([(key, child), ...], context)` names the children in paths. The arguments about
    serialization are accepted and ignored, since structures are not serialized. ValueError if the class is registered
    already.
    """
    if cls in KINDS:
        raise value_error(f"{cls} is already registered as pytree node.")
    keyed = flatten_with_keys_fn
    KINDS[cls] = Kind(
        flatten_fn, unflatten_fn, None if keyed is None else lambda tree: [key for key, _ in keyed(tree)[0]]
    )


def kind_of(tree: Any) -> Kind | None:
    """The Kind of a container; None for a leaf."""
    cls = tree.__class__
    found = KINDS.get(cls)
    if found is None and issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return NAMED if hasattr(cls, "_make") else RESULTS
    return found


class TreeSpec:
    """The structure of a tree: the class of the root, the context to rebuild it, and the specs of its children.

    `type` is None for a leaf. `num_leaves`, `num_nodes`, `num_children` are counts.
    """

    __slots__ = ("type", "context", "children_specs", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type: type | None, context: Context, children_specs: list[TreeSpec]):
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_children = len(children_specs)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in children_specs)
        self.num_leaves: int = 1 if type is None else sum(child.num_leaves for child in children_specs)

    def is_leaf(self) -> bool:
        """True for the structure of a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self.children_specs[index]

    def kind(self) -> Kind:
        """The Kind of this container."""
        assert self.type is not None, "a leaf is no container"
        return KINDS.get(self.type) or (NAMED if hasattr(self.type, "_make") else RESULTS)

    def unflatten(self, leaves: Iterable) -> PyTree:
        """The tree with this structure and these leaves. ValueError unless the number of leaves fits."""
        found = list(leaves)
        if len(found) != self.num_leaves:
            raise value_error(
                f"treespec.unflatten(leaves): `leaves` has length {len(found)} but the spec refers to a pytree "
                f"that holds {self.num_leaves} items ({self}).",
                "pass as many leaves as tree_flatten returned",
            )
        return self.filled(iter(found))

    def filled(self, leaves: Iterator) -> PyTree:
        if self.type is None:
            return next(leaves)
        return self.kind().unflatten_fn([child.filled(leaves) for child in self.children_specs], self.context)

    def flatten_up_to(self, tree: PyTree) -> list:
        """The subtrees of `tree` at the leaves of this structure. ValueError if the structures differ."""
        found: list = []
        self.collect(tree, found)
        return found

    def collect(self, tree: PyTree, into: list) -> None:
        if self.type is None:
            into.append(tree)
            return
        for child, spec in zip(self.matched(tree), self.children_specs):
            spec.collect(child, into)

    def matched(self, tree: PyTree) -> list:
        """The children of a container of this structure's class, in the structure's order."""
        kind = kind_of(tree)
        dicts = (dict, OrderedDict, defaultdict)
        if kind is None or not (type(tree) is self.type or (type(tree) in dicts and self.type in dicts)):
            raise value_error(f"Node type mismatch; expected {self.type}, but got {type(tree)}.")
        children, context = kind.flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise value_error(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if self.type not in dicts:
            if context != self.context and self.type is not deque:
                raise value_error(f"Node context mismatch for custom node type {self.type}.")
            return children
        keys = self.context[1] if self.type is defaultdict else self.context
        if set(keys) != set(tree):
            raise value_error(
                f"Node keys mismatch; missing key(s): {set(keys) - set(tree)}; extra key(s): {set(tree) - set(keys)}."
            )
        return [tree[key] for key in keys]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and (self.type, self.context, self.children_specs) == (
            other.type,
            other.context,
            other.children_specs,
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_nodes))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        parts = [child.__repr__(indent + 2) for child in self.children_specs]
        inside = f",\n{' ' * (indent + 2)}".join(parts)
        context = None if issubclass(self.type, tuple) else self.context
        return f"TreeSpec({self.type.__name__}, {context}, [{inside}])"


LEAF = TreeSpec(None, None, [])


def LeafSpec() -> TreeSpec:
    """The structure of a single leaf."""
    return LEAF


# -- flatten and unflatten -------------------------------------------------------------------------


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list, TreeSpec]:
    """The leaves from left to right, and the structure. `is_leaf(x)`: treat the container x as a leaf.

    >>> from rushlight.base.pytree import tree_flatten, tree_unflatten
    >>> leaves, form = tree_flatten({"a": (1, [2, 3]), "b": None})
    >>> leaves
    [1, 2, 3, None]
    >>> tree_unflatten([-1, -2, -3, -4], form)
    {'a': (-1, [-2, -3]), 'b': -4}
    """
    leaves: list = []
    return leaves, flattened(tree, leaves, is_leaf)


def flattened(tree: PyTree, leaves: list, is_leaf: IsLeaf) -> TreeSpec:
    kind = kind_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    children, context = kind.flatten_fn(tree)
    return TreeSpec(type(tree), context, [flattened(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The tree of this structure with these leaves: the inverse of `tree_flatten`."""
    if not isinstance(treespec, TreeSpec):
        raise type_error(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.",
            "pass the second result of tree_flatten",
        )
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list:
    """The leaves from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator:
    """The leaves from left to right."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if the tree is a leaf itself."""
    return kind_of(tree) is None or (is_leaf is not None and is_leaf(tree))


# -- leaf by leaf ----------------------------------------------------------------------------------


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """A tree with the same structure and the leaves func(leaf, ...); `rests` have that structure, too, with any object
    in place of each leaf.

    >>> from rushlight.base.pytree import tree_map
    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    leaves, form = tree_flatten(tree, is_leaf)
    return form.filled(iter(list(map(func, leaves, *[form.flatten_up_to(rest) for rest in rests]))))


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call func(leaf, ...) for its side effects, and return the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def chosen_by(what: Any) -> Callable[[Any], bool]:
    """A predicate for leaves from a class, several classes, or a predicate."""
    return what if callable(what) and not isinstance(what, type) else lambda leaf: isinstance(leaf, what)


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree with func(leaf) for leaves of these classes, or for which the predicate is true; other leaves are
    unchanged.
    """
    chosen = chosen_by(type_or_types_or_pred)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call func(leaf) for the selected leaves, and return the tree itself."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if pred is true for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if pred is true for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if pred is true for every leaf of these classes."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if pred is true for some leaf of these classes."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


# -- with paths ------------------------------------------------------------------------------------


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[tuple, Any]]:
    """[(path, leaf), ...]: a path is the list of keys that lead to the leaf; `keystr` formats it.

    >>> from rushlight.base.pytree import keystr, tree_leaves_with_path
    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": (1, 2)})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(paths(tree, (), is_leaf))


def paths(tree: PyTree, path: tuple, is_leaf: IsLeaf) -> Iterator[tuple[tuple, Any]]:
    kind = kind_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    if kind.keys is None:
        raise value_error(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}.",
            "pass flatten_with_keys_fn to register_pytree_node()",
        )
    for key, child in zip(kind.keys(tree), kind.flatten_fn(tree)[0]):
        yield from paths(child, (*path, key), is_leaf)


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    """([(path, leaf), ...], structure)."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """A tree with the same structure and the leaves func(path, leaf, ...)."""
    pairs, form = tree_flatten_with_path(tree, is_leaf)
    others = [form.flatten_up_to(rest) for rest in rests]
    return form.unflatten([func(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others)])


def keystr(kp: tuple) -> str:
    """A path as Python code to append to the name of the tree: ['a'][1]."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: tuple) -> Any:
    """The subtree at a path."""
    return reduce(lambda tree, key: key.get(tree), kp, obj)


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list | None:
    """One leaf of `tree` for each leaf of the structure; a leaf of `tree` applies to all leaves below it. None if the
    structures do not match.

    So in_dims=0 means a 0 for every tensor of the arguments.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.type is None:
        return None
    try:
        children = treespec.matched(tree)
    except ValueError:
        return None
    parts = [_broadcast_to_and_flatten(child, spec, is_leaf) for child, spec in zip(children, treespec.children_specs)]
    return None if None in parts else [leaf for part in parts for leaf in part or ()]


__all__ = [
    "GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "SequenceKey", "TreeSpec", "key_get", "keystr",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten",
]  # fmt: skip
