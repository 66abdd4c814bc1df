"""torch's private name of `rushlight.utils.pytree`, which programs import all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rushlight.base.pytree import *  # noqa: F403
from rushlight.base.pytree import KINDS as SUPPORTED_NODES  # noqa: F401
from rushlight.base.pytree import (  # noqa: F401  # torch's names
    Context,
    MappingKey,
    SequenceKey,
    _broadcast_to_and_flatten,
    register_pytree_node,
)


def _register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    **options: Any,
) -> None:
    """`register_pytree_node`, with two arguments that are without effect."""
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


def _list_flatten_with_keys(d: list) -> tuple[list[tuple[Any, Any]], None]:
    """(index, item) pairs, and None."""
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


def _list_unflatten(values: Iterable, context: Any) -> list:
    """The list of these items."""
    return list(values)


def _get_node_type(tree: Any) -> type:
    """The key of a container in `SUPPORTED_NODES`."""
    return type(tree)
