"""Empty tensors through every operator of torch's database, forward and backward, beside torch.

`python tests/fuzz/empties.py --seconds 60`. A program is a sample of an operator with size 0 in one
dimension of one tensor, or in all dimensions of one size (so that the sizes still fit)."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import forked
import harness
import operators

KINDS = ("float32", "int64", "bool", "complex64")
MAX_SAMPLES, MAX_PROGRAMS = 12, 60  # of one operator and dtype
# Results that are what the memory held, and random numbers drawn in another order.
UNDEFINED = re.compile(r"empty|new_empty|resize|as_strided_scatter")


def programs(number: int, kind: str) -> list[str]:
    """Programs of an operator: each returns its results and the gradients of its inputs."""
    from torch.utils import _pytree as pytree

    found: dict[str, None] = {}
    for sample in operators.samples(number, kind)[:MAX_SAMPLES]:
        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        for emptied in variants(leaves):
            first, args, kwargs = pytree.tree_unflatten(emptied, spec)
            try:
                found[text(operators.operators()[number], (first, *args), kwargs)] = None
            except TypeError:  # an argument has no text
                continue
    return list(found)[:MAX_PROGRAMS]


def variants(leaves: list[Any]) -> Iterator[list[Any]]:
    """The arguments with dimensions of size 0."""
    import torch

    tensors = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    for size in sorted({n for i in tensors for n in leaves[i].shape if n}):
        yield [emptied(x, lambda d, n, size=size: n == size) for x in leaves]
    for i in tensors:
        for dim in range(leaves[i].dim()):
            made = list(leaves)
            made[i] = emptied(made[i], lambda d, n, dim=dim: d == dim)
            yield made


def emptied(x: Any, chosen: Callable[[int, int], bool]) -> Any:
    """A tensor without elements along the chosen dimensions; other arguments as they are."""
    import torch

    if not isinstance(x, torch.Tensor):
        return x
    for dim, size in enumerate(x.shape):
        if chosen(dim, size):
            x = x.narrow(dim, 0, 0)
    return x.detach().clone()


def text(op: Any, args: tuple, kwargs: dict[str, Any]) -> str:
    """The program of one call."""
    lines: list[str] = []
    names: list[str] = []
    flat = random.Random(0)
    parts = [written(flat, a, lines, names) for a in args]
    parts += [f"{key}={written(flat, a, lines, names)}" for key, a in kwargs.items()]
    leaves = [line.split(".")[0] for line in lines if line.endswith(".requires_grad_()")]
    grads = "".join(f", {name}.grad" for name in leaves)
    return "\n".join(
        [
            *lines,
            f"r = {operators.path(op)}({', '.join(parts)})",
            "rs = [q for q in (r if isinstance(r, (tuple, list)) else [r])]",
            "gs = [q.abs().sum() for q in rs if isinstance(q, t.Tensor) and q.requires_grad]",
            "if gs: sum(gs).backward()",
            f"return [rs{grads}]",
        ]
    )


def written(rng: random.Random, value: Any, lines: list[str], names: list[str]) -> str:
    """An argument as text; a floating tensor requires grad."""
    import torch

    if isinstance(value, (list, tuple)):
        inside = ", ".join(written(rng, v, lines, names) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if not isinstance(value, torch.Tensor):
        return operators.written(rng, value, lines, names)
    if value.layout is not torch.strided:
        raise TypeError("no strided tensor")
    names.append(f"x{len(names)}")
    lines.append(f"{names[-1]} = {operators.literal(value)}")
    if value.is_floating_point() or value.is_complex():
        lines.append(f"{names[-1]}.requires_grad_()")
    return names[-1]


def groups(seed: int, only: str = "") -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """All operators and dtypes in a random order."""
    pairs = [
        (number, kind)
        for number, op in enumerate(operators.operators())
        for kind in KINDS
        if re.search(only, op.name) and not UNDEFINED.search(op.name) and ours(op.name)
    ]
    random.Random(seed).shuffle(pairs)
    for number, kind in pairs:
        name = operators.operators()[number].name
        yield f"{name} {kind}", lambda number=number, kind=kind: programs(number, kind)


def ours(name: str) -> bool:
    """Whether rushlight has the function."""
    found: Any = harness.library("rushlight")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None


if __name__ == "__main__":
    sys.exit(forked.main("empties", __doc__, groups))
