"""Lint and test what has changed since the last commit, in 5 to 40 seconds: `make check`.

    python tools/check.py                 files that differ from HEAD, and new files
    python tools/check.py FILE ...        these files
    python tools/check.py --since main    files that differ from another commit
    python tools/check.py --show          print the commands, run none

A file rushlight/a/b.py has its tests in tests/a/test_b.py, or test_b_more.py; else in the folder tests/a. Of a file of
op entries, tests/table runs for the entries whose lines differ. `make test` runs all tests."""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# tests of the package as a whole, for every changed file of the package
WHOLE = ["tests/test_layers.py", "tests/test_house.py"]
MAX_ENTRIES = 12  # of the table; more are half of its minute
HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "MKL", "OMP")}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def changed(since: str) -> list[str]:
    """The files that differ from a commit, and the new files. Deleted files are left out."""
    names = git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")
    return sorted({name for name in names.splitlines() if (ROOT / name).exists()})


def changed_lines(file: str, since: str) -> set[int]:
    """The lines of a file that differ from a commit; all lines of a new file, and of a file that does not differ."""
    hunks = HUNK.findall(git("diff", "--unified=0", since, "--", file))
    lines = {int(start) + i for start, count in hunks for i in range(int(count or 1))}
    return lines or set(range(1, (ROOT / file).read_text().count("\n") + 2))


# -- from a file to its tests ----------------------------------------------------------------------


def targets_of(file: str, root: Path = ROOT) -> list[str]:
    """The test files or folders of a file."""
    path = Path(file)
    if path.suffix not in (".py", ".pyi", ".md", ".js", ".html", ".css", ".toml"):
        return []
    if path.parts[0] == "tests":
        return [file] if path.name.startswith("test_") else nearest(path.parent, root)
    if path.parts[0] in ("docs", "examples", "tools"):
        own = root / "tests" / path.parts[0] / f"test_{path.stem}.py"
        return [own.relative_to(root).as_posix()] if own.exists() else []
    if path.parts[0] != "rushlight" or path.suffix == ".md":
        return []
    folder = root / "tests" / Path(*path.parts[1:-1])
    stem = path.parent.name if path.stem == "__init__" else path.stem
    found = [] if not folder.is_dir() else tests_named(folder, stem)
    # the subject of ops/math/trigonometry.py may be tested in tests/ops/test_trigonometry.py
    found = found or (tests_named(folder.parent, stem) if len(path.parts) > 2 and folder.parent.is_dir() else [])
    if found:
        return [test.relative_to(root).as_posix() for test in found]
    return nearest(Path("tests", *path.parts[1:-1]), root)


def tests_named(folder: Path, stem: str) -> list[Path]:
    """test_conv.py and test_conv_gradients.py for conv; test_arguments.py for arguments_of_ops, if nothing is nearer."""
    words = stem.strip("_").split("_")
    for n in range(len(words), 0, -1):
        subject = "_".join(words[:n])
        own = folder / f"test_{subject}.py"
        found = [*([own] if own.exists() else []), *sorted(folder.glob(f"test_{subject}_*.py"))]
        if found:
            return found
    return []


def nearest(folder: Path, root: Path) -> list[str]:
    """The folder, or the first above it that exists; none for the folder of all tests."""
    while not (root / folder).is_dir():
        folder = folder.parent
    return [] if folder == Path("tests") else [folder.as_posix()]


def entries(file: str, lines: set[int], root: Path = ROOT) -> list[str]:
    """The names that are assigned at the top of a file of ops, in statements with one of these lines. A changed kernel
    of this name counts, too."""
    if not file.startswith(("rushlight/ops/", "rushlight/kernels/")) or not file.endswith(".py"):
        return []
    found = []
    for node in ast.parse((root / file).read_text()).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        if lines.isdisjoint(range(first, (node.end_lineno or first) + 1)):
            continue
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            found += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.FunctionDef):
            found.append(node.name)
    return found


def in_table(names: Iterable[str]) -> list[str]:
    """Those of the names that are entries of the op table; all names if the package cannot be imported."""
    sys.path.insert(0, str(ROOT))
    try:
        from rushlight.base import lazy
        from rushlight.core.table import TABLE

        lazy.complete()
    except Exception:  # the tests will report it
        return [*names]
    return [name for name in names if name in TABLE]


def of_table(names: Iterable[str]) -> str:
    """The expression for `pytest -k` that picks the tests of these entries."""
    return " or ".join(f"[{name}] or [{name}-" for name in names)


# -- the commands ----------------------------------------------------------------------------------


def commands(files: list[str], since: str) -> list[list[str]]:
    """What is to be run for these files."""
    python = [file for file in files if file.endswith(".py")]
    tests = dict.fromkeys(test for file in files for test in targets_of(file))
    assigned = dict.fromkeys(name for file in python for name in entries(file, changed_lines(file, since)))
    names = in_table(assigned) if assigned else []
    ruff = [Path(sys.executable).with_name("ruff").as_posix()]
    pytest = [sys.executable, "-m", "pytest", "-q", "--quick", "-p", "no:cacheprovider"]
    found = [[*ruff, "check", *python], [*ruff, "format", "--check", *python]] if python else []
    if any(file.startswith("rushlight/") for file in python):
        found.append([*pytest, *WHOLE])  # in one process: they share one parse of the package
    if tests := without_inner(tests):
        jobs = ["-n", "2"] if any((ROOT / test).is_dir() for test in tests) else []
        found.append([*pytest, *jobs, *tests])
    if 0 < len(names) <= MAX_ENTRIES:
        found.append([*pytest, "tests/table", "-k", of_table(names)])
    elif names:
        found.append([*pytest, "tests/table/test_ops.py"])
    return found


def without_inner(tests: Iterable[str]) -> list[str]:
    """The tests without those that lie in a folder of the list."""
    known = {*tests}
    return [test for test in tests if not any(str(folder) in known for folder in Path(test).parents)]


NO_TESTS = 5  # pytest's status if an expression picks no test


def run(command: list[str]) -> bool:
    """Run one command; whether it succeeds."""
    start = time.perf_counter()
    shown = " ".join([Path(command[0]).name, *command[1:]])
    print(f"$ {shown if len(shown) < 300 else shown[:300] + ' ...'}", flush=True)
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, **ONE_THREAD}).returncode
    print(f"  {time.perf_counter() - start:.1f} s", flush=True)
    return status in (0, NO_TESTS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--since", default="HEAD")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    files = [Path(file).resolve().relative_to(ROOT).as_posix() for file in options.files] or changed(options.since)
    wanted = commands(files, options.since)
    if not wanted:
        print("nothing to check: no file has changed that has tests")
    if options.show:
        print(*[" ".join(command) for command in wanted], sep="\n")
        return 0
    done = [run(command) for command in wanted]  # all, also after a failure
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
