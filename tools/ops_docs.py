"""Write docs/ops.md: the coverage of torch's names, and every op of the table with its gradients.

make ops             writes it; asks torch for its names, so torch must be installed
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import rushlight
from rushlight.core.table import TABLE, Op
from rushlight.introspect.formulas import formula

START = """\
# Ops and coverage

Written by `make ops` from the op table and from the names that torch {version} has. A name counts if rushlight has it;
its behaviour is measured against torch by the tests and by the conformance report.

| where | torch's names | in rushlight | |
|---|---:|---:|---:|
{rows}

## What is missing

Names of sparse and quantized tensors, of other devices and of torch's own machinery are left out above and here.

{missing}

## Every op

{count} public entries of the table, by file in `rushlight/ops/`. *Gradients*: what an input's gradient is, given `g`, the
gradient of the output `out`; ops without one have none. [The reference](reference/index.md) has the details.

{ops}
"""
ROOT = Path(__file__).parent.parent
PLACES = ["torch", "torch.Tensor", "torch.linalg", "torch.fft", "torch.special", "torch.nn.functional"]

# Names without a use for an array library on a CPU, by parts of names.
APART = (
    "autocast",
    "cuda",
    "cudnn",
    "miopen",
    "mkldnn",
    "fbgemm",
    "quantize",
    "quantized",
    "sparse",
    "vulkan",
    "xla",
    "ipu",
    "mtia",
    "hpu",
    "sym_",
    "_ir",
    "storage",
    "type_comment",
    "fake_quant",
    "batch_norm_",
    "crow_",
    "ccol_",
    "q_",
    "qscheme",
    "int_repr",
    "sspaddmm",
    "record_stream",
    "meta",
    "import_",
    "parse_",
    "vitals",
    "profiler",
    "choose_q",
    "cxx11",
    "sgemm",
    "is_maia",
    "xpu",
    "mps",
    "mkl",
    "jit",
    "classproperty",
    "boolean_dispatch",
    "has_torch_function",
    "handle_torch_function",
    "assert_int_or_pair",
)


def names_of(home: Any) -> set[str]:
    """The functions and methods of a module or class that users call."""
    found = {n for n in dir(home) if not n.startswith("_") and not any(part in n for part in APART)}
    return {n for n in found if isinstance(home, type) or is_function(getattr(home, n))}


def is_function(value: Any) -> bool:
    return callable(value) and not inspect.isclass(value) and not inspect.ismodule(value)


def follow(root: Any, path: str) -> Any:
    """torch.nn.functional in torch or in rushlight."""
    for part in path.split(".")[1:]:
        root = getattr(root, part, None) or importlib.import_module(f"{root.__name__}.{part}")
    return root


def coverage(torch: Any) -> tuple[str, str]:
    """The table of counts and the lists of missing names."""
    rows, missing = [], []
    for path in PLACES:
        theirs, ours = names_of(follow(torch, path)), follow(rushlight, path)
        lacking = sorted(n for n in theirs if not hasattr(ours, n))
        have = len(theirs) - len(lacking)
        rows.append(f"| `{path}` | {len(theirs)} | {have} | {have / len(theirs):.0%} |")
        if lacking:
            missing.append(f"**{path}**: {code(lacking)}\n")
    return "\n".join(rows), "\n".join(missing)


def code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def ops() -> tuple[int, str]:
    """The public entries of the table, a table for each file."""
    files: dict[str, list[str]] = defaultdict(list)
    for op in TABLE.values():
        if op.options.get("function", True) and op.options.get("method", True):
            files[op.forward.__module__.rpartition(".")[2]].append(row(op))
    head = "| op | also | computes | gradients |\n|---|---|---|---|\n"
    parts = [f"### {file}\n\n{head}" + "\n".join(sorted(rows)) for file, rows in sorted(files.items())]
    return sum(map(len, files.values())), "\n\n".join(parts)


def row(op: Op) -> str:
    gradients = "<br>".join(f"{name}: {shown(rule)}" for name, rule in op.rules.items() if rule is not None)
    cells = (f"`{op.called}`", code(op.names[1:]), shown(op.forward), gradients)
    return "| " + " | ".join(cells) + " |"


def shown(rule: Callable) -> str:
    """A rule as its own formula; a rule of several steps by its name only."""
    try:
        text = str(formula(rule))
    except Exception:
        return "in steps"
    return "`" + text.replace("|", "\\|") + "`"


def page(torch: Any) -> str:
    rows, missing = coverage(torch)
    count, tables = ops()
    version = torch.__version__.partition("+")[0]
    return START.format(version=version, rows=rows, missing=missing, count=count, ops=tables)


def main() -> int:
    try:
        import torch
    except ImportError:
        print("torch is not installed: pip install torch==2.13.0 (its names are what is counted)")
        return 1
    rushlight.base.lazy.complete()
    (ROOT / "docs" / "ops.md").write_text(page(torch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
