"""Walks: how many functions and files of the package one statement enters, in the first call of a process (cold) and in
a later one (warm).

    python tools/walk.py [ROOT ...]     a table for each ROOT, the folder of a checkout
    python tools/walk.py --show 'a * b' [ROOT]    the functions that the warm call enters

A walk runs in a process of its own, so that no statement warms up another. Functions are counted once, however often a
call enters them. A comprehension belongs to its function. Files include generated texts. Python's and NumPy's own
functions are left out. The calls of a compiled step depend on the loops in the cache folder: run the script twice, then
the loops are there."""

from __future__ import annotations

import argparse
import importlib
import json
import linecache
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).resolve().parent.parent
WARM_CALL = 5  # the call of a statement that counts as warm
COMPILED_CALLS = 4
# Files in these folders do not belong to the package: the standard library and installed packages.
FOREIGN = tuple(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib"))
INNER = {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}

Statement = Callable[[], Any]


class Walk:
    """The functions of the package that a statement enters."""

    def __init__(self) -> None:
        self.entered: dict[CodeType, int] = {}  # code -> number of calls

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name not in INNER and is_ours(code.co_filename):
            self.entered[code] = self.entered.get(code, 0) + 1

    def counts(self) -> dict[str, int]:
        files = {code.co_filename for code in self.entered}
        return {
            "functions": len(self.entered),
            "files": len(files),
            "calls": sum(self.entered.values()),
            "lines": sum(map(lines_of, self.entered)),
            "file_lines": sum(len(linecache.getlines(file)) for file in files),
        }

    def listing(self) -> str:
        return "\n".join(
            f"{calls:4}  {code.co_qualname if sys.version_info >= (3, 11) else code.co_name}  "
            f"{code.co_filename}:{code.co_firstlineno}"
            for code, calls in self.entered.items()
        )


def is_ours(file: str) -> bool:
    return file != __file__ and not file.startswith(("<frozen", "<attrs", *FOREIGN))


def lines_of(code: CodeType) -> int:
    """The lines from a function's first to its last, nested functions included."""
    return last_line(code) - code.co_firstlineno + 1


def last_line(code: CodeType) -> int:
    inner = (last_line(const) for const in code.co_consts if isinstance(const, CodeType))
    own = (line for *_, line in code.co_lines() if line)
    return max(code.co_firstlineno, *inner, *own)


def walked(statement: Statement) -> Walk:
    """One call of the statement, watched."""
    walk = Walk()
    sys.setprofile(walk)
    try:
        statement()
    finally:
        sys.setprofile(None)
    return walk


# -- the statements --------------------------------------------------------------------------------


def product(torch: Any) -> tuple[Statement, Statement]:
    a, b = torch.ones(3, 4).requires_grad_(), torch.ones(3, 4).requires_grad_()
    g = torch.ones(3, 4)
    return lambda: a * b, lambda: (a * b).backward(g)


def softmax(torch: Any) -> tuple[Statement, Statement]:
    x, g = torch.rand(3, 4).requires_grad_(), torch.rand(3, 4)
    return lambda: torch.softmax(x, 1), lambda: torch.softmax(x, 1).backward(g)


def convolution(torch: Any) -> tuple[Statement, Statement]:
    F = importlib.import_module(f"{torch.__name__}.nn.functional")
    x, w = torch.rand(2, 3, 8, 8).requires_grad_(), torch.rand(4, 3, 3, 3).requires_grad_()
    b, g = torch.rand(4).requires_grad_(), torch.rand(2, 4, 6, 6)
    return lambda: F.conv2d(x, w, b), lambda: F.conv2d(x, w, b).backward(g)


def write(torch: Any) -> tuple[Statement, Statement]:
    leaf, y = torch.rand(4, 3).requires_grad_(), torch.rand(2, 3).requires_grad_()
    recorded = [leaf * 2 for _ in range(2 * WARM_CALL + 2)]  # each is written to once

    def forward() -> Any:
        x = recorded.pop()
        x[1:3] = y
        return x

    def backward() -> None:
        x = recorded.pop()
        x[1:3] = y
        x.sum().backward()

    return forward, backward


def compiled_step(torch: Any) -> Statement:
    """A training step of a small network, compiled as a whole."""
    nn = importlib.import_module(f"{torch.__name__}.nn")
    x, y = torch.rand(8, 4), torch.rand(8, 1)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = torch.compile(step)
    return lambda: compiled(x, y)


# name -> (setup, the index of the measured statement)
STATEMENTS: dict[str, tuple[Callable[[Any], tuple[Statement, ...]], int]] = {
    "a * b": (product, 0),
    "(a * b).backward(g)": (product, 1),
    "torch.softmax(x, 1)": (softmax, 0),
    "torch.softmax(x, 1).backward(g)": (softmax, 1),
    "F.conv2d(x, w, b)": (convolution, 0),
    "F.conv2d(x, w, b).backward(g)": (convolution, 1),
    "x[1:3] = y": (write, 0),
    "x[1:3] = y; x.sum().backward()": (write, 1),
}
COMPILED = "compile(step)"


def walks(name: str) -> list[Walk]:
    """The walks of a statement in this process: cold and warm; of a compiled step, each call's."""
    torch = importlib.import_module("rushlight")
    if name == COMPILED:
        statement = compiled_step(torch)
        return [walked(statement) for _ in range(COMPILED_CALLS)]
    make, place = STATEMENTS[name]
    statement = make(torch)[place]
    return [walked(statement) for _ in range(WARM_CALL)]


# -- the table -------------------------------------------------------------------------------------


def elsewhere(root: Path, *arguments: str) -> str:
    """The output of this script in a process that imports rushlight from `root`."""
    env = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, cwd=root, env=env, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def row(name: str, counts: dict[str, int]) -> str:
    whole = "{functions} | {files} | {calls} | {lines:,} / {file_lines:,}".format(**counts)
    return f"| `{name}` | {whole} |"


def table(root: Path) -> Iterable[str]:
    yield f"{root}\n"
    yield "| statement | functions | files | calls | lines of the functions / of the files |"
    yield "|---|--:|--:|--:|--:|"
    for name in STATEMENTS:
        cold, *_, warm = json.loads(elsewhere(root, "--count", name))
        yield row(name + ", cold", cold)
        yield row(name + ", warm", warm)
    for number, counts in enumerate(json.loads(elsewhere(root, "--count", COMPILED)), 1):
        yield row(f"{COMPILED}, call {number}", counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roots", nargs="*", type=Path, metavar="ROOT", default=[HERE])
    # for a child process: the counts, or the functions, of one statement
    parser.add_argument("--count", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--list", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--show", metavar="NAME", help="a statement of the table")
    options = parser.parse_args()
    if options.count:
        print(json.dumps([walk.counts() for walk in walks(options.count)]))
    elif options.list:
        print(walks(options.list)[-1].listing())
    else:
        for root in options.roots:
            if options.show:
                print(elsewhere(root.resolve(), "--list", options.show))
            else:
                print("\n".join(table(root.resolve())), end="\n\n")


if __name__ == "__main__":
    main()
