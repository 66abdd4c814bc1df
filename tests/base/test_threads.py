"""The number of threads of matrix products can be read and set."""

import pytest

import rushlight
from rushlight.base import threads
from rushlight.fast import matmul, policy


@pytest.fixture(autouse=True)
def restored():
    before = rushlight.get_num_threads()
    yield
    rushlight.set_num_threads(before)


def test_set_is_got():
    rushlight.set_num_threads(1)
    assert rushlight.get_num_threads() == 1


@pytest.mark.parametrize("n", [0, -1, 1.0, "2"])
def test_bad_numbers(n):
    before = rushlight.get_num_threads()
    with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer"):
        rushlight.set_num_threads(n)
    assert rushlight.get_num_threads() == before


@pytest.mark.faster
def test_products_of_middle_size_run_on_one_thread(monkeypatch):
    """And leave the number of threads as it was, also after an error."""
    if threads.openblas() is None:
        pytest.skip("another BLAS than that of NumPy's wheels")
    count, put = threads.openblas()
    put(2)
    assert threads.alone(count) == 1
    assert count() == 2
    with pytest.raises(ZeroDivisionError):
        threads.alone(lambda: 1 / 0)
    assert count() == 2
    seen = []
    monkeypatch.setattr(policy.products, "left", float("inf"))  # loops have not begun
    monkeypatch.setattr(matmul, "on_one_thread", lambda blas, x, y, out: seen.append((x.shape, y.shape)) or x @ y)
    for n in (8, 128, 2048):
        rushlight.ones(n, 100) @ rushlight.ones(100, n)
    assert seen == [((128, 100), (100, 128))]


def test_products_of_middle_size_are_right():
    x, y = rushlight.randn(128, 48), rushlight.randn(48, 200)
    assert rushlight.allclose(x @ y, (x.double() @ y.double()).float(), atol=1e-4)
