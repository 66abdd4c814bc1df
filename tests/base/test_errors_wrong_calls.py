"""400 calls with wrong arguments raise the exception classes that torch 2.13 raises (recorded in
tests/golden/base/wrong_calls.txt: an expression and a class in each line)."""

import warnings

import numpy as np
import pytest

import rushlight
import rushlight.func
import rushlight.nn
import rushlight.optim
import rushlight.utils.checkpoint
import rushlight.utils.data
from tests.support.paths import TESTS

FILE = TESTS / "golden" / "base" / "wrong_calls.txt"
CALLS = [line.rsplit(" | ", 1) for line in FILE.read_text().splitlines()]

# Calls that rushlight answers in another way, and why.
NUMBERS = "rushlight computes with integers over 64 bits as floats"
CLASSES = "another class, as good"
LENIENT = "rushlight takes the call"
DIFFERENT = {
    "torch.ones(2)+2**70": NUMBERS,
    "torch.full(2,1)": LENIENT,
    "torch.randint(0,2)": CLASSES,
    "torch.ones(3).__setitem__(0,2**70)": NUMBERS,
    "torch.ones(3,dtype=torch.int64).__setitem__(0,2**70)": CLASSES,
    "torch.ones(3).fill_(2**70)": NUMBERS,
    "~torch.ones(3)": CLASSES,
    'torch.nonzero("a")': CLASSES,
    "torch.nn.functional.mse_loss(torch.ones(2),1.)": CLASSES,
    "torch.nn.functional.interpolate(torch.ones(2,3))": "the other mistake is named first",
    "torch.ones(2).to(5,6,7)": CLASSES,
    "torch.save(1,None)": CLASSES,
    "torch.meshgrid(1,2)": CLASSES,
    "torch.ones(2).set_(1)": CLASSES,
}


def raised(call):
    """The classes of the exception, from the class itself to object."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, {"torch": rushlight, "np": np})
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__]
    return []


@pytest.mark.parametrize("part", range(4))
def test_wrong_calls_raise_torchs_classes(part):
    calls = [(call, kind) for call, kind in CALLS[part::4] if call not in DIFFERENT]
    assert len(calls) > 80
    wrong = [(call, kind, raised(call)[:1]) for call, kind in calls if kind not in raised(call)]
    assert wrong == []


def test_no_call_is_excused_without_need():
    kinds = dict(CALLS)
    assert [call for call in DIFFERENT if kinds[call] in raised(call)] == []
