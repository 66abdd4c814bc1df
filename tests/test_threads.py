"""The number of threads of matrix products can be read and set."""

import pytest

import rushlight


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
