"""`summary(model, ...)`: a table of a model's layers, their shapes and parameters, as torchinfo prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from rushlight.base.dtypes import dtype as DType
from rushlight.base.dtypes import float32
from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.nn import Module
from rushlight.ops.grad_mode import no_grad
from rushlight.random import Generator

HEADINGS = {
    "kernel_size": "Kernel Shape",
    "input_size": "Input Shape",
    "output_size": "Output Shape",
    "num_params": "Param #",
    "params_percent": "Param %",
    "mult_adds": "Mult-Adds",
    "trainable": "Trainable",
}
SETTINGS = ("depth", "var_names", "ascii_only", "hide_recursive_layers")
RECURRENT = ("RNN", "LSTM", "GRU")


@dataclass
class Row:
    """One call of a layer."""

    module: Module
    name: str
    depth: int
    index: int = 0  # number among the rows of this depth
    again: bool = False  # an earlier call counts its parameters
    input_size: list[int] = field(default_factory=list)
    output_size: list[int] = field(default_factory=list)
    output_bytes: int = 0
    below: list[Row] = field(default_factory=list)  # all calls inside this call

    @property
    def leaf(self) -> bool:
        return next(self.module.children(), None) is None

    @property
    def params(self) -> int:
        return sum(p.numel() for p in self.module.parameters())

    @property
    def trainable(self) -> int:
        return sum(p.numel() for p in self.module.parameters() if p.requires_grad)

    def own(self, kind: str = "params") -> int:
        """The parameters that no row below counts."""
        if self.again:
            return 0
        return getattr(self, kind) - sum(row.own(kind) for row in self.below)

    @property
    def mult_adds(self) -> int:
        """For a leaf module: each parameter counts once for each element of the output that uses it."""
        if not self.leaf or not self.output_size:
            return 0
        kind, size = type(self.module).__name__, self.output_size
        times = prod(size[:1] + size[2:]) if "Conv" in kind else prod(size[:2]) if kind in RECURRENT else size[0]
        return self.params * times


class ModelStatistics:
    """The result of `summary`; its text is the table.

    `total_params`, `trainable_params`, `total_mult_adds`, and bytes: `total_input`, `total_param_bytes`,
    `total_output_bytes`."""

    def __init__(
        self, rows: list[Row], total_input: int, ran: bool, columns: Sequence[str], width: int, depth: int,
        settings: Sequence[str],
    ):  # fmt: skip
        self.summary_list, self.total_input, self.ran = rows, total_input, ran
        self.columns, self.width, self.depth, self.settings = columns, width, depth, settings
        leaves = [row for row in rows if row.leaf]
        self.total_mult_adds = sum(row.mult_adds for row in leaves)
        self.total_params, self.trainable_params = sum(r.own() for r in rows), sum(r.own("trainable") for r in rows)
        self.total_param_bytes = sum(p.nbytes for p in rows[0].module.parameters())
        self.total_output_bytes = sum(row.output_bytes for row in leaves if row.params)

    # -- the table ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        rows = [
            row
            for row in self.summary_list
            if row.depth <= self.depth and not (row.again and "hide_recursive_layers" in self.settings)
        ]
        names = [self.label(row) for row in rows]
        first = max([40, *map(len, names)])
        line = "=" * (first + self.width * len(self.columns))
        title = (
            "Layer (type"
            + (" (var_name)" if "var_names" in self.settings else "")
            + (":depth-idx)" if "depth" in self.settings else ")")
        )
        table = [self.row(title, [HEADINGS[c] for c in self.columns], first), line]
        table += [self.row(name, [self.cell(row, c) for c in self.columns], first) for name, row in zip(names, rows)]
        return "\n".join([line, *table, line, *self.totals(line)])

    def row(self, name: str, cells: Iterable[str], first: int) -> str:
        return (f"{name:<{first}} " + "".join(f"{cell:<{self.width}} " for cell in cells)).rstrip()

    def label(self, row: Row) -> str:
        """A branch of the tree, the layer's class, and its number."""
        branch, bar, corner = ("+ ", "|    ", "+ ") if "ascii_only" in self.settings else ("├─", "│    ", "└─")
        tree = "" if row.depth == 0 else branch if row.depth == 1 else bar * (row.depth - 1) + corner
        name = type(row.module).__name__ + (f" ({row.name})" if "var_names" in self.settings and row.name else "")
        return tree + name + (f": {row.depth}-{row.index}" if "depth" in self.settings and row.depth else "")

    def cell(self, row: Row, column: str) -> str:
        write = getattr(self, f"{column}_cell", None)
        return str(getattr(row, column) or "--") if write is None else write(row)

    def stands_for_all_below(self, row: Row) -> bool:
        """Whether the table has no rows for the layers inside this one."""
        return row.depth == self.depth and not row.leaf

    def own_params(self, row: Row) -> int:
        return row.params if self.stands_for_all_below(row) else row.own()

    def num_params_cell(self, row: Row) -> str:
        if row.again and row.params:
            return "(recursive)"
        count = self.own_params(row)
        return f"{count:,}" if count > 0 else "--"

    def params_percent_cell(self, row: Row) -> str:
        if row.again and row.params:
            return "(recursive)"
        count = self.own_params(row)
        share = f"{100 * count / max(self.total_params, 1):.2f}%" if count > 0 else "--"
        return f"{share:>7}"

    def mult_adds_cell(self, row: Row) -> str:
        whole = self.stands_for_all_below(row)
        count = sum(one.mult_adds for one in row.below) if whole else row.mult_adds
        return f"{count:,}" if count > 0 else "--"

    def trainable_cell(self, row: Row) -> str:
        if row.params == 0:
            return "--"
        return {0: "False", row.params: "True"}.get(row.trainable, "Partial")

    def kernel_size_cell(self, row: Row) -> str:
        kernel = getattr(row.module, "kernel_size", None)
        if kernel is None:
            return "--"
        return str(kernel if isinstance(kernel, int) else list(kernel))

    def totals(self, line: str) -> Iterator[str]:
        yield f"Total params: {self.total_params:,}"
        yield f"Trainable params: {self.trainable_params:,}"
        yield f"Non-trainable params: {self.total_params - self.trainable_params:,}"
        if self.ran:
            scale, unit = next(((n, u) for n, u in ((1e12, "T"), (1e9, "G")) if self.total_mult_adds >= n), (1e6, "M"))
            yield f"Total mult-adds ({unit}): " + (
                f"{self.total_mult_adds / scale:,.2f}" if self.total_mult_adds else "0"
            )
            sizes = self.total_input, 2 * self.total_output_bytes, self.total_param_bytes
            names = ("Input size", "Forward/backward pass size", "Params size", "Estimated Total Size")
            yield line
            yield from (f"{name} (MB): {size / 1e6:.2f}" for name, size in zip(names, [*sizes, sum(sizes)]))
        yield line


# -- running the model -----------------------------------------------------------------------------


def summary(
    model: Module, input_size: Any = None, input_data: Any = None, batch_dim: int | None = None,
    cache_forward_pass: bool | None = None, col_names: Iterable[str] | None = None, col_width: int = 25, depth: int = 3,
    device: Any = None, dtypes: Sequence[DType] | None = None, mode: str | None = None,
    row_settings: Iterable[str] | None = None, verbose: int | None = None, **kwargs: Any,
) -> ModelStatistics:  # fmt: skip
    """The layers of a model with the shapes of their outputs and their parameters, as a table that is also printed.

    The model runs once, in `mode` (default 'eval') on `input_data` (a tensor, or a list or dict of arguments), or on
    numbers of the shape `input_size` (or a list of shapes, of `dtypes`); with neither it does not run. `kwargs` go to
    its forward. `col_names`: 'input_size', 'output_size', 'num_params', 'params_percent', 'kernel_size', 'mult_adds',
    'trainable'; `row_settings`: 'depth', 'var_names', 'ascii_only', 'hide_recursive_layers'; `depth`: how deep the
    table goes; `batch_dim`: where to add a dimension of 1 to the sizes; `verbose=0`: it is not printed.

    ValueError for other names, RuntimeError, with the layers that ran, if the model fails.

    >>> found = rushlight.utils.summary(rushlight.nn.Linear(3, 2), (1, 3), verbose=0)
    >>> found.total_params
    8
    """
    ran = input_size is not None or input_data is not None or bool(kwargs)
    columns = tuple(col_names) if col_names is not None else ("output_size", "num_params") if ran else ("num_params",)
    settings = tuple(row_settings) if row_settings is not None else ("depth",)
    check_names("col_names", columns, HEADINGS)
    check_names("row_settings", settings, SETTINGS)
    if input_size is not None and input_data is not None:
        raise runtime_error("Only one of (input_data, input_size) should be specified.")
    if mode not in (None, "eval", "train", "same"):
        raise runtime_error(f"Specified model mode ({mode!r}) not recognized.", "mode='eval', 'train' or 'same'")
    args, named = arguments(input_size, input_data, batch_dim, dtypes)
    rows = called(model, args, {**named, **kwargs}, mode or "eval") if ran else list(tree(model))
    size = sum(t.nbytes for t in tensors([*args, *named.values()]))
    found = ModelStatistics(rows, size, ran, columns, col_width, depth, settings)
    if verbose is None:
        # at the prompt, Python already shows the returned value
        verbose = 0 if hasattr(sys, "ps1") else 1
    if verbose > 0:
        print(found)
    return found


def check_names(what: str, given: Sequence[str], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            raise value_error(f"{what}: {name!r} is not one of {', '.join(known)}")


def arguments(size: Any, data: Any, batch_dim: int | None, dtypes: Sequence[DType] | None) -> tuple[list, dict]:
    """Positional and named arguments for the model."""
    if data is not None:
        if isinstance(data, Mapping):
            return [], dict(data)
        return (list(data) if isinstance(data, (list, tuple)) else [data]), {}
    if size is None:
        return [], {}
    several = len(size) > 0 and not isinstance(size[0], int)
    shapes = [list(one) for one in (size if several else [size])]
    if batch_dim is not None:
        for shape in shapes:
            shape.insert(batch_dim, 1)
    kinds = list(dtypes) if dtypes is not None else [float32] * len(shapes)
    # the program's own random numbers continue as if the summary had not run
    random = Generator().manual_seed(0)
    return [from_array(random.uniform(tuple(shape)).astype(kind.numpy)) for shape, kind in zip(shapes, kinds)], {}


def tree(module: Module, name: str = "", depth: int = 0, counts: dict[int, int] | None = None) -> Iterator[Row]:
    """The rows of all layers, in order of definition."""
    counts = {} if counts is None else counts
    counts[depth] = counts.get(depth, 0) + 1
    row = Row(module, name or type(module).__name__, depth, counts[depth])
    yield row
    for key, child in module.named_children():
        for below in tree(child, key, depth + 1, counts):
            row.below.append(below)
            yield below


def called(model: Module, args: list, kwargs: dict, mode: str) -> list[Row]:
    """The rows of all layers, in order of calls."""
    rows: list[Row] = []
    open_rows: list[Row] = []
    counts: dict[int, int] = {}
    places = {id(row.module): row for row in tree(model)}
    seen: set[int] = set()

    def begin(module: Module, inputs: tuple) -> None:
        place = places[id(module)]
        counts[place.depth] = counts.get(place.depth, 0) + 1
        row = Row(module, place.name, place.depth, counts[place.depth], id(module) in seen, shape(inputs))
        seen.add(id(module))
        for above in open_rows:
            above.below.append(row)
        rows.append(row)
        open_rows.append(row)

    def end(module: Module, inputs: tuple, outputs: Any) -> None:
        row = open_rows.pop()
        row.output_size, row.output_bytes = shape(outputs), sum(t.nbytes for t in tensors([outputs]))

    modes = {module: module.training for module in model.modules()}
    handles = [h for m in modes for h in (m.register_forward_pre_hook(begin), m.register_forward_hook(end))]
    try:
        if mode != "same":
            model.train(mode == "train")
        with no_grad():
            model(*args, **kwargs)
    except Exception as error:
        raise runtime_error(
            "Failed to run torchinfo. See above stack traces for more details. Executed layers up to: "
            f"{[f'{type(r.module).__name__}: {r.depth}' for r in rows if r.output_size]}"
        ) from error
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes.items():
            module.training = training
    return rows


def tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from tensors(item)


def shape(value: Any) -> list[int]:
    """The size of the first tensor in a value."""
    first = next(tensors(value), None)
    return [] if first is None else list(first.shape)
