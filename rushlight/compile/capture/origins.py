"""Origins of recorded ops: a function of nn.functional, an optimizer, or the backward of an op. The page of a program
(compile/export/program_page.py) names loops by the origins of their ops."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from inspect import unwrap
from types import CodeType, FrameType
from typing import Any

from rushlight.base.tracebacks import PACKAGE, ours
from rushlight.compile.graph import Line, Origin
from rushlight.core import engine
from rushlight.core.node import Node, Output
from rushlight.core.tensor import Tensor
from rushlight.nn import functional

OPTIMIZERS = f"{PACKAGE}optim{os.sep}"


class Origins:
    """The origins of one trace. `made`: the origin and the user's line of each node, by its `seq`."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[str, Line]] = {}

    def of(self, op: Any, outs: Sequence[Tensor], line: Line) -> Origin:
        """The origin of an op that has just run with these results."""
        found = self.calling(op)
        for t in outs:
            if t._node is not None and not found.line:
                self.made.setdefault(owner(t._node).seq, (found.name, line))
        return found

    def calling(self, op: Any) -> Origin:
        """The origin by the frames between the op and the user's code: an optimizer, or the outermost function of
        nn.functional."""
        name = op.called
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and ours(frame.f_code.co_filename):
            code = frame.f_code
            if code is engine.steps.__code__:
                return self.backward(frame.f_locals.get("node"))
            if code.co_filename.startswith(OPTIMIZERS):
                optimizer = frame.f_locals.get("self")
                if hasattr(type(optimizer), "add_param_group"):
                    return Origin(type(optimizer).__name__.lower())
            elif is_functional(code):
                name = code.co_name
            frame = frame.f_back
        return Origin(name)

    def backward(self, node: Node | None) -> Origin:
        if node is None:
            return Origin("backward")
        node = owner(node)
        own = node.op.called if node.op is not None else node.name()
        name, line = self.made.get(node.seq, (own, node.where))
        return Origin(f"{name}_backward", line)


def is_functional(code: CodeType) -> bool:
    """Whether the code belongs to a function of nn.functional."""
    # vars: a missing attribute of the module would raise an error, at a hundred times the cost
    function = vars(functional).get(code.co_name)
    return callable(function) and getattr(unwrap(function), "__code__", None) is code


def owner(node: Node) -> Node:
    """The node of the op that made a tensor; for one of several results, the op's node."""
    return node.source()[0] if isinstance(node, Output) else node
