"""Archives of torch 2.13 that are kept here: they are read without torch."""

from __future__ import annotations

import io

import pytest

import rushlight
from rushlight.serialization.archive import Damaged
from tests.archives.compared import TOLERANCE, difference
from tests.archives.kept import NAMES, kept


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_archive(name):
    path, given, expected = kept(name)
    model = rushlight.export.load(path).module() if name.endswith(".pt2") else rushlight.jit.load(path)
    got = model(*map(rushlight.from_numpy, given))
    assert difference(got, [rushlight.from_numpy(a) for a in expected]) <= TOLERANCE


@pytest.mark.parametrize("load", [rushlight.jit.load, rushlight.export.load])
def test_other_files_are_refused(load, tmp_path):
    rushlight.save({"a": rushlight.ones(2)}, tmp_path / "weights.pt")
    with pytest.raises(Damaged, match="is not a"):
        load(tmp_path / "weights.pt")
    with pytest.raises(Damaged):
        load(io.BytesIO(b"text"))
    with pytest.raises(TypeError, match="path or a binary file"):
        load(3)
