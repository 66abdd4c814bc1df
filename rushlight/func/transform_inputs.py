"""Shared by all transforms that differentiate a function: inputs as variables, and results without dead variables.

A variable is a new tensor on the input's memory, with a node of its own (`Start`), whose edge leads to the input's
node. So nested derivatives do not mix. When a transform ends, a walk through a result's graph tests whether the result
still depends on a leaf or on a variable of an outer transform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, value_error
from rushlight.base.pytree import TreeSpec, tree_flatten, tree_leaves, tree_map, tree_map_only, tree_structure
from rushlight.core.backward import grad
from rushlight.core.mode import mode, within
from rushlight.core.node import Node, Start
from rushlight.core.tensor import Tensor, from_array, writes_of
from rushlight.creation.factories import zeros_like
from rushlight.func.batching import Batch
from rushlight.func.forward_ad import cut, same_tangents

ArgNums = int | tuple[int, ...]


class Variables(within):
    """The variables of one derivative, open while the function runs. Ops inside are recorded, also in `no_grad` and
    `inference_mode`."""

    def __init__(self) -> None:
        super().__init__(grad=True, inference=-abs(mode().inference), derivative=self)
        # grad mode outside: whether results are recorded for outer derivatives
        self.outside = mode().grad
        self.starts: list[Start] = []

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self.changes = {}  # breaks a reference cycle
        for one in self.starts:
            one.open = False

    def fresh(self, x: Any) -> Tensor:
        """A variable on the memory of x. ValueError unless x is a tensor, RuntimeError for integers."""
        if not isinstance(x, Tensor):
            raise value_error(
                f"Thing passed to transform API must be Tensor, got {type(x)}", "make it a tensor: torch.tensor(...)"
            )
        dtypes.check_differentiable(x.dtype)
        if not x._dense:
            from rushlight.sparse.graph import SparseStart  # loaded with the first sparse tensor

            found = x.detach()
            found._node = SparseStart(x._node, tuple(x.shape))
        else:
            found = from_array(x._array)
            found._node, found._writes = Start(x._node, found._array.shape), writes_of(x)
            same_tangents(found, x)
        self.starts.append(found._node)
        return found

    def all_fresh(self, tree: Any) -> Any:
        """The tree with each leaf replaced by a variable."""
        return tree_map(self.fresh, tree)

    def reached(self, results: Iterable[Tensor]) -> bool:
        """Whether the results, or the values of batched results, depend on leaves or on variables of outer
        transforms."""
        return any([leads_out(one, self.starts) for t in results for one in at_each_level(t)])


def at_each_level(t: Tensor) -> Iterator[Tensor]:
    """The tensor; for a batched tensor also its values, level by level, which have nodes in the outer graphs."""
    yield t
    while t._dense and isinstance(t._array, Batch):
        t = t._array.value
        yield t


def leads_out(t: Tensor, own: Sequence[Node] = ()) -> bool:
    """Whether a tensor's graph reaches a leaf or an open variable that is not in `own`."""
    todo = [t._node]
    seen = {t._node}
    while todo:
        node = todo.pop()
        if node is None:
            continue
        if node.leaf and node not in own and getattr(node, "open", True):
            return True
        for edge in node.edges:
            if edge not in seen:
                seen.add(edge)
                todo.append(edge)
    return False


def settled(t: Any) -> Any:
    """A result, detached if its graph leads to closed variables only."""
    if not isinstance(t, Tensor):
        return t
    if not t._dense:
        return t if mode().grad and (t._node is None or leads_out(t)) else t.detach()
    if not mode().grad:
        return cut(t)
    array: Any = t._array
    if isinstance(array, Batch) and (value := settled(array.value)) is not array.value:
        array = Batch(value, array.level)
    keeps = t._node is None or leads_out(t)
    if keeps and array is t._array:
        return t
    made = from_array(array)
    made._node, made._writes = t._node if keeps else None, writes_of(t)
    same_tangents(made, t)
    return made


def all_settled(tree: Any) -> Any:
    return tree_map_only(Tensor, settled, tree)


def pulled(
    ys: Sequence[Tensor], xs: Sequence[Tensor], vs: Sequence[Tensor], retain: bool, create_graph: bool
) -> list[Tensor]:
    """v' J for each x; zeros for an x that no y depends on."""
    pairs = [(y, v) for y, v in zip(ys, vs) if y._node is not None]
    if not pairs:
        return [zeros_like(x) for x in xs]
    ys, vs = zip(*pairs)
    found = grad(ys, xs, vs, retain_graph=retain or create_graph, create_graph=create_graph, allow_unused=True)
    return [zeros_like(x) if g is None else g for x, g in zip(xs, found)]


# -- arguments and results -------------------------------------------------------------------------


def numbers_of(argnums: Any, count: int) -> tuple[int, ...]:
    """The positions of the arguments `argnums`, all >= 0. RuntimeError for invalid or repeated positions."""
    if not isinstance(argnums, (int, tuple)) or not all(isinstance(n, int) for n in tree_leaves(argnums)):
        kind = type(argnums) if not isinstance(argnums, tuple) else tuple(map(type, argnums))
        raise runtime_error(f"argnums must be int or Tuple[int, ...], got: {kind}")
    wanted = argnums if isinstance(argnums, tuple) else (argnums,)
    if not wanted:
        raise runtime_error("argnums must be non-empty")
    for n in wanted:
        if not -count <= n < count:
            raise runtime_error(
                f"Got argnum={n}, but only {count} positional inputs",
                "arguments given by keyword are not differentiated",
            )
    found = tuple([n % count for n in wanted])
    if len(set(found)) < len(found):
        raise runtime_error(f"argnums elements must be unique, got {argnums}")
    return found


def split(made: Any, has_aux: bool, who: str) -> tuple[Any, Any]:
    """(output, aux) from the result of a function. RuntimeError if `has_aux` and the result is not a pair."""
    if not has_aux:
        return made, None
    if not (isinstance(made, tuple) and len(made) == 2):
        raise runtime_error(
            f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True", "return output, aux"
        )
    return made


def outputs_of(made: Any, who: str) -> tuple[list[Tensor], TreeSpec]:
    """(tensors of the output, its tree). RuntimeError for an empty output, or leaves that are not tensors."""
    ys, spec = tree_flatten(made)
    if not ys or made is None:
        raise runtime_error(f"{who}: Expected f to be a function that has non-empty output (got output = {made})")
    for y in ys:
        if not isinstance(y, Tensor):
            raise runtime_error(
                f"{who}: expected f(*primals) to return only tensors, got unsupported type {type(y)}",
                "return numbers and text as aux, with has_aux=True",
            )
    return ys, spec


def same_form(given: Any, wanted: TreeSpec, words: Callable[[TreeSpec, TreeSpec], str]) -> list:
    """The leaves of the tree `given`. RuntimeError unless it has the structure `wanted`."""
    form = tree_structure(given)
    if form != wanted:
        raise runtime_error(words(form, wanted), "pass the same containers, with a tensor for each leaf")
    return tree_leaves(given)
