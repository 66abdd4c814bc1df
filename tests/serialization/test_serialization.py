"""save and load: torch's files, ours in torch, and what is refused."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pickle
import pickletools
import re
import struct
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight import tensor
from rushlight.base import dtypes
from rushlight.core.tensor import from_array
from rushlight.nn.parameter import Parameter
from rushlight.serialization import (
    add_safe_globals,
    archive,
    clear_safe_globals,
    get_safe_globals,
    load,
    safe_globals,
    save,
)
from tests.support.paths import GOLDEN

REAL = [d.name for d in dtypes.DTYPES]


def saved(obj):
    file = io.BytesIO()
    save(obj, file)
    file.seek(0)
    return file


def round_trip(obj, **options):
    return load(saved(obj), **options)


def numbers(name, lib):
    """Six numbers of a dtype, in either library."""
    return lib.tensor([0, 1, 1, 0, 1, 0] if name == "bool" else [0, 1, 2, 3, 4, 5]).to(getattr(lib, name))


def plain(obj):
    """Tensors of either library as (dtype, shape, strides, numbers, requires_grad); the rest as it is."""
    if hasattr(obj, "requires_grad") and hasattr(obj, "stride"):
        t = obj.detach()
        strides = tuple(t.stride()) if t.numel() else None  # of no elements, they mean nothing
        return str(t.dtype), tuple(t.shape), strides, t.tolist(), obj.requires_grad
    if isinstance(obj, dict):
        return type(obj).__name__, {k: plain(v) for k, v in obj.items()}
    if isinstance(obj, (list, tuple)):
        return type(obj).__name__, [plain(v) for v in obj]
    return repr(obj)


def content(lib):
    """One object with all that weights consist of, in either library."""
    grid = lib.arange(12.0).reshape(3, 4)
    state = OrderedDict([("layer.weight", grid), ("layer.bias", lib.zeros(0, 3))])
    state._metadata = OrderedDict([("", {"version": 1})])
    return {
        "dtypes": {name: numbers(name, lib) for name in REAL},
        "views": [grid, grid.t(), grid[1], grid[:, ::2], grid[1, 1], lib.ones(1).expand(4)],
        "state": state,
        "nest": [(1, [2.5, {"deep": (lib.tensor(3.5), None)}]), True, "text", b"byte", 2**70, {1}, 1j, bytearray(b"x")],
        "kinds": [lib.Size([2, 3]), lib.float32, lib.bfloat16, lib.bool, lib.device("cpu"), lib.device("cpu", 0)],
        "grad": lib.ones(2, requires_grad=True),
        4: Counter("abca"),
    }


def parameters(lib):
    make = Parameter if lib is rushlight else lib.nn.Parameter
    frozen = make(lib.zeros(2, 2), requires_grad=False)
    frozen.note = "kept"
    weight = make(lib.ones(3))
    tagged = lib.ones(2)
    tagged.tag = 7
    return [weight, frozen, tagged, weight]


# -- files of torch --------------------------------------------------------------------------------


@pytest.fixture
def file_of_torch(request):
    """file_of_torch(name, make) -> bytes of a file that torch wrote: tests/golden/<name>, and with torch a new one."""

    def answer(name, make, **options):
        from tests.support.oracle import torch_or_none

        torch, path = torch_or_none(), GOLDEN / name
        if torch is None:
            return path.read_bytes()
        file = io.BytesIO()
        torch.save(make(torch), file, **options)
        if request.config.getoption("--golden") == "write":
            path.write_bytes(file.getvalue())
        return file.getvalue()

    return answer


@pytest.mark.parametrize("zipped", [True, False])
def test_files_of_torch(file_of_torch, zipped):
    name = "content.zip.pt" if zipped else "content.legacy.pt"
    found = load(io.BytesIO(file_of_torch(name, content, _use_new_zipfile_serialization=zipped)))
    assert plain(found) == plain(content(rushlight))
    assert found["state"]._metadata == {"": {"version": 1}}
    grid, transposed, row = found["views"][:3]
    grid._array[1, 2] = 99.0
    assert (transposed[2, 1].item(), row[2].item(), found["state"]["layer.weight"][1, 2].item()) == (99.0,) * 3


def test_files_as_before_1_6(torch):
    file, tensors = (
        io.BytesIO(),
        {
            "a": rushlight.arange(6.0).view(2, 3)[1:],
            "b": [Parameter(rushlight.ones(2)), 3],
            "c": rushlight.tensor([1.0, 2.0], dtype=rushlight.bfloat16),
            "e": rushlight.empty(0),
        },
    )
    tensors["view"] = tensors["a"][0, 1:]
    save(tensors, file, pickle_protocol=4, _use_new_zipfile_serialization=False)
    for lib in (torch, rushlight):
        file.seek(0)
        found = lib.load(file)
        assert (found["a"].tolist(), found["b"][0].tolist(), found["e"].tolist()) == ([[3.0, 4.0, 5.0]], [1.0, 1.0], [])
        assert (found["c"].dtype, found["c"].tolist(), type(found["b"][0])) == (
            lib.bfloat16,
            [1.0, 2.0],
            lib.nn.Parameter,
        )
        found["a"].zero_()
        assert found["view"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
def test_parameters_of_torch(file_of_torch, zipped, weights_only):
    name = "parameters.zip.pt" if zipped else "parameters.legacy.pt"
    file = io.BytesIO(file_of_torch(name, parameters, _use_new_zipfile_serialization=zipped))
    found = load(file, weights_only=weights_only)
    assert [type(p) for p in found] == [Parameter, Parameter, rushlight.Tensor, Parameter]
    assert [p.requires_grad for p in found] == [True, False, False, True]
    assert (found[1].note, found[2].tag) == ("kept", 7)
    assert found[0] is found[3]


def test_what_torch_left_for_later(file_of_torch):
    def lazy(torch):
        z = torch.tensor([1 + 2j, 3 - 4j])
        return [z.conj(), z.clone().conj().imag, z]

    conj, neg, z = load(io.BytesIO(file_of_torch("lazy.pt", lazy)))
    assert (conj.tolist(), neg.tolist(), z.tolist()) == ([1 - 2j, 3 + 4j], [-2.0, 4.0], [1 + 2j, 3 - 4j])


def test_an_optimizer_of_torch(file_of_torch):
    def adam(torch):
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.Adam([weight], lr=0.5)
        (weight * weight).sum().backward()
        optimizer.step()
        return {"model": {"weight": weight.detach()}, "optimizer": optimizer.state_dict(), "epoch": 3}

    found = load(io.BytesIO(file_of_torch("adam.pt", adam)))
    assert found["optimizer"]["param_groups"][0]["lr"] == 0.5
    assert found["optimizer"]["state"][0]["exp_avg"].tolist() == pytest.approx([0.2, 0.2])
    assert found["optimizer"]["state"][0]["step"].item() == 1.0
    assert found["model"]["weight"].tolist() == pytest.approx([0.5, 0.5])


def test_a_map_of_devices_that_are_not_here(file_of_torch):
    def elsewhere(torch):
        return [torch.device("cuda", 1), torch.strided]

    assert [str(d) for d in load(io.BytesIO(file_of_torch("device.pt", elsewhere)))] == ["cpu", "torch.strided"]


# -- our files in torch ----------------------------------------------------------------------------


def test_our_files_in_torch(torch):
    found = torch.load(saved(content(rushlight)), weights_only=True)
    assert plain(found) == plain(content(torch))
    assert found["state"]._metadata == {"": {"version": 1}}
    grid, transposed, row = found["views"][:3]
    grid[1, 2] = 99.0
    assert (transposed[2, 1].item(), row[2].item(), found["state"]["layer.weight"][1, 2].item()) == (99.0,) * 3


def test_our_parameters_in_torch(torch):
    found = torch.load(saved(parameters(rushlight)), weights_only=True)
    assert [type(p) for p in found] == [torch.nn.Parameter] * 2 + [torch.Tensor, torch.nn.Parameter]
    assert [p.requires_grad for p in found] == [True, False, False, True]
    assert (found[1].note, found[2].tag) == ("kept", 7)
    assert found[0] is found[3]


def test_a_training_goes_on_in_torch_and_back(torch):
    """Model and optimizer: two steps here, two there, two here, as six here."""

    def steps(lib, model, optimizer, n):
        for _ in range(n):
            optimizer.zero_grad()
            (model(lib.ones(5, 3)) ** 2).sum().backward()
            optimizer.step()

    def training(lib, start=None):
        model = lib.nn.Linear(3, 2)
        optimizer = lib.optim.Adam(model.parameters(), lr=0.1)
        if start:
            model.load_state_dict(start["model"])
            optimizer.load_state_dict(start["optimizer"])
        return model, optimizer

    rushlight.manual_seed(0)
    alone, moving = training(rushlight), training(rushlight)
    moving[0].load_state_dict(alone[0].state_dict())
    steps(rushlight, *alone, 6)
    for lib, other in ((rushlight, torch), (torch, rushlight), (rushlight, None)):
        steps(lib, *moving, 2)
        if other:
            file = io.BytesIO()
            lib.save({"model": moving[0].state_dict(), "optimizer": moving[1].state_dict()}, file)
            file.seek(0)
            moving = training(other, other.load(file, weights_only=True))
    assert moving[0].weight.detach().numpy() == pytest.approx(alone[0].weight.detach().numpy(), abs=1e-6)
    assert moving[0].state_dict()._metadata == alone[0].state_dict()._metadata


def test_our_file_mapped_by_torch(torch, tmp_path):
    save({"a": rushlight.arange(5.0), "b": rushlight.ones(3, dtype=rushlight.float64)}, tmp_path / "a.pt")
    found = torch.load(tmp_path / "a.pt", mmap=True, weights_only=True)
    assert (found["a"].tolist(), found["b"].tolist()) == ([0, 1, 2, 3, 4], [1, 1, 1])


@given(st.sampled_from(REAL), st.lists(st.integers(0, 4), max_size=3), st.randoms())
@settings(max_examples=60, deadline=None)
def test_any_view_in_both(name, shape, chance):
    from tests.support.oracle import torch_or_none

    torch = torch_or_none()
    size = int(np.prod(shape))
    base = (np.arange(size + 4) % 2).astype(getattr(rushlight, name).numpy)[2 : 2 + size].reshape(shape)
    axes = chance.sample(range(len(shape)), len(shape))
    view = base.transpose(axes)[(..., *(slice(None, None, chance.choice([1, 2, -1])) for _ in shape))]
    tensor = from_array(view)
    for t in [round_trip(tensor)] + ([torch.load(saved(tensor), weights_only=True)] if torch else []):
        assert str(t.dtype) == f"torch.{name}"
        assert tuple(t.shape) == view.shape
        assert t.tolist() == view.tolist()


# -- both ways -------------------------------------------------------------------------------------


def test_round_trip():
    assert plain(round_trip(content(rushlight))) == plain(content(rushlight))
    found = round_trip(parameters(rushlight))
    assert [type(p) for p in found] == [Parameter, Parameter, rushlight.Tensor, Parameter]
    assert found[1].note == "kept"


def test_shared_memory_stays_shared_and_only_what_is_used_is_written():
    large = rushlight.zeros(100_000)
    a, b = round_trip([large[10:20], large[15:30]])
    a._array[5] = 1.0
    assert b.tolist()[:2] == [1.0, 0.0]
    assert len(saved([large[10:20], large[15:30]]).getvalue()) < 2_000


def test_equal_content_gives_equal_bytes():
    assert saved(content(rushlight)).getvalue() == saved(content(rushlight)).getvalue()


def test_what_has_requires_grad_needs_no_graph():
    x = rushlight.ones(2, requires_grad=True)
    y = round_trip(x * 2)
    assert (y.tolist(), y.requires_grad, y.is_leaf) == ([2.0, 2.0], True, True)


def test_one_memory_in_two_dtypes_is_refused():
    x = rushlight.ones(2)
    integers = rushlight.from_numpy(x._array.view(np.int32))
    with pytest.raises(RuntimeError, match=r"view the same data as different types.*clone"):
        saved([x, integers])


def test_weights_and_other_objects(tmp_path):
    class Local:
        pass

    with pytest.raises((pickle.PicklingError, AttributeError)):
        save(Local(), tmp_path / "a.pt")
    path = Path("some/where")
    with pytest.raises(pickle.UnpicklingError, match="pathlib"):
        round_trip({"path": path})
    assert round_trip({"path": path}, weights_only=False) == {"path": path}
    name = f"{type(path).__module__}.{type(path).__qualname__}"
    with safe_globals([(type(path), name), Path]):
        assert round_trip([path, rushlight.ones(1)])[0] == path
    with pytest.raises(pickle.UnpicklingError):
        round_trip(path)


class Options:
    """With attributes, which BUILD sets."""

    def __init__(self, depth):
        self.depth = depth


def test_safe_globals():
    add_safe_globals([Options])
    try:
        assert get_safe_globals() == [Options]
        assert round_trip(Options(3)).depth == 3
    finally:
        clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError, match=r"test_serialization.Options.*add_safe_globals"):
        round_trip(Options(3))
    assert round_trip(Options(3), weights_only=False).depth == 3


@pytest.mark.parametrize("location", [None, "cpu", rushlight.device("cpu"), lambda storage, key: storage, {"a": "cpu"}])
def test_map_location(location):
    assert round_trip(rushlight.ones(1), map_location=location).tolist() == [1.0]


def test_there_is_only_the_cpu():
    with pytest.raises(RuntimeError, match="'cpu'"):
        round_trip(rushlight.ones(1), map_location="cuda:0")


# -- files -----------------------------------------------------------------------------------------


def test_paths(tmp_path):
    for path in (tmp_path / "a.pt", str(tmp_path / "b.pt")):
        save(rushlight.ones(2), path)
        assert load(path).tolist() == [1.0, 1.0]
    assert {p.name for p in tmp_path.iterdir()} == {"a.pt", "b.pt"}
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        save(rushlight.ones(2), tmp_path / "missing" / "a.pt")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "c.pt")


def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    save("old", path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        save([rushlight.ones(2), lambda: None], path)
    real = archive.Writer.write

    def full(self, record, content):
        if record == "version":
            raise OSError(28, "No space left on device")
        real(self, record, content)

    monkeypatch.setattr(archive.Writer, "write", full)
    with pytest.raises(OSError, match="No space"):
        save("new", path)
    assert load(path) == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.pt"]


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_a_save_keeps_modes_and_follows_links(tmp_path):
    path, link, pipe = tmp_path / "a.pt", tmp_path / "link.pt", Path("/dev/null")
    save(1, path)
    path.chmod(0o640)
    link.symlink_to(path)
    save(2, link)
    assert link.is_symlink()
    assert (load(path), path.stat().st_mode & 0o777) == (2, 0o640)
    save(3, pipe)
    assert not pipe.is_file()


def test_files_that_are_not_paths(tmp_path):
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        save(rushlight.arange(3), file)
    with gzip.open(tmp_path / "a.gz", "rb") as file:
        assert load(file).tolist() == [0, 1, 2]

    class OnlyReads:
        def __init__(self, data):
            self.file = io.BytesIO(data)
            self.read, self.seek, self.tell = self.file.read, self.file.seek, self.file.tell
            self.seekable = self.file.seekable

    assert load(OnlyReads(saved(rushlight.arange(3)).getvalue())).tolist() == [0, 1, 2]
    with pytest.raises(AttributeError, match="BytesIO"):
        load(object())
    with pytest.raises(TypeError, match="path"):
        save(1, object())


def test_two_legacy_files_in_one(torch):
    file = io.BytesIO()
    for value in (torch.ones(2), torch.zeros(3)):
        torch.save(value, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert [load(file).tolist(), load(file).tolist()] == [[1, 1], [0, 0, 0]]


def test_mapping_reads_nothing_and_never_writes(tmp_path):
    path = tmp_path / "a.pt"
    save({"a": rushlight.arange(1000.0), "empty": rushlight.zeros(0)}, path)
    before = path.read_bytes()
    mapped = load(path, mmap=True)
    base = mapped["a"]._array
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert base.base is not None  # the map
    mapped["a"]._array[3] = -1.0
    assert mapped["a"].sum().item() == 499500.0 - 4.0
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="path"):
        load(io.BytesIO(before), mmap=True)


def test_records_stand_at_multiples_of_64():
    file = saved([rushlight.ones(n) for n in (1, 7, 300)])
    with zipfile.ZipFile(file) as z:
        assert z.testzip() is None
        for info in z.infolist():
            file.seek(info.header_offset)
            name, extra = struct.unpack("<26xHH", file.read(30))
            assert (info.header_offset + 30 + name + extra) % 64 == 0


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zipped_by_another_program_and_of_another_byte_order(compression):
    file = io.BytesIO()
    with (
        zipfile.ZipFile(saved([rushlight.arange(3), rushlight.tensor([1 + 2j])])) as old,
        zipfile.ZipFile(file, "w", compression) as new,
    ):
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith("data/0"):
                data = np.frombuffer(data, "<i8").astype(">i8").tobytes()
            if info.filename.endswith("data/1"):
                data = np.frombuffer(data, "<c8").astype(">c8").tobytes()
            new.writestr(info.filename, b"big" if info.filename.endswith("byteorder") else data)
    file.seek(0)
    integers, complexes = load(file)
    assert (integers.tolist(), complexes.tolist()) == ([0, 1, 2], [1 + 2j])


# -- damage ----------------------------------------------------------------------------------------

CLEAR = (RuntimeError, pickle.UnpicklingError, EOFError)


@pytest.mark.parametrize("kind", ["ours", "legacy"])
def test_every_cut_is_noticed(kind):
    data = (GOLDEN / "parameters.legacy.pt").read_bytes() if kind == "legacy" else saved(content(rushlight)).getvalue()
    for end in range(0, len(data), 7):
        with pytest.raises(CLEAR, match=r"damaged|empty|not a file"):
            load(io.BytesIO(data[:end]))


def test_every_changed_byte_of_a_tensor_is_noticed():
    data = bytearray(saved(rushlight.arange(40.0)).getvalue())
    start = data.index(struct.pack("<4f", 0, 1, 2, 3))
    for place in range(start, start + 160, 3):
        changed = bytes(data[:place]) + bytes([data[place] ^ 16]) + bytes(data[place + 1 :])
        with pytest.raises(archive.Damaged, match=r"data/0 do not have the sum"):
            load(io.BytesIO(changed))


@pytest.mark.parametrize("kind", ["ours", "legacy"])
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_changed_byte_anywhere_does_worse_than_an_error(kind, data):
    legacy = (GOLDEN / "parameters.legacy.pt").read_bytes()
    good = legacy if kind == "legacy" else saved(parameters(rushlight)).getvalue()
    place, bit = data.draw(st.integers(0, len(good) - 1)), data.draw(st.integers(0, 7))
    changed = bytearray(good)
    changed[place] ^= 1 << bit
    with contextlib.suppress(*CLEAR):
        load(io.BytesIO(bytes(changed)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"hello, world", "not a file that torch.save wrote"),
        (struct.pack("<Q", 60) + b'{"weight":{"dtype":"F32"', "safetensors"),
        (pickle.dumps({"a": 1}), "not a file that torch.save wrote"),
        (b"data.txt".ljust(257, b"\0") + b"ustar\0" + b"0" * 300, "tar format"),
    ],
)
def test_other_files(data, message):
    with pytest.raises((RuntimeError, EOFError), match=message):
        load(io.BytesIO(data))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ({"a/readme.txt": b"hello"}, "no data.pkl"),
        ({"a/data.pkl": b"", "a/constants.pkl": b""}, "TorchScript"),
        ({"a/data.pkl": b""}, "damaged"),
        ({"a/data.pkl": b"\x80\x02."}, "damaged"),
    ],
)
def test_other_zips(records, message):
    with pytest.raises(CLEAR, match=message):
        load(zipped(records))


def test_a_file_at_its_end():
    file = saved(1)
    file.read()
    with pytest.raises(EOFError, match=r"seek\(0\)"):
        load(file)


# -- malice ----------------------------------------------------------------------------------------


def zipped(records):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        for name, data in records.items():
            z.writestr(name, data)
    file.seek(0)
    return file


def load_pickle(data, **records):
    return load(zipped({"a/data.pkl": data, **{f"a/data/{k}": v for k, v in records.items()}}))


class Calls:
    def __init__(self, function, *args):
        self.reduced = function, args

    def __reduce__(self):
        return self.reduced


MARKER = Path("/tmp") / f"rushlight-malice-{os.getpid()}"
GLOBAL = {
    "tensor": b"ctorch\nTensor\n",
    "rebuild": b"ctorch._utils\n_rebuild_tensor_v2\n",
    "float": b"ctorch\nFloatStorage\n",
    "dict": b"ccollections\nOrderedDict\n",
}
STORAGE = b"(X\x07\x00\x00\x00storage" + GLOBAL["float"] + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"


@pytest.mark.parametrize("function", [os.system, eval, exec, getattr, __import__, open, print, type, setattr])
def test_functions_are_refused_by_name(function):
    for protocol in (0, 1, 2, 4):
        data = pickle.dumps({"x": Calls(function, f"touch {MARKER}")}, protocol)
        with pytest.raises(
            pickle.UnpicklingError, match=rf"\w\.{function.__name__}, which is not on the list of safe names.*weights"
        ):
            load_pickle(data)
    assert not MARKER.exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GLOBAL["tensor"] + b"}X\x04\x00\x00\x00node" + b"Nsb.", "sets attributes of a (TensorT|t)ype"),
        (GLOBAL["rebuild"] + b"N}X\x0c\x00\x00\x00__defaults__Ns\x86b.", "sets attributes of a function"),
        (b"ctorch\nfloat32\nN}X\x04\x00\x00\x00nameNs\x86b.", "sets attributes of a dtype"),
        (GLOBAL["tensor"] + b")\x81.", "calls Tensor"),
        (GLOBAL["tensor"] + b"(J\xff\xff\xff\x7ftR.", "calls Tensor"),
        (b"(cos\nsystem\nX\x02\x00\x00\x00lso.", "os.system"),
        (b"(X\x02\x00\x00\x00lsios\nsystem\n.", "INST"),
        (b"\x82\x01.", "EXT1"),
        (b"X\x03\x00\x00\x00absPnot\n.", "PERSID"),
        (b"\xff.", "0xff"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "os.system"),
        (b"cnumpy\ndtype\n.", "numpy.dtype"),
        (b"ctorch._utils\n_rebuild_nested_tensor\n.", "rushlight does not have"),
        (b"ctorch.nn.modules.linear\nLinear\n.", "state_dict"),
        (b"crushlight.nn.linear\nLinear\n.", "state_dict"),
        (b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.", "bytearray is written as bytes"),
        (b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00zip\x86R.", "latin1"),
        (b"(X\x06\x00\x00\x00modulecos\nsystem\ntQ.", "os.system"),
        (b"K\x01Q.", "damaged"),
        (b"h\x07.", "damaged"),
    ],
)
def test_other_tricks_are_refused(data, message):
    with pytest.raises(pickle.UnpicklingError, match=message):
        load_pickle(data)
    assert rushlight.float32.name == "float32"


def rebuilt(offset, size, stride):
    numbers = [pickle.dumps(v, 2)[2:-1] for v in (offset, size, stride)]
    return GLOBAL["rebuild"] + b"(" + STORAGE + b"".join(numbers) + b"\x89" + GLOBAL["dict"] + b")RtR."


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [
        (0, (5,), (1,)),
        (1, (4,), (1,)),
        (-1, (1,), (1,)),
        (4, (1,), (1,)),
        (0, (2,), (4,)),
        (3, (2,), (-4,)),
        (0, (-1,), (1,)),
        (0, (2**40, 2**40), (0, 0)),
        (2**62, (1,), (1,)),
        (0, (2,), (2**62,)),
        (0, (2, 2), (1,)),
    ],
)
def test_no_tensor_reaches_outside_its_memory(offset, size, stride):
    memory = np.arange(4, dtype=np.float32).tobytes()
    assert load_pickle(rebuilt(0, (2, 2), (2, 1)), **{"0": memory}).tolist() == [[0, 1], [2, 3]]
    with pytest.raises(pickle.UnpicklingError, match="damaged"):
        load_pickle(rebuilt(offset, size, stride), **{"0": memory})


def test_memory_that_is_missing_or_short():
    for records in ({}, {"0": b"123"}):
        with pytest.raises(archive.Damaged, match="data/0"):
            load_pickle(rebuilt(0, (1,), (1,)), **records)


def test_every_global_that_is_written_is_torchs_or_pythons():
    with zipfile.ZipFile(saved([content(rushlight), parameters(rushlight)])) as z:
        data = z.read("archive/data.pkl")
    named = {arg.split()[0] for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"}
    assert named == {"torch", "torch._utils", "torch._tensor", "torch.storage", "collections", "_codecs", "__builtin__"}


def test_large_records_are_aligned_too(monkeypatch):
    """zipfile writes a longer header for records of more than 2 GiB; here of more than 100 bytes."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    test_records_stand_at_multiples_of_64()
    assert round_trip(rushlight.arange(300)).tolist() == list(range(300))


@pytest.mark.origin("newcomers")
def test_a_full_disk_is_told_with_the_file_and_the_old_one_stays(tmp_path, monkeypatch):
    file = tmp_path / "w.pt"
    rushlight.save({"a": rushlight.zeros(2)}, file)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=re.escape(str(file))):
        rushlight.save({"a": rushlight.ones(2)}, file)
    assert rushlight.load(file)["a"].tolist() == [0.0, 0.0]
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.origin("suites")
def test_a_file_that_is_still_open_can_be_loaded_by_its_name(tmp_path):
    with open(tmp_path / "weights.pt", "wb") as file:
        rushlight.save({"a": tensor([1, 2])}, file)
        assert rushlight.load(file.name, mmap=True)["a"].tolist() == [1, 2]


@pytest.mark.origin("suites")
def test_older_files_load_from_objects_that_only_read_and_seek():
    import io

    file = io.BytesIO()
    rushlight.save(tensor([1, 2]), file, _use_new_zipfile_serialization=False)
    file.seek(0)

    class Plain:
        read, readline, seek, tell = file.read, file.readline, file.seek, file.tell

    assert rushlight.load(Plain()).tolist() == [1, 2]
