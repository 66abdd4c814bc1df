"""replace_pattern: which patterns are found, and what stands in their place."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import nn

t = rushlight


def two_returned(x):
    a = x.sin()
    return a.cos(), a.exp()


REWRITTEN = {  # program, pattern, replacement, how often it is there, the names then
    "twice": (
        lambda x: t.relu(x) + t.relu(x * 2),
        lambda x: t.relu(x),
        lambda x: t.tanh(x) + 1,
        2,
        "x tanh add mul tanh_1 add_1 add_2",
    ),
    "one after the other": (
        lambda x: x.relu().relu(),
        lambda x: x.relu(),
        lambda x: x.sigmoid(),
        2,
        "x sigmoid sigmoid_1",
    ),
    "a number that must agree": (
        lambda x: t.add(x, 3) * t.add(x, 4),
        lambda x: t.add(x, 3),
        lambda x: x - 3,
        1,
        "x add_1 sub mul",
    ),
    "any number": (
        lambda x: t.add(x, 3) * t.add(x, 4),
        lambda x, y: t.add(x, y),
        lambda x, y: x - y,
        2,
        "x sub sub_1 mul",
    ),
    "two results": (
        lambda x: sum(two_returned(x * 2)),
        two_returned,
        lambda x: (x.tan(), x.log()),
        1,
        "x mul tan log add add_1",
    ),
    "used in between": (
        lambda x: (lambda a: a.cos() + a)(x.sin()),
        lambda x: x.sin().cos(),
        lambda x: x.tan(),
        0,
        "x sin cos add",
    ),
}


@pytest.mark.origin("courses")
@pytest.mark.parametrize("case", REWRITTEN)
def test_patterns_are_replaced(case):
    program, pattern, replacement, times, names = REWRITTEN[case]
    traced = rushlight.fx.symbolic_trace(program)
    matches = rushlight.fx.replace_pattern(traced, pattern, replacement)
    assert len(matches) == times
    assert sorted(n.name for n in traced.graph.nodes if n.op != "output") == sorted(names.split())
    traced.graph.lint()
    traced(rushlight.rand(3))


class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.shift = nn.Linear(3, 3), nn.Parameter(rushlight.ones(3))

    def forward(self, x):
        return self.linear(x) + self.shift


@pytest.mark.origin("courses")
def test_a_replacement_brings_its_parts():
    traced = rushlight.fx.symbolic_trace(Held())
    x = rushlight.rand(2, 3)
    found = rushlight.fx.replace_pattern(traced, lambda a, b: a + b, lambda a, b: a - b)
    assert traced(x).equal(traced.linear(x) - traced.shift)
    assert [value.name for value in found[0].nodes_map.values()] == ["add", "linear", "shift"]
    other = rushlight.fx.symbolic_trace(lambda x: rushlight.sigmoid(x) * 2)
    new = rushlight.fx.symbolic_trace(Held())
    rushlight.fx.replace_pattern(other, lambda x: rushlight.sigmoid(x), new)
    assert other(x).equal(new(x) * 2)
    assert other.linear is not new.linear
    with pytest.raises(ValueError, match="the same arguments"):
        rushlight.fx.replace_pattern(other, lambda x: x * 2, lambda x, y: x)
