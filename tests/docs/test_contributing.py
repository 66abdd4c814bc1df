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
from rushlight.fast import index
from rushlight.ops.reduce import sorting
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
    median = types.ModuleType("rushlight.fast.median")
    median.run = contributed("run")
    row = re.search(r"`\(\"median_all\", \"\"\): (Way\(.*?\))`", (ROOT / "CONTRIBUTING.md").read_text())[1]
    monkeypatch.setitem(sys.modules, median.__name__, median)
    monkeypatch.setitem(index.WAYS, ("median_all", ""), eval(row, {"Way": index.Way}))
    op, kernel_sizes = sorting.median_all.op, []
    kernel = inspect.unwrap(getattr(op.kernel, "reference", op.kernel))

    def counted(x):
        kernel_sizes.append(x.size)
        return kernel(x)

    (x,) = contributed("examples")()["median_all", ""]()
    assert x.size >= index.least(op, "", False) == 1 << 10
    for given in (x, x[:-1], x.reshape(40, 50).T):
        result = faster(op, "", counted, given)
        assert result.dtype == x.dtype
        assert np.array_equal(result, kernel(given))
    assert kernel_sizes == []
    x[7] = np.nan
    assert np.isnan(faster(op, "", counted, x))
    assert kernel_sizes == [2000]


# -- docs/add-an-optimizer.md ----------------------------------------------------------------------

OPTIMIZERS = (ROOT / "docs" / "add-an-optimizer.md").read_text()


def lion():
    """The class Lion of the page, made from a rule."""
    scope = {}
    exec(re.search(r"```python\n(.*?)\nw = ", OPTIMIZERS, re.DOTALL)[1], scope)
    return scope["Lion"]


def test_the_rule_of_the_page_computes_what_the_class_does_in_torch(torch, capsys):
    """tests/docs/test_docs.py compares what both blocks print here."""
    program = re.search(
        r"## The same optimizer in torch.*?```python\n(.*?)```\n+```text\n(.*?)```", OPTIMIZERS, re.DOTALL
    )
    exec(program[1].replace("import rushlight as torch", "import torch"), {})
    assert capsys.readouterr().out == program[2]
    assert OPTIMIZERS.count(program[2]) == 2


def trained(dtype=rushlight.float64, steps=3, compiled=False):
    """A parameter after steps of Lion, and its optimizer."""
    w = rushlight.tensor([1.0, -2.0, 0.5], dtype=dtype, requires_grad=True)
    optimizer = lion()([w], lr=0.1, weight_decay=0.01)

    def step():
        optimizer.zero_grad()
        (w * w.conj()).real.sum().backward()
        optimizer.step()

    step = rushlight.compile(step, backend="numpy") if compiled else step
    for _ in range(steps):
        step()
    return w, optimizer


def test_what_a_rule_adds():
    w, optimizer = trained()
    assert rushlight.equal(trained(compiled=True)[0], w)
    assert rushlight.equal(trained(rushlight.complex128)[0].real, w)
    saved = optimizer.state_dict()
    assert list(saved["state"][0]) == ["exp_avg"]
    other, resumed = trained(steps=0)
    resumed.load_state_dict(saved)
    assert rushlight.equal(resumed.state[other]["exp_avg"], optimizer.state[w]["exp_avg"])
    with pytest.raises(ValueError, match="Invalid learning rate"):
        lion()([w], lr=-1)


def test_a_step_of_a_rule_can_be_differentiated():
    w, lr = rushlight.ones(2, requires_grad=True), rushlight.tensor(0.1, requires_grad=True)
    p = w.clone()
    p.grad = rushlight.tensor([1.0, -1.0])
    optimizer = lion()([w], lr=lr)
    optimizer.param_groups[0] |= {"params": [p], "differentiable": True}
    optimizer.step()
    p.sum().backward()
    assert w.grad.tolist() == [1, 1]
    assert lr.grad.item() == 0


def test_a_rule_with_sparse_gradients():
    lion_of_rows = type("LionOfRows", (lion(),), {"_sparse": True})
    table = nn.Embedding(3, 1, sparse=True, _weight=rushlight.ones(3, 1))
    optimizer = lion_of_rows(table.parameters(), lr=0.5)
    table(rushlight.tensor([1])).sum().backward()
    optimizer.step()
    assert table.weight.flatten().tolist() == [1, 0.5, 1]


@pytest.mark.parametrize(
    "row", re.findall(r"^\| (`.*`) \| (.*?) \| .* \|$", OPTIMIZERS.partition("## Errors")[2], re.MULTILINE)[1:]
)
def test_the_errors_of_the_page(row):
    from rushlight.optim.elementwise import Elementwise

    text, message = row
    scope = {"torch": rushlight}
    exec(f"def rule(p, g, /, lr):\n    return {text.strip('`')}", scope)
    mine = type("Mine", (Elementwise,), {"_rule": staticmethod(scope["rule"])})
    w = rushlight.ones(2, requires_grad=True)
    optimizer = mine([w], {"lr": 0.1})
    w.sum().backward()
    with pytest.raises(TypeError, match=re.escape(message)):
        optimizer.step()
