"""Gradients through operators: the models of the backend tests, compared with differences of their outputs."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.onnx import load
from rushlight.onnx.program import kinds_of_uses
from tests.onnx import backend

pytest.importorskip("onnx")
STEP = 1e-4  # some operators compute in float32 whatever their inputs
TOLERANCE = 0.02
MOST = 100_000  # elements of an input: maxima of many windows have kinks everywhere
TRIES = 5  # functions have kinks: the median of the tries counts
EVERY = 12  # quick tests take each 12th test
# outputs with steps: differences of outputs jump where the derivative is 0
STEPS = {
    "Range",
    "Round",
    "Floor",
    "Ceil",
    "Sign",
    "Hardmax",
    "DynamicQuantizeLinear",
    "QuantizeLinear",
    "Cast",
    "CastLike",
}


def differentiable(net, inputs):
    """The places of floating inputs that only operators read which differentiate them."""
    uses = kinds_of_uses(net.graph)
    return [
        i
        for i, (x, name) in enumerate(zip(inputs, net.graph.inputs))
        if x.dtype in (np.float32, np.float64) and 0 < x.size <= MOST and uses.get(name, {"none"}) <= {"Tensor"}
    ]


def total(net, inputs, weights):
    """The weighted sum of all floating outputs."""
    found = net(*inputs)
    found = found if isinstance(found, tuple) else (found,)
    made = rushlight.zeros((), dtype=rushlight.float64)
    for y, w in zip(found, weights):
        if isinstance(y, rushlight.Tensor) and y.is_floating_point():
            made = made + (y.double() * w).sum()
    return made


def error_along(net, inputs, places, shapes, rng):
    """|derivative along a direction - difference quotient|, relative, near the inputs of a test."""
    weights = [rushlight.as_tensor(rng.normal(size=shape)) for shape in shapes]
    near = [x + 0.02 * rng.normal(size=x.shape) if i in places else x for i, x in enumerate(inputs)]
    ways = {i: rng.normal(size=near[i].shape) for i in places}
    tensors = [rushlight.as_tensor(x.copy()).requires_grad_() if i in places else x for i, x in enumerate(near)]
    loss = total(net, tensors, weights)
    if not loss.requires_grad or not np.isfinite(loss.item()):
        return None
    loss.backward()
    slope = sum(float((tensors[i].grad.numpy() * ways[i]).sum()) for i in places if tensors[i].grad is not None)
    sides = [[x + s * STEP * ways[i] if i in places else x for i, x in enumerate(near)] for s in (1, -1)]
    high, low = (float(total(net, side, weights)) for side in sides)
    quotient = (high - low) / (2 * STEP)
    return abs(slope - quotient) / max(1.0, abs(slope), abs(quotient))


def derivative_error(case):
    """The median error of several tries; None for a test without derivatives."""
    model, sets = backend.contents(case)
    kinds = {v.type.WhichOneof("value") for v in [*model.graph.input, *model.graph.output]}
    operators = {n.op_type for n in model.graph.node}
    if kinds != {"tensor_type"} or operators & (backend.RANDOM | STEPS) or not sets:
        return None
    try:
        net = load(model.SerializeToString()).double()
    except NotImplementedError:
        return None
    inputs = [np.asarray(x) for x in sets[0][0]]
    places = differentiable(net, inputs)
    if not places or not all(np.isfinite(inputs[i]).all() for i in places):
        return None
    inputs = [
        np.clip(x, -10.0, 10.0).astype(np.float64) if x.dtype == np.float32 or i in places else x
        for i, x in enumerate(inputs)
    ]
    rng = np.random.default_rng(0)
    shapes = [np.shape(w) for w in sets[0][1]]
    errors = [error_along(net, inputs, places, shapes, rng) for _ in range(TRIES)]
    return None if None in errors else float(np.median(errors))


def wrong(every):
    """({name: error} of tests whose derivatives differ, the number of tests compared)."""
    found, count = {}, 0
    for i, (_, case) in enumerate(backend.cases()):
        if i % every or case.name.endswith("_expanded"):
            continue
        error = derivative_error(case)
        count += error is not None
        if error is not None and not error < TOLERANCE:
            found[case.name] = error
    return found, count


def test_some_derivatives():
    found, count = wrong(EVERY)
    assert found == {}
    assert count > 50


@pytest.mark.exhaustive
def test_all_derivatives():
    found, count = wrong(1)
    assert found == {}
    assert count > 800


def test_a_wrong_derivative_is_seen(monkeypatch):
    case = next(case for _, case in backend.cases() if case.name == "test_tanh")
    assert derivative_error(case) < TOLERANCE
    monkeypatch.setattr(rushlight.Tensor, "grad", property(lambda self: self.detach() * 0 + 1.3))
    assert derivative_error(case) > 2 * TOLERANCE


def test_a_row_without_keys_has_a_gradient():
    """A query that attends no key: its output and its gradient are 0, not nan."""
    from tests.onnx.files import file, node

    data = file(node("Attention", "q k v mask", "y"), inputs="q k v mask", outputs="y", opset=23)
    q, k, v = (rushlight.randn(1, 1, 2, 4, requires_grad=True) for _ in range(3))
    y = load(data)(q, k, v, rushlight.tensor([[True, True], [False, False]]))
    y.sum().backward()
    assert y[0, 0, 1].tolist() == [0] * 4
    assert all(x.grad.isfinite().all() for x in (q, k, v))
