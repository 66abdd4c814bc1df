"""The loop of backward: a generator of steps. `backward()` runs the generator to its end; viz and the profiler watch
each step.

Nodes are numbered as they are made, so newest first is a topological order: no recursion, no counting of dependencies.
The engine does once for all ops: undo broadcasting, add gradients up, free saved values, check versions, call hooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.base.higher import Higher
from rushlight.core.node import Hooks, Node, Output, Parts, clock, tick, unpacked
from rushlight.core.table import Op
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.worlds import AS_ARRAYS, AS_TENSORS, GradientKind

graph_errors = Higher()  # the words of errors: rushlight/autograd/graph_errors.py
age = attrgetter("seq")
Step = tuple[Node, Any, Any]  # node, gradient of its output, gradients of its inputs


def reachable(roots: Iterable[Node], since: int = -1) -> list[Node]:
    """All nodes below the roots, newest first; none of those older than `since`."""
    seen = set(roots)
    todo = list(seen)
    for node in todo:  # `todo` grows while it is read
        for edge in node.edges:
            if edge is not None and edge not in seen and edge.seq >= since:
                seen.add(edge)
                todo.append(edge)
    todo.sort(key=age, reverse=True)
    return todo


def hooked_leaves_early(order: list[Node]) -> list[Node]:
    """The order with each hooked leaf moved right behind the last node that adds to its gradient. An optimizer that
    steps in a hook then frees each gradient before the next is computed."""
    leaves = set()
    for node in reversed(order):
        if not node.leaf:
            break
        if node.hooks is not None:
            leaves.add(node)
    if not leaves:
        return order
    last = {edge: node for node in order for edge in node.edges if edge in leaves}
    done: dict[Node, list[Node]] = {}
    for leaf, node in last.items():
        done.setdefault(node, []).append(leaf)
    return [n for node in order if node not in last for n in (node, *done.get(node, ()))]


def leading_to(targets: set[Node], order: list[Node]) -> set[Node]:
    """Those nodes of `order` from which some target can be reached, the targets included."""
    wanted = set(targets)
    for node in reversed(order):
        if node not in wanted and any(edge in wanted for edge in node.edges):
            wanted.add(node)
    return wanted


def steps(
    seeds: dict[Node, Any], kind: GradientKind = AS_ARRAYS, targets: set[Node] | None = None, retain: bool = False
) -> Iterator[Step]:
    """Run backward from the seeds' nodes, yielding (node, incoming, outgoing) after each node's rules.

    `kind`: what gradients are, AS_ARRAYS (fast) or AS_TENSORS (recorded); `targets`: only what leads to these is run;
    `retain`: keep what the nodes have saved, for another backward."""
    walk = walk_from(seeds, targets)
    order, wanted = walk.order, walk.wanted
    grads, kind = dict(seeds), kind.over(order)
    # local names: these are read for each node
    arriving, recorded, add = kind.arriving, kind.records, kind.add
    for node in order:
        g = grads.pop(node, None)
        if g is None or (wanted is not None and node not in wanted):
            continue
        if arriving is not None:
            g = arriving(g, node)
        hooks = node.hooks
        if hooks is not None:
            g = run_tensor_hooks(hooks, node, g, kind, walk)
        if targets is not None and node in targets and not wanted_below(node, wanted):
            yield node, g, ()
            continue
        come = g  # after the hooks on the tensor, before the hooks on the node
        saved = node.saved
        if hooks is not None and hooks.before:
            g = run_prehooks(hooks, node, g, kind)
        if saved is None:
            raise graph_errors().second_time(node)
        if saved and clock.last_write > node.seq:
            check_unwritten(node)
        try:
            outgoing = node.tensors(g) if recorded else node.arrays(g)
        except Exception as error:
            graph_errors().blame(error, node)
            raise
        if saved and not retain and (first := node.first) is not None:
            if saved[first] is not None:  # an array, for most; a call takes 0.15 us
                node.saved = None
            else:
                free_saved(node, saved)
        if hooks is not None:
            outgoing = run_hooks(hooks, node, g, outgoing, kind)
        yield node, come, outgoing
        for edge, ge in zip(node.edges, outgoing):
            if ge is None or edge is None:
                continue
            if ge.shape != edge.shape:  # the forward broadcast this input: undone here, for all ops
                if node.op is not None and "own" in node.op.options:
                    graph_errors().check_fits(node, edge, ge)
                ge = kind.fit(ge, edge.shape)
            elif ge is g and edge.leaf:  # a leaf keeps the array, and another edge may get g, too
                ge = kind.own(g)
            known = grads.get(edge)
            grads[edge] = ge if known is None else add(known, ge)


def run_node(node: Node, grads: tuple) -> Any:
    """The gradients of one node's inputs: a tensor for one input, else a tuple. As in torch, broadcasting is not
    undone. `grads`: the gradient of each output, or None."""
    options = {} if node.op is None else node.op.options
    several = getattr(node, "outputs", None) or " " in options.get("outputs", "")
    if several or options.get("list"):
        seed = Parts({i: g for i, g in enumerate(grads) if g is not None})
    else:
        (seed,) = grads
    _, _, outgoing = next(steps({node: seed}, AS_TENSORS, retain=True))
    return outgoing[0] if len(outgoing) == 1 else tuple(outgoing)


def free_saved(node: Node, saved: tuple) -> None:
    """Free the saved values of a node. A node that saved only facts (a shape, a dimension) keeps them and can run
    again: two results may share views and sums."""
    if node.op is None:
        node.saved = None
    else:
        for i in node.op.freed:
            if saved[i] is not None:
                node.saved = None
                return


def wanted_below(node: Node, wanted: set[Node] | None) -> bool:
    """Whether another target lies below this target. Never below a leaf."""
    return not node.leaf and any(edge in wanted for edge in node.edges)  # type: ignore[operator]


# -- hooks -----------------------------------------------------------------------------------------


class Walk:
    """The nodes of one backward, newest first; `wanted`: those that lead to a target, or None."""

    __slots__ = ("order", "wanted")

    def __init__(self, order: list[Node], wanted: set[Node] | None):
        self.order, self.wanted = order, wanted


def walk_from(seeds: Iterable[Node], targets: set[Node] | None) -> Walk:
    """The walk from the seeds: to all leaves, or to the targets. No node older than all targets leads to one."""
    order = reachable(seeds, -1 if not targets else min([node.seq for node in targets]))
    wanted = None if targets is None else leading_to(targets, order)
    return Walk(hooked_leaves_early(order), wanted)


def run_tensor_hooks(hooks: Hooks, node: Node, g: Any, kind: GradientKind, walk: Walk) -> Any:
    """The gradient of the node's output after the hooks on the tensor. `retain_grad` keeps this gradient."""
    if hooks.unpack is not None:
        hooks.unpack(node)
    several = isinstance(g, dict)  # Parts of several outputs: their own nodes have the tensor hooks
    if several or not (hooks.tensor or hooks.retained):
        return g
    t = kind.as_tensor(g)
    # `in` would take float64 for None
    if hooks.dtype is not None and hooks.dtype != t.dtype.numpy:
        t = kind.cast(t, hooks.dtype)
    for hook in tuple(hooks.tensor.values()):
        if hasattr(hook, "gathers"):  # a hook of several tensors (graph.py): it changes no gradient
            hook.gathers(node, t, walk)
        else:
            t = checked_gradient(t, hook(t), node)
    if hooks.retained is not None and (keeper := hooks.retained()) is not None:
        own = kind.retained(t)
        keeper._grad = own if keeper._grad is None else keeper._grad + own
    return kind.from_tensor(t, copy=node.leaf)


def run_prehooks(hooks: Hooks, node: Node, g: Any, kind: GradientKind) -> Any:
    """The gradient of the node's output after the node's pre-hooks, which get a gradient or None per output."""
    several = isinstance(g, dict)
    given = g if several else {0: g}
    # nodes of the table do not store the number of outputs
    outputs = len(getattr(node, "outputs", None) or range(max(given) + 1))
    parts: tuple = tuple([None if (part := given.get(i)) is None else kind.as_tensor(part) for i in range(outputs)])
    for hook in tuple(hooks.before.values()):
        answer = hook(parts)
        if answer is None:
            continue
        new = answer if isinstance(answer, tuple) else (answer,)
        if several and len(new) != len(parts):
            raise runtime_error(
                f"hook of {node.name()} has returned an incorrect number of values (got {len(new)}, but expected "
                f"{len(parts)})",
                made_at=node.made_at,
            )
        parts = tuple([part if old is None else checked_gradient(old, part, node) for old, part in zip(parts, new)])
    if several:
        return Parts({i: kind.from_tensor(t) for i, t in enumerate(parts) if t is not None})
    return kind.from_tensor(parts[0], copy=node.leaf)


def run_hooks(hooks: Hooks, node: Node, g: Any, outgoing: Any, kind: GradientKind) -> Any:
    """The gradients of the node's inputs after the node's hooks. On a leaf, the hooks after accumulation run too."""
    if node.leaf:
        run_accumulate_hooks(hooks, node)
    for hook in tuple(hooks.after.values()):
        inside = tuple(None if x is None else kind.as_tensor(x) for x in outgoing)
        answer = hook(inside, (kind.as_tensor(g),) if not isinstance(g, dict) else tuple(g.values()))
        if answer is not None:
            answer = answer if isinstance(answer, tuple) else (answer,)
            if len(answer) != len(outgoing):
                name = getattr(getattr(hook, "func", hook), "__name__", hook)  # func: of a partial
                raise runtime_error(
                    f"hook '{name}' has returned an incorrect number of values (got {len(answer)}, but expected "
                    f"{len(outgoing)})",
                    made_at=node.made_at,
                )
            outgoing = tuple(None if t is None else kind.from_tensor(t) for t in answer)
    return outgoing


def run_accumulate_hooks(hooks: Hooks, leaf_node: Any) -> None:
    """Call the hooks of a leaf whose `.grad` has the gradient."""
    leaf = leaf_node.tensor()
    if leaf is None:
        return
    for hook in tuple(hooks.done.values()):
        if isinstance(answer := hook(leaf), Tensor) and answer is not leaf:
            raise runtime_error("post accumulate grad hooks should return None.", "let it write to t.grad")


def checked_gradient(old: Tensor, new: Any, node: Node) -> Tensor:
    """What a hook returned in place of a gradient, checked."""
    if new is None:
        return old
    if not isinstance(new, Tensor) or new.shape != old.shape:
        raise runtime_error(
            f"hook of {node.name()} has changed the size of value",
            f"return a tensor of shape {tuple(old.shape)}, or None",
            made_at=node.made_at,
        )
    return new


# -- checks -------------------------------------------------------------------------------


def check_unwritten(node: Node) -> None:
    """RuntimeError if something that the node has saved was written to after the node was made."""
    noted = getattr(node, "_writes", ())
    for name, writes in noted if noted.__class__ is list else (("out", noted),) if noted else ():
        if writes.stamp > node.seq and has_saved(node, name):
            raise graph_errors().overwritten(node, writes, "its output", node.shape)
    for saved in tensors_in(node.saved or ()):
        writes = saved._root._writes
        if writes is not None and writes.stamp > node.seq:
            raise graph_errors().overwritten(node, writes, "an input", saved._array.shape)


def has_saved(node: Node, name: str) -> bool:
    """Whether the node has saved its output of this name: only if a rule that will run names the output."""
    op, saved = node.op, node.saved
    if op is None or not saved or name not in op.saves:
        return False
    return saved[op.saves.index(name)] is not None


def tensors_in(saved: tuple) -> Iterator[Tensor]:
    for item in saved:
        if isinstance(item, Tensor):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from (x for x in item if isinstance(x, Tensor))


# -- what nodes have saved ------------------------------------------------------------------------------


def saved_output(node: Any, array: Any) -> Tensor:
    """A saved output as the tensor it was: nodes keep only its array, so that no cycle exists."""
    t = from_array(array)
    t._node = node
    return t if node.hooks is None or node.hooks.dual is None else node.hooks.dual(t, 0)


def saved_part(node: Any, array: Any, i: int) -> Tensor:
    """Output number `i` of a node with several outputs, as a tensor with the node's `Output`."""
    t = from_array(array)
    if array.dtype.kind in "fcV" and i != node.op.options.get("fixed"):
        t._node = Output(node, i, tick(), array.shape)
    return t if node.hooks is None or node.hooks.dual is None else node.hooks.dual(t, i)


def saved_tensors(self: Node) -> tuple[Tensor, ...]:
    """The tensors that the node keeps for its rules. RuntimeError once the graph was freed."""
    if self.saved is None:
        raise graph_errors().second_time(self)
    names = self.op.saves if self.op is not None else ()
    found: list[Tensor] = []
    for name, item in zip(names, map(unpacked, self.saved)):
        if isinstance(item, Tensor):
            found.append(item)
        elif name == "out" and item is not None:
            found.append(saved_output(self, item))
        elif isinstance(item, (tuple, list)):
            found.extend(t for t in item if isinstance(t, Tensor))
    return tuple(found)


Node.saved_tensors = property(saved_tensors)  # type: ignore[attr-defined]


TORCHS = {"x": ("self",), "y": ("other", "exponent"), "out": ("result",)}  # torch's names of saved values


def saved_by_name(op: Op) -> dict[str, property]:
    """`node._saved_self`, `_saved_result` and so on, as in torch: what a node keeps, by name."""
    return {
        f"_saved_{name}": saved_at(i, saved == "out")
        for i, saved in enumerate(op.saves)
        for name in (saved, *TORCHS.get(saved, ()))
    }


def saved_at(i: int, output: bool) -> property:
    def read(node: Node) -> Any:
        if node.saved is None:
            raise graph_errors().second_time(node)
        item = unpacked(node.saved[i])
        return saved_output(node, item) if output and item is not None else item

    return property(read)
