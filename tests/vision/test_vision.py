"""Transforms and data sets of images. What torchvision 0.29 gives was compared by hand; its rarer facts stand here."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import struct
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

import rushlight
from rushlight.vision import datasets, transforms
from rushlight.vision.datasets import download as net
from rushlight.vision.transforms import functional

RGB = np.random.RandomState(0).randint(0, 256, (11, 9, 3)).astype(np.uint8)
GREY = RGB[..., 0].copy()


def planes(array):
    return rushlight.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1) if array.ndim == 3 else array[None]))


def pixels(image):
    """(H, W, C) or (H, W) of any kind of image."""
    if isinstance(image, rushlight.Tensor):
        a = image.numpy()
        return a[0] if a.shape[0] == 1 else a.transpose(1, 2, 0)
    return np.asarray(image)


# -- transforms ------------------------------------------------------------------------------------

GEOMETRY = {
    "center": transforms.CenterCrop(5),
    "center larger": transforms.CenterCrop((20, 4)),
    "pad": transforms.Pad((1, 2, 3, 0)),
    "edge": transforms.Pad(2, padding_mode="edge"),
    "reflect": transforms.Pad((2, 1), padding_mode="reflect"),
    "symmetric": transforms.Pad(3, padding_mode="symmetric"),
    "fill": transforms.Pad(1, fill=7),
    "negative": transforms.Pad((-1, 2)),
    "crop": transforms.RandomCrop(5),
    "wide crop": transforms.RandomCrop((8, 9), 2),
    "crop larger": transforms.RandomCrop(14, pad_if_needed=True),
    "flip": transforms.RandomHorizontalFlip(),
    "upside down": transforms.RandomVerticalFlip(0.7),
    "nearest": transforms.RandomRotation(40),
    "apply": transforms.RandomApply([transforms.RandomHorizontalFlip(1.0)], 0.5),
}


@pytest.mark.parametrize("name", GEOMETRY)
@pytest.mark.parametrize("array", [RGB, GREY], ids=["rgb", "grey"])
def test_all_kinds_of_images_are_moved_alike(name, array):
    Image = pytest.importorskip("PIL.Image")
    found = []
    for image in (Image.fromarray(array), array.copy(), planes(array), planes(array).float()):
        rushlight.manual_seed(5)
        results = [GEOMETRY[name](image) for _ in range(4)]
        assert type(results[0]) is type(image) or type(results[0]).__module__ == "PIL.Image"
        found.append([pixels(r).tolist() for r in results])
        assert pixels(image).tolist() == array.tolist()
    assert found[1] == found[2] == found[3]
    if name != "nearest":  # Pillow rounds other points
        assert found[0] == found[1]


def test_the_same_seed_draws_as_torchvision(oracle):
    """What torchvision draws, written out: an angle, a flip, a corner, a choice."""

    def theirs(torch):
        torch.manual_seed(3)
        angle = torch.empty(1).uniform_(-30.0, 30.0).item()
        flip = bool(torch.rand(1) < 0.5)
        corner = [torch.randint(0, n, (1,)).item() for n in (11 - 5 + 1, 9 - 4 + 1)]
        return [angle, flip, corner, torch.rand(1).item()]

    rushlight.manual_seed(3)
    angle = transforms.RandomRotation.get_params((-30.0, 30.0))
    flip = not np.array_equal(transforms.RandomHorizontalFlip()(RGB), RGB)
    corner = list(transforms.RandomCrop.get_params(RGB, (5, 4))[:2])
    assert [angle, flip, corner, rushlight.rand(1).item()] == oracle(theirs)


def test_to_tensor():
    found = transforms.ToTensor()(RGB)
    assert (found.dtype, found.shape) == (rushlight.float32, (3, 11, 9))
    assert found.tolist() == (RGB.transpose(2, 0, 1).astype(np.float32) / np.float32(255)).tolist()
    assert transforms.ToTensor()(np.ones((2, 2), np.int32)).dtype is rushlight.int32
    with pytest.raises(TypeError, match="pic should be PIL Image or ndarray"):
        transforms.ToTensor()(found)
    with pytest.raises(ValueError, match="pic should be 2/3 dimensional. Got 1"):
        transforms.ToTensor()(np.ones(2))


def test_pillow_and_back():
    Image = pytest.importorskip("PIL.Image")
    for mode in ("RGB", "L", "1", "I", "F", "RGBA", "CMYK"):
        image = Image.fromarray(RGB).convert(mode)
        found = transforms.PILToTensor()(image)
        assert found.shape == (len(image.getbands()), 11, 9)
        if mode in ("RGB", "L"):
            assert np.array_equal(transforms.ToPILImage()(found), image)
            assert np.array_equal(transforms.ToPILImage()(transforms.ToTensor()(image)), image)
        assert transforms.RandomHorizontalFlip(1.0)(image).mode == mode


@pytest.mark.parametrize(
    ("size", "more", "expected"),
    [(5, {}, (6, 5)), ((4, 7), {}, (4, 7)), ([6], {}, (7, 6)), (15, {}, (18, 15)), (10, {"max_size": 11}, (11, 9))],
)
def test_resize(size, more, expected):
    Image = pytest.importorskip("PIL.Image")
    for image in (Image.fromarray(RGB), RGB, planes(RGB), planes(RGB).float(), planes(GREY)):
        assert pixels(transforms.Resize(size, **more)(image)).shape[:2] == expected
    nearest = transforms.Resize((22, 18), transforms.InterpolationMode.NEAREST)
    assert pixels(nearest(planes(RGB))).tolist() == RGB.repeat(2, 0).repeat(2, 1).tolist()


def test_pillows_numbers_of_interpolations():
    Image = pytest.importorskip("PIL.Image")
    image, mode = Image.fromarray(RGB), transforms.InterpolationMode
    for number, name in ((Image.BICUBIC, mode.BICUBIC), (Image.Resampling.LANCZOS, mode.LANCZOS), (0, mode.NEAREST)):
        assert transforms.Resize((5, 4), number).interpolation is name
        assert (
            pixels(functional.resize(image, (5, 4), number)).tolist() == np.array(image.resize((4, 5), number)).tolist()
        )
    with pytest.raises(ValueError, match="9 is not a valid"):
        transforms.Resize(4, 9)


def test_resize_is_interpolation():
    x = planes(RGB).float()
    expected = rushlight.nn.functional.interpolate(x[None], size=[5, 4], mode="bilinear", antialias=True)[0]
    assert transforms.Resize((5, 4))(x).equal(expected)
    assert transforms.Resize((5, 4))(planes(RGB)).tolist() == expected.round().byte().tolist()


@pytest.mark.parametrize("angle", [0, 90, 180, 270])
def test_quarter_turns(angle):
    square = RGB[:9]
    for mode in (transforms.InterpolationMode.NEAREST, transforms.InterpolationMode.BILINEAR):
        found = functional.rotate(planes(square), angle, mode)
        assert np.abs(pixels(found).astype(int) - np.rot90(square, angle // 90)).max() <= (mode.value == "bilinear")


def test_colours_and_dtypes():
    grey = transforms.Grayscale()(planes(RGB))
    weights = np.array([0.2989, 0.587, 0.114])
    assert np.abs(pixels(grey) - RGB @ weights).max() <= 1
    assert transforms.Grayscale(3)(planes(RGB)).shape == (3, 11, 9)
    assert transforms.Grayscale()(RGB).shape == (11, 9, 1)
    convert = functional.convert_image_dtype
    levels = rushlight.tensor([0, 1, 128, 255], dtype=rushlight.uint8)
    floats = convert(levels, rushlight.float32)
    assert floats.tolist() == (levels.float() / 255).tolist()
    assert convert(floats, rushlight.uint8).tolist() == [0, 1, 128, 255]
    assert convert(levels, rushlight.int16).tolist() == [0, 128, 16384, 32640]
    assert convert(convert(levels, rushlight.int16), rushlight.uint8).tolist() == [0, 1, 128, 255]
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        convert(floats, rushlight.int32)


def test_normalize():
    x = rushlight.arange(12.0).reshape(3, 2, 2)
    found = transforms.Normalize((1, 2, 3), (2, 4, 8))(x)
    assert (
        found.tolist()
        == (
            (x - rushlight.tensor([1.0, 2, 3]).reshape(3, 1, 1)) / rushlight.tensor([2.0, 4, 8]).reshape(3, 1, 1)
        ).tolist()
    )
    assert transforms.Normalize((0,), (2,), inplace=True)(x) is x
    assert x[2, 1, 1] == 5.5
    for error, words, bad, std in (
        (TypeError, "float tensor", planes(RGB), 1),
        (TypeError, "Tensor Image", RGB, 1),
        (ValueError, "size \\(..., C, H, W\\)", x[0], 1),
        (ValueError, "std evaluated to zero", x, 0),
    ):
        with pytest.raises(error, match=words):
            transforms.Normalize((0,), (std,))(bad)


def test_reprs_and_refusals():
    t = transforms
    told = str(
        t.Compose(
            [
                t.ToTensor(),
                t.Normalize((0.5,), (0.5,)),
                t.Resize(3),
                t.RandomCrop(3, 2),
                t.Pad(2),
                t.RandomRotation(10),
                t.CenterCrop(3),
                t.RandomChoice([t.ToTensor()]),
            ]
        )
    )
    assert (
        told
        == """Compose(
    ToTensor()
    Normalize(mean=(0.5,), std=(0.5,))
    Resize(size=3, interpolation=bilinear, max_size=None, antialias=True)
    RandomCrop(size=(3, 3), padding=2)
    Pad(padding=2, fill=0, padding_mode=constant)
    RandomRotation(degrees=[-10.0, 10.0], interpolation=nearest, expand=False, fill=0)
    CenterCrop(size=(3, 3))
    RandomChoice(
    ToTensor()
)(p=None)
)"""
    )
    with pytest.raises(ValueError, match=r"Required crop size \(20, 20\) is larger than input image size \(11, 9\)"):
        t.RandomCrop(20)(RGB)
    with pytest.raises(ValueError, match="Padding mode"):
        t.Pad(1, padding_mode="wrap")(RGB)
    with pytest.raises(TypeError, match="an image is a PIL image"):
        t.CenterCrop(2)([1, 2])
    with pytest.raises(TypeError, match="callable"):
        t.Lambda(3)


# -- data sets -------------------------------------------------------------------------------------


def idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def mnist_files(prefix, count):
    images = np.arange(count * 784).reshape(count, 28, 28) % 251
    return {f"{prefix}-images-idx3-ubyte": idx(images), f"{prefix}-labels-idx1-ubyte": idx(np.arange(count) % 10)}


@pytest.mark.parametrize("where", ["MNIST/raw", "."])
@pytest.mark.parametrize("packed", [False, True])
def test_mnist(tmp_path, where, packed):
    for name, content in {**mnist_files("train", 6), **mnist_files("t10k", 3)}.items():
        path = tmp_path / where / (name + ".gz" * packed)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if packed else content)
    train = datasets.MNIST(tmp_path, transform=transforms.ToTensor(), target_transform=lambda y: y * 10)
    test = datasets.MNIST(str(tmp_path), train=False)
    assert (len(train), len(test), train.data.shape, train.targets.dtype) == (6, 3, (6, 28, 28), rushlight.int64)
    image, label = train[2]
    assert (image.shape, label) == ((1, 28, 28), 20)
    assert image.tolist() == (train.data[2].float() / 255)[None].tolist()
    assert np.array_equal(np.asarray(test[1][0]), test.data[1].numpy())
    assert train.class_to_idx["7 - seven"] == 7
    assert repr(train) == (
        f"Dataset MNIST\n    Number of datapoints: 6\n    Root location: {tmp_path}\n    Split: "
        "Train\n"
        "    StandardTransform\nTransform: ToTensor()\nTarget transform: " + repr(train.target_transform)
    )
    batch = next(iter(rushlight.utils.data.DataLoader(train, batch_size=6)))
    assert batch[0].shape == (6, 1, 28, 28)


def test_images_without_pillow(tmp_path, monkeypatch):
    for name, content in mnist_files("train", 2).items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.setitem(sys.modules, "PIL", None)
    found = datasets.MNIST(tmp_path)
    image = found[0][0]
    assert isinstance(image, np.ndarray)
    image[:] = 0
    assert transforms.ToTensor()(found[1][0]).shape == (1, 28, 28)
    assert found.data[0].sum() > 0
    with pytest.raises(ImportError, match="pip install pillow"):
        transforms.ToPILImage()(image)


def test_missing_and_mixed_files(tmp_path):
    with pytest.raises(RuntimeError, match="(?s)Dataset not found. You can use download=True.*train-images-idx3-ubyte"):
        datasets.FashionMNIST(tmp_path)
    for name, content in mnist_files("train", 2).items():
        (tmp_path / name).write_bytes(content if "images" in name else idx(np.arange(5)))
    with pytest.raises(RuntimeError, match="do not belong together"):
        datasets.MNIST(tmp_path)


def test_digits():
    train, test = datasets.Digits(), datasets.Digits(train=False, transform=transforms.ToTensor())
    assert (len(train), len(test)) == (1437, 360)
    assert train.data.max() == 255
    image, label = test[0]
    assert (image.shape, label, image.dtype) == ((1, 8, 8), 0, rushlight.float32)
    assert sorted(set(train.targets.tolist())) == list(range(10))


class SmallCIFAR(datasets.CIFAR10):
    pass


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """A folder with the archive of a small set, and a class that knows its sums."""
    rows = np.arange(2 * 3072).reshape(2, 3072).astype(np.uint8)
    files = {f"data_batch_{i}": {"data": rows + i, "labels": [i, 0]} for i in range(1, 6)}
    files |= {"test_batch": {"data": rows, "labels": [3, 4]}, "batches.meta": {"label_names": ["a", "b"]}}
    packed = {name: pickle.dumps(content, 2) for name, content in files.items()}
    sums = {name: hashlib.md5(content).hexdigest() for name, content in packed.items()}
    with tarfile.open(tmp_path / SmallCIFAR.filename, "w:gz") as archive:
        for name, content in {**packed, "../../outside": b"x", "readme.html": b"x"}.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(SmallCIFAR, "train_list", [(f"data_batch_{i}", sums[f"data_batch_{i}"]) for i in range(1, 6)])
    monkeypatch.setattr(SmallCIFAR, "test_list", [("test_batch", sums["test_batch"])])
    monkeypatch.setattr(SmallCIFAR, "meta", {**SmallCIFAR.meta, "md5": sums["batches.meta"]})
    return tmp_path


def test_cifar(cifar):
    train, test = SmallCIFAR(cifar, transform=transforms.ToTensor()), SmallCIFAR(cifar, train=False)
    assert (train.data.shape, train.targets[:4], train.classes) == ((10, 32, 32, 3), [1, 0, 2, 0], ["a", "b"])
    assert train[0][0].shape == (3, 32, 32)
    assert np.asarray(test[1][0])[0, 1].tolist() == [(3072 + 1) % 256, (3072 + 1025) % 256, (3072 + 2049) % 256]
    assert sorted(p.name for p in (cifar / "cifar-10-batches-py").iterdir())[0] == "batches.meta"
    assert {p.name for p in cifar.iterdir()} == {"cifar-10-batches-py", SmallCIFAR.filename}
    (cifar / "cifar-10-batches-py" / "data_batch_2").write_bytes(b"changed")
    (cifar / SmallCIFAR.filename).unlink()
    with pytest.raises(RuntimeError, match="(?s)not found or corrupted.*data_batch_2"):
        SmallCIFAR(cifar)


def test_cifar_runs_no_code(cifar, monkeypatch):
    class Runs:
        def __reduce__(self):
            return print, ("ran",)

    SmallCIFAR(cifar)
    bad = pickle.dumps({"data": Runs()}, 2)
    (cifar / "cifar-10-batches-py" / "test_batch").write_bytes(bad)
    monkeypatch.setattr(SmallCIFAR, "test_list", [("test_batch", hashlib.md5(bad).hexdigest())])
    with pytest.raises(pickle.UnpicklingError, match="print"):
        SmallCIFAR(cifar, train=False)


# -- downloads -------------------------------------------------------------------------------------


class Server(BaseHTTPRequestHandler):
    """Files from memory; it goes on in the middle when asked, and breaks off after `cut` bytes of an answer."""

    files: dict[str, bytes] = {}
    cut = None
    asked: list = []

    def do_GET(self):
        content = self.files.get(self.path)
        self.asked.append((self.path, self.headers.get("Range")))
        if content is None:
            return self.send_error(404)
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if start >= len(content) > 0 and start:
            return self.send_error(416)
        self.send_response(206 if start else 200)
        rest = content[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: type(self).cut])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    Server.files, Server.cut, Server.asked = {}, None, []
    with HTTPServer(("127.0.0.1", 0), Server) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/"
        http.shutdown()
        thread.join()


def test_mnist_is_downloaded_once(server, tmp_path, monkeypatch):
    packed = {f"{n}.gz": gzip.compress(c) for n, c in {**mnist_files("train", 3), **mnist_files("t10k", 2)}.items()}
    Server.files = {"/" + name: content for name, content in packed.items()}
    monkeypatch.setattr(datasets.MNIST, "mirrors", [server + "gone/", server])
    monkeypatch.setattr(datasets.MNIST, "resources", [(n, hashlib.md5(c).hexdigest()) for n, c in packed.items()])
    assert len(datasets.MNIST(tmp_path, download=True)) == 3
    count = len(Server.asked)
    assert count == 8
    assert len(datasets.MNIST(tmp_path, train=False, download=True)) == 2
    assert len(Server.asked) == count


def test_a_broken_download_goes_on(server, tmp_path):
    content = bytes(range(256)) * 40
    Server.files, Server.cut = {"/a": content}, 6000
    path, expected = tmp_path / "a", hashlib.md5(content).hexdigest()
    with pytest.raises(RuntimeError, match=r"(?s)could not download a:.*hint: download the file by hand to"):
        net.download([server + "a"], path, expected)
    assert not path.exists()
    assert (tmp_path / "a.part").stat().st_size == 6000
    net.download([server + "a"], path, expected)
    assert path.read_bytes() == content
    assert [r for _, r in Server.asked] == [None, "bytes=6000-"]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_changed_file_is_refused(server, tmp_path):
    Server.files = {"/a": b"something else"}
    with pytest.raises(RuntimeError, match="the received file has the md5"):
        net.download([server + "a"], tmp_path / "a", "0" * 32)
    assert list(tmp_path.iterdir()) == []


def test_offline(tmp_path):
    with pytest.raises(RuntimeError, match="could not download a:\n  http://127.0.0.1:9/a: .*refused"):
        net.download(["http://127.0.0.1:9/a"], tmp_path / "a", "0" * 32)
