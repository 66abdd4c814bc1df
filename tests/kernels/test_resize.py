"""Resizing by tables of positions and weights: loops give NumPy's bits, and the answers are torch's."""

import numpy as np
import pytest

import rushlight
from rushlight.base.dependencies import has_llvmlite
from rushlight.fast import resize_loops
from rushlight.kernels import resize

TABLES = [
    ("linear", 32, 64, 31 / 63, True),
    ("linear", 7, 14, 0.5, False),
    ("linear", 14, 7, 2.0, False),
    ("nearest", 16, 20, 0.8, 0.0),
    ("bicubic", 16, 33, 16 / 33, False),
    ("antialias", 64, 13, 64 / 13, "bicubic"),
    ("antialias", 9, 16, 9 / 16, "lanczos"),
]


@pytest.mark.faster
@pytest.mark.skipif(not has_llvmlite(), reason="no loops without llvmlite")
@pytest.mark.parametrize("how", TABLES, ids=str)
@pytest.mark.parametrize("back", [False, True])
def test_loops_give_the_bits_of_numpy(how, back):
    for flat in (True, False):
        resize_loops.loop_of(flat).function or resize_loops.loop_of(flat).build()
    size = resize.table(how, False).out if back else how[1]
    for shape in ((17, size), (3, 16, size, 1), (2, size, 5), (40, 7, size, 2, 3)):
        dim = shape.index(size)
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        made = resize_loops.mixed(x, dim, how, back)
        assert made.tobytes() == resize.by_taps(x, dim, resize.table(how, back)).tobytes()


@pytest.mark.parametrize("how", TABLES, ids=str)
def test_back_is_the_transpose(how):
    x = np.random.default_rng(0).standard_normal((2, how[1]))
    g = np.random.default_rng(1).standard_normal((2, resize.table(how, False).out))
    assert np.vdot(resize.blend(x, 1, how, False), g) == pytest.approx(np.vdot(x, resize.blend(g, 1, how, True)))


def test_an_infinite_number_stays_where_it_is():
    g = rushlight.zeros(1, 1, 5)
    g[..., 4] = float("inf")
    x = rushlight.zeros(1, 1, 4, requires_grad=True)
    rushlight.nn.functional.pad(x, (1, 0), mode="replicate").backward(g)
    assert x.grad.tolist() == [[[0, 0, 0, float("inf")]]]


CALLS = {
    "bilinear": lambda lib, x: lib.nn.functional.interpolate(x, size=(6, 3), mode="bilinear"),
    "bicubic": lambda lib, x: lib.nn.functional.interpolate(x, size=(6, 3), mode="bicubic"),
    "antialias": lambda lib, x: lib.nn.functional.interpolate(x, size=(2, 3), mode="bilinear", antialias=True),
    "lanczos": lambda lib, x: lib.nn.functional.interpolate(x, size=(2, 9), mode="lanczos", antialias=True),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_bytes_are_rounded_as_torch_does(name, dtype, oracle):
    numbers = np.random.default_rng(3).integers(0, 255, (1, 2, 4, 5))

    def ask(lib):
        return CALLS[name](lib, lib.tensor(numbers).to(getattr(lib, dtype))).float().numpy()

    np.testing.assert_allclose(ask(rushlight), oracle(ask), rtol=1e-6)


@pytest.mark.parametrize("size", [(7, 4), (2, 3), (1, 1)], ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_corners_that_are_aligned_and_a_filter(size, mode, oracle):
    numbers = np.random.default_rng(4).standard_normal((1, 2, 5, 6))

    def ask(lib):
        x = lib.tensor(numbers)
        return lib.nn.functional.interpolate(x, size, mode=mode, align_corners=True, antialias=True).numpy()

    np.testing.assert_allclose(ask(rushlight), oracle(ask), rtol=1e-9)


def test_lanczos_is_smooth_and_in_the_middle():
    F, x = rushlight.nn.functional, rushlight.rand(1, 1, 3, 4, dtype=rushlight.float64, requires_grad=True)
    rushlight.autograd.gradcheck(lambda x: F.interpolate(x, size=(2, 9), mode="lanczos", antialias=True), x)
    for wrong in ({}, {"antialias": True, "align_corners": True}):
        with pytest.raises(ValueError, match="Lanczos mode"):
            F.interpolate(x, size=(2, 9), mode="lanczos", **wrong)


def test_integers_have_no_means():
    with pytest.raises(NotImplementedError, match="compute_indices_weights_linear.*not implemented for 'Long'"):
        rushlight.nn.functional.interpolate(rushlight.ones(1, 1, 2, 2).long(), scale_factor=2, mode="bilinear")


def test_what_is_cut_off_does_not_come_back_from_the_other_end():
    pad, x = rushlight.nn.functional.pad, rushlight.tensor([[1, 2, 3, 4]])
    assert pad(x, (-2, 2), mode="circular").tolist() == [[3, 4, 3, 4]]
    assert pad(x, (-2, 2), mode="reflect").tolist() == [[3, 4, 3, 2]]
    with pytest.raises(RuntimeError, match="wrapping around more than once"):  # there torch reads what it did not write
        pad(x, (-3, 2), mode="circular")


FACTORS = [
    ((4, 3), (2.0, 1.3)),
    ((4, 3), (1.2, 1.3)),
    ((4, 3), (2.3, 2.3)),
    ((5, 7), (2.1, 2.1)),
    ((10, 10), (1.05, 1.05)),
]


@pytest.mark.origin("sizes in use")
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
@pytest.mark.parametrize("last", [False, True])
def test_sizes_that_a_factor_keeps_or_doubles(oracle, mode, last):
    """Torch then goes by the sizes: 1.3 times 2 elements are the 2, 2.3 times 3 are each one twice."""

    def resized(t):
        found = []
        for size, factors in FACTORS:
            x = t.arange(2.0 * 3 * size[0] * size[1]).sin().reshape(2, 3, *size)
            x = (x.contiguous(memory_format=t.channels_last) if last else x).requires_grad_()
            y = t.nn.functional.interpolate(x, scale_factor=factors, mode=mode)
            (y * t.arange(float(y.numel())).cos().reshape(y.shape)).sum().backward()
            found += [y, x.grad]
        return found

    for a, b in zip(resized(rushlight), oracle(resized), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b, atol=1e-5)


@pytest.mark.origin("tutorials")
def test_resized_to_its_own_size_is_a_copy():
    x = rushlight.ones(1, 1, 2, 2)
    for made in (rushlight.nn.functional.interpolate(x, **how) for how in ({"size": 2}, {"scale_factor": 1})):
        made.zero_()
    assert x.sum() == 4
