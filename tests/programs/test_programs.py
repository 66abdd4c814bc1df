"""Whole programs that say `import torch`: what rushlight prints is what torch prints."""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import rushlight
from tests.support.programs import skip_other_stream

PROGRAMS = sorted(p for p in Path(__file__).parent.glob("[a-z]*.py") if not p.name.startswith("test_"))
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
HERE = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(Path(rushlight.__file__).parent.parent)}
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?!\w)|[-+]?\b(?:nan|inf)\b")
RELATIVE = 1e-4


def of_rushlight(program):
    """What `rushlight run` prints of it."""
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "run", str(program)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=HERE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_torch(torch, program):
    """What torch prints of it, in this process: torch takes seconds to start."""
    printed, threads, arguments = io.StringIO(), torch.get_num_threads(), sys.argv
    torch.set_num_threads(1)
    sys.argv = [str(program)]
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(), torch.random.fork_rng():
            warnings.simplefilter("ignore")  # they go to stderr, which is not compared
            runpy.run_path(str(program), run_name="__main__")
    finally:
        sys.argv = arguments
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float32)
        torch.set_printoptions(profile="default")
    return printed.getvalue()


def parts(text):
    """(the words between the numbers, the numbers), as they are printed. How wide a column is, is no word."""
    words = [" ".join(re.sub(r"(?<=[\[(]) +", "", between).split()) for between in NUMBER.split(text)]
    return words, NUMBER.findall(text)


def last_place(number):
    """The value of one unit in a printed number's last place; 0 of an integer."""
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2])) if "." in number else 0.0


def agree(ours, theirs):
    """To 1e-4 of the number. Of four digits and more, printing may have rounded to either of two neighbours."""
    a, b = float(ours), float(theirs)
    if a == b or math.isnan(a) and math.isnan(b):
        return True
    digits = min(sum(map(str.isdigit, number.partition("e")[0])) for number in (ours, theirs))
    unit = min(last_place(ours), last_place(theirs)) if digits >= 4 else 0.0
    return abs(a - b) <= max(RELATIVE * abs(b), 1.01 * unit)


def compare(ours, theirs):
    (words, numbers), (expected_words, expected) = parts(ours), parts(theirs)
    assert words == expected_words
    far = [pair for pair in zip(numbers, expected) if not agree(*pair)]
    assert not far, f"{len(far)} of {len(expected)} numbers differ; the first: {far[:5]}"


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_prints_what_torch_prints(oracle, program):
    def ask(torch):
        if "ropout" in program.read_text():
            skip_other_stream(torch)
        return of_torch(torch, program)

    compare(of_rushlight(program), oracle(ask))


def test_there_are_fifteen():
    assert len(PROGRAMS) >= 15


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ("1.2345", "1.2346", True),
        ("1.2345", "1.2348", False),
        ("-0.0000", "0.0000", True),
        ("17", "18", False),
        ("0.1234567", "0.1234577", True),
        ("0.1234567", "0.12360", False),
        ("1.00000e-03", "1.00009e-03", True),
        ("1.000e-03", "1.003e-03", False),
        ("0.95", "0.96", False),
        ("0.0312", "0.0313", True),
        ("nan", "nan", True),
        ("inf", "1.0", False),
        ("123456.0", "123460.0", True),
    ],
)
def test_agree(ours, theirs, same):
    assert agree(ours, theirs) == same


@pytest.mark.parametrize(
    ("ours", "theirs"), [("loss 1.0", "cost 1.0"), ("a 1", "a 1 2"), ("a 1.0 b", "a 1.1 b"), ("x", "")]
)
def test_what_differs_is_seen(ours, theirs):
    with pytest.raises(AssertionError):
        compare(ours, theirs)
