"""`Timer`: repeats a statement until its time is known accurately."""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from enum import Enum
from statistics import median
from textwrap import dedent
from typing import Any

from rushlight.base.errors import not_implemented_error, value_error
from rushlight.utils.benchmark.measurement import Measurement, TaskSpec, set_torch_threads

Callback = Callable[[int, float], Any]
MAX_RUNS = 2**31 - 1  # most runs in one measurement


class Language(Enum):
    """The language of a statement: Python."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times of `stmt`, run with `globals` after `setup`, on `num_threads` threads, as a `Measurement`.

    `Compare` groups by `label`, `sub_label`, `description` and `env`. The statement can use `torch`.

    ValueError if the statement is not text, NotImplementedError for C++.

    >>> rushlight.utils.benchmark.Timer("torch.ones(3)").timeit(10).number_per_run
    10
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = timeit.default_timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None, env: str | None = None,
        num_threads: int = 1, language: Language | str = Language.PYTHON,
    ):  # fmt: skip
        check(stmt, global_setup, language)
        stmt, setup = (dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup))
        self._globals = {"torch": sys.modules["rushlight"], **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _seconds(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of `number` runs, after number / 100 warm-up runs."""
        with set_torch_threads(self._task_spec.num_threads):
            self._seconds(max(number // 100, 2))
            return self._measured(number, [self._seconds(number)])

    def blocked_autorange(self, callback: Callback | None = None, min_run_time: float = 0.2) -> Measurement:
        """Measure for `min_run_time` seconds, in blocks of runs large enough that the clock's overhead is
        negligible."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._runs(min_run_time)
            return self._repeated(number, min_run_time, lambda times: True, None, callback)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callback | None = None,
    ) -> Measurement:  # fmt: skip
        """`blocked_autorange` until the interquartile range of the times is less than `threshold` of the median."""

        def settled(times: list[float]) -> bool:
            return len(times) > 3 and self._measured(1, times).meets_confidence(threshold)

        with set_torch_threads(self._task_spec.num_threads):
            return self._repeated(self._runs(0.05), min_run_time, settled, max_run_time, callback)

    def _runs(self, min_run_time: float) -> int:
        """The number of runs per measurement: the least power of ten that takes at least a thousandth of the total
        time, and at least 10,000 times the overhead of the timer.
        """
        start, number = median(self._seconds(0) for _ in range(5)), 1
        while True:
            took = self._seconds(number)
            if took >= max(min_run_time / 1000, start * 1e4) or took > min_run_time or number * 10 > MAX_RUNS:
                return number
            number *= 10

    def _repeated(
        self, number: int, least: float, enough: Callable[[list[float]], bool], most: float | None,
        callback: Callback | None,
    ) -> Measurement:  # fmt: skip
        times: list[float] = []
        while sum(times) < least or not enough(times):
            times.append(self._seconds(number))
            if callback is not None:
                callback(number, times[-1])
            if most and sum(times) > most:
                break
        return self._measured(number, times)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """NotImplementedError, as in torch."""
        raise not_implemented_error("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callback | None = None) -> None:
        """NotImplementedError, as in torch."""
        raise not_implemented_error("See `Timer.blocked_autorange.`")

    def collect_callgrind(
        self, number: int = 100, *, repeats: int | None = None, collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> Any:  # fmt: skip
        """NotImplementedError: Valgrind counts machine instructions, and rushlight has no machine code to count."""
        raise not_implemented_error("collect_callgrind() is not supported", "blocked_autorange() measures time")


def check(stmt: Any, global_setup: str, language: Any) -> None:
    if not isinstance(stmt, str):
        raise value_error(
            "Currently only a `str` stmt is supported.",
            "call the function in the statement: Timer('f()', globals={'f': f})",
        )
    if language in (Language.CPP, "cpp", "c++"):
        raise not_implemented_error("Timer(language='cpp') is not supported", "write the statement in Python")
    if language not in (Language.PYTHON, "py", "python"):
        raise value_error(f"Invalid language `{language}`.")
    if global_setup:
        raise value_error(
            f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
        )
