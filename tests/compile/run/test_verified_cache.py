"""What watching and comparing cost: no arrays are kept, values are made again when asked for, a program is compared
once."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest

import rushlight as torch
from rushlight.compile import compile, programs
from rushlight.compile.capture.replay import Replay
from rushlight.compile.capture.trace import Tracer, traced, without_memory
from rushlight.compile.run import verified_cache
from rushlight.compile.run.program import Program

SIZE = 50_000


def long_chain(x):
    for k in range(60):
        x = x * 1.01 if k % 2 else x - 0.5
    return x.sum()


def peak(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_watched_run_keeps_no_arrays(nothing_paid):
    f, x = compile(long_chain, backend="numpy"), torch.ones(SIZE)
    long_chain(x)
    compile(long_chain, backend="numpy")(x)  # loads what takes more memory
    eager = peak(lambda: long_chain(x))
    assert peak(lambda: f(x)) < eager + 20 * x._array.nbytes  # of sixty; the program is compared
    assert peak(lambda: f(x)) < eager + 10 * x._array.nbytes
    assert programs(f)


def test_ids_of_arrays_that_died_are_not_mistaken():
    """NumPy hands the same memory out again and again; here each array dies before the next is made."""

    def f(x):
        total = x.sum()
        for k in range(30):
            total = total + (torch.ones(64) * k).sum() * x[k % 4]
        return total

    g, x = compile(f, backend="numpy"), torch.arange(4.0)
    for _ in range(4):
        assert g(x).item() == f(x).item()
        x = x + 1
    assert programs(g), g.given_up


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros((3, 4)),
        lambda: np.zeros((3, 4)).T,
        lambda: np.zeros((2, 3, 4)).transpose(1, 0, 2),
        lambda: np.zeros(()),
        lambda: np.zeros((0, 3)).T,
        lambda: np.zeros((5, 4, 3))[:, 1].T,
    ],
)
def test_layouts_without_memory(make):
    array = make()
    b = without_memory(array)
    assert b.shape == array.shape
    assert b.dtype == array.dtype
    if array.size:
        assert np.argsort(b.strides).tolist() == np.argsort(array.strides).tolist() or array.flags.c_contiguous


# -- replay ----------------------------------------------------------------------------------------


def recorded(f, *tensors):
    """The graph of a run, and what it gave."""
    tracer = Tracer({id(t._array): (t._array, ("argument", i)) for i, t in enumerate(tensors)})
    result = traced(f, tensors, {}, tracer)
    return tracer.graph([tracer.value(result)], []), result


def test_values_are_made_when_asked_for_and_forgotten_after_their_last_use():
    x, y = torch.arange(6.0), torch.ones(6)
    graph, result = recorded(lambda x, y: ((x + y).exp() * y).reshape(2, 3).softmax(1).sum(0), x, y)
    replay = Replay(graph)
    first, last = graph.steps[0].outs[0], graph.results[0]
    replay.begin([v._array for v in replay.inputs], Counter([last.traced, first.traced, first.traced]))
    assert np.array_equal(replay.value(last.traced), result._array)
    assert first.traced in replay.known  # will be asked for
    assert np.array_equal(replay.value(first.traced), (x + y)._array)
    assert np.array_equal(replay.value(first.traced), (x + y)._array)
    assert list(replay.known) == replay.inputs


def test_a_long_run_is_replayed_without_recursion():
    x = torch.ones(2)
    graph, result = recorded(long_chain_of_thousands, x)
    replay = Replay(graph)
    replay.begin([x._array], Counter([graph.results[0].traced]))
    assert np.array_equal(replay.value(graph.results[0].traced), result._array)


def long_chain_of_thousands(x):
    for _ in range(3000):
        x = x * 0.999
    return x


# -- proofs ----------------------------------------------------------------------------------------


@pytest.fixture
def comparisons(monkeypatch, tmp_path):
    """How many programs are compared, with an empty cache folder."""
    monkeypatch.setenv("RUSHLIGHT_CACHE", str(tmp_path))
    count, whole = [], Program.differs

    def differs(self, *args):
        count.append(self)
        return whole(self, *args)

    monkeypatch.setattr(Program, "differs", differs)
    return count


def made(f, *args):
    g = compile(f, backend="numpy")
    for _ in range(3):
        g(*args)
    assert programs(g), g.given_up
    return g


def test_a_program_is_compared_once(comparisons):
    x = torch.ones(5)
    first, again = [lambda x: x.exp() + 1 for _ in range(2)]  # texts name the line, so it is one line
    for expected, f in (
        (1, first),
        (1, again),
        (2, lambda x: x.exp() + 2),
        (3, lambda x: x.exp() + x.new_tensor([1.0, 2, 3, 4, 5])),
        (4, lambda x: x.exp() + x.new_tensor([1.0, 2, 3, 4, 6])),
    ):
        made(f, x)
        assert len(comparisons) == expected
    made(first, torch.ones(6))
    assert len(comparisons) == 5


def test_what_else_it_depends_on(comparisons, monkeypatch):
    x = torch.ones(5)
    made(lambda x: x.exp() * 3, x)
    monkeypatch.setattr(verified_cache, "surroundings", lambda: [b"another version of NumPy"])
    made(lambda x: x.exp() * 3, x)
    assert len(comparisons) == 2


def test_without_a_folder_all_are_compared(comparisons, monkeypatch):
    monkeypatch.setattr(verified_cache, "folder", lambda: None)
    for _ in range(2):
        made(lambda x: x.exp() * 4, torch.ones(5))
    assert len(comparisons) == 2


def test_old_notes_make_room(comparisons, monkeypatch, tmp_path):
    monkeypatch.setattr(verified_cache, "MAX_FILES", 4)
    for n in range(1, 12):
        made(lambda x: x.exp() * 5, torch.ones(n))
    assert 2 <= len(list((tmp_path / "proofs").iterdir())) <= 5


@pytest.mark.falls_back
def test_one_difference_may_be_an_ops_change_of_mind_two_are_none(comparisons, monkeypatch):
    """An op may go from NumPy to a loop that rounds otherwise between a run and its replay; then the next run tells."""
    wrong = ["other numbers"]
    monkeypatch.setattr(Program, "differs", lambda self, *args: wrong.pop() if wrong else "")
    g, x = compile(lambda x: x.exp() * 6, backend="numpy"), torch.ones(5)
    for _ in range(3):
        g(x)
    assert programs(g), g.given_up
    wrong += ["other numbers"] * 2
    h, x = compile(lambda x: x.exp() * 7, backend="numpy"), torch.ones(5)
    with pytest.warns(UserWarning, match="other numbers as a program than as it is"):  # noqa: PT031
        for _ in range(3):
            h(x)
    assert not programs(h)


def test_memory_that_is_given_back():
    from rushlight.base.buffer_pool import MIN_ARRAY_BYTES, give_back, memory

    held = memory.take((MIN_ARRAY_BYTES,), np.dtype(np.float32))
    memory.take((MIN_ARRAY_BYTES, 2), np.dtype(np.float32))
    give_back()
    kept = [a for known in memory.known.values() for a in known]
    assert any(a is held for a in kept)
    assert all(a.shape != (MIN_ARRAY_BYTES, 2) for a in kept)
