"""Measurements: the times of a statement, with the task's description."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from textwrap import indent
from typing import Any

import numpy as np

from rushlight.base.threads import get_num_threads, set_num_threads

UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1)}
# the least ratios of the interquartile range to the median for which the two warnings are shown
UNRELIABLE_SPREAD, VERY_UNRELIABLE_SPREAD = 0.1, 0.25
# least width of a confidence interval; most significant digits
MIN_INTERVAL_SECONDS, MAX_DIGITS = 25e-9, 5
NORMAL_QUANTILE = 1.645  # 90 % of a normal distribution lies within this many standard deviations


@dataclass(repr=False, frozen=True)
class TaskSpec:
    """The task of a `Timer`: statement, setup and labels."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label or else the statement, with the sub-label."""
        if self.label is None and "\n" in self.stmt:
            return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{indent(self.stmt, '  ')}"
        return (self.stmt if self.label is None else self.label) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """The setup as shown in a repr."""
        if self.setup in ("", "pass"):
            return ""
        return "setup:\n" + indent(self.setup, "  ") if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, on separate lines."""
        parts = filter(None, (self.title, self.description, self.setup_str()))
        return "\n".join(part + "\n" * ("\n" in part) for part in parts)


TASK = frozenset(field.name for field in fields(TaskSpec))


@dataclass(repr=False)
class Measurement:
    """Times of one statement: `raw_times` of `number_per_run` runs each, in seconds. The task's fields are attributes,
    too.

    `times`: seconds for one run; `median`, `mean` and `iqr` (interquartile range) of `times`.

    >>> task = rushlight.utils.benchmark.TaskSpec("x + y", "pass")
    >>> rushlight.utils.benchmark.Measurement(2, [2.0, 3.0, 4.0], task).median
    1.5
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in TASK:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        return [t / self.number_per_run for t in self.raw_times]

    def quantile(self, q: float) -> float:
        return float(np.quantile(self.times, q))

    @property
    def median(self) -> float:
        return self.quantile(0.5)

    @property
    def mean(self) -> float:
        return float(np.mean(self.times))

    @property
    def iqr(self) -> float:
        return self.quantile(0.75) - self.quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """The number of significant digits of the median, from the confidence interval of the interquartile mean."""
        n = len(self.raw_times)
        middle = sorted(self.times)[n // 4 : math.ceil(3 * n / 4)]
        interval = max(NORMAL_QUANTILE * float(np.std(middle)) / math.sqrt(len(middle)), MIN_INTERVAL_SECONDS)
        return min(max(math.floor(math.log10(self.median / interval)), 1), MAX_DIGITS)

    def meets_confidence(self, threshold: float = UNRELIABLE_SPREAD) -> bool:
        """Whether the interquartile range is less than this fraction of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        return not self.meets_confidence()

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        n, threads = len(self.raw_times), self.num_threads
        unit, scale = select_unit(self.median)
        lines = [
            object.__repr__(self),
            self.task_spec.summarize(),
            f"  {'Median: ' * (n > 1)}{self.median / scale:.2f} {unit}",
        ]
        if n >= 4:
            low, high = (self.quantile(q) / scale for q in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {n} measurement{'s' * (n > 1)}, {self.number_per_run} runs {'per measurement,' if n > 1 else ','} "
            f"{threads} thread{'s' * (threads > 1)}"
        )
        if self.has_warnings:
            steady = self.meets_confidence(VERY_UNRELIABLE_SPREAD)
            lines.append(
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median "
                "measurement.\n           This "
                + ("could indicate system fluctuation." if steady else "suggests significant environmental influence.")
            )
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with all times of that task as single runs."""
        times: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            times.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, found, task) for task, found in times.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The best unit for t seconds, and the unit's seconds: ("us", 1e-6)."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.floor(math.log10(t) / 3), "s")
    return unit, UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """A unit's name: "us" is a "microsecond"."""
    return UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """x to n digits: trim_sigfig(3.14159, 2) is 3.1."""
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The distinct elements, in order of first appearance."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """`with set_torch_threads(1)`: a context with this number of threads."""
    before = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)
