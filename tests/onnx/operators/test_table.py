"""The table of operators: each row is of an operator that ONNX has, with its inputs and attributes."""

from __future__ import annotations

import pytest

from rushlight.onnx.operators import table
from rushlight.onnx.operators.table import LATEST, MICROSOFT, TABLE, find, load_operators

load_operators()
ROWS = [(domain, row) for domain, names in TABLE.items() for rows in names.values() for row in rows]
OWN_SETTINGS = {"n_outputs", "opset"}


def schemas(domain, name):
    """An operator's definitions by onnx, or by onnxruntime for Microsoft's domain and for Microsoft's own names."""
    if domain == MICROSOFT or name == "SimplifiedLayerNormalization":
        known = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state").get_all_operator_schema()
    else:
        known = pytest.importorskip("onnx").defs.get_all_schemas_with_history()
    found = [s for s in known if (s.domain, s.name) == (domain, name)]
    return sorted(found, key=lambda schema: schema.since_version)


@pytest.mark.parametrize(("domain", "row"), ROWS, ids=lambda v: v if isinstance(v, str) else f"{v.name}-{v.since}")
def test_rows_are_operators_of_onnx(domain, row):
    """Inputs and attributes of the newest version that the row is for are all taken."""
    versions = [s for s in schemas(domain, row.name) if s.since_version <= row.until]
    assert versions, "no operator of ONNX has this name"
    newest = versions[-1]
    most = len(newest.inputs)
    assert not most or row.input(most - 1) is not None
    attributes = {name for name in newest.attributes if name not in ("consumed_inputs",)}
    assert attributes - row.settings == set()
    assert row.needed - OWN_SETTINGS <= {name for name, a in newest.attributes.items() if a.required}
    ever = set().union(*(s.attributes for s in versions))
    assert row.settings - OWN_SETTINGS - ever == set()


@pytest.mark.parametrize("name", sorted(TABLE[""]))
def test_one_row_for_each_version(name):
    """From the first version of an operator to the latest, one row fits."""
    first = schemas("", name)[0].since_version
    for version in range(first, LATEST + 1):
        rows = [row for row in TABLE[""][name] if row.since <= version <= row.until]
        assert len(rows) == 1 or (version < 9 and name in ("Scan", "Upsample")), version


def test_find():
    assert find("", "Softmax", 12) is not find("", "Softmax", 13)
    assert find("ai.onnx", "Softmax", 13) is find("", "Softmax", 13)
    assert find("", "Nonsense", 13) is None
    assert find("com.example", "Softmax", 13) is None


def test_readers_of_numbers():
    import numpy as np

    import rushlight

    for value in (rushlight.tensor([1.0, 2.0]), np.array([[1, 2]]), [1, 2]):
        assert table.ints(value) == [1, 2]
        assert table.floats(value) == [1.0, 2.0]
