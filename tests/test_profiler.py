"""The profiler: what ran, how often and how long; and nothing is left behind when it ends."""

import gzip
import json
import sys
import time

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ops.table import TABLE
from rushlight.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)

backward_module = sys.modules["rushlight.autograd.backward"]


def kernels():
    cells = {name: dict(zip(op.call.__code__.co_freevars, op.call.__closure__)) for name, op in TABLE.items()}
    return {name: found["kernel"].cell_contents for name, found in cells.items()}


@pytest.fixture
def step():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
    x = torch.randn(8, 16)

    def run():
        model.zero_grad()
        model(x).square().sum().backward()

    return run


def test_calls_are_counted(step):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        for _ in range(3):
            step()
    rows = {row.key: row for row in prof.key_averages()}
    for name, count in {"tanh": 3, "linear": 6, "TanhBackward0": 3, "AddmmBackward0": 6, "nn.Module: Linear": 6,
                        "nn.Module: Sequential": 3, "autograd::accumulate_grad": 12}.items():  # fmt: skip
        assert rows[name].count == count, name
    assert rows["tanh"].cpu_memory_usage == 3 * 8 * 32 * 4
    assert all(row.cpu_time_total >= row.self_cpu_time_total >= 0 for row in rows.values())
    assert rows["nn.Module: Sequential"].cpu_time_total >= rows["nn.Module: Linear"].cpu_time_total
    shaped = prof.key_averages(group_by_input_shape=True)
    assert [[8, 16], [32, 16], [32]] in [row.input_shapes for row in shaped if row.key == "linear"]


def test_nothing_is_left_behind(step):
    known, steps, call = kernels(), backward_module.steps, nn.Module.__call__
    with pytest.raises(ZeroDivisionError), profile():
        step(1 / 0)
    with profile():
        step()
    assert kernels() == known
    assert backward_module.steps is steps
    assert nn.Module.__call__ is call


def test_results_are_the_same(step):
    x = torch.randn(5, 5, requires_grad=True)
    (x @ x).exp().mean().backward()
    expected, x.grad = x.grad, None
    with profile():
        (x @ x).exp().mean().backward()
    assert torch.equal(x.grad, expected)


def test_times_are_times():
    with profile() as prof, record_function("sleep"):
        time.sleep(0.02)
        torch.ones(3) + 1
    (row,) = [row for row in prof.key_averages() if row.key == "sleep"]
    assert 20_000 <= row.cpu_time_total < 2_000_000
    assert row.self_cpu_time_total <= row.cpu_time_total
    assert row.is_user_annotation


def test_the_table(step):
    with profile() as prof:
        step()
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5)
    assert "Self CPU %" in text
    assert "Self CPU time total" in text
    assert len(text.splitlines()) == 10
    assert len(prof.key_averages().table(row_limit=-1).splitlines()) == len(prof.key_averages()) + 5
    with pytest.raises(AttributeError, match="cannot sort"):
        prof.key_averages().table(sort_by="colour")


def test_the_chrome_trace(step, tmp_path):
    with profile(record_shapes=True) as prof:
        step()
    for name in ("a.json", "a.json.gz"):
        prof.export_chrome_trace(tmp_path / name)
        raw = (tmp_path / name).read_bytes()
        trace = json.loads(gzip.decompress(raw) if name.endswith("gz") else raw)
        assert {"linear", "tanh"} <= {event["name"] for event in trace["traceEvents"]}
        assert all(event["ph"] == "X" and event["dur"] >= 0 for event in trace["traceEvents"])


def test_a_schedule(step):
    ready = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)

    def note(prof):
        ready.append((prof.step_num, len([event for event in prof.events() if event.name == "tanh"])))

    with profile(schedule=plan, on_trace_ready=note) as prof:
        for _ in range(10):
            step()
            prof.step()
    assert ready == [(4, 2), (8, 2)]


@pytest.mark.parametrize("plan", [{"wait": 1, "warmup": 1, "active": 2}, {"wait": 0, "warmup": 0, "active": 1, "repeat": 2},
                                  {"wait": 2, "warmup": 1, "active": 3, "repeat": 1, "skip_first": 2}])  # fmt: skip
def test_the_schedule_is_torchs(torch_profiler, plan):
    ours, theirs = schedule(**plan), torch_profiler.schedule(**plan)
    assert [ours(i).name for i in range(20)] == [theirs(i).name for i in range(20)]
    assert {a.name: a.value for a in ProfilerAction} == {a.name: a.value for a in torch_profiler.ProfilerAction}


@pytest.fixture
def torch_profiler():
    return pytest.importorskip("torch.profiler")


def test_handlers_and_decorators(step, tmp_path):
    @record_function("mine")
    def work():
        step()

    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "traces"), use_gzip=True)) as prof:
        work()
    assert "mine" in [event.name for event in prof.events()]
    assert [path.suffix for path in (tmp_path / "traces").iterdir()] == [".gz"]


def test_two_at_once_are_refused(step):
    with profile(), pytest.raises(RuntimeError, match="another profile"), profile():
        pass
    with profile() as prof:
        step()
    assert prof.events()


def test_without_a_profile_blocks_cost_nothing_and_leave_nothing():
    with record_function("alone"):
        torch.ones(1) + 1
