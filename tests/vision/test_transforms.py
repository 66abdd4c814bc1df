"""Transforms at random. Their results are torchvision 0.29's, compared by hand; sums of them stand here."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight
from rushlight.vision import io, utils
from rushlight.vision import transforms as T
from rushlight.vision.transforms import functional as F
from rushlight.vision.transforms import v2

B = T.InterpolationMode.BILINEAR
# the sums of five results times 1 to 5, of a Pillow image, of bytes and of floats, and the next random number; None
# where torchvision refuses, and where bytes are 1 off: it resizes them in integers
TORCHVISION = {
    "crop": (524610.0, None, 2056.4, 0.8709032535552979),
    "colors": (1894601.0, 1893821.0, 7545.92, 0.07625234127044678),
    "blur": (2002859.0, 2002859.0, 7854.51, 0.6935991644859314),
    "affine": (1734768.0, 1734768.0, 6803.01, 0.05951148271560669),
    "smooth": (1821189.0, 1792168.0, 12394.94, 0.5024259686470032),
    "perspective": (1101371.0, 1067828.0, 4187.63, 0.1944190263748169),
    "sharp": (2005571.0, 2005571.0, 7871.95, 0.6935991644859314),
    "contrast": (2209684.0, 2209684.0, 8682.92, 0.6935991644859314),
    "equal": (2690759.0, 2690759.0, None, 0.6935991644859314),
    "invert": (2446893.0, 2446893.0, 9595.66, 0.6935991644859314),
    "bits": (1862344.0, 1862344.0, None, 0.6935991644859314),
    "solar": (1911316.0, 1911316.0, None, 0.6935991644859314),
    "trivial": (1639946.0, 1639946.0, None, 0.7824568748474121),
    "rand": (1823371.0, 1823322.0, None, 0.7599971890449524),
    "erase": (None, 1833972.0, 6793.99, 0.3857494592666626),
    "ten": (3764430.0, 3764430.0, 14762.47, 0.14904171228408813),
}
MADE = {
    "crop": T.RandomResizedCrop(10),
    "colors": T.ColorJitter(0.4, 0.4, 0.4, 0.1),
    "blur": T.GaussianBlur(5),
    "affine": T.RandomAffine(10, (0.1, 0.2), (0.8, 1.2), 8),
    "smooth": T.RandomAffine((5, 30), shear=(1, 5, 2, 9), interpolation=B, fill=3),
    "perspective": T.RandomPerspective(p=0.9),
    "sharp": T.RandomAdjustSharpness(2.5),
    "contrast": T.RandomAutocontrast(),
    "equal": T.RandomEqualize(),
    "invert": T.RandomInvert(),
    "bits": T.RandomPosterize(3),
    "solar": T.RandomSolarize(100),
    "trivial": T.TrivialAugmentWide(),
    "rand": T.RandAugment(),
    "erase": T.RandomErasing(value="random"),
    "ten": T.TenCrop(9),
}
PIXELS = (np.arange(18 * 24 * 3).reshape(18, 24, 3) * 37 % 251 // 8 * 3 + np.arange(24)[None, :, None] * 5).astype(
    np.uint8
)


def image(kind):
    if kind == "pillow":
        return pytest.importorskip("PIL.Image").fromarray(PIXELS)
    planes = PIXELS.transpose(2, 0, 1).copy()
    return rushlight.from_numpy(planes if kind == "bytes" else planes / np.float32(255))


def total(found):
    if isinstance(found, tuple):
        return sum(total(part) for part in found)
    return (
        float(found.double().sum())
        if isinstance(found, rushlight.Tensor)
        else float(np.asarray(found).sum(dtype=float))
    )


@pytest.mark.parametrize("kind", ["pillow", "bytes", "floats"])
@pytest.mark.parametrize("name", TORCHVISION)
def test_results_and_draws_are_torchvisions(name, kind):
    *sums, after = TORCHVISION[name]
    wanted = sums[("pillow", "bytes", "floats").index(kind)]
    given, transform = image(kind), MADE[name]
    if wanted is None:
        return
    rushlight.manual_seed(11)
    found = sum((i + 1) * total(transform(given)) for i in range(5))
    assert found == (pytest.approx(wanted, abs=0.02) if kind == "floats" else wanted)
    assert float(rushlight.rand(())) == after


@pytest.mark.parametrize("name", ["colors", "affine", "invert", "ten"])
def test_arrays_are_changed_like_tensors(name):
    results = []
    for given in (PIXELS, image("bytes")):
        rushlight.manual_seed(2)
        results.append(total(MADE[name](given)) if name == "ten" else MADE[name](given))
    if name == "ten":
        assert results[0] == results[1]
    else:
        assert (results[0] == results[1].numpy().transpose(1, 2, 0)).all()


def test_reprs():
    assert repr(MADE["crop"]) == (
        "RandomResizedCrop(size=(10, 10), scale=(0.08, 1.0), ratio=(0.75, 1.3333), interpolation=bilinear, "
        "antialias=True)"
    )
    assert repr(MADE["colors"]) == (
        "ColorJitter(brightness=(0.6, 1.4), contrast=(0.6, 1.4), saturation=(0.6, 1.4), hue=(-0.1, 0.1))"
    )
    assert (
        repr(T.ColorJitter(hue=0.2)) == "ColorJitter(brightness=None, contrast=None, saturation=None, hue=(-0.2, 0.2))"
    )
    assert repr(MADE["smooth"]) == (
        "RandomAffine(degrees=[5.0, 30.0], shear=[1.0, 5.0, 2.0, 9.0], interpolation=bilinear, fill=3)"
    )
    assert repr(MADE["solar"]) == "RandomSolarize(threshold=100,p=0.5)"
    assert repr(MADE["blur"]) == "GaussianBlur(kernel_size=(5, 5), sigma=(0.1, 2.0))"


def test_what_is_refused():
    for make, message in (
        (lambda: T.ColorJitter(-1), "non negative"),
        (lambda: T.ColorJitter(hue=0.7), "hue values"),
        (lambda: T.GaussianBlur(4), "odd"),
        (lambda: T.RandomAffine(-3), "must be positive"),
        (lambda: T.RandomErasing(value="noise"), "should be 'random'"),
        (lambda: T.RandAugment(magnitude=31), "num_magnitude_bins"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(TypeError, match="Threshold"):
        F.solarize(image("floats"), 100)
    with pytest.raises(TypeError, match="uint8"):
        F.equalize(image("floats"))


def test_colours_by_hand():
    x = rushlight.tensor([[[0.5]], [[0.25]], [[1.0]]])
    assert F.adjust_brightness(x, 2.0).flatten().tolist() == [1, 0.5, 1]
    assert F.adjust_hue(x, 0.0).flatten().tolist() == pytest.approx([0.5, 0.25, 1])
    assert F.adjust_hue(x, 1 / 3).flatten().tolist() == pytest.approx([1, 0.5, 0.25], rel=1e-5)
    assert F.adjust_gamma(x, 2.0).flatten().tolist() == [0.25, 0.0625, 1]
    assert F.invert(x).flatten().tolist() == [0.5, 0.75, 0]
    assert F.get_dimensions(x) == [3, 1, 1]
    assert F.get_image_size(PIXELS) == [24, 18]


def test_second_version():
    prepare = v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(1.0), v2.ToDtype(rushlight.float32, scale=True)])
    found = prepare(PIXELS)
    assert found.equal(rushlight.from_numpy(PIXELS[:, ::-1].transpose(2, 0, 1).copy() / np.float32(255)))
    assert v2.ToDtype(rushlight.float32)(image("bytes")).max() > 1
    assert T.transforms.RandomCrop is T.RandomCrop


# -- files and drawings ----------------------------------------------------------------------------


def test_images_in_files(tmp_path):
    pytest.importorskip("PIL")
    picture = image("bytes")
    io.write_png(picture, tmp_path / "a.png")
    assert io.read_image(str(tmp_path / "a.png")).equal(picture)
    grey = io.read_image(tmp_path / "a.png", io.ImageReadMode.GRAY)
    assert grey.shape == (1, 18, 24)
    assert io.read_image(tmp_path / "a.png", "RGB_ALPHA").shape == (4, 18, 24)
    io.write_jpeg(picture, tmp_path / "a.jpg", quality=100)
    assert (io.decode_image(io.read_file(tmp_path / "a.jpg")).float() - picture).abs().mean() < 20
    with pytest.raises(RuntimeError, match="uint8"):
        io.encode_png(picture.float())


def test_drawings():
    pytest.importorskip("PIL")
    black = rushlight.zeros(3, 14, 14, dtype=rushlight.uint8)
    drawn = utils.draw_bounding_boxes(
        black, rushlight.tensor([[2, 3, 9, 10.0], [5, 5, 12, 12]]), colors=["red", (0, 0, 9)]
    )
    assert (drawn[0] > 0).sum() == 28 - 2  # the second box lies over the first where they cross
    assert (drawn[2] == 9).sum() == 28
    masks = rushlight.zeros(2, 14, 14, dtype=rushlight.bool)
    masks[0, :5], masks[1, 4:6] = True, True
    over = utils.draw_segmentation_masks(black + 100, masks, alpha=0.5, colors=["red", "blue"])
    rows = [over[:, row, 0].tolist() for row in (0, 4, 5, 9)]
    assert rows == [[177, 50, 50], [50, 50, 50], [50, 50, 177], [100, 100, 100]]
    with pytest.raises(ValueError, match="bool"):
        utils.draw_segmentation_masks(black, masks.int())


def test_transforms_are_modules():
    jitter = T.RandomApply(rushlight.nn.ModuleList([T.ColorJitter(0.5)]), p=1.0)
    many = rushlight.nn.Sequential(jitter, T.Normalize([0], [1]))
    seen = []
    many[0].register_forward_hook(lambda m, given, found: seen.append(found.shape))
    assert many(image("floats")).shape == (3, 18, 24)
    assert seen == [(3, 18, 24)]
    assert isinstance(pickle.loads(pickle.dumps(T.RandomResizedCrop(4))), T.RandomResizedCrop)
    assert copy.deepcopy(T.RandomRotation(9)).degrees == [-9, 9]


@pytest.mark.parametrize("make", [lambda: T.RandomHorizontalFlip(0.5), lambda: T.RandomRotation(10)])
def test_numbers_are_drawn_in_the_default_dtype(make):
    """torchvision asks torch.rand, which takes two words of the stream for a double."""
    rushlight.set_default_dtype(rushlight.float64)
    try:
        rushlight.manual_seed(0)
        rushlight.rand(1)
        after = rushlight.rand(1)
        rushlight.manual_seed(0)
        make()(rushlight.zeros(3, 4, 4))
        assert rushlight.rand(1) == after
    finally:
        rushlight.set_default_dtype(rushlight.float32)


@pytest.mark.origin("scripts")
def test_images_are_normalized_by_as_many_numbers_as_they_have_channels():
    normalize = rushlight.vision.transforms.Normalize([0.5, 0.5, 0.5], [0.5, 0.25, 0.5])
    grey, coloured = rushlight.ones(1, 2, 2), rushlight.ones(3, 2, 2)
    with pytest.raises(
        RuntimeError, match=r"output with shape \[1, 2, 2\] doesn't match the broadcast shape \[3, 2, 2\]"
    ):
        normalize(grey)
    assert normalize(coloured)[:, 0, 0].tolist() == [1.0, 2.0, 1.0]
    assert coloured.sum() == 12  # as it was
