"""mkdocs hook: the page of operators, written from the op table when the documentation is built."""

from __future__ import annotations

import inspect
from collections import defaultdict

from mkdocs.structure.files import File

import rushlight


def on_files(files, config):
    files.append(File.generated(config, "operators.md", content=operators()))
    return files


def operators() -> str:
    by_file = defaultdict(list)
    for name, op in sorted(rushlight.ops.table.TABLE.items()):
        by_file[op.forward.__module__].append(section(name, op))
    parts = [f"## {module.rpartition('.')[2]}\n\n" + "\n".join(sections) for module, sections in sorted(by_file.items())]
    count = len(rushlight.ops.table.TABLE)
    return f"# Operators\n\nThe {count} entries of the op table, by file in `rushlight/ops/`.\n\n" + "\n".join(parts)


def section(name: str, op) -> str:
    text = inspect.getdoc(op.call) or op.doc or "No description yet."
    return f"### {name}\n\n```text\n{text}\n```\n"
