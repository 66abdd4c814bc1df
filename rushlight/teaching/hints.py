"""The hints of the checks: each hint once for each place, on stderr, and a summary."""

from __future__ import annotations

import sys
import textwrap
from typing import Any, NamedTuple

PAGE = "https://rushlight-py.github.io/rushlight/use/teach.html"
WIDTH = 100  # columns of a hint


class Hint(NamedTuple):
    """One finding. `place`: file, line and statement; `seen`: the measurement."""

    name: str
    title: str
    place: str
    seen: str
    fix: str

    @property
    def line(self) -> str:
        """`file.py:12`."""
        return ":".join(self.place.split(":")[:2]) if ":" in self.place else self.place

    def __str__(self) -> str:
        lines = [
            f"rushlight teach: {self.title}",
            *textwrap.wrap(self.seen, WIDTH, initial_indent="  ", subsequent_indent="  "),
            f"  at: {self.place}",
            *textwrap.wrap(f"hint: {self.fix}", WIDTH, initial_indent="  ", subsequent_indent="  "),
            f"  see {PAGE}#{self.name}",
        ]
        return "\n".join(lines)


class Report:
    """The hints of one `teach()`, in order."""

    def __init__(self, quiet: bool = False):
        self.hints: list[Hint] = []
        self.quiet = quiet
        self.root_array: Any = None  # the array of the only tensor at which backward begins
        self.known: set[tuple[str, str]] = set()

    def add(self, hint: Hint) -> None:
        """Keep and print a hint, unless its check has given a hint for this line."""
        if (hint.name, hint.line) in self.known:
            return
        self.known.add((hint.name, hint.line))
        self.hints.append(hint)
        self.say(str(hint))

    @property
    def root_value(self) -> Any:
        """The number at which backward begins, as an array; None if it begins at several numbers."""
        return self.root_array if getattr(self.root_array, "size", 0) == 1 else None

    def say(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr)

    def summary(self) -> str:
        """The number of hints, and a line for each."""
        count = len(self.hints)
        lines = [f"rushlight teach: {count} hint{'' if count == 1 else 's'}"]
        return "\n".join(lines + [f"  {hint.line}: {hint.title}" for hint in self.hints])
