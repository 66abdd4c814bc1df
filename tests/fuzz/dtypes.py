"""Every operator of torch's database with tensors of other dtypes, beside torch: what is refused?

`python tests/fuzz/dtypes.py --seconds 60`. A program is a sample of an operator in which all tensors, or one of them,
are of another dtype; also as a method, and in place. Numbers are not compared."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import empties
import forked
import harness
import operators

DTYPES = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex64")
KINDS = ("float32", "int64", "bool", "complex64")  # the dtype of the samples: the first that an op takes
MOST = 1000  # elements of a sample's inputs
MAX_FORMS, MAX_PROGRAMS = 3, 150  # different calls of an operator; programs of one operator
# A kernel that torch lacks on the CPU alone, and refusals of half precision that go with it.
NO_KERNEL = re.compile(
    r"not implemented for '(Half|BFloat16)'|Low precision dtypes not supported"
    "|Unsupported dtype BFloat16|linalg.pinv.BFloat16"
)


def programs(number: int) -> list[str]:
    """Programs of an operator: calls of its function, its method and its form in place."""
    import torch
    from torch.utils import _pytree as pytree

    found: dict[str, None] = {}
    for sample in forms(number):
        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
        for changed in [places, *([i] for i in places if len(places) > 1)]:
            for dtype in DTYPES:
                made = [cast(x, dtype) if i in changed else x for i, x in enumerate(leaves)]
                first, args, kwargs = pytree.tree_unflatten(made, spec)
                try:
                    found |= dict.fromkeys(texts(operators.operators()[number], first, args, kwargs))
                except TypeError:  # an argument has no text
                    continue
    return list(found)[:MAX_PROGRAMS]


def forms(number: int) -> list[Any]:
    """Samples of an operator with different arguments: the smallest of each kind of call."""
    import torch

    op = operators.operators()[number]
    kinds = [k for k in KINDS if getattr(torch, k) in op.supported_dtypes("cpu")]
    torch.manual_seed(0)
    found: dict[Any, Any] = {}
    for sample in op.sample_inputs("cpu", getattr(torch, kinds[0])) if kinds else []:
        key = (tuple(type(a).__name__ for a in sample.args), tuple(sample.kwargs))
        least = size(found[key]) if key in found else MOST + 1
        if 0 < size(sample) < least or least == 0 < size(sample) <= MOST:
            found[key] = sample
    return list(found.values())[:MAX_FORMS]


def size(sample: Any) -> int:
    return sum(t.numel() for t in operators.tensors(sample))


def cast(x: Any, dtype: str) -> Any:
    """The tensor in another dtype; the numbers of an unsigned one are positive."""
    import torch

    x = x.detach()
    if x.dtype in (torch.bool, torch.uint8) or x.is_complex() or dtype not in ("bool", "uint8"):
        return x.to(getattr(torch, dtype))
    x = x > 0 if dtype == "bool" else x.abs()
    return x.to(getattr(torch, dtype))


def texts(op: Any, first: Any, args: tuple, kwargs: dict) -> Iterator[str]:
    lines: list[str] = []
    names: list[str] = []
    flat = random.Random(0)
    parts = [empties.written(flat, a, lines, names) for a in (first, *args)]
    parts += [f"{key}={empties.written(flat, a, lines, names)}" for key, a in kwargs.items()]
    lines = [line for line in lines if not line.endswith(".requires_grad_()")]
    short = op.name.split(".")[-1]
    calls = [f"{operators.path(op)}({', '.join(parts)})"]
    if names and parts[0] == names[0]:
        calls += [f"{parts[0]}.{short}({', '.join(parts[1:])})"] * (op.method_variant is not None)
        calls += [f"{parts[0]}.{short}_({', '.join(parts[1:])})"] * (op.inplace_variant is not None)
    for one in calls:
        yield "\n".join([*lines, f"r = {one}", "return []"])


def compared(torchs: harness.Outcome, ours: harness.Outcome) -> str:
    """'accepted', 'refused' or 'same'; 'kernel' where torch alone lacks a kernel for 16 bits."""
    kind = harness.compared(torchs, ours)
    return "kernel" if kind == "accepted" and NO_KERNEL.search(torchs.error) else kind


def groups(seed: int, only: str = "") -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """All operators, in a random order."""
    numbers = [
        number for number, op in enumerate(operators.operators()) if re.search(only, op.name) and empties.ours(op.name)
    ]
    random.Random(seed).shuffle(numbers)
    for number in numbers:
        yield operators.operators()[number].name, lambda number=number: programs(number)


if __name__ == "__main__":
    sys.exit(forked.main("dtypes", __doc__, groups, compared))
