"""Optimizers' compiled loops give what NumPy's calls give, to the last bit, and are compiled only when that pays."""

import copy

import numpy as np
import pytest

import rushlight
from rushlight.loops import tiering
from rushlight.optim import elementwise, loops
from rushlight.optim.program import program

pytest.importorskip("llvmlite")

SETTINGS = {
    "SGD": [{}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {"momentum": 0.9, "dampening": 0.5}],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}],
    "AdamW": [{}],
    "Adamax": [{}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True}],
    "Adagrad": [{"lr_decay": 0.1}],
    "Adadelta": [{}],
    "NAdam": [{"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}],
    "ASGD": [{"t0": 1}],
    "Rprop": [{}],
}
UNPAID = loops.loop_of.__wrapped__  # a loop that nothing was paid for yet
CASES = [(name, settings) for name, many in SETTINGS.items() for settings in many]


@pytest.fixture
def at_once(monkeypatch):
    """Loops are compiled at their first use; another set of them, so that those of other tests stay as they are."""
    elementwise.prepared.cache_clear()
    made = []

    def built(one, dtype):
        loop = UNPAID(one, dtype)
        if loop.function is None and loop.price < np.inf:
            loop.build()
            made.extend([loop] * (loop.function is not None))
        return loop

    monkeypatch.setattr(loops, "loop_of", built)
    yield made
    elementwise.prepared.cache_clear()


def trained(name, settings, shapes=((3, 5), (7,)), dtype=np.float32, steps=8):
    """The bits of parameters and state after some steps."""
    random = np.random.default_rng(0)
    params = [rushlight.tensor(random.standard_normal(s).astype(dtype), requires_grad=True) for s in shapes]
    optimizer = getattr(rushlight.optim, name)(params, **settings)
    for _ in range(steps):
        for p in params:
            p.grad = rushlight.from_numpy(random.standard_normal(p.shape).astype(dtype))
        optimizer.step()
    return [t._array.tobytes() for t in [*params, *(v for p in params for v in optimizer.state[p].values())]]


@pytest.mark.faster
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_loop_gives_the_same_bits(at_once, monkeypatch, name, settings, dtype):
    by_loop = trained(name, settings, dtype=dtype)
    assert at_once
    assert all(loop.function is not None for loop in at_once)
    elementwise.prepared.cache_clear()
    monkeypatch.setattr(tiering, "has_llvmlite", lambda: False)  # as if Numba were not installed
    monkeypatch.setattr(loops, "loop_of", UNPAID)
    by_calls = trained(name, settings, dtype=dtype)
    assert by_loop == by_calls


def test_a_large_parameter_is_cut_into_parts(at_once, monkeypatch):
    monkeypatch.setattr("rushlight.loops.parallel.cores", lambda: 3)
    shapes = [(loops.PARALLEL_FROM_ELEMENTS + 5,)]
    by_loop = trained("Adam", {}, shapes, steps=2)
    monkeypatch.setattr(loops, "loop_of", UNPAID)
    elementwise.prepared.cache_clear()
    by_calls = trained("Adam", {}, shapes, steps=2)
    assert by_loop == by_calls


@pytest.mark.faster
def test_small_models_compile_nothing():
    one = program(rushlight.optim.Adam._rule, (True,) * 4 + (False,), (True,) * 4 + (False,) * 4)
    loop = UNPAID(one, np.dtype(np.float32))
    for _ in range(1000):  # a thousand steps of 100 numbers: some milliseconds
        loop.pay(100)
    assert loop.function is None
    assert loop.owed < 0.1
    loop.pay(1 << 40)  # now it is asked what compiling costs
    assert loop.function is None
    loop.pay(1 << 40)
    assert loop.function is not None


def test_half_precision_and_complex_numbers_stay_with_numpy(at_once):
    for dtype in (rushlight.bfloat16, rushlight.complex64):
        p = rushlight.ones(3, dtype=dtype, requires_grad=True)
        optimizer = rushlight.optim.Adam([p], lr=0.5)
        p.grad = rushlight.ones(3, dtype=dtype)
        optimizer.step()
        assert p.dtype is dtype
        assert abs(p[0].item() - 0.5) < 0.1
    assert at_once == []


@pytest.mark.parametrize("turned", [False, True])
def test_any_layout(at_once, turned):
    """A parameter that is transposed or not; gradients with gaps, backwards, and repeated in memory."""
    base = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    p = rushlight.from_numpy(base.copy().T if turned else base.copy()).requires_grad_()
    optimizer, expected = rushlight.optim.SGD([p], lr=0.5), base.copy()
    for g in (base[::-1], base[:, ::-1], np.broadcast_to(base[:1], base.shape), np.repeat(base, 2, 1)[:, ::2], base):
        p._grad = rushlight.tensor(0.0)
        p._grad._array = g.T if turned else g
        optimizer.step()
        expected -= np.float32(0.5) * g
    assert np.array_equal(p.detach().numpy(), expected.T if turned else expected)


def test_other_memory_is_noticed(at_once):
    """p.data, loaded state, and state that was replaced."""
    p = rushlight.ones(3, requires_grad=True)
    optimizer = rushlight.optim.SGD([p], lr=1.0, momentum=0.5)
    p.grad = rushlight.ones(3)
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    p.data = rushlight.full((3,), 10.0)
    optimizer.step()  # buffer 1.5
    assert p.tolist() == [8.5] * 3
    optimizer.load_state_dict(saved)  # buffer 1
    optimizer.step()
    assert p.tolist() == [7.0] * 3
    optimizer.state[p]["momentum_buffer"] = rushlight.zeros(3)
    optimizer.step()
    assert p.tolist() == [6.0] * 3


def test_parameters_in_the_same_memory(at_once):
    """A momentum that is the parameter itself: the loop's promise would be wrong, NumPy does it."""
    p = rushlight.ones(3, requires_grad=True)
    optimizer = rushlight.optim.SGD([p], lr=1.0, momentum=0.5)
    optimizer.state[p]["momentum_buffer"] = p.detach()
    p.grad = rushlight.ones(3)
    optimizer.step()
    assert p.isfinite().all()
    assert loops.Arrays(p._array, optimizer.state[p], ("momentum_buffer",), []).first is None


def test_what_cannot_be_updated_is_found_before_anything_is_written():
    good, bad = rushlight.ones(3, requires_grad=True), rushlight.ones(3, requires_grad=True)
    optimizer = rushlight.optim.Adam([good, bad])
    good.grad, bad.grad = rushlight.ones(3), rushlight.ones(3)
    optimizer.step()
    before = good.tolist(), optimizer.state[good]["step"].item()
    bad._array = np.ones((2, 2), np.float32)
    with pytest.raises(RuntimeError, match="must match the size"):
        optimizer.step()
    bad._array = np.ones(3, np.float32)
    bad._array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        optimizer.step()
    assert (good.tolist(), optimizer.state[good]["step"].item()) == before


def test_a_failing_compiler_leaves_the_work_to_numpy(at_once, monkeypatch):
    def broken(text, exact):
        raise RuntimeError("no LLVM today")

    monkeypatch.setattr("rushlight.loops.cache.compiled", broken)
    with pytest.warns(UserWarning, match="no LLVM today"):
        trained("Adam", {}, steps=1)
    assert at_once == []
