"""torchvision.utils, images in folders, images of noise."""

import numpy as np
import pytest

import rushlight
from rushlight.vision import datasets, transforms, utils


def test_a_grid_by_hand():
    images = rushlight.arange(3 * 2 * 2.0).reshape(3, 1, 2, 2)
    grid = utils.make_grid(images, nrow=2, padding=1, pad_value=-1)
    expected = np.full((7, 7), -1.0)
    expected[1:3, 1:3], expected[1:3, 4:6], expected[4:6, 1:3] = np.arange(12.0).reshape(3, 2, 2)
    assert grid.shape == (3, 7, 7)
    assert all((grid[i].numpy() == expected).all() for i in range(3))


def test_one_image_has_no_frame():
    image = rushlight.rand(3, 4, 5)
    assert utils.make_grid(image).equal(image)
    assert utils.make_grid([image[:1]]).shape == utils.make_grid(image[0]).shape == (3, 4, 5)


def test_normalize_changes_a_copy():
    images = rushlight.tensor([[[[-1.0, 0.0]]], [[[1.0, 3.0]]]])
    before = images.clone()
    assert utils.make_grid(images, padding=0, normalize=True)[0].tolist() == [[0, 0.25, 0.5, 1]]
    assert utils.make_grid(images, padding=0, normalize=True, scale_each=True)[0].tolist() == [[0, 1, 0, 1]]
    assert utils.make_grid(images, padding=0, normalize=True, value_range=(-1, 1))[0].tolist() == [[0, 0.5, 1, 1]]
    assert images.equal(before)


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="tensor or list of tensors expected"):
        utils.make_grid([1, 2])


def test_saved_images_are_read_from_folders(tmp_path):
    pytest.importorskip("PIL")
    for name, value in (("cat", 1.0), ("ant", 0.5)):
        (tmp_path / name).mkdir()
        for i in range(2):
            utils.save_image(rushlight.full((3, 4, 5), value), tmp_path / name / f"{i}.png")
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    data = datasets.ImageFolder(tmp_path, transform=transforms.ToTensor())
    assert data.classes == ["ant", "cat"]
    assert data.class_to_idx == {"ant": 0, "cat": 1}
    assert len(data) == 4
    image, target = data[3]
    assert image.shape == (3, 4, 5)
    assert target == 1
    assert float(image.min()) == 1
    np.testing.assert_allclose(data[0][0], 128 / 255, rtol=1e-6)
    assert data.targets == [0, 0, 1, 1]
    assert data.imgs[2][0].endswith("0.png")


def test_folders_without_images(tmp_path):
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        datasets.ImageFolder(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="Found no valid file for the classes empty"):
        datasets.ImageFolder(tmp_path)
    assert len(datasets.ImageFolder(tmp_path, allow_empty=True)) == 0


def test_fake_data_is_the_same_each_time():
    pytest.importorskip("PIL")
    data = datasets.FakeData(size=3, image_size=(3, 8, 9), num_classes=5, transform=transforms.ToTensor())
    state = rushlight.get_rng_state()
    (one, a), (again, b) = data[1], data[1]
    assert one.shape == (3, 8, 9)
    assert one.equal(again)
    assert a == b
    assert 0 <= a < 5
    assert not one.equal(data[2][0])
    assert rushlight.get_rng_state().equal(state)
    with pytest.raises(IndexError):
        data[3]
