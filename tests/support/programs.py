"""Small programs that are run with torch and with rushlight in its place, and must give the same."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import Tensor


def like_torch(oracle, program):
    """Fail unless `program(torch)` and `program(rushlight)` return the same: tensors, numbers, text, lists of them."""
    compare(program(rushlight), oracle(program), "result")


def compare(ours, theirs, where):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), f"{where}: {list(ours)}, not {list(theirs)}"
        for key in theirs:
            compare(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), f"{where}: {ours}, not {theirs}"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            compare(a, b, f"{where}[{i}]")
    elif isinstance(theirs, np.ndarray):
        assert isinstance(ours, Tensor), f"{where}: {ours}, not the tensor {theirs}"
        a = ours.detach()._array
        assert (a.dtype, a.shape) == (theirs.dtype, theirs.shape), f"{where}: {a!r}, not {theirs!r}"
        tolerance = 1e-5 if a.dtype in (np.float32, np.complex64) else 1e-10
        assert np.allclose(a, theirs, tolerance, tolerance, equal_nan=True), f"{where}: {a}, not {theirs}"
    elif isinstance(theirs, float):
        assert np.isclose(ours, theirs, 1e-6, 1e-9, equal_nan=True), f"{where}: {ours}, not {theirs}"
    else:
        assert ours == theirs, f"{where}: {ours!r}, not {theirs!r}"


class Programs(dict):
    """Programs by name; a decorator that adds one."""

    def __init__(self):
        super().__init__()
        self.origins = {}  # name -> where the program was found, if it was found by others

    def __call__(self, function):
        self[function.__name__] = function
        return function

    def found_in(self, origin):
        """The decorator for a program that carries the marker `origin`."""

        def add(function):
            self.origins[function.__name__] = origin
            return self(function)

        return add

    def test(self):
        """The test of all programs, also of those that are added after this call."""

        @pytest.mark.parametrize("name", Cases(self))
        def test_program(oracle, name):
            like_torch(oracle, self[name])

        return test_program


class Cases:
    """The parameters of the test of programs, listed when pytest collects."""

    def __init__(self, programs):
        self.programs = programs

    def __len__(self):
        return len(self.programs)

    def __contains__(self, name):
        return name in self.programs

    def __iter__(self):
        for name in self.programs:
            origin = self.programs.origins.get(name)
            yield pytest.param(name, marks=[pytest.mark.origin(origin)] if origin else [])


def leaf(torch, *numbers):
    """A vector of float64 that asks for its gradient."""
    return torch.tensor(numbers, dtype=torch.float64, requires_grad=True)


def outcome(function, *args, **kwargs):
    """What a call gives, or the name of the exception that it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__


def skip_other_stream(torch):
    """Skip where torch draws dropout's masks from MKL's stream, as on some Intel CPUs; rushlight takes the others'."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if torch.zeros(5).bernoulli_().tolist() != [0, 0, 1, 0, 0]:
            pytest.skip("torch draws dropout from another stream on this CPU")
