"""The layers and parameters that the live page shows, and the modules that an optimizer trains."""

from __future__ import annotations

from collections.abc import Container
from itertools import chain, count
from typing import Any

from rushlight.base.errors import user_frame
from rushlight.viz.node_names import spoken

MAX_LAYERS = 64  # rows of the page; the page gives the number of layers left out


class Layers:
    """`rows`: a dict for each layer, for JSON: name, kind, numbers of its parameters. `parameters`: the tensors, and
    `names` their names. `number`: {module: its row}. `version` changes with each addition."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.parameters: list[Any] = []
        self.names: list[str] = []
        self.number: dict[Any, int] = {}
        self.models: dict[str, Any] = {}  # name -> module
        self.version = self.left_out = 0
        self.known: dict[int, int] = {}  # id of a parameter -> its number
        self.not_shown: set[int] = set()  # ids of the parameters of layers left out

    def add(self, name: str, model: Any) -> None:
        """Add a row for each module of the model that has parameters of its own or no children. `name` stands before
        the names of layers; it may be empty."""
        self.models[unique(name or type(model).__name__, self.models)] = model
        self.version += 1
        found = [*model.named_modules()]
        rows = [(path, m) for path, m in found if m._parameters or not m._modules]
        if len(rows) > MAX_LAYERS:
            rows = [row for row in rows if any(p is not None for p in row[1]._parameters.values())]
        self.left_out += max(0, len(rows) - MAX_LAYERS)
        self.not_shown |= {id(p) for _, module in rows[MAX_LAYERS:] for p in module._parameters.values()}
        for path, module in rows[:MAX_LAYERS]:
            full = ".".join(part for part in (name, path) if part)
            self.number[module] = len(self.rows)
            own = {f"{full}.{key}" if full else key: p for key, p in module._parameters.items() if p is not None}
            extra = module.extra_repr() if hasattr(module, "extra_repr") else ""
            self.row(full or type(module).__name__, f"{type(module).__name__}({extra})", own)

    def add_tensors(self, tensors: list[Any]) -> None:
        """Add a row for parameters that belong to no module."""
        self.version += 1
        first = len(self.parameters)
        named = {f"tensor {first + i}": p for i, p in enumerate(tensors[:MAX_LAYERS])}
        self.row("tensors", "of no module", named)

    def row(self, name: str, kind: str, parameters: dict[str, Any]) -> None:
        numbers = []
        for key, p in parameters.items():
            if id(p) not in self.known:
                self.known[id(p)] = len(self.parameters)
                self.parameters.append(p)
                self.names.append(key)
            numbers.append(self.known[id(p)])
        self.rows.append({"name": spoken(name), "kind": kind[:60], "parameters": numbers})

    def of(self, optimizer: Any) -> dict[int, Any]:
        """{number: parameter} of the parameters that the optimizer changes."""
        mine = (p for group in optimizer.param_groups for p in group["params"])
        return {self.known[id(p)]: p for p in mine if id(p) in self.known}

    def adopt(self, optimizer: Any, called: list[Any]) -> None:
        """Add the modules among `called` that have parameters of the optimizer, and its parameters of no module."""
        mine = {id(p): p for group in optimizer.param_groups for p in group["params"]}
        for module in called:
            own = {id(p) for p in module.parameters()}
            if own & mine.keys() - self.known.keys():
                kind = type(module).__name__ if self.models else ""
                name = variable_of(module) or kind
                self.add(name and unique(name, self.models), module)
            mine = {key: p for key, p in mine.items() if key not in own}
        missing = [p for key, p in mine.items() if key not in self.known and key not in self.not_shown]
        if missing:
            self.add_tensors(missing)

    def meta(self) -> dict[str, Any]:
        """What the page gets once, for JSON."""
        shapes = ["×".join(map(str, p.shape)) or "one number" for p in self.parameters]
        return {
            "version": self.version,
            "title": ", ".join(self.models) or "tensors",
            "layers": self.rows,
            "parameters": [{"name": spoken(n), "shape": s} for n, s in zip(self.names, shapes)],
            "leftOut": self.left_out,
        }


def unique(name: str, names: Container[str]) -> str:
    """The name, with a number if it is taken."""
    return next(n for n in chain([name], (f"{name}{i}" for i in count(2))) if n not in names)


def variable_of(module: Any) -> str:
    """The user's variable that holds the module: the innermost frame's; "" if none does."""
    frame = user_frame(2)
    while frame is not None:
        for name, value in frame.f_locals.items():
            if value is module and not name.startswith("_") and name != "self":
                return name
        frame = frame.f_back
    return ""
