"""torch.utils.flop_counter: floating point operations of products, convolutions and attention.

As in torch, a multiplication and an addition are two operations, and other ops count 0."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import wraps
from math import prod
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary

from rushlight.autograd import aten
from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.core.node import tick
from rushlight.profiler.clocks import Clocks

Counts = dict[str, int]  # name of an op in ATen -> operations
SUFFIXES = ["", "K", "M", "B", "T"]
# functions whose products torch counts under another name: (module, function) -> name, or the index of the argument
# that names the node
CALLERS: dict[tuple[str, str], str | int] = {
    ("rushlight.ops.linalg.matmul_api", "plus_product"): 7,
    ("rushlight.ops.linalg.einsum", "product"): "bmm",
}


# -- formulas --------------------------------------------------------------------------------------


def matmul_flops(x: tuple, y: tuple) -> int:
    """2 * batch * n * k * m for (..., n, k) @ (..., k, m); leading dimensions broadcast."""
    leading = zip(((1,) * len(y) + x)[:-2][::-1], ((1,) * len(x) + y)[:-2][::-1])
    return 2 * prod(max(a, b) for a, b in leading) * x[-2] * x[-1] * y[-1]


def conv_flops(x: tuple, weight: tuple, out: tuple, transposed: bool = False) -> int:
    """2 * batch * positions * elements of the weight. Positions: of the output, or of the input of a transposed
    convolution."""
    return 2 * x[0] * prod((x if transposed else out)[2:]) * prod(weight)


def attention_flops(q: tuple, k: tuple, v: tuple, backward: bool = False) -> int:
    """2 * batch * heads * queries * keys * (E + Ev): the scores and the weighted sum. Backward: 3 E + 2 Ev in place of
    E + Ev, for the scores again and four gradients."""
    factors = (3, 2) if backward else (1, 1)
    return 2 * prod(q[:-1]) * k[-2] * (factors[0] * q[-1] + factors[1] * v[-1])


def product_name(x: tuple, y: tuple) -> str:
    """The name of a product in ATen: torch folds a stack of matrices into one if the other operand is one matrix."""
    return "mm" if len(x) <= 2 or len(y) <= 2 else "bmm"


def forward_flops(op: str, args: tuple, out: Any) -> Counts:
    """The operations of a call of a kernel. `args`: arrays, then settings."""
    if op == "mm":
        x, y = args[0].shape, args[1].shape
        return {product_name(x, y): matmul_flops(x, y)}
    if op == "linear":
        x, weight = args[0].shape, args[1].shape
        name = "mm" if args[2] is None else "addmm"
        return {name: 2 * prod(x[:-1]) * prod(weight)}
    if op in ("convolution", "conv_input_grad"):
        shapes = args[0].shape, args[1].shape, out.shape
        return {"convolution": conv_flops(*shapes, op == "conv_input_grad")}
    if op == "attention":
        q, k, v = (a.shape for a in args[0][:3])
        return {"_scaled_dot_product_flash_attention": attention_flops(q, k, v)}
    return {}


def backward_flops(node: Any, g: Any) -> Counts:
    """The operations of a node's rules. `g`: the gradient of its output."""
    op = None if node.op is None else node.op.name
    if op not in ("mm", "linear", "convolution", "conv_input_grad", "attention"):
        return {}
    saved = dict(zip(node.op.saves, node.saved))
    if op == "attention":
        q, k, v = (shape_of(t) for t in saved["tensors"][:3])
        name = "_scaled_dot_product_flash_attention_backward"
        return {name: attention_flops(q, k, v, backward=True)}
    x, weight = (
        edge.shape if edge is not None else shape_of(saved.get(name))
        for edge, name in zip(node.edges[:2], node.op.inputs)
    )
    to_x, to_weight = (edge is not None for edge in node.edges[:2])
    if op == "mm":
        each = matmul_flops(x, weight) if to_x or to_weight else 0
        return {product_name(x, weight): each * (to_x + to_weight)}
    if op == "linear":
        each = 2 * prod(g.shape[:-1]) * prod(weight or ()) if to_x or to_weight else 0
        return {"mm": each * (to_x + to_weight)}
    if not (to_x or to_weight):
        return {"convolution_backward": 0}
    each = conv_flops(x or (), weight, g.shape, op == "conv_input_grad")
    # torch's formula for the weight's gradient counts all channels for each of the groups
    return {"convolution_backward": each * (to_x + to_weight * saved["groups"])}


def shape_of(t: Any) -> tuple:
    return () if t is None else tuple(t.shape)


# -- counting --------------------------------------------------------------------------------------


class ModuleCalls:
    """The names of the modules whose calls are running, and the first and last tick of each finished call.

    A module's name is its path below the module that was called first: `Sequential.0`."""

    def __init__(self) -> None:
        self.names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self.open: list[str] = []
        self.done: list[tuple[int, int, str]] = []  # begin, end, name

    def name(self, module: Any) -> str:
        if module not in self.names:
            top = type(module).__name__
            for path, part in module.named_modules():
                self.names.setdefault(part, f"{top}.{path}" if path else top)
        return self.names[module]

    def around(self, seq: int) -> list[str]:
        """The modules whose calls made the node with this tick."""
        return [name for begin, end, name in self.done if begin < seq < end]


class FlopCounterMode:
    """Count the floating point operations of the calls inside it: a context manager, as
    torch.utils.flop_counter.FlopCounterMode.

    Products of matrices, convolutions and attention count, forward and backward, for each module; other ops count 0, as
    in torch. `depth`: the depth of modules in the table; `display`: print the table at the end. The context counts the
    calls of its own thread. RuntimeError if it is entered twice.

    Differences from torch: the fused attention counts as on torch's GPUs (on a CPU, torch counts nothing for it); for
    LSTM, GRU and RNN only the products with the input count; the product of a stack and a vector, `addbmm` and
    `bilinear` count.

    >>> model = rushlight.nn.Linear(4, 5)
    >>> with rushlight.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     model(rushlight.ones(3, 4)).sum().backward()
    >>> counter.get_total_flops()
    240
    >>> print(counter.get_table())
    Module          FLOP    % Total
    ------------  ------  ---------
    Linear           240    100.00%
    - aten.addmm     120     50.00%
    - aten.mm        120     50.00%
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ):
        if custom_mapping:
            raise not_implemented_error(
                "FlopCounterMode(custom_mapping=...) is not supported",
                "the counter supports products, convolutions and attention; add your own counts to get_total_flops()",
            )
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.calls = ModuleCalls()
        self.clocks: Clocks | None = None
        self.thread = 0
        self.renamed: list[str] = []  # the names of the functions whose calls are running

    def __enter__(self) -> FlopCounterMode:
        if self.clocks is not None:
            raise runtime_error("FlopCounterMode is entered twice", "make one for each with statement")
        self.flop_counts.clear()
        self.calls, self.thread = ModuleCalls(), get_ident()
        self.clocks = Clocks(self.counted, self.counted_steps, self.counted_modules)
        self.clocks.put()
        for (module, function), name in CALLERS.items():
            owner = sys.modules.get(module)
            if owner is not None:
                self.clocks.assign(owner, function, self.named(getattr(owner, function), name))
        return self

    def __exit__(self, *exc: object) -> None:
        if self.clocks is not None:
            self.clocks.take()
            self.clocks = None
        if self.display:
            print(self.get_table(self.depth))

    def add(self, counts: Counts, modules: Any) -> None:
        for name, flops in counts.items():
            for module in dict.fromkeys([*modules, "Global"]):
                self.flop_counts[module][getattr(aten, name)] += flops

    def counted(self, name: str, kernel: Callable) -> Callable:
        """A kernel with its calls counted."""

        @wraps(kernel)
        def run(*args: Any, **kwargs: Any) -> Any:
            out = kernel(*args, **kwargs)
            if get_ident() == self.thread:
                counts = forward_flops(name, args, out)
                if self.renamed:
                    counts = dict.fromkeys(self.renamed[-1:], sum(counts.values()))
                self.add(counts, self.calls.open)
            return out

        return run

    def counted_steps(self, steps: Callable) -> Callable:
        """The engine with its nodes counted. Rules that record are ops, which count as kernels."""

        def run(seeds: Any, world: Any, targets: Any, retain: bool) -> Iterator:
            from rushlight.core.engine import free_saved

            for node, g, outgoing in steps(seeds, world, targets, True):
                if get_ident() == self.thread and not world.records and node.saved:
                    modules = self.calls.around(node.seq)
                    self.add(backward_flops(node, g), modules)
                if not retain and node.saved:
                    free_saved(node, node.saved)
                yield node, g, outgoing

        return run

    def counted_modules(self, call: Callable) -> Callable:
        """`Module.__call__` that marks its begin and its end."""

        def run(module: Any, *args: Any, **kwargs: Any) -> Any:
            if get_ident() != self.thread:
                return call(module, *args, **kwargs)
            name, begin = self.calls.name(module), tick()
            self.calls.open.append(name)
            try:
                return call(module, *args, **kwargs)
            finally:
                self.calls.open.pop()
                self.calls.done.append((begin, tick(), name))

        return run

    def named(self, function: Callable, name: str | int) -> Callable:
        """The function with its products counted under a name, or under the name of the node that argument number
        `name` makes.
        """

        def run(*args: Any) -> Any:
            shown = args[name].removesuffix("Backward0").lower() if isinstance(name, int) else name
            self.renamed.append(shown)
            try:
                return function(*args)
            finally:
                self.renamed.pop()

        return run

    def get_total_flops(self) -> int:
        """The sum of all counts."""
        return sum(self.flop_counts["Global"].values()) if "Global" in self.flop_counts else 0

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """{module: {op: operations}}; "Global" has all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A table with a row for each module down to `depth`, and one for each of its ops."""
        depth = self.depth if depth is None else depth
        whole = self.get_total_flops()
        names = sorted(name for name in self.flop_counts if name != "Global")
        shown = [name for name in names if depth is None or name.count(".") < depth]
        subsumed = any(sum(self.flop_counts[name].values()) >= whole for name in shown)
        names = shown if subsumed or "Global" not in self.flop_counts else ["Global", *shown]
        rows = [row for name in names for row in self.rows(name, whole)]
        return table(rows or [["Global", "0", "0%"]])

    def rows(self, module: str, whole: int) -> list[list[str]]:
        counts = self.flop_counts[module]
        lines = [(module, sum(counts.values()))]
        lines += [(f"- {op}", flops) for op, flops in counts.items()]
        # 1.01B is shown as 1010M
        power = max(0, min(len(SUFFIXES) - 1, (len(str(whole)) - 2) // 3))
        return [
            [
                name,
                f"{flops / 1000**power:.3f}{SUFFIXES[power]}" if power else str(flops),
                f"{flops / whole:.2%}" if whole else "0%",
            ]
            for name, flops in lines
        ]


def table(rows: list[list[str]]) -> str:
    """Aligned columns below a head: the name to the left, numbers to the right."""
    head = ["Module", "FLOP", "% Total"]
    widths = [max(len(name) + 2, *map(len, column)) for name, column in zip(head, zip(*rows))]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in [head, rule, *rows]
    )


__all__ = ["FlopCounterMode"]
