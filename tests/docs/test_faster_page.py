"""docs/faster.md is what tools/faster_docs.py writes from the thresholds in the code."""

from __future__ import annotations

import importlib.util

from rushlight.fast import index
from tests.support.paths import ROOT


def written():
    """tools/faster_docs.py as a module."""
    spec = importlib.util.spec_from_file_location("faster_docs", ROOT / "tools" / "faster_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date():
    assert (ROOT / "docs" / "faster.md").read_text() == written().page(), (
        "python tools/faster_docs.py writes the page anew"
    )


def test_the_page_follows_the_thresholds(monkeypatch):
    """A threshold that changes, changes the page."""
    before = written().page()
    way = index.WAYS["softmax", ""]
    monkeypatch.setitem(index.WAYS, ("softmax", ""), way._replace(elements=12345))
    after = written().page()
    assert "12,345" in after
    assert "12,345" not in before
