"""Write docs/faster.md: the ops with a faster way, and the size from which it is used.

python tools/faster_docs.py      writes it from rushlight/fast/index.py
"""

from __future__ import annotations

import ast
import inspect
import sys
import tokenize
from collections import defaultdict
from io import StringIO
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parent.parent))

from rushlight.fast import index

PAGE = Path(__file__).parent.parent / "docs" / "faster.md"
TEXT = """\
# Large tensors

Written by `tools/faster_docs.py` from `fast/index.py`. Do not edit.

Each op has a reference kernel, which defines its result. For large arrays some ops also have a
faster way, usually a compiled loop. `rushlight.fast.off()`, or `RUSHLIGHT_FAST=0` in the
environment, switches all faster ways off. Results stay right; their last bits may differ.

A faster way is tried when the op's first array has at least the number of elements in the table. If
the results of a way differ from NumPy's in the last bits, the way has a number of passes: NumPy's
passes over the array that the way saves. NumPy then does the work until its passes have cost as
much as loading the loops (`charge` in `fast/policy.py`). The number of elements decides, not the
clock: a program gives the same numbers each time.

The exception is the first run on a machine, which has no machine code yet. Another process of low
priority then compiles the loops, and NumPy continues meanwhile (`loops/background.py`), so the last
bits of this run depend on the machine's speed. Three switches make the program wait for its loops:
`rushlight.fast.settle()`, which also uses them from the first op on,
`use_deterministic_algorithms(True)`, and `RUSHLIGHT_LOOPS=wait` in the environment.
`rushlight warmup` compiles the usual loops beforehand. A function of `rushlight.compile` always
waits for its loops.

To add a way, see "Add a faster way" in CONTRIBUTING.md. `tests/fast/test_index_ways.py` and
`test_index_sites.py` compare every way with the reference kernel.

## Ways of ops

*Small arrays*: once loops are loaded, the way is used from this number of elements on.

| op | derivative by | elements | small arrays | passes | file |
|---|---|---:|---:|---:|---|
{ways}

Every other elementwise op has a loop that is made from the op's rule (`fast/elementwise.py`): from
{elementwise} elements on, and from {ufunc} elements on if the op's forward is one function of
NumPy.

## Ways of kernels

A kernel that other kernels call is marked with its way. The way decides by its arguments whether
NumPy does the work, using the constants below.

| kernel | elements | file |
|---|---:|---|
{sites}

## Thresholds and prices

| name in `fast/index.py` | value | measured |
|---|---:|---|
{prices}
"""


def ways() -> str:
    """A row for the ops that have equal ways."""
    derivatives = defaultdict(list)
    for (name, of), way in index.WAYS.items():
        derivatives[name, way].append(of)
    names = defaultdict(list)
    for (name, way), inputs in derivatives.items():
        names[way, tuple(inputs)].append(name)
    return "\n".join(
        f"| {', '.join(ops)} | {', '.join(filter(None, inputs))} | {way.elements:,} | "
        f"{'' if way.small is None else f'{way.small:,}'} | {way.passes or ''} | `{file_of(way)}` |"
        for (way, inputs), ops in names.items()
    )


def sites() -> str:
    """A row for each file and number of elements."""
    names = defaultdict(list)
    for name, way in index.SITES.items():
        names[way].append(name)
    return "\n".join(
        f"| {', '.join(f'`{name}`' for name in kernels)} | {way.elements:,} | `{file_of(way)}` |"
        for way, kernels in names.items()
    )


def file_of(way: index.Way) -> str:
    """The file of a way, in the package; of convolution, the folder."""
    path = way.module.removeprefix("rushlight.").replace(".", "/")
    return path + ("/" if way.module == "rushlight.fast.conv" else ".py")


def constants(module: ModuleType) -> str:
    """A row for each constant of a module that is a number, with the comment at or above it."""
    source = inspect.getsource(module)
    found = [token for token in tokenize.generate_tokens(StringIO(source).readline) if token.type == tokenize.COMMENT]
    comments = {token.start[0]: token.string.lstrip("# ") for token in found}
    blocks = {token.start[0] for token in found if token.line.lstrip().startswith("#")}
    rows = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        lines = [*range(node.lineno, (node.end_lineno or node.lineno) + 1)]
        if node.lineno not in comments:  # the block of comments above, or none
            above = node.lineno - 1
            while above in blocks and not comments[above].startswith("--"):
                lines.insert(0, above)
                above -= 1
        note = " ".join(comments[line] for line in lines if line in comments)
        for name in names:
            if not isinstance(name, ast.Name):
                continue
            value = getattr(module, name.id)
            if type(value) in (int, float):
                shown = f"{value:,}" if type(value) is int else f"{value:g}"
                rows.append(f"| `{name.id}` | {shown} | {note.replace('|', ' ')} |")
                note = "as above"  # of two names in one statement
    return "\n".join(rows)


def page() -> str:
    return TEXT.format(
        ways=ways(),
        sites=sites(),
        elementwise=f"{index.ELEMENTWISE.elements:,}",
        ufunc=f"{index.UFUNC.elements:,}",
        prices=constants(index),
    )


if __name__ == "__main__":
    PAGE.write_text(page())
