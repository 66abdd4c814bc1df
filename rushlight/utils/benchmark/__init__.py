"""Time measurement: `Timer` measures a statement, `Measurement` holds the times, `Compare` makes a table of several.

>>> from rushlight.utils.benchmark import Timer
>>> found = Timer("x @ x", globals={"x": rushlight.ones(8, 8)}, label="product").timeit(100)
>>> found.number_per_run, len(found.times), found.median > 0
(100, 1, True)
"""

from rushlight.utils.benchmark.compare import Colorize, Compare
from rushlight.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from rushlight.utils.benchmark.timer import Language, Timer

__all__ = [
    "Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit",
    "set_torch_threads", "trim_sigfig", "unit_to_english",
]  # fmt: skip
