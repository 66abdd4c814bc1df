"""Calls with wrong arguments raise the exception classes that torch 2.13 raises (recorded in
tests/golden/base/wrong_calls.txt: an expression and a class in each line)."""

import re
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
DIFFERENT = {
    "torch.ones(2)+2**70": NUMBERS,
    "torch.randint(0,2)": CLASSES,
    "torch.ones(3).__setitem__(0,2**70)": NUMBERS,
    "torch.ones(3,dtype=torch.int64).__setitem__(0,2**70)": CLASSES,
    "torch.ones(3).fill_(2**70)": NUMBERS,
    "~torch.ones(3)": CLASSES,
    "torch.nn.functional.mse_loss(torch.ones(2),1.)": CLASSES,
    "torch.nn.functional.interpolate(torch.ones(2,3))": "the other mistake is named first",
    "torch.ones(2).to(5,6,7)": CLASSES,
    "torch.save(1,None)": CLASSES,
}


# Python's words for a value that the library did not expect, and names that users never wrote.
INTERNAL = re.compile(
    r"attribute '_|<locals>|not supported between|is not iterable|values to unpack|"
    r"cannot be interpreted as an integer"
)


def error_of(call):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, {"torch": rushlight, "np": np})
    except Exception as error:
        return error
    return None


def raised(call):
    """The classes of the exception, from the class itself to object."""
    error = error_of(call)
    if error is None:
        return []
    return [kind.__name__.removeprefix("_") for kind in type(error).__mro__]


@pytest.mark.parametrize("part", range(4))
def test_wrong_calls_raise_torchs_classes(part):
    calls = [(call, kind) for call, kind in CALLS[part::4] if call not in DIFFERENT]
    assert len(calls) > 80
    wrong = [(call, kind, raised(call)[:1]) for call, kind in calls if kind not in raised(call)]
    assert wrong == []


@pytest.mark.parametrize("part", range(4))
def test_no_message_names_what_is_internal(part):
    calls = [call for call, _ in CALLS[part::4] if call != "torch.tensor([1,[2]])"]  # as torch
    found = [(call, str(error_of(call)).partition("\n")[0]) for call in calls]
    assert [one for one in found if INTERNAL.search(one[1])] == []


def test_no_call_is_excused_without_need():
    kinds = dict(CALLS)
    assert [call for call in DIFFERENT if kinds[call] in raised(call)] == []
