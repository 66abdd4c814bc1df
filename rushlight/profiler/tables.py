"""Summaries of a recording: by the name of the op, and by module."""

from __future__ import annotations

from bisect import bisect_left
from itertools import product

from rushlight.profiler.clocks import Event
from rushlight.profiler.units import in_bytes, time_text

SORTS = ("cpu_time_total", "self_cpu_time_total", "cpu_time", "count", "cpu_memory_usage", "self_cpu_memory_usage")
ELSEWHERE = (
    "cuda_time",
    "device_time",
    *map("".join, product(("", "self_"), ("cuda", "device"), ("_time_total", "_memory_usage"))),
)


class Average:
    """All calls of one name: `key`, `count`, times in microseconds, bytes."""

    def __init__(self, key: str, shapes: list | None, events: list[Event]):
        self.key, self.input_shapes, self.count = key, shapes, len(events)
        self.cpu_time_total = sum(e.cpu_time_total for e in events)
        self.self_cpu_time_total = sum(e.self_cpu_time_total for e in events)
        self.cpu_memory_usage = self.self_cpu_memory_usage = sum(e.bytes for e in events)
        self.is_user_annotation = any(e.kind == "user" for e in events)

    @property
    def cpu_time(self) -> float:
        """The mean time of a call, in microseconds."""
        return self.cpu_time_total / self.count

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, {time_text(self.cpu_time_total)}>"


for _name in ELSEWHERE:  # attributes for other devices are 0
    setattr(Average, _name, 0)


class Averages(list):
    """The result of `key_averages()`: a list of `Average`, with `table()`."""

    @property
    def self_cpu_time_total(self) -> float:
        return sum(row.self_cpu_time_total for row in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A table, largest rows first. `sort_by`: 'self_cpu_time_total', 'cpu_time_total', 'cpu_time', 'count' or
        'cpu_memory_usage'. Without it, or with a column of other devices, rows are in the order of first calls."""
        if sort_by is not None and sort_by not in SORTS + ELSEWHERE:
            raise AttributeError(f"profiler: cannot sort by {sort_by!r}; choose one of {', '.join(SORTS)}")
        rows = self if sort_by is None else sorted(self, key=lambda row: getattr(row, sort_by), reverse=True)
        whole = self.self_cpu_time_total or 1.0
        shaped = any(row.input_shapes is not None for row in self)
        head = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "CPU Mem", "# of Calls"]
        lines = [head + ["Input Shapes"] * shaped]
        for row in rows[: row_limit if row_limit >= 0 else None]:
            lines.append(
                [
                    row.key[:max_name_column_width],
                    f"{row.self_cpu_time_total / whole:.2%}",
                    time_text(row.self_cpu_time_total, time_unit),
                    f"{row.cpu_time_total / whole:.2%}",
                    time_text(row.cpu_time_total, time_unit),
                    time_text(row.cpu_time, time_unit),
                    in_bytes(row.cpu_memory_usage),
                    str(row.count),
                ]
                + [str(row.input_shapes)[:max_shapes_column_width]] * shaped
            )
        total = f"Self CPU time total: {time_text(self.self_cpu_time_total, time_unit)}"
        return "\n".join([*([header] if header else []), aligned(lines), total]) + "\n"

    def __str__(self) -> str:
        return self.table()


class ModuleRow:
    """The calls of one module. `path`: its name in the tree; `kind`: its class; `calls`: their number; `forward`,
    `backward`: microseconds including child modules; `bytes`: made by its ops in forward and backward."""

    def __init__(self, path: str, kind: str):
        self.path, self.kind, self.calls, self.forward, self.backward, self.bytes = path, kind, 0, 0.0, 0.0, 0

    def __repr__(self) -> str:
        times = f"forward {time_text(self.forward)}, backward {time_text(self.backward)}"
        return f"<{self.path} {self.kind}: {self.calls} calls, {times}>"


class Modules(list):
    """The result of `module_averages()`: a list of `ModuleRow`, in the order of first calls, with `table()`."""

    def table(self) -> str:
        """A table with one line per module; child modules are indented below their parent."""
        lines = [["Module", "Calls", "Forward", "Backward", "Mem"]]
        lines += [
            [
                "  " * (row.path.count(".") + bool(row.path)) + (f"{row.path}: " if row.path else "") + row.kind,
                str(row.calls),
                time_text(row.forward),
                time_text(row.backward),
                in_bytes(row.bytes),
            ]
            for row in self
        ]
        return aligned(lines) + "\n"

    def __str__(self) -> str:
        return self.table()


def aligned(lines: list[list[str]]) -> str:
    """The lines as a table with aligned columns, and rules around the head."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    rule = "  ".join("-" * width for width in widths)
    text = [
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:]))]) for line in lines
    ]
    return "\n".join([rule, text[0], rule, *text[1:], rule])


def by_module(events: list[Event]) -> Modules:
    """Sum the calls of each module. The backward of a node counts for the innermost module call that made the node, and
    for the calls around it.
    """
    calls = sorted((e for e in events if e.kind == "module"), key=lambda e: e.start)
    rows: dict[tuple[str, str], ModuleRow] = {}
    for e in calls:
        row = rows.setdefault((e.path, e.name), ModuleRow(e.path, e.name.removeprefix("nn.Module: ")))
        row.calls += 1
        row.forward += e.cpu_time_total
    begins = [e.seq[0] for e in calls]
    for e in events:
        at = e.within if e.kind == "op" else maker(e.seq[0], calls, begins) if e.kind == "backward" else None
        while at is not None:
            around = rows.get((at.path, at.name))
            if around is not None:  # None: the call began before the recording
                around.bytes += e.bytes
                around.backward += e.cpu_time_total if e.kind == "backward" else 0.0
            at = at.within
    return Modules(rows.values())


def maker(seq: int, calls: list[Event], begins: list[int]) -> Event | None:
    """The innermost module call that made a node: the last call that began before the node, or a call around that
    one.
    """
    place = bisect_left(begins, seq)
    at = calls[place - 1] if place else None
    while at is not None and not at.seq[0] < seq < at.seq[1]:
        at = at.within
    return at
