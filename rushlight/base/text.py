"""Functions from generated text: compiled in one place, so that tracebacks and debuggers show their lines.

>>> import inspect
>>> double = define("def double(x):\\n    return 2 * x\\n", "double", {}, "doubling")
>>> double(4), inspect.getsource(double)
(8, 'def double(x):\\n    return 2 * x\\n')
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import finalize

# The file names of generated code begin with this. `tracebacks.ours` counts the frames of such files as the package's
# own.
GENERATED = "<rushlight "

numbers = count(2)
WIDTH = 88  # columns of a line before its block is indented


def define(text: str, name: str, scope: dict[str, Any], title: str, prefix: str = GENERATED) -> Callable:
    """The function `name` defined by the text, which is run in `scope`; the function is then removed from `scope`.

    `title`: a name such as "call of where"; with `prefix` it is the file name of the code. A title in use gets a
    number. `prefix`: "<" for code that counts as the user's own.

    `linecache` keeps the lines of the text as long as the function's code exists, also in a traceback.
    """
    file, lines = register(text, title, prefix)
    exec(compile(text, file, "exec"), scope)
    function = scope.pop(name)  # a function in its own globals would be a reference cycle
    drop = finalize(function.__code__, forget, file, lines)
    drop.atexit = False
    return function


def register(text: str, title: str, prefix: str) -> tuple[str, list[str]]:
    """Put the text into `linecache` under a unique file name; returns this file name and the lines."""
    lines = text.splitlines(True)
    # an entry without a modification time is kept by `linecache.checkcache`
    entry = (len(text), None, lines, file := f"{prefix}{title}>")
    if linecache.cache.setdefault(file, entry) is not entry:
        file = f"{prefix}{title} {next(numbers)}>"
        linecache.cache[file] = (len(text), None, lines, file)
    return file, lines


def forget(file: str, lines: list[str]) -> None:
    """Remove the text from `linecache`, unless the file name belongs to another text by now."""
    entry = linecache.cache.get(file)
    if entry is not None and len(entry) == 4 and entry[2] is lines:
        del linecache.cache[file]


# -- lines of at most 100 columns, as lists of lines -----------------------------------------------


def indented(lines: Sequence[str]) -> list[str]:
    """The lines of a block."""
    return [f"    {line}" for line in lines]


def folded(head: str, items: Sequence[str], tail: str) -> list[str]:
    """`head` items `tail` on one line, or on several lines if it is too long."""
    line = head + ", ".join(items) + tail
    if len(line) <= WIDTH:
        return [line]
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 6 <= WIDTH:
            lines[-1] += f" {item},"
        else:
            lines.append(f"{item},")
    return [head, *indented(lines), tail.removeprefix(",")]


def tupled(head: str, items: Sequence[str], tail: str = "") -> list[str]:
    """`head` (items) `tail`."""
    return folded(f"{head}(", items, ("," if len(items) == 1 else "") + ")" + tail)


def conditional(word: str, condition: str, brackets: bool = False) -> list[str]:
    """`if condition:` on one line, or on several lines if it is too long."""
    line = f"{word} ({condition}):" if brackets else f"{word} {condition}:"
    if len(line) <= WIDTH:
        return [line]
    first, *others = condition.split(" or ")
    return [f"{word} (", f"    {first}", *[f"    or {other}" for other in others], "):"]
