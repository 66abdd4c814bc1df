"""The examples of CONTRIBUTING.md do what the page says."""

from __future__ import annotations

import inspect
import re
import sys
import types

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.base.faster import faster
from rushlight.core.table import TABLE
from rushlight.fast import index
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


def test_the_op_of_the_page_is_that_of_add_an_op():
    """docs/add-an-op.md has the same line, which tests/introspect/test_documentation.py tries."""
    line = r"^log_cosh = floating.*$"
    pages = [(ROOT / page).read_text() for page in ("CONTRIBUTING.md", "docs/add-an-op.md")]
    assert len({re.search(line, page, re.MULTILINE)[0] for page in pages}) == 1


@pytest.mark.faster
def test_the_faster_way_of_the_page_gives_the_results_of_the_kernel(monkeypatch):
    blocks = types.ModuleType("rushlight.fast.blocks")
    blocks.run = contributed("run")
    row = re.search(r"`\(\"sinc\", \"\"\): (Way\(.*?\))`", (ROOT / "CONTRIBUTING.md").read_text())[1]
    monkeypatch.setitem(sys.modules, blocks.__name__, blocks)
    monkeypatch.setitem(index.WAYS, ("sinc", ""), eval(row, {"Way": index.Way}))
    op, sizes = TABLE["sinc"], []
    kernel = inspect.unwrap(getattr(op.kernel, "reference", op.kernel))

    def counted(x):
        sizes.append(x.size)
        return kernel(x)

    (x,) = contributed("examples")()["sinc", ""]()
    assert x.size >= index.least(op, "", False) == 1 << 15
    assert np.array_equal(faster(op, "", counted, x), kernel(x))
    assert sizes == [1 << 14, 1 << 14, 1 << 14, 50_000 - 3 * (1 << 14)]
    transposed = x[:40_000].reshape(200, 200).T
    assert np.array_equal(faster(op, "", counted, transposed), kernel(transposed))
    assert sizes[4:] == [40_000]
