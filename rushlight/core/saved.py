"""What a node keeps for its rules: written from the rules of an entry, and read by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.specialise import specialise
from rushlight.core.clock import tick
from rushlight.core.engine import graph_errors
from rushlight.core.node import Node, Output, unpacked
from rushlight.core.table import Op, parameters, ruled_inputs
from rushlight.core.tensor import Tensor, from_array


def save_plan(op: Op) -> tuple[tuple[str, int, tuple[int, ...], bool], ...]:
    """What nodes keep for the rules: (kind, place, users, always) of each item. `place`: of the argument or output;
    `users`: the edges whose rules name the item; `always`: whether the item is kept without a look at the edges."""
    names, edges = op.inputs + op.settings, ruled_inputs(op)
    outputs = op.options.get("outputs", "out").split()
    kept = []
    for name in op.saves:
        base, _, fact = name.rpartition("_")
        users = tuple([j for j, user in enumerate(edges) if op.rules[user] and name in parameters(op.rules[user])])
        always = True
        if name in op.inputs:
            kind, place, always = "argument", names.index(name), "tensors" in op.inputs or len(edges) == 1
        elif name in names:
            kind, place = "argument", names.index(name)
        elif name in outputs:  # a later write to it matters only to rules that will run
            kind, place = "copy" if name == op.options.get("apart") else "output", outputs.index(name)
            always = len(users) == len(edges)
        elif name == "tensors_shapes":
            kind, place = "shapes", names.index("tensors")
        elif fact in ("shape", "dtype") and base in op.inputs:
            kind, place = fact, names.index(base)
        else:
            raise TypeError(f"{op.name}: a rule names {name}, which is not an input, output or setting")
        kept.append((kind, place, users, always))
    return tuple(kept)


def saved_items(op: Any, values: Any, edges: Any, outputs: Any) -> tuple:
    """What a node keeps: a tensor only if a rule that will run names it. Specialised for `save_plan`."""
    return tuple(
        [
            (
                values[place] if kind == "argument"
                else outputs[place] if kind == "output"
                else apart(outputs[place]) if kind == "copy"
                else [t._array.shape for t in values[place]] if kind == "shapes"
                else values[place]._array.shape if kind == "shape"
                else values[place].dtype
            )
            if always or any(edges[j] is not None for j in users) else None
            for kind, place, users, always in op.plan
        ]
    )  # fmt: skip


def apart(output: Any) -> Any:
    """What rules keep of an output that users may write to. vmap's samples stay: they have no array to copy."""
    return output.copy() if output.__class__ is np.ndarray else output


def save_function(op: Op) -> Callable:
    """(arguments, edges, outputs) -> what a node keeps for its rules: `saved_items` of one op."""
    return specialise(saved_items, {"plan": save_plan(op)}, locals={}, scope={"apart": apart}, name=f"save_{op.name}")


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


# -- for users who look at a node ------------------------------------------------------------------


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


TORCHS = {"x": ("self",), "y": ("other", "exponent"), "out": ("result",)}  # torch's names of what is saved


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
