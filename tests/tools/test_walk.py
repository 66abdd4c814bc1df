"""tools/walk.py: what it counts of a statement."""

from __future__ import annotations

import json

import walk

from tests.support.paths import ROOT


def test_a_warm_product_is_one_function_of_the_package():
    cold, *_, warm = json.loads(walk.elsewhere(ROOT, "--count", "a * b"))
    assert (warm["functions"], warm["files"], warm["calls"]) == (1, 1, 1)
    assert cold["functions"] > 1


def test_functions_are_counted_once_and_those_of_others_not_at_all():
    text = (
        "import json\n\n\n"
        "def inner(x):\n    return [json.dumps(i) for i in x]\n\n\n"
        "def outer():\n    inner([1])\n    return inner([2])\n"
    )
    scope = {}
    exec(compile(text, "<a text>", "exec"), scope)
    found = walk.walked(scope["outer"])
    assert {code.co_name: calls for code, calls in found.entered.items()} == {"outer": 1, "inner": 2}
    counts = found.counts()
    assert (counts["functions"], counts["files"], counts["calls"], counts["lines"]) == (2, 1, 3, 5)
