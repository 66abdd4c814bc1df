"""DebugLevel: from the environment, or set by the program."""

import pytest

import rushlight.distributed as dist
from rushlight.comm import debug_level


@pytest.fixture(autouse=True)
def unset():
    yield
    debug_level._chosen.clear()


def test_levels(monkeypatch):
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG", raising=False)
    assert dist.get_debug_level() == dist.DebugLevel.OFF
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    assert dist.get_debug_level() == dist.DebugLevel.DETAIL
    dist.set_debug_level(dist.DebugLevel.INFO)
    assert dist.get_debug_level() == dist.DebugLevel.INFO
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() == dist.DebugLevel.DETAIL
    assert [level.name for level in dist.DebugLevel] == ["OFF", "INFO", "DETAIL"]


def test_a_name_that_is_no_level(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
    with pytest.raises(RuntimeError, match="must be either `OFF`, `INFO`, or `DETAIL`"):
        dist.set_debug_level_from_env()
