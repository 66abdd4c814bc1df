"""What scripts that nobody named do and no other test did: each was once a wrong result, a missing name or a crash."""

from __future__ import annotations

import importlib
import warnings

import pytest

import rushlight

OLD_AMP = {
    "cuda": lambda t: [t.cuda.amp.autocast(), t.cuda.amp.autocast(False), t.cuda.amp.GradScaler(enabled=False),
                       t.cuda.amp.custom_fwd(lambda ctx, x: x), t.cuda.amp.custom_bwd(lambda ctx, g: g)],
    "cuda, enabled": lambda t: [t.cuda.amp.GradScaler(), t.autocast("cuda")],
    "cpu": lambda t: [t.cpu.amp.autocast(), t.cpu.amp.GradScaler()],
}


def warnings_of(f):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f()
    return [(w.category.__name__, str(w.message)) for w in caught]


@pytest.mark.parametrize("name", OLD_AMP)
def test_old_names_of_mixed_precision_warn_as_torch(oracle, name):
    importlib.import_module("rushlight.cpu")
    expected = oracle(lambda t: [" ".join(w) for w in warnings_of(lambda: OLD_AMP[name](t))])
    assert [" ".join(w) for w in warnings_of(lambda: OLD_AMP[name](rushlight))] == expected


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


def test_images_are_normalized_by_as_many_numbers_as_they_have_channels():
    normalize = rushlight.vision.transforms.Normalize([0.5, 0.5, 0.5], [0.5, 0.25, 0.5])
    grey, coloured = rushlight.ones(1, 2, 2), rushlight.ones(3, 2, 2)
    with pytest.raises(RuntimeError, match=r"output with shape \[1, 2, 2\] doesn't match the broadcast shape \[3, 2, 2\]"):
        normalize(grey)
    assert normalize(coloured)[:, 0, 0].tolist() == [1.0, 2.0, 1.0]
    assert coloured.sum() == 12                   # as it was
