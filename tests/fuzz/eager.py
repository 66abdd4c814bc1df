"""Stub: replaced by the eager fuzzer."""
from __future__ import annotations

import random


def program(rng: random.Random) -> str:
    op = rng.choice(["sin_", "exp_", "neg_", "abs_"])
    return f"x = t.tensor([0.5, -0.5], requires_grad=True)\ny = x * 1\nz = y.view(2)\nwith t.autograd.graph.saved_tensors_hooks(lambda q: q, lambda q: q): y.{op}()\ny.sum().backward()\nreturn [x.grad, facts(z)]"
