"""The examples of CONTRIBUTING.md do what the page says."""

from __future__ import annotations

import re

import pytest

import rushlight
from rushlight import nn
from tests.support.passes import compiled, ops
from tests.support.paths import ROOT


def contributed(name):
    """What the block of CONTRIBUTING.md that defines the name defines."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    scope = {}
    exec(next(b for b in blocks if re.search(rf"(def|class) {name}\b", b)), scope)
    return scope[name]


@pytest.mark.origin("newcomers")
def test_the_optimizer_of_the_page_goes_against_the_sign():
    model = nn.Linear(3, 2)
    optimizer = contributed("SignDescent")(model.parameters(), lr=0.5)

    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    for run in [step, rushlight.compile(step, backend="numpy")]:
        for _ in range(4):
            before = [p.detach().clone() for p in model.parameters()]
            run(rushlight.ones(4, 3))
            for p, old in zip(model.parameters(), before):
                assert rushlight.equal(p, old - 0.5 * p.grad.sign())


@pytest.mark.origin("newcomers")
def test_the_pass_of_the_page_takes_negations_away(monkeypatch):
    from rushlight.compile.passes import PASSES

    monkeypatch.setitem(PASSES, "negations", contributed("negations"))
    x = rushlight.rand(3)
    program, result, steps = compiled(lambda x: x.exp().neg().neg() * 2, x)
    assert "neg" in ops(steps["as recorded"])
    assert "neg" not in ops(steps["negations"])
    assert rushlight.equal(result, x.exp() * 2)
