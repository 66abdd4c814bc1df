"""`Compare`: measurements as a table, a row for each sub_label (or statement), a column for each description."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum

from rushlight.base.errors import value_error
from rushlight.utils.benchmark.measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

GREEN, BLUE, PALE_RED, RED, BOLD, OFF = (f"\033[{code}m" for code in ("92", "34", "2m\033[91", "31", "1", "0"))
NOISE_SECONDS = 100e-9  # times this close to the best count as the best
Row = list[Measurement | None]
BETWEEN = "  |  "


class Colorize(Enum):
    """The group in which times are compared: the fastest is green, times above five times the fastest are red."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """The table of measurements, one for each label: `print()`, or `str`.

    >>> from rushlight.utils.benchmark import Compare, Timer
    >>> times = [Timer(f"torch.ones({n})", label="make", sub_label=str(n),
    ...     description="ones").timeit(9) for n in (1, 2)]
    >>> "ones" in str(Compare(times))
    True
    """

    def __init__(self, results: list[Measurement]):
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._colors, self._warn = False, Colorize.NONE, False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements. ValueError for other objects."""
        results = list(results)
        for r in results:
            if not isinstance(r, Measurement):
                raise value_error(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Show only significant digits."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best and the worst of each column, or of each row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Show the interquartile range of unreliable measurements."""
        self._warn = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(m.label for m in merged)
        return "\n".join(
            Table([m for m in merged if m.label == label], self._trim, self._colors, self._warn).render()
            for label in labels
        )


class Table:
    """The measurements of one label: rows by threads, env and name, columns by description."""

    def __init__(self, results: list[Measurement], trim: bool, colors: Colorize, warn: bool):
        self.label, self.trim, self.colors, self.warn = results[0].label, trim, colors, warn
        self.unit, self.scale = select_unit(min(m.median for m in results))
        self.names = ordered_unique(m.description for m in results)
        keys = ordered_unique((m.num_threads, m.env, m.as_row_name) for m in results)
        self.keys = sorted(keys, key=lambda key: (key[0], key[1] or ""))
        at = {(m.num_threads, m.env, m.as_row_name, m.description): m for m in results}
        self.rows: list[Row] = [[at.get((*key, name)) for name in self.names] for key in self.keys]
        self.shaky = warn and any(m.has_warnings for m in results)

    def render(self) -> str:
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [BETWEEN.join(cell.center(width) for cell, width in zip(cells[0], widths, strict=True))]
        wide, threads = len(lines[0]), None
        for key, row, (name, *times) in zip(self.keys, self.rows, cells[1:], strict=True):
            if key[0] != threads:
                threads = key[0]
                lines.append(f"{threads} threads: ".ljust(wide, "-"))
            coloured = [
                self.coloured(time.center(width), m, row, column)
                for column, (time, width, m) in enumerate(zip(times, widths[1:], row, strict=True))
            ]
            lines.append(BETWEEN.join([name.ljust(widths[0]), *coloured]))
        title = f" {self.label or ''} ".center(wide - 2, "-")
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" * self.shaky
        return (
            f"[{title}]\n" + "\n".join(lines) + f"\n\nTimes are in {unit_to_english(self.unit)}s ({self.unit}).\n{note}"
        )

    def cells(self) -> list[list[str]]:
        """The texts of the table, with the names of columns and rows."""
        several = len({env for _, env, _ in self.keys}) > 1
        place = max(len(str(env)) for _, env, _ in self.keys) + 4 if several else 0
        columns = [self.column([row[i] for row in self.rows]) for i in range(len(self.names))]
        rows, before = [], None
        for i, (threads, env, name) in enumerate(self.keys):
            shown = f"({env})" if several and (threads, env) != before else ""
            before = threads, env
            rows.append(["  " + shown.ljust(place if several else 4) + name, *(column[i] for column in columns)])
        return [["", *(name or "" for name in self.names)], *rows]

    def column(self, measured: Row) -> list[str]:
        """The times of one column, aligned at the decimal point."""
        there = [(m, math.ceil(math.log10(m.median / self.scale))) for m in measured if m is not None]
        points = min(max(m.significant_figures - digits, 0) for m, digits in there) if self.trim else 1
        width = max(digits for _, digits in there) + points + (points > 0)
        shaky = self.warn and any(m.has_warnings for m, _ in there)
        return [self.time(m, width, points, shaky) for m in measured]

    def time(self, m: Measurement | None, width: int, points: int, shaky: bool) -> str:
        if m is None:
            return " " * (max(width, 1 + points + (points > 0)) + 7 * shaky)
        value = m.median / self.scale
        text = f"{trim_sigfig(value, m.significant_figures) if self.trim else value:>{max(width, 0)}.{points}f}"
        return text + (f" (! {m.iqr / m.median * 100:.0f}%)" if m.has_warnings else "").rjust(7) if shaky else text

    def coloured(self, text: str, m: Measurement | None, row: Row, column: int) -> str:
        if m is None or self.colors is Colorize.NONE:
            return text
        rivals = (
            row
            if self.colors is Colorize.ROWWISE
            else [other[column] for key, other in zip(self.keys, self.rows, strict=True) if key[0] == m.num_threads]
        )
        best = min(other.median for other in rivals if other is not None)
        if m.median <= max(best * 1.01, best + NOISE_SECONDS):
            return f"{GREEN}{BOLD}{text}{OFF}{OFF}"
        if m.median <= best * 1.1:
            return f"{BLUE}{BOLD}{text}{OFF}{OFF}"
        if m.median >= best * 5:
            return f"{RED}{BOLD}{text}{OFF}{OFF}"
        return f"{PALE_RED}{text}{OFF}{OFF}" if m.median >= best * 2 else text
