"""List the names of torch that the installed libraries take and rushlight lacks.

python tests/libraries/names.py                  each missing name, with the libraries that take it
python tests/libraries/names.py einops zuko      some libraries

Reads the sources of the libraries in requirements.txt; runs none of them. Names that the installed torch lacks, too,
are left out. Runs in the environment of requirements.txt."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from collections import defaultdict
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))
NOT_USERS = {"torch", "torchvision", "numpy", "scipy", "numba"}
TESTS = {"test", "tests", "testing", "examples", "benchmarks"}


def libraries() -> list[str]:
    """The names in requirements.txt."""
    lines = (HERE / "requirements.txt").read_text().splitlines()
    return [name for name in (line.partition("==")[0] for line in lines) if name not in NOT_USERS]


def sources(library: str) -> list[Path]:
    """The files of Python code of an installed library, without its tests."""
    try:
        listed = files(library) or []
    except PackageNotFoundError:
        print(f"{library} is not installed", file=sys.stderr)
        return []
    return [Path(str(file.locate())) for file in listed if file.suffix == ".py" and not TESTS.intersection(file.parts)]


def missing(library: str) -> set[str]:
    """The names of torch that the sources take and rushlight lacks."""
    from rushlight.compat.check import MISSING, check
    from rushlight.compat.run import NotAProgram

    found = set()
    for path in sources(library):
        if "torch" not in path.read_text(encoding="utf-8", errors="replace"):
            continue
        try:
            found |= {use.name for use in check(str(path)) if use.kind == MISSING}
        except NotAProgram:  # a template
            continue
    return found


def in_torch(names: list[str]) -> list[str]:
    """The names that the installed torch has."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--in-torch"],
        input="\n".join(names),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def has(name: str) -> bool:
    """Whether the module of the longest path that can be imported has the rest of the name."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:n]))
        except Exception:  # torch's parts for other machines raise errors of many classes
            continue
        for part in parts[n:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def main() -> int:
    if sys.argv[1:] == ["--in-torch"]:
        print("\n".join(name for name in sys.stdin.read().split() if has(name)))
        return 0
    warnings.simplefilter("ignore")  # invalid escapes in the libraries' strings
    takers = defaultdict(list)
    for library in sys.argv[1:] or libraries():
        for name in missing(library):
            takers[name].append(library)
    known = in_torch(list(takers))
    for name in sorted(known, key=lambda name: (-len(takers[name]), name)):
        print(f"{len(takers[name]):3} {name:60} {' '.join(takers[name][:4])}")
    print(f"{len(known)} names")
    return 0


if __name__ == "__main__":
    sys.exit(main())
