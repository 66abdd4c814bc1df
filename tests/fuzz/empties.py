"""Empty tensors through every operator of torch's database, forward and backward, beside torch.

`python tests/fuzz/empties.py --seconds 60`. A program is a sample of an operator with size 0 in one dimension of one
tensor, or in all dimensions of one size (so that the sizes still fit)."""

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


NO_GRAPH = "torch's result of no elements does not belong to the graph"
SIZES = "torch refuses an empty dimension that has a result"
ON_PURPOSE: forked.Allowed = (
    ("wrong", r"linalg\.(cond|householder_product|matrix_norm|norm)|norm ", NO_GRAPH),
    ("wrong", r"special\.(modified_)?bessel_[jyik][01]", "torch 2.13 has no derivative of it"),
    ("wrong", r"block_diag", "torch's gradients of the other matrices are 0"),
    ("wrong", r"linalg\.lstsq", "torch's residuals of no columns are 0, not |b|^2"),
    ("wrong", r"lu_unpack", "torch leaves the pivots of no columns unread"),
    ("wrong", r"nn\.functional\.multi_margin_loss", "torch returns memory that was not written"),
    ("wrong", r"nn\.functional\.pixel_unshuffle", "torch returns the input in its shape"),
    ("wrong", r"addmv", "torch does not broadcast the input if there is nothing to multiply"),
    ("wrong", r"nn\.functional\.conv\dd", "torch's output of no channels has none either"),
    ("refused", r"index_add", "an index beyond the last element is refused"),
    ("refused", r"linalg\.(matrix_rank|pinv)", "hermitian=True of a matrix that is not square"),
    ("refused", r"lu_unpack", "pivots beyond the rows are refused"),
    ("refused", r"nn\.functional\.adaptive_\w+1d", "without a batch: no positions to pool"),
    ("refused", r"bincount", "weights of another length are refused"),
    ("wrong", r"bincount", "torch's counts of no places are int64, whatever the weights"),
    ("accepted", r"_segment_reduce|addmv|index_fill|linalg\.vecdot|normal ", SIZES),
    ("accepted", r"nn\.functional\.\w*(pool|pixel|instance_norm|conv_|bilinear)", SIZES),
    ("accepted", r"fft\.", "torch's FFT library refuses no rows"),
    ("accepted", r"(linalg\.)?lu_solve", "pivots of no elements exchange no rows"),
    (
        "accepted",
        r"floor_divide|heaviside|linalg\.pinv|native_batch_norm|nn\.functional\.(silu|soft_margin"
        r"|multi_margin)",
        "a derivative that torch lacks, also of tensors with elements",
    ),
)


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
    sys.exit(forked.main("empties", __doc__, groups, allowed=ON_PURPOSE))
