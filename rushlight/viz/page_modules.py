"""The modules of the step page: the user's model, and the module of each node."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from rushlight.base.errors import line_of
from rushlight.core.engine import reachable
from rushlight.core.node import Node, Output
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.viz.graph import Box, Graph, Params
from rushlight.viz.module_calls import Call, call_of
from rushlight.viz.modules import modules_of
from rushlight.viz.node_names import CALLED_AS, Places, written_by_the_user
from rushlight.viz.reasons import ALIASES, called

MAX_OPEN = 40  # most nodes that a page without modules shows at first; page.js has the same number for modules
MAX_RUN, MAX_PARTS = 30, 20  # most steps of a group, and most groups of groups
MAX_STATEMENT_LETTERS = 40
MAX_CHILDREN, SLICE = 20, 10  # most numbered modules shown side by side; more are shown in groups of 10


def model_among(variables: dict[str, Any], output: Tensor) -> Module | None:
    """The user's module with the most parameters in the graph: a page without `params` has its names and modules."""
    assert output._node is not None
    nodes = {*reachable([output._node])}
    modules = [value for name, value in variables.items() if isinstance(value, Module) and written_by_the_user(name)]
    if not modules:
        owners = (
            getattr(value, "__dict__", {}) for value in variables.values() if not isinstance(value, (type, ModuleType))
        )
        modules = [value for owner in owners for value in owner.values() if isinstance(value, Module)]
    held = [sum(p._node in nodes for p in module.parameters()) for module in modules]
    return modules[held.index(max(held))] if any(held) else None


def homes_of(
    order: list[Node], params: Params, raw_names: dict[int, str], places: Places
) -> dict[Node, tuple[str, ...]]:
    """The module of each node, as the parts of its path: from the recorded calls, otherwise from the names of the
    parameters.
    """
    place = {node: i for i, node in enumerate(order)}
    calls = {node: call_of(node, params) for node in order if not node.leaf}
    paths = {tuple(name.split(".")[:-1]) for name in raw_names.values()}
    paths |= {tuple(call.path.split(".")) for call in calls.values() if call and call.path}
    sliced = slices(paths)

    def box(node: Node) -> Box:
        *parts, last = raw_names.get(id(getattr(node, "variable", None)), "").split(".")
        name = ".".join([*sliced(tuple(parts)), last])
        return Box("leaf" if node.leaf else "op", name, None, seq=node.seq)

    outside = outside_of_modules(order, params, places) if isinstance(params, Module) else set()
    inputs = [
        [place[edge] for edge in node.edges if edge is not None and not (edge.leaf and node in outside)]
        for node in order
    ]
    homes = dict(zip(order, modules_of(Graph([box(node) for node in order], inputs))))
    into_slices(homes, order, outside if isinstance(params, Module) else None)
    recorded = any(calls.values())
    for node, call in calls.items():
        if call is not None or recorded:
            homes[node] = sliced(tuple(call.path.split("."))) if call and call.path else ()
    return homes


def into_slices(homes: dict[Node, tuple[str, ...]], order: list[Node], outside: set[Node] | None) -> None:
    """Give an op without a module the slice of its input: in a long Sequential, the Tanh after model[8] is one of
    model[0:10]. `outside`: the ops that no module has made; None if they are unknown."""
    for node in reversed(order) if outside is not None else ():
        if node.leaf or homes[node] or node in outside:  # type: ignore[operator]
            continue
        sources = {homes[edge] for edge in node.edges if edge is not None and not edge.leaf}
        if len(sources) == 1:
            (home,) = sources
            homes[node] = home[: max((n for n, part in enumerate(home, 1) if ":" in part), default=0)]


def outside_of_modules(order: list[Node], model: Module, places: Places) -> set[Node]:
    """The nodes that no module of the model has made: their line is outside of the modules' methods, and calls the op's
    function directly. Other calls, such as `model(x)`, may run a module.
    """
    inside, found = code_of_modules(model), set()
    for node in order:
        op = node.op
        if op is None or node.code is None or node.code in inside:
            continue
        own = {op.called, called(op), *op.names}
        own |= {*ALIASES.get(op.name, ()), *CALLED_AS.get(op.name, ())}
        if places.is_operator(node) or places.callee(node).rstrip("_") in own:
            found.add(node)
    return found


def code_of_modules(model: Module) -> set[CodeType]:
    """The code of all methods of the model's classes, and of the functions inside them."""
    classes = {cls for module in model.modules() for cls in type(module).__mro__}
    functions = [getattr(f, "__code__", None) for cls in classes for f in vars(cls).values()]
    found = [code for code in functions if code is not None]
    for code in found:  # the list `found` grows in the loop
        found += [part for part in code.co_consts if isinstance(part, CodeType)]
    return set(found)


def ops_of_calls(order: list[Node], model: Params) -> Counter[Call]:
    """The number of ops that each recorded call of a module has made."""
    calls = (call_of(n, model) for n in order if not (n.leaf or isinstance(n, Output)))
    return Counter(call for call in calls if call is not None)


def slices(paths: set[tuple[str, ...]]) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """A function that adds a level to the paths of modules with many numbered children: "0:10" contains the modules 0
    to 9, so that a long Sequential can be closed in groups.
    """
    children: dict[tuple[str, ...], set[str]] = {}
    for path in paths:
        for n, part in enumerate(path):
            children.setdefault(path[:n], set()).add(part)
    many = {
        path for path, parts in children.items() if len(parts) > MAX_CHILDREN and all(part.isdigit() for part in parts)
    }

    def sliced(path: tuple[str, ...]) -> tuple[str, ...]:
        made: list[str] = []
        for n, part in enumerate(path):
            if path[:n] in many:
                start = int(part) // SLICE * SLICE
                made.append(f"{start}:{start + SLICE}")
            made.append(part)
        return tuple(made)

    return sliced


# -- a graph without modules


class Runs:
    """Groups of consecutive steps for a large graph without modules: the steps of one statement that follow each other.

    A box of consecutive steps never comes before itself. `homes`: {node: path of its group}; `groups`: {path: its name
    on the page}. More than 40 groups are in turn put into at most 20 groups.
    """

    def __init__(self, order: list[Node]):
        self.groups: dict[str, dict[str, str]] = {}
        self.homes: dict[Node, tuple[str, ...]] = dict.fromkeys(order, ())
        runs = joined(runs_of([node for node in reversed(order) if not node.leaf]))
        each = -(-len(runs) // MAX_PARTS) if len(runs) > MAX_OPEN else 0
        first = 1
        for i, run in enumerate(runs):
            last = first + sum(not isinstance(node, Output) for node in run) - 1
            part = (f"part{i // each}",) if each else ()
            self.name(part, first, last, "")
            self.name((*part, f"run{i}"), first, last, statement_of(run[0]))
            self.homes.update(dict.fromkeys(run, (*part, f"run{i}")))
            first = last + 1
        for leaf, readers in readers_of(order).items():
            self.homes[leaf] = common([self.homes[node] for node in readers])

    def name(self, path: tuple[str, ...], first: int, last: int, statement: str) -> None:
        """Name a group by the numbers of the first and the last step."""
        if path:
            known = self.groups.setdefault(".".join(path), {"first": str(first), "kind": statement, "what": "group"})
            known["name"] = f"step {last}" if known["first"] == str(last) else f"steps {known['first']} to {last}"


def runs_of(ops: list[Node]) -> list[list[Node]]:
    """The ops, oldest first, in lists: consecutive ops of one statement, at most 30."""
    runs: list[list[Node]] = []
    before: Any = None
    for node in ops:
        at = before if isinstance(node, Output) or node.where is None else line_at(node)
        if not runs or at != before or (len(runs[-1]) >= MAX_RUN and not isinstance(node, Output)):
            runs.append([])
        runs[-1].append(node)
        before = at
    return runs


def joined(runs: list[list[Node]]) -> list[list[Node]]:
    """The runs; one step of a function, such as `return act.tanh()`, joins the steps of the function before it."""
    found: list[list[Node]] = []
    for run in runs:
        code, before = run[0].code, found[-1][-1].code if found else None
        inside = code is not None and code is before and code.co_name != "<module>"
        if inside and len(run) == 1 and len(found[-1]) < MAX_RUN:
            found[-1] += run
        else:
            found.append(run)
    return found


def line_at(node: Node) -> tuple[str, int]:
    """The file and the line of the statement that made the node; of a generator inside the statement, too."""
    code, lasti = node.where  # type: ignore[misc]
    return code.co_filename, line_of(code, lasti)


def statement_of(node: Node) -> str:
    """The statement that made the node, shortened."""
    if node.where is None:
        return ""
    text = linecache.getline(*line_at(node)).strip()
    return text if len(text) <= MAX_STATEMENT_LETTERS else text[: MAX_STATEMENT_LETTERS - 1] + "…"


def readers_of(order: list[Node]) -> dict[Node, list[Node]]:
    """{leaf: the nodes that read it}."""
    found: dict[Node, list[Node]] = {}
    for node in order:
        for edge in node.edges:
            if edge is not None and edge.leaf:
                found.setdefault(edge, []).append(node)
    return found


def common(homes: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest common start of the paths."""
    same = 0
    for parts in zip(*homes):
        if len(set(parts)) > 1:
            break
        same += 1
    return homes[0][:same]
