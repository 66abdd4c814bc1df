"""Calls of every operator that torch's own suites test, as texts: its samples are written out, each input in a
layout."""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any

import memory_layouts

MOST = 80  # elements of a sample's inputs
# torch leaves these results as LAPACK, or MKL's FFT, has written them, most of them column after column.
AS_LEFT = re.compile(r"linalg|fft|lu|qr|svd|cholesky|inverse|eig|lstsq|solve|geqrf|householder|pinverse|matrix_power")
KINDS = ("float32", "float32", "float32", "int64", "bool", "complex64", "bfloat16")


@cache
def operators() -> list[Any]:
    """torch's database, without what only runs on other devices or is no function of torch's; native_group_norm reads
    its weights as if they had no gaps."""
    from torch.testing._internal.common_methods_invocations import op_db

    apart = re.compile("jiterator|sparse|empty|native_group_norm")
    return [op for op in op_db if path(op) and not apart.search(op.name)]


def path(op: Any) -> str:
    """How users write the function, or '' if it is a method alone."""
    import torch

    found: Any = torch
    for part in op.name.split("."):
        found = getattr(found, part, None)
    return f"t.{op.name}" if found is not None else ""


@cache
def samples(number: int, kind: str) -> list[Any]:
    """The small samples of an operator in one dtype; none where the operator does not take it."""
    import torch

    op, dtype = operators()[number], getattr(torch, kind)
    if dtype not in op.supported_dtypes("cpu"):
        return []
    torch.manual_seed(0)
    return [s for s in op.sample_inputs("cpu", dtype) if sum(t.numel() for t in tensors(s)) <= MOST]


def tensors(sample: Any) -> list[Any]:
    import torch
    from torch.utils import _pytree as pytree

    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return [x for x in leaves if isinstance(x, torch.Tensor)]


def call(rng: random.Random) -> tuple[list[str], str, list[str]]:
    """Lines that make the inputs, a call of an operator on them, and the names of the inputs."""
    while True:
        number = rng.randrange(len(operators()))
        op, found = operators()[number], samples(number, rng.choice(KINDS))
        if not found:
            continue
        lines: list[str] = []
        sample, names = rng.choice(found), []
        try:
            args = [written(rng, a, lines, names) for a in (sample.input, *sample.args)]
            kwargs = [f"{k}={written(rng, v, lines, names)}" for k, v in sample.kwargs.items()]
        except TypeError:
            continue
        if rng.random() < 0.3 and names and args[0] == names[0]:
            short = op.name.split(".")[-1]
            overlaps = any("as_strided" in line or "unfold(" in line for line in lines)
            method = short + "_" if op.inplace_variant and not overlaps and rng.random() < 0.6 else short
            return lines, f"{names[0]}.{method}({', '.join(args[1:] + kwargs)})", names
        return lines, f"{path(op)}({', '.join(args + kwargs)})", names


def written(rng: random.Random, value: Any, lines: list[str], names: list[str]) -> str:
    """An argument as text; a tensor's lines are added. TypeError for what has no text here."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise TypeError("no strided tensor")
        names.append(f"x{len(names)}")
        keep = not value.is_floating_point() or rng.random() < 0.7
        shape = tuple(value.shape)
        lines += memory_layouts.laid(rng, names[-1], literal(value), shape, keep=keep)
        return names[-1]
    if isinstance(value, (list, tuple)):
        inside = ", ".join(written(rng, v, lines, names) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if isinstance(value, torch.dtype):
        return f"t.{str(value).removeprefix('torch.')}"
    if value is None or isinstance(value, (bool, int, str, slice)) or value is Ellipsis:
        return repr(value).replace("Ellipsis", "...")
    if isinstance(value, (float, complex)):
        return repr(value).replace("inf", "math.inf").replace("nan", "math.nan")
    raise TypeError(f"no text for {type(value)}")


def literal(x: Any) -> str:
    """A call of t.tensor that makes a tensor of four digits."""
    items = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in x.detach().flatten().tolist()]
    text = ", ".join(items).replace("inf", "math.inf").replace("nan", "math.nan")
    dtype = str(x.dtype).replace("torch.", "t.")
    return f"t.tensor([{text}], dtype={dtype}).reshape({tuple(x.shape)})"
