"""Files of whole models: there and back with torch, killed while they are written, and made by somebody who means
ill."""

from __future__ import annotations

import io
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight.serialization import archive, atomic_write

HERE = Path(tempfile.gettempdir(), f"rushlight-was-here-{os.getpid()}")


def lstm_state(lib):
    """The state of an LSTM of two layers both ways, in a plain dict where the module is not there."""
    if hasattr(lib.nn, "LSTM"):
        return lib.nn.LSTM(3, 4, num_layers=2, bidirectional=True).state_dict()
    ends = [f"l{layer}{way}" for layer in range(2) for way in ("", "_reverse")]
    shapes = {"weight_ih": (16, 3), "weight_hh": (16, 4), "bias_ih": (16,), "bias_hh": (16,)}
    return {f"{name}_{end}": lib.randn(*shape) for end in ends for name, shape in shapes.items()}


def convnet(lib):
    nn = lib.nn
    return nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))


def transformer_state(lib):
    """A GPT's state: tied embeddings, a mask among the buffers, half precision."""
    embedding = lib.randn(7, 4)
    state = {"wte.weight": embedding, "lm_head.weight": embedding, "wpe.weight": lib.randn(5, 4).to(lib.bfloat16)}
    for i in range(2):
        state |= {
            f"h.{i}.attn.bias": lib.ones(5, 5).tril().bool(),
            f"h.{i}.attn.c_attn.weight": lib.randn(12, 4),
            f"h.{i}.ln.weight": lib.ones(4).to(lib.float16),
        }
    return state


def trained(lib):
    """A ConvNet and its optimizer after three steps."""
    lib.manual_seed(0)
    model = convnet(lib)
    optimizer = lib.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)
    for _ in range(3):
        optimizer.zero_grad()
        model(lib.randn(5, 1, 8, 8)).square().sum().backward()
        optimizer.step()
    return model, optimizer


MAKERS = {
    "lstm": lstm_state,
    "convnet": lambda lib: trained(lib)[0].state_dict(),
    "transformer": transformer_state,
    "adam": lambda lib: trained(lib)[1].state_dict(),
}


def plain(obj):
    """Of either library: tensors as (dtype, numbers), containers as Python's."""
    if hasattr(obj, "detach"):
        return str(obj.dtype), obj.detach().tolist()
    if isinstance(obj, dict):
        return {k: plain(v) for k, v in obj.items()}
    return [plain(v) for v in obj] if isinstance(obj, (list, tuple)) else obj


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_there_and_back(torch, tmp_path, kind, suffix):
    """rushlight -> torch -> rushlight, and the other way round, through files; nothing changes."""
    tensors = pytest.importorskip("safetensors.torch") if suffix == ".safetensors" else None
    if tensors and kind in ("adam", "transformer"):
        pytest.skip("safetensors files hold neither numbers nor tied tensors")
    path = tmp_path / f"a{suffix}"
    for lib, other in ((rushlight, torch), (torch, rushlight)):
        first = MAKERS[kind](lib)
        content = first
        for writer, reader in ((lib, other), (other, lib)):
            if writer is rushlight or not tensors:
                writer.save(content, path)
            else:
                tensors.save_file(content, path)
            content = tensors.load_file(path) if tensors and reader is torch else reader.load(path)
            assert plain(content) == plain(first)
        if kind == "transformer":
            assert content["wte.weight"].data_ptr() == content["lm_head.weight"].data_ptr()


def test_adam_goes_on_from_torchs_state(torch, tmp_path):
    """Two more steps with the loaded state: the same weights in both."""
    model, optimizer = trained(torch)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a.pt")
    found = []
    for lib in (torch, rushlight):
        m, state = convnet(lib), lib.load(tmp_path / "a.pt")
        m.load_state_dict(state["model"])
        o = lib.optim.Adam(m.parameters(), lr=0.5)
        o.load_state_dict(state["optimizer"])
        for _ in range(2):
            o.zero_grad()
            m(lib.ones(5, 1, 8, 8).cumsum(0)).square().sum().backward()
            o.step()
        found.append([p.detach().numpy() for p in m.parameters()])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_whole_modules(torch, tmp_path):
    """Only when asked for; of torch's own modules ours are made."""
    path = tmp_path / "a.pt"
    model, _ = trained(rushlight)
    rushlight.save(model, path)
    x = rushlight.randn(2, 1, 8, 8)
    again = rushlight.load(path, weights_only=False)
    assert again(x).equal(model(x))
    with pytest.raises(pickle.UnpicklingError, match="contains a whole"):
        rushlight.load(path)
    theirs, _ = trained(torch)
    torch.save(theirs.eval(), path)
    ours = rushlight.load(path, weights_only=False)
    assert type(ours[0]) is rushlight.nn.Conv2d
    assert not ours.training
    expected = theirs(torch.tensor(x.numpy())).detach().numpy()
    np.testing.assert_allclose(ours(x).detach().numpy(), expected, rtol=1e-5, atol=1e-5)
    ours.train()(x).sum().backward()
    assert ours[0].weight.grad.shape == (4, 1, 3, 3)
    handle = ours[4].register_forward_hook(lambda module, args, out: out * 0)
    assert ours(x).abs().sum() == 0
    handle.remove()


def test_what_is_torchs_alone_is_named(torch, tmp_path):
    torch.save(torch.nn.modules.module._IncompatibleKeys, tmp_path / "a.pt")
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.module._IncompatibleKeys, which does not exist"):
        rushlight.load(tmp_path / "a.pt", weights_only=False)


# -- killed ----------------------------------------------------------------------------------------

WRITER = """
import sys
import rushlight
path, i = sys.argv[1], int(sys.argv[2])
while True:
    i += 1
    rushlight.save({"epoch": i, "weight": rushlight.full((300_000,), float(i))}, path)
    print(i, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_killed_at_random_moments_nothing_is_lost(tmp_path, suffix):
    """Writers of each format, killed -9 within 30 ms of their first file: always one whole file, the last or later."""
    chance, program = random.Random(0), WRITER
    if suffix == ".safetensors":
        program = WRITER.replace('"epoch": i', '"epoch": rushlight.tensor(i)')
    path, written, hit = tmp_path / f"a{suffix}", 0, 0
    for _ in range(100):
        if hit > 5:  # so often one was in the midst of writing
            break
        with subprocess.Popen([sys.executable, "-c", program, path, str(written)], stdout=subprocess.PIPE) as writer:
            told = writer.stdout.readline()
            time.sleep(chance.uniform(0, 0.03))
            writer.send_signal(signal.SIGKILL)
            told += writer.stdout.read()
        found = rushlight.load(path)
        assert int(found["epoch"]) in (last := int(told.split()[-1]), last + 1)
        assert (found["weight"] == float(found["epoch"])).all()
        left = set(tmp_path.iterdir()) - {path}
        assert len(left) <= 1  # the next writer removes it
        written, hit = last + 1, hit + len(left)
    assert hit > 5
    rushlight.save(1, tmp_path / "other.pt")
    assert set(tmp_path.iterdir()) == {path, tmp_path / "other.pt"}


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_save_leaves_the_temporary_files_of_others_that_run(tmp_path):
    """A second save into the folder, while the first one still writes; and two of one name."""
    path = tmp_path / "a.pt"
    with atomic_write.replacing(path) as first:
        rushlight.save({"n": 2}, tmp_path / "b.pt")
        rushlight.save({"n": 3}, path)
        first.write((tmp_path / "b.pt").read_bytes())
    assert rushlight.load(path) == {"n": 2}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pt", "b.pt"]


# -- malice ----------------------------------------------------------------------------------------


def torch_file(data, records=(), **how):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **how) as z:
        z.writestr("a/data.pkl", data)
        for name, content in dict(records).items():
            z.writestr(name, content)
    file.seek(0)
    return file


class Runs:
    def __reduce__(self):
        return os.system, (f"touch {HERE}",)


def bomb():
    """Half a megabyte that unpacks to half a gigabyte, where a tensor's memory should be."""
    return torch_file(b"N.", {"a/data/0": bytes(2**29)}, compression=zipfile.ZIP_DEFLATED, compresslevel=1)


def overlapping():
    """A hundred records in the table of contents, all of them the same megabyte."""
    file = torch_file(b"N.", {"a/data/0": bytes(2**20)})
    with zipfile.ZipFile(file, "a") as z:
        one = z.getinfo("a/data/0")
        for i in range(1, 100):
            twin = zipfile.ZipInfo(f"a/data/{i}")
            twin.file_size, twin.compress_size, twin.CRC = one.file_size, one.compress_size, one.CRC
            twin.header_offset = one.header_offset
            z.filelist.append(twin)
        z._didModify = True
    file.seek(0)
    return file


def pickled_otherwise(honest, lie):
    """A file of four numbers, with other bytes in its pickle."""
    file, changed = io.BytesIO(), io.BytesIO()
    rushlight.save(rushlight.zeros(4), file)
    with zipfile.ZipFile(file) as z, zipfile.ZipFile(changed, "w") as other:
        for info in z.infolist():
            content = z.read(info)
            if info.filename.endswith("data.pkl"):
                assert content.count(honest) == 1
                content = content.replace(honest, lie)
            other.writestr(info.filename, content)
    changed.seek(0)
    return changed


def claims(record, size):
    """A record said to be this large."""
    file = io.BytesIO()
    rushlight.save(rushlight.zeros(4), file)
    content = bytearray(file.getvalue())
    at = content.rindex(record)
    content[at - 26 : at - 18] = int(size).to_bytes(4, "little") * 2
    return io.BytesIO(bytes(content))


MALICE = {
    "os.system": (lambda: torch_file(pickle.dumps(Runs(), 2)), "system, which is not on the list of safe names"),
    "bomb": (bomb, "would unpack to 536,870,9"),
    "overlap": (overlapping, "are said to take"),
    "path": (lambda: torch_file(b"N.", {"a/../../../tmp/x": b""}), "a path as the name"),
    "absolute": (lambda: torch_file(b"N.", {"/etc/passwd": b""}), "a path as the name"),
    "backslash": (lambda: torch_file(b"N.", {"a\\..\\x": b""}), "a path as the name"),
    "shape": (lambda: pickled_otherwise(b"K\x04\x85", b"K\x05\x85"), "damaged"),  # four elements; five
    "stride": (lambda: pickled_otherwise(b"K\x01\x85", b"K\x02\x85"), "damaged"),
    "offset": (lambda: pickled_otherwise(b"K\x00K\x04", b"K\x01K\x04"), "damaged"),
    "length": (lambda: claims(b"archive/data/0", 2**32 - 2), "damaged"),
    "length of data.pkl": (lambda: claims(b"archive/data.pkl", 2**31), "damaged"),
}


@pytest.mark.parametrize("kind", MALICE)
def test_malicious_files_are_refused(kind):
    make, words = MALICE[kind]
    file = make()
    with pytest.raises((pickle.UnpicklingError, archive.Damaged), match=words):
        rushlight.load(file)
    assert not HERE.exists()
