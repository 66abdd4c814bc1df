"""Ops on inputs that lie in memory in every way: values, strides, sharing, version and flags of what they give.

Half of the programs call one operator of torch's database of samples (operators.py); the others are chains of what
users write, where one op's layout is the next one's input."""

from __future__ import annotations

import random
import re
from math import prod
from typing import Any

import operators
from harness import library, run
from layout_calls import CALLS, WRITES
from memory_layouts import laid, numbers, shape_of, size

ENDS = (
    "r.sum()",
    "(r * r).sum()",
    "r.square().mean()",
    "(r * r.detach().clamp(-2, 2)).sum()",
    "(r.transpose(0, -1).contiguous() ** 2).sum()",
)
# Of equal elements, which layouts make, torch picks any.
TIES = re.compile(r"kthvalue|median|topk|mode\(")


def program(rng: random.Random) -> str:
    if rng.random() < 0.4:
        lines, call, names = operators.call(rng)
    else:
        lines, call, names = chain(rng)
    for name in names[:2]:
        leaf = f"{name} = {name}.detach().requires_grad_()"
        if "leaf" not in names and rng.random() < 0.5 and works([*lines, leaf]):
            lines.append(leaf)
    lines += [f"v = [{', '.join(f'{name}._version' for name in names)}]", f"r = {call}"]
    return "\n".join(finished(rng, lines, names))


def works(lines: list[str], returns: str = "0") -> bool:
    """Whether torch takes these lines."""
    return not run("\n".join([*lines, f"return {returns}"]), library("torch")).error


def chain(rng: random.Random) -> tuple[list[str], str, list[str]]:
    """An input, one to three calls after each other, of which each takes what the one before gave."""
    shape = shape_of(rng)
    if rng.random() < 0.15 and shape and prod(shape) < 5000:  # kernels change at 512, 2^13 and 2^15 elements
        shape = [n * rng.choice((4, 6, 8)) if prod(shape) < 5000 else n for n in shape]
    lines, call, names = laid(rng, "x", numbers(shape), shape), "x.clone()", ["x"]
    if rng.random() < 0.4:
        lines, names = [*lines, "leaf = x.detach().requires_grad_()", "x = leaf"], ["x", "leaf"]
    for left in reversed(range(rng.choice((1, 1, 2, 3)))):
        for _ in range(6):
            more, call = step(rng, shape, overlapping(lines))
            made = run("\n".join([*lines, *more, f"x = {call}", "return x"]), library("torch"))
            if not made.error and len(made.leaves) == 2 or not left:
                break
        if left:
            if made.error or len(made.leaves) != 2:
                break
            lines += [*more, f"x = {call}"]
            shape = list(made.leaves[1].shape)
    return [*lines, *more], call, names


def overlapping(lines: list[str]) -> bool:
    """Whether elements of an input may share a place: NumPy and torch order their dimensions in other ways."""
    return any("as_strided(" in line or "unfold(" in line for line in lines)


def step(rng: random.Random, shape: list[int], overlaps: bool) -> tuple[list[str], str]:
    """Lines for the other inputs, and a call; it writes to no x whose elements overlap, which ends in any order."""
    n = len(shape)
    writes = rng.random() < 0.1 and not overlaps
    call = rng.choice(WRITES if writes else rng.choice([calls for dims, calls in CALLS if min(n, 5) in dims]))
    c, w = shape[1] if n > 1 else 1, shape[-1] if n else 1
    others = {
        "y": shape,
        "b": [s if rng.random() < 0.6 else 1 for s in shape[rng.randrange(n + 1) :]],
        "chan": [c],
        "weight": [size(rng), w],
        "kernel": [size(rng), c, *rng.choice(((1, 1), (2, 2), (3, 3)))],
        "depth": [c, 1, 3, 3],
    }
    more = [line for name, s in others.items() if f"{{{name}}}" in call for line in laid(rng, name, numbers(s), s)]
    if "{bias}" in call:
        more.append(f"bias = {numbers(others['weight'][:1])}")
    d = rng.randrange(n) if n else 0
    most = max(1, shape[d] if n else 1)
    given: dict[str, Any] = {"d": d, "e": rng.randrange(n) if n else 0, "n": rng.randint(1, most), "c": c, "w": w}
    return more, call.format(**{name: name for name in (*others, "bias")} | given)


def finished(rng: random.Random, lines: list[str], names: list[str]) -> list[str]:
    """The lines with the gradients and the return of all there is to see."""
    shares = [f", shared({{r}}, {n}) and {{r}} is not {n} and {{r}}._is_view()" for n in names[:2]]
    seen = "[{r}, layout({r})" + "".join(shares)
    if operators.AS_LEFT.search(lines[-1].split("(")[0]) or overlapping(lines):
        seen = "[{r}, {r}.requires_grad, {r}.is_leaf"
    seen += "]"
    lies = "flags" if overlapping(lines) else "layout"
    ends = [f"{lies}({n}), {n}._version - v[{i}]" for i, n in enumerate(names)]
    if not works(lines, seen.format(r="r")):
        many = f"[{seen.format(r='o')} for o in r]"
        return [*lines, f"return [{many}, {', '.join(ends)}]" if works([*lines, "r = list(r)"], many) else "return r"]
    if works(lines, "t.autograd.grad(r.sum(), r)") and not TIES.search("\n".join(lines)):
        end = rng.choice(ENDS)
        leaves = [line.split(" = ")[0] for line in lines if line.endswith(".requires_grad_()")]
        marked = [n for n in names if n in leaves]
        if marked and works([*lines, f"{end}.backward()"]):
            if rng.random() < 0.5:
                lines = [*lines, f"{end}.backward()"]
                ends += [f"{n}.grad is not None and [{n}.grad, steps({n}.grad)]" for n in marked]
            else:  # on the way to a leaf a gradient lies as it was computed
                lines = [*lines, f"g = t.autograd.grad({end}, [{', '.join(marked)}], allow_unused=True)"]
                ends += [f"g[{i}] is not None and [g[{i}], g[{i}].requires_grad]" for i in range(len(marked))]
    return [*lines, f"return [{seen.format(r='r')}, {', '.join(ends)}]"]
