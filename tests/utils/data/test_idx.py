"""read_idx: MNIST's format, plain and compressed, whole and damaged."""

import gzip
import io
import struct

import numpy as np
import pytest

from rushlight.utils.data import read_idx

DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: "i2", 0x0C: "i4", 0x0D: "f4", 0x0E: "f8"}


def idx(array, code=0x08):
    header = struct.pack(">HBB", 0, code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(">" + DTYPES[code]).tobytes()


@pytest.mark.parametrize("code", DTYPES)
@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (), (0, 5)])
def test_reads_what_was_written(code, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(DTYPES[code])
    tensor = read_idx(io.BytesIO(idx(array, code)))
    assert tensor.numpy().dtype == array.dtype
    assert tensor.tolist() == array.tolist()
    assert tuple(tensor.shape) == shape


def test_from_a_path_and_compressed(tmp_path):
    raw = idx(np.arange(6).reshape(2, 3))
    (tmp_path / "a").write_bytes(raw)
    (tmp_path / "a.gz").write_bytes(gzip.compress(raw))
    for path in (tmp_path / "a", str(tmp_path / "a.gz")):
        assert read_idx(path).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_result_can_be_written():
    tensor = read_idx(io.BytesIO(idx(np.zeros(3))))
    tensor += 1
    assert tensor.tolist() == [1, 1, 1]


WHOLE = idx(np.arange(6).reshape(2, 3))
FAULTS = {
    "empty": (b"", "not an IDX file: it starts with nothing"),
    "text": (b"pixel,label\n", "not an IDX file: it starts with 70 69 78 65"),
    "unknown type": (b"\0\0\x07\1" + WHOLE[4:], "not an IDX file"),
    "sizes cut": (WHOLE[:7], "ends within its 2 sizes"),
    "values cut": (WHOLE[:-1], "truncated: shape (2, 3) takes 6 bytes, 5 follow"),
    "too many values": (WHOLE + b"\0", "more than it states: shape (2, 3) takes 6 bytes, 7 follow"),
    "huge size": (b"\0\0\x08\3" + b"\xff" * 12, "truncated"),
    "compressed and cut": (gzip.compress(WHOLE)[:-9], "truncated or damaged"),
    "compressed and damaged": (gzip.compress(WHOLE)[:10] + b"\xff" * 20, "truncated or damaged"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_is_refused(tmp_path, fault):
    raw, message = FAULTS[fault]
    path = tmp_path / "train-images"
    path.write_bytes(raw)
    with pytest.raises(ValueError) as caught:
        read_idx(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_idx(tmp_path / "nowhere")
