"""AveragedModel and update_bn beside torch."""

from __future__ import annotations

import pytest

import rushlight

SETTINGS = {
    "default": lambda swa: {},
    "swa": lambda swa: {"avg_fn": swa.get_swa_avg_fn()},
    "ema": lambda swa: {"avg_fn": swa.get_ema_avg_fn(0.7)},
    "multi ema": lambda swa: {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.7)},
}


def averages(settings, buffers):
    def run(lib):
        lib.manual_seed(0)
        swa = lib.optim.swa_utils
        model = lib.nn.BatchNorm1d(2)
        model.register_buffer("count", lib.tensor([3, 400]))
        average = swa.AveragedModel(model, use_buffers=buffers, **SETTINGS[settings](swa))
        for i in range(4):
            model(lib.randn(4, 2))
            with lib.no_grad():
                model.weight.add_(i)
                model.count.mul_(2)
            average.update_parameters(model)
        return [v.double() for v in average.state_dict().values()]

    return run


@pytest.mark.parametrize("buffers", [False, True])
@pytest.mark.parametrize("settings", SETTINGS)
def test_buffers_of_whole_numbers_are_averaged_too(oracle, settings, buffers):
    run = averages(settings, buffers)
    for ours, theirs in zip(run(rushlight), oracle(run)):
        assert rushlight.allclose(ours, rushlight.tensor(theirs).double())


def test_update_bn_leaves_instance_norms_alone():
    norms = rushlight.nn.Sequential(
        rushlight.nn.InstanceNorm1d(1, track_running_stats=True), rushlight.nn.BatchNorm1d(1)
    )
    norms[0].running_mean.fill_(5.0)
    x = rushlight.arange(6.0).reshape(2, 1, 3)
    rushlight.optim.swa_utils.update_bn([x], norms[:1])
    assert norms[0].running_mean.tolist() == [5.0]
    rushlight.optim.swa_utils.update_bn([x], norms)
    assert norms[0].running_mean.item() == pytest.approx(4.75)  # one step of its own momentum
    assert norms[1].running_mean.item() == pytest.approx(0, abs=1e-6)
