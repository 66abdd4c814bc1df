"""What a node keeps for its rules: written from the rules of an entry, and read by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.text import define, indented, tupled
from rushlight.core.clock import tick
from rushlight.core.engine import graph_errors
from rushlight.core.node import Node, Output, unpacked
from rushlight.core.table import Op, parameters, ruled_inputs
from rushlight.core.tensor import Tensor, from_array


def saved_items(op: Op) -> list[str]:
    """What nodes keep, as expressions of the arguments `a`, edges `e` and outputs `r`.

    A tensor is kept only if a rule that will run names it.
    """
    names, edges = op.inputs + op.settings, ruled_inputs(op)
    outputs = op.options.get("outputs", "out").split()
    kept = []
    for name in op.saves:
        base, _, fact = name.rpartition("_")
        users = [j for j, user in enumerate(edges) if op.rules[user] and name in parameters(op.rules[user])]
        test = " or ".join(f"e[{j}] is not None" for j in users) or "False"
        if name in op.inputs:
            item = f"a[{names.index(name)}]"
            kept.append(item if "tensors" in op.inputs or len(edges) == 1 else f"{item} if {test} else None")
        elif name in names:
            kept.append(f"a[{names.index(name)}]")
        elif name in outputs:  # a later write to it matters only to rules that will run
            item = f"r[{outputs.index(name)}]"
            item = f"apart({item})" if name == op.options.get("apart") else item
            kept.append(item if len(users) == len(edges) else f"{item} if {test} else None")
        elif name == "tensors_shapes":
            kept.append(f"[t._array.shape for t in a[{names.index('tensors')}]]")
        elif fact in ("shape", "dtype") and base in op.inputs:
            kept.append(f"a[{names.index(base)}]." + ("_array.shape" if fact == "shape" else "dtype"))
        else:
            raise TypeError(f"{op.name}: a rule names {name}, which is no input, output or setting")
    return kept


def apart(output: Any) -> Any:
    """What rules keep of an output that users may write to. vmap's samples stay: they have no array to copy."""
    return output.copy() if output.__class__ is np.ndarray else output


def save_function(op: Op) -> Callable:
    """(args, edges, outputs) -> what a node keeps for its rules."""
    text = "\n".join(["def save(a, e, r):", *indented(tupled("return ", saved_items(op)))]) + "\n"
    return define(text, "save", {"apart": apart}, f"saved by {op.name}")


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
