"""Old names of mixed precision."""

from __future__ import annotations

import importlib
import warnings

import pytest

import rushlight

OLD_AMP = {
    "cuda": lambda t: [
        t.cuda.amp.autocast(),
        t.cuda.amp.autocast(False),
        t.cuda.amp.GradScaler(enabled=False),
        t.cuda.amp.custom_fwd(lambda ctx, x: x),
        t.cuda.amp.custom_bwd(lambda ctx, g: g),
    ],
    "cuda, enabled": lambda t: [t.cuda.amp.GradScaler(), t.autocast("cuda")],
    "cpu": lambda t: [t.cpu.amp.autocast(), t.cpu.amp.GradScaler()],
}


def warnings_of(f):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f()
    return [(w.category.__name__, str(w.message)) for w in caught]


@pytest.mark.origin("scripts")
@pytest.mark.parametrize("name", OLD_AMP)
def test_old_names_of_mixed_precision_warn_as_torch(oracle, name):
    importlib.import_module("rushlight.cpu")
    expected = oracle(lambda t: [" ".join(w) for w in warnings_of(lambda: OLD_AMP[name](t))])
    assert [" ".join(w) for w in warnings_of(lambda: OLD_AMP[name](rushlight))] == expected


@pytest.mark.origin("scripts")
def test_old_names_of_mixed_precision_do_what_the_new_ones_do():
    x = rushlight.ones(2, 2)
    with pytest.warns(FutureWarning), rushlight.cpu.amp.autocast():
        assert (x @ x).dtype == rushlight.bfloat16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rushlight.cuda.amp.autocast():
            assert (x @ x).dtype == rushlight.float32

        @rushlight.cuda.amp.autocast(enabled=False)
        def product(x):
            return x @ x

        assert product(x).dtype == rushlight.float32
        assert rushlight.cpu.amp.GradScaler(init_scale=8.0).scale(x).sum() == 32
        assert not rushlight.cuda.amp.GradScaler().is_enabled()


@pytest.mark.origin("model zoos")
def test_old_names_of_autocast():
    assert rushlight.GradScaler is rushlight.amp.GradScaler
    assert rushlight.get_autocast_gpu_dtype() is rushlight.float16
    rushlight.set_autocast_cpu_dtype(rushlight.float16)
    try:
        assert rushlight.get_autocast_cpu_dtype() is rushlight.float16
    finally:
        rushlight.set_autocast_cpu_dtype(rushlight.bfloat16)
    rushlight.set_autocast_cpu_enabled(True)
    try:
        assert rushlight.is_autocast_cpu_enabled()
    finally:
        rushlight.set_autocast_cpu_enabled(False)
    assert rushlight.set_autocast_gpu_dtype(rushlight.float16) is None
    assert rushlight.clear_autocast_cache() is None
