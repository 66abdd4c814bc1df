"""The profiler: what ran, how often and how long; and nothing is left behind when it ends."""

import gzip
import importlib
import json
import sys
import time

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.base import lazy
from rushlight.core.table import TABLE
from rushlight.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)
from rushlight.profiler.torch_names import profiler_name

backward_module = sys.modules["rushlight.core.backward"]


def kernels():
    calls = {
        (name, i): call for name, op in TABLE.items() for i, call in enumerate(getattr(op.call, "forms", (op.call,)))
    }
    cells = {name: dict(zip(call.__code__.co_freevars, call.__closure__)) for name, call in calls.items()}
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
    for name, count in {
        "aten::tanh": 3,
        "aten::linear": 6,
        "TanhBackward0": 3,
        "AddmmBackward0": 6,
        "nn.Module: Linear": 6,
        "nn.Module: Sequential": 3,
        "torch::autograd::AccumulateGrad": 12,
    }.items():
        assert rows[name].count == count, name
    assert rows["aten::tanh"].cpu_memory_usage == 3 * 8 * 32 * 4
    assert all(row.cpu_time_total >= row.self_cpu_time_total >= 0 for row in rows.values())
    assert rows["nn.Module: Sequential"].cpu_time_total >= rows["nn.Module: Linear"].cpu_time_total
    shaped = prof.key_averages(group_by_input_shape=True)
    assert [[8, 16], [32, 16], [32]] in [row.input_shapes for row in shaped if row.key == "aten::linear"]


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
    assert 20_000 <= row.cpu_time_total < 20_000_000  # of ns it would be as many at least
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


def test_nothing_ran_on_other_devices(step):
    with profile() as prof:
        step()
    averages = prof.key_averages()
    assert averages.table(sort_by="cuda_time_total") == averages.table()
    assert averages.table(sort_by="self_device_memory_usage") == averages.table()
    assert {row.cuda_time_total for row in averages} == {0}


def test_the_chrome_trace(step, tmp_path):
    with profile(record_shapes=True) as prof:
        step()
    for name in ("a.json", "a.json.gz"):
        prof.export_chrome_trace(tmp_path / name)
        raw = (tmp_path / name).read_bytes()
        trace = json.loads(gzip.decompress(raw) if name.endswith("gz") else raw)
        assert {"aten::linear", "aten::tanh"} <= {event["name"] for event in trace["traceEvents"]}
        assert all(event["ph"] == "X" and event["dur"] >= 0 for event in trace["traceEvents"])


def test_a_schedule(step):
    ready = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)

    def note(prof):
        ready.append((prof.step_num, len([event for event in prof.events() if event.name == "aten::tanh"])))

    with profile(schedule=plan, on_trace_ready=note) as prof:
        for _ in range(10):
            step()
            prof.step()
    assert ready == [(4, 2), (8, 2)]


@pytest.mark.parametrize(
    "plan",
    [
        {"wait": 1, "warmup": 1, "active": 2},
        {"wait": 0, "warmup": 0, "active": 1, "repeat": 2},
        {"wait": 2, "warmup": 1, "active": 3, "repeat": 1, "skip_first": 2},
    ],
)
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


# -- by module


def test_modules_forward_and_backward():
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    model = nn.Sequential(nn.Linear(4, 8), inner, nn.Linear(8, 2))
    x = torch.randn(3, 4)
    with torch.profiler.profile() as prof:
        for _ in range(2):
            model(x).exp().sum().backward()
    rows = {row.path: row for row in prof.module_averages()}
    assert {path: row.kind for path, row in rows.items()} == {
        "": "Sequential",
        "0": "Linear",
        "1": "Sequential",
        "1.0": "Linear",
        "1.1": "Tanh",
        "2": "Linear",
    }
    assert all(row.calls == 2 and row.forward > 0 and row.backward > 0 for row in rows.values())
    assert rows[""].forward >= rows["0"].forward + rows["1"].forward + rows["2"].forward
    assert rows["1"].backward == pytest.approx(rows["1.0"].backward + rows["1.1"].backward)
    assert rows[""].backward == pytest.approx(sum(rows[p].backward for p in "012"))
    nodes = [e for e in prof.events() if e.kind == "backward" and e.name in ("AddmmBackward0", "TanhBackward0")]
    assert rows[""].backward == pytest.approx(sum(e.cpu_time_total for e in nodes))  # exp and sum are in no module
    assert rows["1.1"].bytes == 2 * 2 * 3 * 8 * 4  # 2 steps, forward and backward, (3, 8) of 4 bytes
    table = str(prof.module_averages())
    assert "    1.0: Linear" in table
    assert table.splitlines()[1].split() == ["Module", "Calls", "Forward", "Backward", "Mem"]


def test_views_of_fresh_memory_count_and_views_of_inputs_do_not():
    x = torch.ones(4, 4)
    with torch.profiler.profile() as prof:
        nn.functional.linear(torch.ones(2, 3, 4), x)
        x.t()
    sizes = {row.key: row.cpu_memory_usage for row in prof.key_averages()}
    assert sizes["aten::linear"] == 2 * 3 * 4 * 4
    assert all(size == 0 for name, size in sizes.items() if name.startswith(("t", "transpose")))


def test_the_names_of_ops_are_torchs(oracle):
    lazy.complete()
    for part in ("compile.api", "sparse.rows", "ops.nn.quantized"):  # they define ops, too
        importlib.import_module(f"rushlight.{part}")
    names = {
        name
        for op in TABLE.values()
        for call in getattr(op.call, "forms", (op.call,))
        if "kernel" in call.__code__.co_freevars and isinstance(name := profiler_name(op.called), str)
    }
    assert len(names) > 300
    theirs = sorted(name for name in names if not name.startswith("rushlight::"))

    def unknown(torch):
        known = {schema.name for schema in torch._C._jit_get_all_schemas()}
        return [name for name in theirs if name not in known]

    assert oracle(unknown) == []


def calls_of(torch):
    f, ones = torch.nn.functional, torch.ones
    q = ones(1, 2, 5, 4)
    ops = [
        lambda: f.conv1d(ones(1, 2, 5), ones(3, 2, 2)),
        lambda: f.conv_transpose2d(ones(1, 2, 4, 4), ones(2, 3, 2, 2)),
        lambda: f.max_pool2d(ones(1, 1, 4, 4), 2),
        lambda: f.adaptive_avg_pool2d(ones(1, 1, 4, 4), 2),
        lambda: f.scaled_dot_product_attention(q, q, q),
        lambda: torch.bmm(ones(2, 3, 4), ones(2, 4, 5)),
        lambda: ones(2, 3, 4) @ ones(4, 5),
        lambda: f.gelu(ones(2), approximate="tanh"),
        lambda: torch.fft.fft(ones(4, dtype=torch.complex64)),
        lambda: torch.linalg.solve(ones(1, 1), ones(1, 1)),
        lambda: torch.cdist(ones(2, 3), ones(2, 3)),
        lambda: f.layer_norm(f.relu(ones(2, 4)), (4,)).log(),
    ]
    return ops


def profiled(torch, call):
    with torch.profiler.profile() as run:
        call()
    return sorted({row.key for row in run.key_averages() if row.key.startswith("aten::")})


def test_the_keys_of_calls_are_torchs(oracle):
    theirs = oracle(lambda t: [profiled(t, call) for call in calls_of(t)])
    for call, keys in zip(calls_of(torch), theirs):
        ours = profiled(torch, call)
        assert ours, keys
        assert set(ours) <= set(keys)
