"""torch.utils.benchmark: what is measured, how it is told, and the table of many."""

from __future__ import annotations

import importlib
import random

import pytest

from rushlight.base.threads import get_num_threads
from rushlight.utils.benchmark import Compare, Measurement, TaskSpec, Timer, select_unit, trim_sigfig

WAYS = (
    "",
    "trim_significant_figures",
    "colorize",
    "highlight_warnings",
    "trim_significant_figures highlight_warnings colorize",
)


def of(t):
    return importlib.import_module(
        "rushlight.utils.benchmark" if t.__name__ == "rushlight" else "torch.utils.benchmark"
    )


def measured(b, times, **task):
    return b.Measurement(10, times, b.TaskSpec(**{"stmt": "f(x)", "setup": "pass", **task}))


def many(b):
    """Measurements of two columns and three rows on one and four threads, some of them shaky."""
    rng, made = random.Random(3), []
    for threads in (1, 4):
        for row in ("[1, 1]", "[64, 1024]", "a long name of a row"):
            for column in ("mul/sum", "bmm")[: 1 + (threads == 4 or row != "[1, 1]")]:
                base = 10 ** rng.uniform(-5, -3)
                times = [base * (1 + rng.uniform(0, 0.5)) for _ in range(rng.choice((1, 3, 8, 20)))]
                task = {"label": "dot", "sub_label": row, "description": column, "num_threads": threads}
                made.append(measured(b, times, **task))
    return made


def places(b):
    return [
        measured(b, [1e-3 * (i + 1)] * 3, sub_label=f"s{i % 2}", env=env, description="d")
        for i, env in enumerate(("a", "a", "longer", "longer"))
    ]


def shown(m):
    return "\n".join(line for line in repr(m).split("\n") if " object at " not in line)


def test_a_measurement_is_told_as_in_torch(oracle):
    def told(t):
        b = of(t)
        lines = (
            measured(b, [0.02, 0.03], stmt="a\nb", setup="q=1\nz=2"),
            measured(b, [0.1], setup="q=1", sub_label="k"),
        )
        return [shown(m) for m in (*many(b), *lines)]

    assert told(importlib.import_module("rushlight")) == oracle(told)


@pytest.mark.parametrize("way", WAYS)
def test_the_table_is_that_of_torch(oracle, way):
    def told(t):
        b = of(t)
        table = b.Compare(many(b)[:4])
        table.extend_results(many(b)[2:] + places(b))
        for name in way.split():
            getattr(table, name)()
        return str(table)

    assert told(importlib.import_module("rushlight")) == oracle(told)


def test_colours_along_rows(oracle):
    def told(t):
        table = of(t).Compare(many(of(t)))
        table.colorize(rowwise=True)
        return str(table)

    assert told(importlib.import_module("rushlight")) == oracle(told)


def test_numbers_of_a_measurement():
    m = Measurement(10, [4e-5, 2e-5, 3e-5], TaskSpec("f(x)", "pass", label="squares"))
    assert (m.median, m.iqr, m.label, m.title) == (pytest.approx(3e-6), pytest.approx(1e-6), "squares", "squares")
    assert m.has_warnings
    assert m.meets_confidence(0.5)
    assert [select_unit(t)[0] for t in (5e-8, 2e-6, 9.99e-4, 1e-3, 0.5, 1, 70)] == [
        "ns",
        "us",
        "us",
        "ms",
        "ms",
        "s",
        "s",
    ]
    assert [trim_sigfig(x, n) for x, n in ((3.14159, 2), (123.4, 1))] == pytest.approx([3.1, 100])


def test_the_timer_runs_the_statement():
    seen = []
    timer = Timer(
        """
        y = torch.ones(2) + x
        f(y)
    """,
        setup="x = 3",
        globals={"f": lambda y: seen.append((y.sum().item(), get_num_threads()))},
    )
    before = get_num_threads()
    assert timer.timeit(20).number_per_run == 20
    assert seen == [(8.0, 1)] * 22
    assert get_num_threads() == before
    found = timer.blocked_autorange(min_run_time=0.02)
    assert sum(found.raw_times) >= 0.02
    assert len(seen) >= 22 + found.number_per_run * len(found.raw_times)
    calls = []
    found = timer.adaptive_autorange(max_run_time=0.3, callback=lambda number, took: calls.append((number, took)))
    assert [took for _, took in calls] == found.raw_times
    assert {number for number, _ in calls} == {found.number_per_run}


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda: Timer(len), ValueError),
        (lambda: Timer(language="rust"), ValueError),
        (lambda: Compare([1]), ValueError),
        (lambda: Timer(global_setup="x"), ValueError),
        (lambda: Timer(language="c++"), NotImplementedError),
        (lambda: Timer().repeat(), NotImplementedError),
        (lambda: Timer().collect_callgrind(), NotImplementedError),
    ],
)
def test_refused(wrong, kind):
    with pytest.raises(kind):
        wrong()
