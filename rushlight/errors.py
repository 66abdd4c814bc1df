"""Where in the user's program something happened, and errors that say so."""
from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class LinAlgError(RuntimeError):
    """A matrix that the function has no answer for: singular, not positive-definite. torch.linalg.LinAlgError."""


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame that is not rushlight's own."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, "<frozen ")):    # Python's import
        frame = frame.f_back
    return frame


def line_of(code: CodeType, lasti: int) -> int:
    """The line number of the instruction at byte `lasti`; decoded only when somebody asks."""
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno


def place(code: CodeType, lasti: int) -> str:
    """`file.py:12: the statement's text`."""
    line = line_of(code, lasti)
    text = linecache.getline(code.co_filename, line).strip()
    return f"{code.co_filename}:{line}" + (f": {text}" if text else "")


def here() -> str:
    """The user's file, line and statement, as they stand now."""
    frame = user_frame(2)
    return place(frame.f_code, frame.f_lasti) if frame is not None else "<unknown>"


def explain(what: str, cure: str = "", **facts: object) -> str:
    """A message of one sentence, then a line for each fact, the user's statement and the cure."""
    lines = [what, *(f"  {name.replace('_', ' ')}: {fact}" for name, fact in facts.items() if fact is not None)]
    lines.append(f"  at: {here()}")
    if cure:
        lines.append(f"  cure: {cure}")
    return "\n".join(lines)


def meant(word: str, known: list[str]) -> str:
    """`; did you mean keepdim?`, for a word close to a known one."""
    from difflib import get_close_matches  # with what it loads, 3 ms that no program without errors should pay

    found = get_close_matches(word, known, 1)
    return f"; did you mean {found[0]}?" if found else ""


def describe(value: object) -> str:
    """A tensor by its dtype and shape, anything else by its repr, shortened."""
    array = getattr(value, "array", None)
    if array is not None:
        return f"{array.dtype.name}{tuple(array.shape)}"
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
