"""Ranks that a program starts itself: torch.distributed.launcher."""

from __future__ import annotations

import os

import pytest

import rushlight
import rushlight.distributed as dist
from rushlight.distributed.elastic.multiprocessing.errors import ChildFailedError
from rushlight.distributed.launcher import LaunchConfig, elastic_launch
from tests.support.ranks import needs_mpi


def config(**settings):
    return LaunchConfig(1, 1, 2, start_method="fork", **settings)


def summed(value):
    dist.init_process_group("gloo")
    dist.all_reduce(x := rushlight.full((2,), value * (dist.get_rank() + 1)))
    return dist.get_rank(), dist.get_world_size(), x.tolist()


@needs_mpi
def test_a_function_on_each_rank():
    assert elastic_launch(config(), summed)(2.0) == {0: (0, 2, [6.0, 6.0]), 1: (1, 2, [6.0, 6.0])}


def fails_at_first(folder):
    if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise ValueError("once")
    return os.environ["TORCHELASTIC_RESTART_COUNT"]


def test_ranks_are_started_anew(tmp_path, capfd):
    assert elastic_launch(config(max_restarts=1), fails_at_first)(tmp_path) == {0: "1", 1: "1"}
    with pytest.raises(ChildFailedError, match="fails_at_first FAILED: rank 1 with exit code 1"):
        elastic_launch(config(max_restarts=0), fails_at_first)(tmp_path)
    assert "ValueError: once" in capfd.readouterr().err


def test_programs(tmp_path):
    import sys

    text = "import os; open(os.environ['RANK'], 'w').write(os.environ['WORLD_SIZE'])"
    program = tmp_path / "program.py"
    program.write_text(f"import os; os.chdir({str(tmp_path)!r}); {text}")
    assert elastic_launch(config(), sys.executable)(str(program)) == {0: None, 1: None}
    assert [(tmp_path / name).read_text() for name in "01"] == ["2", "2"]
    program.write_text("raise SystemExit(3)")
    with pytest.raises(ChildFailedError, match="exit code 3"):
        elastic_launch(config(max_restarts=0), sys.executable)(str(program))


def test_several_machines_are_refused():
    with pytest.raises(NotImplementedError, match="on one machine"):
        LaunchConfig(2, 2, 1)
