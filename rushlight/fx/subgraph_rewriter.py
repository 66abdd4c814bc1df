"""Pattern replacement: each part of a traced program that matches a pattern is replaced by another program."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, found, symbolic_trace
from rushlight.fx.node import Node
from rushlight.nn.module import Module

Found = dict[Node, Any]  # node of the pattern -> the node or plain value in the program


class Match(NamedTuple):
    """A match: the pattern's last node, and the program's node for each node of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


def replace_pattern(
    gm: GraphModule, pattern: Callable | GraphModule, replacement: Callable | GraphModule
) -> list[Match]:
    """Replace each part of the program that matches `pattern` by `replacement`; both are functions of the same
    arguments.

    Inner nodes of a match must not be used outside. If matches overlap, the first is replaced.

    >>> traced = rushlight.fx.symbolic_trace(lambda x: rushlight.relu(x) + rushlight.relu(x * 2))
    >>> matches = rushlight.fx.replace_pattern(traced, lambda x: rushlight.relu(x), lambda x: rushlight.tanh(x))
    >>> len(matches), [node.name for node in traced.graph.nodes]
    (2, ['x', 'mul', 'tanh', 'tanh_1', 'add', 'output'])
    """
    sought, new = graph_of(pattern), graph_of(replacement)
    changed: dict[Any, Any] = {}  # replaced node -> the node of an earlier replacement
    matches = []
    for match in apart(matches_of(sought, gm.graph)):
        matches.append(Match(anchors_of(sought)[0], match))
        put_in_place(gm.graph, sought, new, match, changed)
    gm.recompile()
    if isinstance(replacement, Module):
        bring_parts(gm, replacement)
    return matches


def graph_of(program: Callable | GraphModule | Graph) -> Graph:
    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def placeholders(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def returned(graph: Graph) -> list[Node]:
    return next(iter(reversed(graph.nodes))).all_input_nodes


def anchors_of(sought: Graph) -> list[Node]:
    """The nodes that the pattern returns and does not use again."""
    return [node for node in returned(sought) if len(node.users) == 1]


# -- finding matches -------------------------------------------------------------------------------


def matches_of(sought: Graph, graph: Graph) -> Iterator[Found]:
    """All matches of the pattern, in the order of the program."""
    partial: list[Found] = [{}]
    for anchor in anchors_of(sought):
        longer = [matched(anchor, node, so_far) for so_far in partial for node in graph.nodes]
        partial = [match for match in longer if match is not None]
    yield from (match for match in partial if is_closed(match, returned(sought)))


def matched(sought: Any, value: Any, so_far: Found) -> Found | None:
    """The extended assignment if `value` matches the pattern's node `sought`, else None. Placeholders of the pattern
    match anything.
    """
    if not isinstance(sought, Node):
        return matched_parts(sought, value, so_far)
    if sought in so_far:
        return so_far if so_far[sought] is value or so_far[sought] == value else None
    if sought.op == "placeholder":
        return {**so_far, sought: value}
    if not isinstance(value, Node) or value in so_far.values() or not alike(sought, value):
        return None
    if list(sought.kwargs) != list(value.kwargs):
        return None
    wanted, given = [(node.args, tuple(node.kwargs.values())) for node in (sought, value)]
    return matched_parts(wanted, given, {**so_far, sought: value})


def matched_parts(sought: Any, value: Any, so_far: Found) -> Found | None:
    """`matched` for arguments: lists match element by element, plain values if they are equal."""
    if not isinstance(sought, (list, tuple)):
        return so_far if type(value) is type(sought) and value == sought else None
    if not isinstance(value, (list, tuple)) or len(value) != len(sought):
        return None
    known: Found | None = so_far
    for part, of in zip(sought, value):
        known = None if known is None else matched(part, of, known)
    return known


def alike(sought: Node, node: Node) -> bool:
    """Whether two nodes are the same operation, apart from their arguments. Two get_attr nodes always match."""
    if sought.op != node.op:
        return False
    if sought.op != "get_attr":
        return sought.target == node.target
    held = [found(n.graph.owning_module, n.target) for n in (sought, node)]
    return type(held[0]) is type(held[1]) and isinstance(held[0], Tensor)


def is_closed(match: Found, outside: list[Node]) -> bool:
    """Whether inner nodes of the match are used only within it."""
    inner = {value for sought, value in match.items() if sought.op != "placeholder"}
    return all(
        user in inner
        for sought, value in match.items()
        if sought.op != "placeholder" and sought not in outside
        for user in value.users
    )


def apart(matches: Iterator[Found]) -> list[Found]:
    """The matches that share no node with an earlier match."""
    taken: set[Node] = set()
    kept = []
    for match in matches:
        own = {value for sought, value in match.items() if sought.op != "placeholder"}
        if not own & taken:
            kept.append(match)
            taken |= own
    return kept


# -- replacing -------------------------------------------------------------------------------------


def put_in_place(graph: Graph, sought: Graph, new: Graph, match: Found, changed: dict[Any, Any]) -> None:
    """Copy `new` before the first user of the pattern's result, and remove the matched nodes."""
    old, wanted = placeholders(sought), placeholders(new)
    if len(old) != len(wanted):
        raise value_error(
            f"the pattern has {len(old)} arguments and the replacement {len(wanted)}", "use the same arguments in both"
        )
    for argument in old:
        value = match[argument]
        match[argument] = changed.get(value, value) if isinstance(value, Node) else value
    results = [match[node] for node in returned(sought)]
    users = {user for node in results for user in node.users}
    first = next(node for node in graph.nodes if node in users)
    with graph.inserting_before(first):
        made = graph.graph_copy(new, {w: match[o] for w, o in zip(wanted, old)})
    for node, copied in zip(results, made if isinstance(made, (list, tuple)) else [made], strict=True):
        node.replace_all_uses_with(copied)
        changed[node] = copied
    for pattern_node in reversed(sought.nodes):
        if pattern_node.op not in ("placeholder", "output"):
            graph.erase_node(match[pattern_node])


def bring_parts(gm: GraphModule, replacement: Module) -> None:
    """Copy the replacement's modules and tensors to the program, unless their path exists there. RuntimeError for a
    path that exists in neither.
    """
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr") and held(gm, node.target) is None:
            part = held(replacement, node.target)
            if part is None:
                raise runtime_error(
                    f"the replacement calls {node.target}, which exists neither in the replacement nor in the program"
                )
            if isinstance(part, Module):
                gm.add_submodule(node.target, copy.deepcopy(part))
            else:
                setattr(gm, node.target, copy.deepcopy(part))
    gm.graph.lint()


def held(root: Module, path: str) -> Any:
    """The object at a dotted path of a module, or None."""
    try:
        return found(root, path)
    except AttributeError:
        return None
