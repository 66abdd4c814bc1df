"""The number of threads of matrix products can be read and set."""

import pytest

from rushlight import threads


@pytest.fixture(autouse=True)
def restored():
    before = threads.get_num_threads()
    yield
    threads.set_num_threads(before)


def test_set_is_got():
    threads.set_num_threads(1)
    assert threads.get_num_threads() == 1


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "2"])
def test_bad_numbers(n):
    before = threads.get_num_threads()
    with pytest.raises(RuntimeError, match="set_num_threads expects"):
        threads.set_num_threads(n)
    assert threads.get_num_threads() == before


def test_another_blas_changes_nothing(monkeypatch):
    monkeypatch.setattr(threads, "blas", lambda verb: None)
    threads.set_num_threads(1)
    assert threads.get_num_threads() >= 1
