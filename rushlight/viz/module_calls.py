"""The module that made each node of the graph. A graph contains only ops, so the calls of modules are recorded while
the model runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from rushlight.core.node import Node, tick
from rushlight.nn.module import Module


@dataclass(frozen=True)
class Call:
    """A call of a module: it made the nodes with first < seq < last."""

    path: str  # "encoder.0"; "" for the model itself
    kind: str  # the class, "Dropout"
    first: int
    last: int


CALLS: WeakKeyDictionary[Module, list[Call]] = WeakKeyDictionary()  # the calls of the last recorded block


@contextmanager
def module_calls(model: Module) -> Iterator[None]:
    """Record which module makes each node inside the block. `viz.html`, `viz.svg` and `viz.graph` of a result then show
    the names and classes of the modules, if `params` is the model.

    Inside the block each call of a module runs two hooks. Outside, modules record nothing.

    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(2, 2), rushlight.nn.ReLU())
    >>> with rushlight.viz.module_calls(model):
    ...     y = model(rushlight.ones(1, 2)).sum()
    >>> "ReLU" in rushlight.viz.html(y, params=model)
    True
    """
    calls: list[Call] = []
    begun: list[int] = []

    def begin(module: Module, args: Any) -> None:
        begun.append(tick())

    def end(path: str) -> Any:
        def record(module: Module, args: Any, output: Any) -> None:
            calls.append(Call(path, type(module).__name__, begun.pop(), tick()))

        return record

    handles = []
    for path, module in model.named_modules(remove_duplicate=True):
        handles.append(module.register_forward_pre_hook(begin))
        handles.append(module.register_forward_hook(end(path)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        CALLS[model] = calls


def call_of(node: Node, model: Any) -> Call | None:
    """The innermost recorded call that made the node; None outside all calls."""
    calls = CALLS.get(model, ()) if isinstance(model, Module) else ()
    around = [call for call in calls if call.first < node.seq < call.last]
    return min(around, key=lambda call: call.last - call.first, default=None)
