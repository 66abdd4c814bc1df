"""The contributions to a gradient: each use of a tensor adds a part to its `.grad`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rushlight.autograd.graph_errors import held_tensors
from rushlight.base.errors import explain as message
from rushlight.core.engine import reachable
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor, from_array
from rushlight.viz.backward_steps import record
from rushlight.viz.chain_rule import shown, table
from rushlight.viz.graph import check_kept, check_recorded


@dataclass(frozen=True)
class Part:
    """The gradient from a use of the tensor. `user`: the op; `slot`: the input's number; `share`: the gradient;
    `made_at`: the statement of the op.
    """

    user: Node
    slot: int
    share: Tensor

    @property
    def made_at(self) -> str:
        return self.user.made_at


class Contributions:
    """The parts of a gradient, in the order in which backward adds them. `total` is their sum, to the bit."""

    def __init__(self, parts: list[Part]):
        self.parts = parts

    @property
    def total(self) -> Tensor:
        """The parts added in order, as backward adds them."""
        total = self.parts[0].share._array
        for part in self.parts[1:]:
            total = total + part.share._array
        return from_array(np.asarray(total))

    def by_use(self) -> list[tuple[Node, Tensor]]:
        """(op, the sum of its parts) for each op that used the tensor: x * x uses x twice."""
        sums: dict[Node, np.ndarray] = {}
        for part in self.parts:
            sums[part.user] = sums[part.user] + part.share._array if part.user in sums else part.share._array
        return [(user, from_array(np.asarray(array))) for user, array in sums.items()]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def __str__(self) -> str:
        whole = float(np.linalg.norm(self.total._array))
        rows = []
        for user, share in self.by_use():
            part = float(np.linalg.norm(share._array)) / whole if whole else 0.0
            rows.append([f"  {user.name()}", shown(share._array), f"|part| / |sum| {part:.0%}", user.made_at])
        head = f"{len(rows)} uses sent gradients, which add up to {shown(self.total._array)}:"
        return "\n".join([head, *table(rows)])

    __repr__ = __str__


def contributions(w: Tensor, of: Tensor | None = None, gradient: Tensor | None = None) -> Contributions:
    """The parts of d of / d w: one part for each use of `w` on a path to `of`.

    w.grad = sum of parts: for example from a residual branch and the main one, from the time steps of a recurrent
    network, or from layers that share a weight. The parts, added in order, equal the gradient bit for bit (before hooks
    on `w` itself). No side effects: `.grad` and the graph are unchanged. `of`: the loss; by default the variable of
    your program with one element that depends on `w` and was computed last. `gradient`: as for `of.backward(gradient)`.
    Raises `ValueError` if nothing was recorded for `of`, `RuntimeError` if `w` was not used in it, and for a graph that
    was freed: call this before `backward()`, or use `backward(retain_graph=True)`.

    >>> import rushlight as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> found = torch.contributions(x, of=x * x + x * x)
    >>> [share.item() for _, share in found.by_use()], found.total.item()
    ([6.0, 6.0], 12.0)
    """
    of = the_loss(w) if of is None else of
    check_recorded(of)
    assert of._node is not None
    check_kept("contributions", reachable([of._node]))
    if w._node is None or w._node not in reachable([of._node]):
        raise RuntimeError(
            message(
                "One of the differentiated Tensors appears to not have been used in the graph.",
                "compute `of` from w, where w has requires_grad=True",
                shape=tuple(w.shape),
            )
        )
    if w._node is of._node:
        raise RuntimeError(
            message("contributions: w is the output itself", "ask for a tensor that it was computed from")
        )
    parts = [
        Part(step.node, a.slot, from_array(a.part))
        for step in record(of, gradient)
        for a in step.arrivals
        if a.target is w._node
    ]
    return Contributions(parts)


def the_loss(w: Tensor) -> Tensor:
    """The last computed tensor with one element among the user's variables that depends on `w`."""
    found = {
        t._node: t for _, t in held_tensors() if t._array.size == 1 and t._node is not None and t._node is not w._node
    }
    for node in sorted(found, key=lambda node: node.seq, reverse=True):
        if w._node in reachable([node]):
            return found[node]
    raise RuntimeError(
        message(
            "contributions: none of your variables is a number computed from w",
            "name it: contributions(w, of=loss)",
            shape=tuple(w.shape),
        )
    )
