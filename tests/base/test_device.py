"""Devices that are not there."""

from __future__ import annotations

import pytest

import rushlight


@pytest.mark.origin("fuzzing")
@pytest.mark.parametrize(
    "to",
    [
        lambda t: t.cuda(),
        lambda t: t.to("cuda"),
        lambda t: rushlight.ones(2, device="cuda:0"),
        lambda t: rushlight.nn.Linear(2, 2).cuda(),
        lambda t: rushlight.cuda.set_device(0),
    ],
)
@pytest.mark.parametrize("kind", [RuntimeError, AssertionError])
def test_both_kinds_of_error_tell_that_there_is_no_cuda(to, kind):
    with pytest.raises(kind, match="Torch not compiled with CUDA enabled"):
        to(rushlight.ones(2))


@pytest.mark.origin("programs")
def test_devices_that_are_not_there():
    assert rushlight.cuda.memory_stats() == {}
    assert "only the CPU" in rushlight.cuda.memory_summary()
    assert rushlight.cuda.max_memory_cached() == 0
    assert issubclass(rushlight.cuda.OutOfMemoryError, RuntimeError)
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        rushlight.cuda.device(0)
    with pytest.raises(TypeError, match="torch.cuda.FloatTensor not available"):
        rushlight.set_default_tensor_type("torch.cuda.FloatTensor")
    assert rushlight.jit.annotate(list, [1]) == [1]
    assert not isinstance(rushlight.jit.script(rushlight.nn.Linear(1, 1)), rushlight.jit.ScriptModule)
