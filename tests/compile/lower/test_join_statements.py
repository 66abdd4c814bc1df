"""Statements of little work as one compiled function: the same bits as one by one; small products as loops."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as torch
from rushlight import nn, optim
from rushlight.compile import compile, programs
from rushlight.compile.lower.join_statements import Joints, call, early

pytest.importorskip("llvmlite")


def lines(*found):
    return Joints(found).lines


def test_what_is_joined():
    a, b = call("loop_0", ["x", "t1"], True), call("loop_1", ["t1.reshape((6,))", "t2", "f32(0.5)"], True)
    large = call("loop_2", ["t2", "t3"], False)
    assert [lines(a), lines(a, large)] == [[a], [a, large]]
    j = Joints(["# a line", a, early("t2 = new[0]()"), "# another", b, large, a])
    assert j.lines == ["# a line", "t2 = new[0]()", "part_0(x, t1, t2, part_0_f32)", large, a]
    assert j.setup == ["part_0_f32 = np.array([0.5], f32)"]
    assert j.texts == [
        "\n@joint(loop_0, loop_1)\ndef part_0(a0, a1, a2, n_f32):\n    loop_0(a0, a1)\n"
        "    loop_1(shaped(a1, (6,)), a2, n_f32[0])\n"
    ]


def step_of(kind):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 33), nn.LayerNorm(33), nn.Tanh(), nn.Linear(33, 3))
    optimizer = getattr(optim, kind)(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return compile(step), model


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_the_same_bits_as_one_by_one(kind):
    found = []
    for apart in (False, True):
        f, model = step_of(kind)
        rng = np.random.default_rng(0)
        losses = []
        for _ in range(8):
            x, y = torch.tensor(rng.standard_normal((7, 5), dtype=np.float32)), torch.tensor(rng.integers(0, 3, 7))
            if apart and programs(f):
                with programs(f)[0].timing():  # statement by statement
                    losses.append(f(x, y).item())
            else:
                losses.append(f(x, y).item())
        assert "part_0" in programs(f)[0].forward.call.__code__.co_names
        found.append([losses, *(p.detach().numpy().tobytes() for p in model.parameters())])
    assert found[0] == found[1]


PROCESS = """
import numpy as np, rushlight as torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 33), torch.nn.LayerNorm(33))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
@torch.compile
def step(x):
    optimizer.zero_grad()
    loss = model(x).square().sin().sum()
    loss.backward()
    optimizer.step()
    return loss
rng = np.random.default_rng(0)
print([step(torch.tensor(rng.standard_normal((7, 5), dtype=np.float32))).item() for _ in range(6)],
      [p.tolist() for p in model.parameters()])
"""


def test_the_same_bits_in_the_next_process(tmp_path):
    """Which reads what the first one has compiled, and does not compare the program again."""
    how = {"env": {**os.environ, "RUSHLIGHT_CACHE": str(tmp_path)}, "capture_output": True, "text": True, "check": True}
    first, second = (subprocess.run([sys.executable, "-c", PROCESS], **how).stdout for _ in range(2))
    assert first == second


def test_loops_that_the_cache_folder_has_lost(tmp_path):
    """They are compiled again, for the functions that call them, whose machine code is still there."""
    how = {"env": {**os.environ, "RUSHLIGHT_CACHE": str(tmp_path)}, "capture_output": True, "text": True, "check": True}
    first = subprocess.run([sys.executable, "-c", PROCESS], **how).stdout
    files = [*tmp_path.glob("loops/*.o")]
    loops = [f for f in files if b'"callees": []' in f.read_bytes()]
    assert 0 < len(loops) < len(files)
    for f in loops[::2]:
        f.unlink()
    assert subprocess.run([sys.executable, "-c", PROCESS], **how).stdout == first


def test_results_of_kernels_need_not_lie_in_order():
    x = torch.rand(2, 6, 4)

    def f(x):
        y = torch.flip(x.transpose(0, 1), (0,))  # NumPy keeps the order of memory of what it is given
        z = torch.cumsum(y, 0)
        return (z * 2 + 1).sum(0) + z.mean(0), z.reshape(-1) * 3

    g = compile(f)
    for _ in range(5):
        for a, b in zip(g(x), f(x)):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


sizes = st.integers(1, 40)


@settings(deadline=None, max_examples=60)
@given(sizes, sizes, sizes, st.booleans(), st.booleans(), st.integers(0, 1000))
def test_small_products(m, k, n, turned_a, turned_b, seed):
    from rushlight.compile.lower.small_matmul import product
    from rushlight.loops.cache import compiled

    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    out = np.full((m + 2, n), 7, np.float32)
    given = (np.ascontiguousarray(a.T) if turned_a else a, np.ascontiguousarray(b.T) if turned_b else b)
    compiled(product(turned_a, turned_b).replace("def (", "def kernel("))(*given, out[1 : m + 1])
    exact = a.astype(np.float64) @ b
    bound = 2**-24 * (k + 1) * (np.abs(a).astype(np.float64) @ np.abs(b))
    assert (np.abs(out[1 : m + 1] - exact) <= bound).all()
    assert (out[[0, -1]] == 7).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: a @ b,
        lambda a, b: (a @ b).T,
        lambda a, b: b.T @ a.T,
        lambda a, b: a @ b[:, 0],
        lambda a, b: a.T @ (a @ b),
        lambda a, b: b.T @ b,
        lambda a, b: (a[:, ::2] @ b[::2]) * 2,
        lambda a, b: a.double() @ b.double(),
        lambda a, b: a[:0] @ b,
        lambda a, b: a[:, :0] @ b[:0],
    ],
)
def test_products_of_programs(f):
    a, b = torch.randn(9, 20), torch.randn(20, 5)
    g = compile(lambda a, b: f(a * 1.5, b + 1) * 2)
    for _ in range(4):
        got, expected = g(a, b), f(a * 1.5, b + 1) * 2
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.falls_back
def test_a_part_that_cannot_be_compiled_leaves_the_function_as_it_is(monkeypatch):
    from rushlight.compile.lower import join_statements

    monkeypatch.setattr(join_statements.Joints, "join", broken(join_statements.Joints.join))
    f, model = step_of("SGD")
    x, y = torch.rand(7, 5), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    with pytest.warns(UserWarning, match="runs as it is"):
        losses = [f(x, y).item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert not programs(f)


def broken(join):
    def join_wrongly(self, calls):
        join(self, calls)
        self.texts[-1] = self.texts[-1].replace("\n    loop_", "\n    a0.no_such_thing()\n    loop_", 1)

    return join_wrongly


@pytest.mark.falls_back
def test_a_part_that_gives_other_numbers_is_noticed(monkeypatch):
    """Its statements in the wrong order read what nobody has written yet: memory is full of nan when a part is
    tried."""
    join = Joints.join
    monkeypatch.setattr(Joints, "join", lambda self, calls: join(self, calls[::-1]))
    x, w = torch.randn(3, 8), torch.randn(8, 8)
    f = lambda x: nn.functional.glu((x @ w).softmax(1)).square().sum()
    g = compile(f, backend="loops")
    with pytest.warns(UserWarning, match="joined statements: off by nan"):
        found = torch.stack([g(x) for _ in range(6)])
    torch.testing.assert_close(found, f(x).expand(6))
    assert g.given_up


def test_conditions_of_single_numbers_have_a_place():
    """Of a thousand numbers in one function, masks too: a room for booleans."""
    a, b = [torch.tensor(v, requires_grad=True) for v in (0.7, -0.4)]

    def step():
        a.grad = b.grad = None
        x, y = a, b
        for _ in range(125):
            x = torch.relu(x * b + a) * a + y * b
            y = (x + a) * b
        x.backward()
        return x + a.grad

    f, want = compile(step), step().item()
    assert [f().item() for _ in range(5)] == pytest.approx([want] * 5, rel=1e-5)
    assert not f.given_up
    exec(builtins.compile(programs(f)[0].source, "made", "exec"), {"__name__": "made"})
