"""Differential fuzzing: random programs as text, run by torch and by rushlight, compared, minimised and kept.

A fuzzer is a module with one function `program(rng) -> str`. The text it returns is the body of a function of one
argument, `t`, which is torch or rushlight: one statement a line (or a `def` with an indented body), the last line a
`return` of tensors, numbers, strings, or lists and tuples of these. The names `t`, `F` (nn.functional), `func`, `math`,
`facts`, `layout` and `shared` are there. Each statement should also make sense without its neighbours: the minimiser removes lines.
"""
from __future__ import annotations

import importlib
import math
import random
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

CORPUS = Path(__file__).parent / "corpus"
PARTS = ("func", "autograd.forward_ad", "autograd.functional", "autograd.graph", "utils.checkpoint", "nn.functional")
# How far two right answers may lie apart, relative to the largest number of the answer, by the bytes of a real number.
TOLERANCE = {2: 5e-2, 4: 2e-3, 8: 1e-6}


def library(name: str) -> ModuleType:
    """torch or rushlight, with the submodules that programs use."""
    for part in PARTS:
        importlib.import_module(f"{name}.{part}")
    return importlib.import_module(name)


def facts(x: Any) -> tuple:
    """What a tensor is besides its values: strides, where it begins in its storage, version, flags."""
    return (tuple(x.shape), tuple(x.stride()), x.storage_offset(), x.is_contiguous(), x._version, x.requires_grad, x.is_leaf)


def layout(x: Any) -> tuple:
    """The facts without the version, which counts the steps of an op's making; without elements strides say nothing."""
    shape, strides, offset, contiguous, _, *flags = facts(x)
    return (shape, strides, offset, contiguous, *flags) if x.numel() else (shape, *flags)


def shared(x: Any, y: Any) -> bool:
    """Whether two tensors stand on the same memory."""
    return bool(x.numel() and y.numel()) and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


# -- running a program -----------------------------------------------------------------------------------------------------

@dataclass
class Outcome:
    """What a program gave: the leaves of its result, or the error that ended it."""

    leaves: list = field(default_factory=list)
    error: str = ""


def run(text: str, lib: ModuleType) -> Outcome:
    """The program run by one library, from the same state of its generator."""
    scope = {"F": lib.nn.functional, "func": lib.func, "math": math, "np": np, "facts": facts, "layout": layout,
             "shared": shared}
    body = "\n".join(f"    {line}" for line in text.strip("\n").split("\n"))
    lib.manual_seed(0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(compile(f"def program(t):\n{body}", "<program>", "exec"), scope)
            return Outcome(list(leaves(scope["program"](lib))))
        except Exception as error:
            line = (str(error).splitlines() or [""])[0]
            return Outcome(error=f"{type(error).__name__}: {line[:160]}")


def leaves(made: Any) -> Iterator[Any]:
    """The tensors as arrays, numbers and strings of a result, in order."""
    if isinstance(made, dict):
        made = [part for key in sorted(made) for part in (key, made[key])]
    if isinstance(made, (tuple, list)):
        for part in made:
            yield from leaves(part)
    elif hasattr(made, "detach"):
        x = made.detach().resolve_conj().resolve_neg()
        yield str(made.dtype).split(".")[-1]
        yield (x.float() if x.dtype.itemsize == 2 and x.is_floating_point() else x).numpy().copy()
    elif made is None or isinstance(made, (bool, int, float, complex, str)):
        yield made
    else:
        raise TypeError(f"a program returned {type(made).__name__}")


def same(a: Any, b: Any, itemsize: int) -> bool:
    """Whether two leaves agree: values up to rounding, all else exactly."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape != b.shape:
            return False
        if a.dtype.kind not in "fc":
            return bool((a == b).all())
        finite = np.isfinite(a)
        if not (finite == np.isfinite(b)).all():
            return False
        far = np.abs(np.where(finite, a, 0) - np.where(finite, b, 0))
        limit = TOLERANCE[itemsize] * max(1.0, float(np.abs(a[finite]).max(initial=0.0)))
        return bool((far <= limit).all())
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


def compared(torchs: Outcome, ours: Outcome) -> str:
    """'same', 'wrong' (both answer, and differ), 'refused' (only torch answers), 'accepted' (only rushlight does)."""
    if torchs.error or ours.error:
        return "same" if torchs.error and ours.error else "refused" if ours.error else "accepted"
    if len(torchs.leaves) != len(ours.leaves):
        return "wrong"
    itemsize = 8
    for a, b in zip(torchs.leaves, ours.leaves):
        if isinstance(a, str) and a in SIZES:     # the dtype stands before the numbers
            itemsize = SIZES[a]
        if not same(a, b, itemsize):
            return "wrong"
    return "same"


SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "complex64": 4, "float64": 8, "complex128": 8}


# -- making a divergence small ---------------------------------------------------------------------------------------------

def minimised(text: str, keeps: Callable[[str], bool], tries: int = 400) -> str:
    """A shorter program for which `keeps` still holds: without lines, and with assignments replaced by one operand."""
    lines = text.strip("\n").split("\n")
    changed = True
    while changed and tries > 0:
        changed = False
        for shorter in candidates(lines):
            tries -= 1
            if tries <= 0:
                break
            if keeps("\n".join(shorter)):
                lines, changed = shorter, True
                break
    return "\n".join(lines)


def candidates(lines: list[str]) -> Iterator[list[str]]:
    """Programs with a line less, from the end; then with a line `a = f(b, ...)` as `a = b`."""
    for i in reversed(range(len(lines) - 1)):
        yield lines[:i] + lines[i + 1:]
    for i, line in enumerate(lines):
        found = re.match(r"(\s*)(\w+) = (?!\w+$)\D*?\b([a-z]\w?\d*)\b", line)
        if found and found[3] not in ("t", "F", "func", "lambda"):
            yield [*lines[:i], f"{found[1]}{found[2]} = {found[3]}", *lines[i + 1:]]


def ops_in(text: str) -> str:
    """The names that are called in a program, as the name of its class."""
    names = re.findall(r"\.?([A-Za-z_]\w*)\(", text)
    return " ".join(dict.fromkeys(n for n in names if n not in ("tensor", "return", "f", "facts")))


# -- the loop --------------------------------------------------------------------------------------------------------------

@dataclass
class Report:
    """How many programs ran, how many answered in both libraries, and the divergences by kind and class."""

    programs: int = 0
    answered: int = 0
    kinds: Counter = field(default_factory=Counter)
    classes: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def line(self) -> str:
        counts = ", ".join(f"{self.kinds[kind]} {kind}" for kind in ("wrong", "refused", "accepted"))
        return f"{self.programs} programs, {self.answered} answered by both, {counts}, {len(self.classes)} classes"


def allowed(text: str) -> str | None:
    """Why a divergence of this program is on purpose (docs/differences.md), or None: see differences.py."""
    import differences
    return differences.reason(text)


def fuzz(make: Callable[[random.Random], str], seconds: float, seed: int, programs: int | None = None,
         kinds: tuple[str, ...] = ("wrong",), progress: Callable[[Report], None] | None = None) -> Report:
    """Run programs for so many seconds, or so many programs; minimise the divergences of these kinds."""
    torch, ours = library("torch"), library("rushlight")
    report, end, shown = Report(), time.monotonic() + seconds, time.monotonic()
    number = 0
    while (number < programs) if programs else (time.monotonic() < end):
        text = make(random.Random(f"{seed}:{number}"))
        number += 1
        report.programs += 1
        a, b = run(text, torch), run(text, ours)
        kind = compared(a, b)
        report.answered += not (a.error or b.error)
        if kind != "same" and allowed(text):
            kind = "same"
        report.kinds[kind] += 1
        if kind in kinds:
            small = minimised(text, lambda s, kind=kind: compared(run(s, torch), run(s, ours)) == kind and not allowed(s))
            key = (kind, ops_in(small))
            known = report.classes.setdefault(key, [])
            known.append(small)
        if progress is not None and time.monotonic() - shown > 10:
            shown = time.monotonic()
            progress(report)
    return report
