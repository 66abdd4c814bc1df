"""Where the repository's folders are."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
PACKAGE = ROOT / "rushlight"
EXAMPLES = ROOT / "examples"
GOLDEN = TESTS / "golden"  # answers of torch, in folders like those of the tests
