"""mkdocs hook: the page of operators, written from the op table, and what the examples of viz.md draw, when the
documentation is built."""

from __future__ import annotations

import inspect
import os
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import rushlight
import rushlight.nn.functional
from rushlight.base.lazy import complete
from rushlight.core.build import FUNCTIONS
from rushlight.core.table import TABLE, Op
from rushlight.creation import factories

START = """\
# Operators

First the {public} operators of the op table, by file in `rushlight/ops/`; then functions that are made of them; then
{inner} inner operators, which rules and functions are made of. This is what `help(rushlight.sin)` prints. The formulas
of gradients are printed from the rules that compute them.
"""


def on_files(files, config):
    from mkdocs.structure.files import File

    files.append(File.generated(config, "operators.md", content=operators()))
    for name, text in drawings():
        files.append(File.generated(config, name, content=text))
    return files


def drawings() -> list[tuple[str, str]]:
    """The picture and the page that the first examples of viz.md leave, each with its name."""
    text = Path(__file__).with_name("viz.md").read_text()
    before = os.getcwd()
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        os.chdir(folder)
        try:
            rushlight.manual_seed(0)
            names: dict[str, object] = {}
            for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:3]:
                exec(block, names)
            return [(name, Path(name).read_text()) for name in ("graph.svg", "backward.html")]
        finally:
            os.chdir(before)


def operators() -> str:
    complete()
    public, inner = defaultdict(list), []
    for name, op in TABLE.items():
        if for_users(op):
            public[op.forward.__module__.rpartition(".")[2]].append(section(name, op.call))
        else:
            inner.append(section(name, op.call))
    parts = [START.format(public=len(TABLE) - len(inner), inner=len(inner))]
    for file, sections in public.items():
        parts += [f"## {file}\n", *sections]
    made = [section(name, function) for name, function in sorted((FUNCTIONS | factories.FUNCTIONS).items())]
    return "\n".join([*parts, "## Made of operators\n", *made, "## Inner operators\n", *inner])


def for_users(op: Op) -> bool:
    """Whether the package has it as a function or tensors have it as a method."""
    return op.call in (getattr(rushlight, op.name, None), getattr(rushlight.Tensor, op.name, None))


def section(name: str, function: Callable) -> str:
    return f"### {name}\n\n```text\n{name}{signature(function)}\n\n{inspect.getdoc(function)}\n```\n"


def signature(function: Callable) -> str:
    """The parameters without their types, which the page has no room for."""
    found = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=found.empty))
