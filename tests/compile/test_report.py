"""What can be seen of programs: why there is none, graph, memory, timings, passes one by one."""

from __future__ import annotations

import importlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight
import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import api, compile, programs
from rushlight.compile.lower.memory_plan import offsets
from rushlight.compile.passes import PASSES
from rushlight.compile.report import Lease
from rushlight.nn import functional as F

CALLS = 4


def training(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(8, 6), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def made(f, *args, **options):
    g = compile(f, **options)
    for _ in range(CALLS):
        g(*args)
    return g


def test_every_statement_that_breaks_the_graph_is_named():
    def f(x):
        y = x * 2
        if y.sum() > 0:
            y = y + y[0].item()
        return y.tolist()

    found = api.explain(f, torch.ones(3))
    assert found.graph_count == 0
    assert found.graph_break_count == 3
    lines = [b.where for b in found.break_reasons]
    assert ["if y.sum() > 0" in lines[0], "y[0].item()" in lines[1], "y.tolist()" in lines[2]] == [True] * 3
    assert all(b.reason == "looks at the numbers of a tensor" for b in found.breaks)
    assert "test_report.py" in str(found)


def test_what_compiles_and_what_changes_python():
    found = api.explain(lambda x: (x * 2).sum(), torch.ones(3))
    assert (found.graph_count, found.graph_break_count) == (1, 0)
    assert "2 ops" in str(found)
    seen = []
    assert "Python state" in str(api.explain(lambda x: (seen.append(1), x + len(seen))[1], torch.ones(1)))


def test_the_graph_in_graphviz_language():
    program = programs(made(training(), backend="numpy"))[-1]
    text = program.graph()
    assert text.startswith("digraph")
    assert text.count("{") == text.count("}")
    boxes = set(re.findall(r"^  (\w+) \[", text, re.M))
    for a, b in re.findall(r"(\w+) -> (\w+)", text):
        assert {a, b} <= boxes
    assert "float32[8, 16]" in text
    assert "test_report.py" in text


def test_memory_that_is_shared_is_never_shared_at_once():
    program = programs(made(training(), backend="numpy"))[-1]
    leases = program.forward.leases
    assert 0 < program.forward.size < sum(r.size for r in leases)
    apart(leases)
    assert "bytes" in program.memory()


def apart(leases):
    for i, a in enumerate(leases):
        for b in leases[:i]:
            assert a.start + a.size <= b.start or b.start + b.size <= a.start or a.first > b.last or b.first > a.last


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20), st.integers(0, 20)), max_size=30))
def test_an_arena_is_never_shared_at_once(pieces):
    """Nor is there a gap that nobody ever fills: each piece lies at the bottom or on one that it meets."""
    pieces = [(64 * n, min(a, b), max(a, b)) for n, a, b in pieces]
    starts = offsets(*([list(x) for x in zip(*pieces)] or [[], [], []]))
    leases = [Lease("", start, *piece) for start, piece in zip(starts, pieces)]
    apart(leases)
    for a in leases:
        assert a.start == 0 or any(
            b.start + b.size == a.start and b.first <= a.last and a.first <= b.last for b in leases
        )


def test_the_time_of_each_statement():
    f = made(lambda x: (x @ x).exp().sum(), torch.ones(64, 64), backend="numpy")
    program = programs(f)[-1]
    with program.timing() as t:
        for _ in range(3):
            f(torch.ones(64, 64))
    assert t.calls == 3
    assert len(t.rows) == len(program.items) == 3
    assert all(us > 0 for us, _ in t.rows)
    assert "matmul" in str(t)
    f(torch.ones(64, 64))
    assert t.calls == 3  # afterwards nobody watches


@pytest.mark.parametrize("off", ["extend", "narrow", "decompose", "products", "simplify", "fuse", "threads"])
def test_without_one_pass_the_same_comes_out(off):
    step = training()
    expected = [float(step()) for _ in range(6)]
    f = made(training(), backend="numpy", options={off: False})
    assert [float(f()) for _ in range(6 - CALLS)] == pytest.approx(expected[CALLS:], rel=1e-5)
    assert programs(f), f.given_up


def test_passes_can_be_watched():
    shown = []
    made(training(), backend="numpy", options={"show": shown.append})
    shown = shown[-1 - len(PASSES) :]  # of the last program
    assert [text.split("\n")[0].split(":")[0] for text in shown] == [
        "-- as recorded",
        *[f"-- after {name}" for name in PASSES],
    ]
    assert "layer_norm(" in shown[0]
    assert "layer_norm(" not in shown[1 + [*PASSES].index("decompose")]


@pytest.mark.origin("scripts")
def test_explanations_are_asked_for_as_in_torch(oracle):
    """`torch._dynamo.explain(f)(*args)`: the function was called without its arguments."""

    def counted(t):
        found = importlib.import_module(f"{t.__name__}._dynamo").explain(lambda x, y: x * y + 1)(t.ones(2), t.ones(2))
        return [found.graph_count, found.graph_break_count]

    assert counted(rushlight) == oracle(counted) == [1, 0]
    assert rushlight._dynamo.explain(lambda x: x + 1, rushlight.ones(2)).graph_count == 1
    with rushlight._inductor.utils.fresh_inductor_cache():
        pass


@pytest.mark.origin("scripts")
def test_a_break_that_a_script_asks_for_breaks_nothing():
    def f(x):
        y = x * 2
        rushlight._dynamo.graph_break()
        return y + 1

    assert rushlight.compiler.explain(f, rushlight.ones(2)).graph_count == 1
