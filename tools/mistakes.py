"""The page of common mistakes, docs/mistakes.md: runs its programs and writes the messages.

An entry of the page is a program with a mistake, the message of rushlight, the first line of torch's message, and the
program with the hint followed. `python tools/mistakes.py` writes the messages anew (torch's where torch is installed),
`--count` prints how long the messages are."""

from __future__ import annotations

import argparse
import linecache
import re
import sys
import traceback
import warnings
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "mistakes.md"
FILE = "you.py"
ENTRY = re.compile(
    r"### \d+\. (?P<title>[^\n]+)\n\n```python\n(?P<program>.*?)\n```\n\n"
    r"```pytb\n(?P<message>.*?)\n```\n\nPyTorch: (?P<torch>[^\n]+)\n\n"
    r"```python\n(?P<mended>.*?)\n```",
    re.DOTALL,
)
NO_ERROR = "no error"


class Mistake(NamedTuple):
    """An entry of the page; `torch`: the first line of torch's message, or `no error`."""

    title: str
    program: str
    message: str
    torch: str
    mended: str


def mistakes(text: str) -> list[Mistake]:
    return [Mistake(**found.groupdict()) for found in ENTRY.finditer(text)]


def error_of(program: str, library: str = "rushlight") -> Exception | None:
    """The error of a program that is the file you.py, or None."""
    linecache.cache[FILE] = (len(program), None, program.splitlines(True), FILE)
    scope = {"__name__": "__main__"}
    exec(f"import {library} as torch\nfrom {library} import nn, optim", scope)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(program, FILE, "exec"), scope)
    except Exception as error:
        return error
    return None


def message_of(error: Exception | None) -> str:
    """The error's class and message, as Python prints them."""
    if error is None:
        return NO_ERROR
    lines = "".join(traceback.format_exception_only(type(error), error)).replace("\t", "    ")
    return "\n".join(line.rstrip() for line in lines.rstrip().split("\n"))


def shown(text: str) -> str:
    """A line of torch's message as inline code."""
    return NO_ERROR if text == NO_ERROR else f"`` {text} ``"


def rewritten(text: str, with_torch: bool) -> str:
    """The page with the messages of today."""
    numbers = iter(range(1, 1000))

    def entry(found: re.Match[str]) -> str:
        one = Mistake(**found.groupdict())
        torch = one.torch
        if with_torch:
            torch = shown(message_of(error_of(one.program, "torch")).split("\n")[0])
        return (
            f"### {next(numbers)}. {one.title}\n\n```python\n{one.program}\n```\n\n"
            f"```pytb\n{message_of(error_of(one.program))}\n```\n\nPyTorch: {torch}\n\n"
            f"```python\n{one.mended}\n```"
        )

    return ENTRY.sub(entry, text)


def lengths(library: str, entries: list[Mistake]) -> list[int]:
    """Lines of the whole traceback for each program, without the frame of this tool."""
    found = []
    for one in entries:
        error = error_of(one.program, library)
        if error is not None:
            trace = error.__traceback__
            text = traceback.format_exception(type(error), error, trace and trace.tb_next)
            found.append("".join(text).rstrip().count("\n") + 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", action="store_true", help="print lengths beside torch's")
    text = PAGE.read_text(encoding="utf-8")
    if parser.parse_args().count:
        entries = mistakes(text)
        for library in ("rushlight", "torch"):
            found = lengths(library, entries)
            print(f"{library}: {len(found)} errors, lines {median(found):g}, at most {max(found)}")
        return
    try:
        import torch  # noqa: F401
    except ImportError:
        PAGE.write_text(rewritten(text, False), encoding="utf-8")
    else:
        PAGE.write_text(rewritten(text, True), encoding="utf-8")


if __name__ == "__main__":
    main()
