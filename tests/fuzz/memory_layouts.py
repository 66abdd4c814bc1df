"""Texts of tensors that lie in memory in every way: permuted, channels_last, sliced, stepped, expanded, overlapping."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

LAYOUTS = (
    "contiguous",
    "permuted",
    "permuted",
    "last",
    "last",
    "sliced",
    "stepped",
    "part",
    "expanded",
    "overlapping",
    "unfolded",
)


def laid(rng: random.Random, name: str, values: str, shape: Sequence[int], keep: bool = False) -> list[str]:
    """Lines that make `name` of the values, in one or two layouts. `keep`: the numbers stay as they are."""
    lines = [f"{name} = {values}"]
    for _ in range(1 if rng.random() < 0.8 else 2):
        how = rng.choice(LAYOUTS[:-3] if keep else LAYOUTS)
        lines += [f"{name} = {text}" for text in changes(rng, how, name, tuple(shape))]
    return lines


def changes(rng: random.Random, how: str, name: str, shape: tuple[int, ...]) -> list[str]:
    """Expressions that bring the tensor to another layout, one after the other; its shape stays."""
    n = len(shape)
    if n == 0:
        return [f"{name}.repeat(3)[1]"] if how in ("sliced", "stepped") else []
    d = rng.randrange(n)
    if how == "permuted" and n > 1:
        dims = rng.sample(range(n), n)
        return [f"{name}.permute({tuple(dims)}).contiguous().permute({tuple(map(dims.index, range(n)))})"]
    if how == "last" and n in (4, 5) and shape[1] != 1:  # torch goes by a step along one channel, which is free
        return [f"{name}.contiguous(memory_format=t.channels_last{'_3d' * (n == 5)})"]
    if how in ("sliced", "last"):
        return [f"t.cat([{name}, {name}, {name}], {d}).narrow({d}, {shape[d]}, {shape[d]})"]
    if how == "stepped":
        return [f"{name}.repeat_interleave(2, {d})", f"{name}[{':, ' * d}::2]"]
    if how == "part":
        return [f"t.stack([{name}, {name}], {d})", f"{name}.select({d}, 1)"]
    if 0 in shape:
        return []
    if how == "expanded":
        return [f"{name}.narrow({d}, 0, 1).expand({shape})"]
    if how == "overlapping":
        steps = tuple(rng.choice((1, 1, 2)) if prod(shape) > 2 * n * max(shape) else 1 for _ in shape)
        return [f"{name}.flatten().as_strided({shape}, {steps})"]
    if how == "unfolded" and n > 1:
        rows, width = shape[-2:]
        long = *shape[:-2], rows + width - 1
        if prod(long) <= prod(shape):
            return [f"{name}.flatten()[:{prod(long)}].reshape({long}).unfold(-1, {width}, 1)"]
    return []


def numbers(shape: Sequence[int], kind: str = "") -> str:
    """Numbers of both signs, no two equal nearby; of another dtype by its method: `long()`."""
    made = f"((t.arange({prod(shape)}.) * 37 % 101 - 50) / 29).reshape({tuple(shape)})"
    return f"{made}.{kind}" if kind else made


def size(rng: random.Random) -> int:
    return rng.choice((1, 2, 2, 3, 3, 4, 5)) if rng.random() > 0.02 else 0


def shape_of(rng: random.Random) -> list[int]:
    n = rng.choice((4, 4, 4, 4, 3, 3, 3, 2, 2, 5, 1, 0))
    return [size(rng) for _ in range(n)]
