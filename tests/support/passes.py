"""What a pass of rushlight.compile makes of a small program: its steps as text, before and after."""

from __future__ import annotations

import re

import numpy as np

import rushlight as torch
from rushlight.compile import compile, programs

RECORDED = "as recorded"


def numbers(seed, *shapes):
    """A float32 tensor of each shape."""
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]


def compiled(f, *args, backend="numpy", **options):
    """(a program of f, what it gives, the steps after each pass by its name)."""
    shown = []
    g = compile(f, backend=backend, options={"show": shown.append, **options})
    for _ in range(4):
        result = g(*args)
    assert programs(g), g.given_up
    steps = {}
    for text in shown:
        head, *lines = text.splitlines()
        steps[re.match(r"-- (?:after )?([\w ]+)", head)[1]] = lines
    return programs(g)[-1], result, steps


def ops(lines):
    """The names of the ops of some steps, in order."""
    return [re.search(r"(?:= |^)(\w+)\(", line)[1] for line in lines if not line.startswith("return")]


def agree(got, want, rtol=1e-5, atol=1e-6):
    """Equal to `rtol`, or to `atol` times the largest number if that is over 1: sums cancel."""
    got, want = [x if isinstance(x, (tuple, list)) else [x] for x in (got, want)]
    for a, b in zip(got, want, strict=True):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        a, b = a.detach().numpy(), b.detach().numpy()
        largest = np.abs(b[np.isfinite(b)]).max(initial=1.0) if b.dtype.kind in "fc" else 1.0
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol * largest)
