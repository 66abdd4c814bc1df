"""A function as native code beside eager."""

from collections.abc import Callable

import numpy as np

import rushlight
from rushlight.compile.native import native_program

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


def native(function: Callable, *arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(eager's result, the native function's for the same arrays), after the program is shown to be native."""
    given = [rushlight.from_numpy(a) for a in arrays]
    with rushlight.no_grad():
        want, compiled = function(*given), rushlight.compile(function)
        compiled(*given)
        got = compiled(*given)
    ((program,),) = compiled.programs.values()
    assert program.native is not None, program.native_reason
    return want.numpy(), got.numpy()


def assert_same(function: Callable, *arrays: np.ndarray, tolerance: float = 1e-6) -> None:
    """Equal layout, nan and infinities, and numbers that differ by `tolerance` of the largest."""
    want, got = native(function, *arrays)
    assert want.shape == got.shape
    assert want.strides == got.strides
    finite = np.isfinite(want)
    assert np.array_equal(np.where(finite, 0, want), np.where(np.isfinite(got), 0, got), equal_nan=True)
    largest = np.abs(want[finite]).max(initial=1e-30)
    assert np.abs(want[finite] - got[finite]).max(initial=0) <= tolerance * largest


def assert_same_on_cores(monkeypatch, function: Callable, *arrays: np.ndarray, tolerance: float = 1e-6) -> None:
    """`assert_same` where two cores share each step."""
    monkeypatch.setattr(native_program, "PARALLEL_FROM_WORK", 0)
    monkeypatch.setattr(native_program, "cores", lambda: 2)
    assert_same(function, *arrays, tolerance=tolerance)
