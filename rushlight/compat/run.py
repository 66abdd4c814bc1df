"""`rushlight run`: a script, a module or a notebook whose `import torch` means rushlight."""

from __future__ import annotations

import linecache
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rushlight.base.tracebacks import ours
from rushlight.compat.hook import OURS, install


class NotAProgram(Exception):
    """The target is not a program; the message gives the reason."""


def run(
    target: str, arguments: Sequence[str] = (), module: bool = False, teach: bool = False, live: bool = False,
    wait: bool = False,
) -> None:  # fmt: skip
    """Run a program as `python` would: its arguments in sys.argv, its folder first on the path.

    `module`: `target` is a module's name, as for `python -m`. A file that ends in .ipynb is a notebook: its code cells
    run in order, and the last expression of each is shown. `teach`: warn of silent mistakes (`rushlight.teach`).
    `live`: show the training on a local page (`rushlight.viz.live`); `wait`: after one step, wait for the page."""
    if not module:
        check_readable(target)
    notebook = cells(target) if not module and target.endswith(".ipynb") else None
    install()
    if teach:
        from rushlight.teaching import teach as watch  # loads nn, optim and the data loader

        watch()
    if live:
        from rushlight.viz import live as page  # loads nn and optim

        page(wait=wait).start()
    sys.argv = [target, *arguments]
    sys.path.insert(0, "" if module else str(Path(target).resolve().parent))
    if module:
        top, dot, rest = target.partition(".")  # torch.distributed.run is rushlight.distributed.run
        runpy.run_module(OURS.get(top, top) + dot + rest, run_name="__main__", alter_sys=True)
    elif notebook is not None:
        run_cells(target, notebook)
    else:
        runpy.run_path(target, run_name="__main__")


def fail(error: BaseException) -> int:
    """Print a program's error as Python does, without frames outside the program. Returns the exit status."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and not_the_programs(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    if sys.excepthook is sys.__excepthook__:
        # finds the lines of notebook cells, too
        traceback.print_exception(type(error), error, trace)
    else:
        sys.excepthook(type(error), error, trace)
    return 1


def not_the_programs(file: str) -> bool:
    return ours(file) or file == runpy.__file__


def check_readable(path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise NotAProgram(f"cannot read {path}: {error.strerror}") from None


def cells(path: str) -> list[str]:
    """The code cells of a notebook."""
    import json  # loaded for notebooks only

    try:
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
        found = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise NotAProgram(f"{path} is not a Jupyter notebook") from None
    return ["".join(source) for source in found]


def run_cells(path: str, sources: Sequence[str]) -> None:
    """Run cells in order in one namespace, the program's `__main__`."""
    main = type(sys)("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    for number, source in enumerate(sources, 1):
        run_cell(f"{path}, cell {number}", without_magic(source), main.__dict__)


def without_magic(source: str) -> str:
    """The cell with IPython's magic lines turned into comments, so that line numbers stay."""
    if source.lstrip().startswith("%%"):
        return ""
    return "\n".join("# " + line if line.lstrip().startswith(("%", "!", "?")) else line for line in source.split("\n"))


def run_cell(name: str, source: str, namespace: dict[str, Any]) -> None:
    """Run one cell; tracebacks show its lines."""
    import ast

    linecache.cache[name] = len(source), None, source.splitlines(True), name
    body = ast.parse(source, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), namespace)
    if last is not None:
        show(eval(compile(ast.Expression(last.value), name, "eval"), namespace))  # type: ignore[attr-defined]


def show(value: Any) -> None:
    """Print the value of a cell's last expression, as a notebook does; pictures print nothing."""
    if value is not None and type(value).__module__.partition(".")[0] not in ("matplotlib", "graphviz"):
        print(repr(value))
