"""Bad values, empty tensors and failed calls: the programs that once diverged, and short runs of the fuzzers
(empties.py, bad_values.py, failures.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rushlight

sys.path.insert(0, str(Path(__file__).parent))

import bad_values
import failures
import harness

EMPTY = {
    "a mask of no elements": "return t.ones(5, 5)[t.zeros(0, dtype=t.bool)]",
    "a mask of no columns": "return t.ones(5, 5)[t.zeros(5, 0, dtype=t.bool)]",
    "a mask that fits": "return t.ones(0, 5)[t.zeros(0, dtype=t.bool)]",
    "a mask written at": "return t.ones(5, 5).index_put((t.zeros(0, dtype=t.bool),), t.ones(5))",
    "norm -1": "return t.norm(t.ones(0), -1)",
    "norm 2": "return t.norm(t.ones(0), 2)",
    "normalize": "return F.normalize(t.ones(1, 0, 4), p=-1.0, dim=1)",
    "bilinear": "return F.bilinear(t.ones(3), t.ones(4), t.ones(0, 3, 4))",
    "linear_cross_entropy": "return F.linear_cross_entropy(t.ones(0), t.ones(4, 0), t.tensor(1))",
    "cross_entropy of no classes": "return F.cross_entropy(t.ones(2, 0), t.ones(2, 0))",
    "adaptive_max_pool2d": "return F.adaptive_max_pool2d(t.ones(0, 4, 4), (2, 3))",
    "cov": "return t.cov(t.ones(0), correction=0, fweights=t.ones(0, dtype=t.int32))",
    "hash_tensor": "return t.hash_tensor(t.ones(0, 3), dim=0)",
    "householder_product": "return t.linalg.householder_product(t.ones(2, 0, 5, 5), t.ones(2, 1, 5))",
    "index_add": "x = t.ones(0, 3, requires_grad=True)\n"
    "x.index_add(1, t.tensor([0, 1]), t.ones(0, 2)).sum().backward()\nreturn x.grad",
    "x[:, i]": "x = t.ones(0, 3, requires_grad=True)\nx[:, t.tensor([0, 1])].sum().backward()\nreturn x.grad",
}
BAD = """
tensor('text'); tensor(['a']); tensor(2**63); tensor(2**70); tensor([2**63]); tensor([-1, 2**63]); tensor([True, 2**70]); tensor([1.0, 2**70]);
tensor([1j, 2**70]); tensor([2**70, 1], dtype=t.float32); tensor(2**64, dtype=t.bfloat16); tensor(2**63, dtype=t.uint64); tensor([2**64], dtype=t.uint64);
tensor(1j, dtype=t.float32); tensor(None); tensor([None], dtype=t.int64); tensor({}, dtype=t.float32); tensor(300, dtype=t.uint8); tensor([object()]);
zeros(-1); zeros(2**63); zeros(2**62); zeros((2, 2**70)); rand(2**62); full((2,), 2**64, dtype=t.int64); eye(2**31); eye(-1); randperm(-1); arange(1, 2**63);
ones(2, 3).sum(2**70); ones(2, 3).sum(7); ones(2, 3).softmax(2**31); ones(2, 3).transpose(2**31, 0); ones(2, 3)[2**70]; ones(2, 3)[9]; ones(2, 3)[1.5];
ones(2, 3)[math.nan]; ones(6).reshape(2, -2); ones(6).reshape(2, 2**63); ones(6).reshape(4, -1); ones(6).view(-2, 3); ones(6).unflatten(0, (2, -3));
ones(2, 3).flatten(0, 3); ones(2, 3).repeat(2, 2**62); ones(2, 3).expand(2**63, 2, 3); ones(2).repeat_interleave(-1); tensor([1]).fill_(2**64);
tensor([1]).clamp(2**70); tensor([True, False]).masked_fill(t.tensor([True, True]), 2**3); nn.Linear(2**63, 2); nn.Linear(-1, 2); nn.Embedding(2**64, 2);
nn.functional.interpolate(t.ones(1, 1, 4, 4), 2**62); nn.functional.interpolate(t.ones(1, 1, 4, 4), -1); ones(2).norm(2**70)
"""
CALLS = [call.strip() for call in BAD.replace("\n", " ").split(";")]
# torch raises OverflowError for a number beyond 64 bits; here a float takes it
ON_PURPOSE = {"ones(2).norm(2**70)"}


def outcome(text: str, library: str) -> list:
    """The class of the error, or the leaves of the answer."""
    made = harness.run(text, harness.library(library))
    return [made.raised, made.leaves]


def agree(torchs: list, ours: list) -> bool:
    sides = [harness.Outcome(leaves, raised, raised) for raised, leaves in (torchs, ours)]
    return bad_values.compare(*sides) == "same"


@pytest.mark.parametrize("name", EMPTY)
def test_empty_tensors(oracle, name):
    torchs = oracle(lambda torch: outcome(EMPTY[name], "torch"))
    ours = outcome(EMPTY[name], "rushlight")
    assert agree(torchs, ours), f"torch: {torchs}\nrushlight: {ours}"


@pytest.mark.parametrize("call", [call for call in CALLS if call not in ON_PURPOSE])
def test_classes_of_errors(oracle, call):
    text = f"r = t.{call}\nreturn r if isinstance(r, t.Tensor) else 'made'"
    torchs = oracle(lambda torch: outcome(text, "torch"))
    ours = outcome(text, "rushlight")
    assert agree(torchs, ours), f"torch: {torchs}\nrushlight: {ours}"


CASES = [
    (name, text)
    for of_kind in (failures.modules, failures.optimizers, failures.draws)
    for name, texts in of_kind()
    for text in texts
]


@pytest.mark.parametrize("part", range(4))
def test_failed_calls_change_nothing(part):
    """Modules, optimizers, generators: a quarter of the programs in each test."""
    for name, text in CASES[part::4]:
        made = harness.run(failures.STATE + text, rushlight)
        if not made.error:  # an optimizer that refuses the program's gradients
            assert made.leaves[0] in ("unchanged", "no error"), (name, text.split("\n")[-1])


def test_failed_writes_change_nothing():
    """An in-place op that fails leaves values, version and graph."""
    x = rushlight.arange(6.0).reshape(2, 3)
    before = x.numpy().copy()
    for bad in (rushlight.ones(4), rushlight.ones(2, 3, dtype=rushlight.complex64), "text", None):
        for name in ("add_", "mul_", "lerp_", "masked_fill_", "index_add_", "gather"):
            with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
                getattr(x, name)(*([bad, 0.5] if name == "lerp_" else [bad]))
    assert (x.numpy() == before).all()
    assert x._version == 0
