"""Join consecutive small statements into one compiled function: calls from compiled code are far cheaper than from
Python.

    loop_0(t2, p2, t3)                            @joint(loop_0, loop_1)
    t9 = new[0]()                                 def part_0(a0, a1, a2, a3, n_f32):
    loop_1(t3, t9.reshape((6,)), f32(0.1))   ->       loop_0(a0, a1, a2)
                                                      loop_1(a2, shaped(a3, (6,)), n_f32[0])

The loops themselves are unchanged, so joined loops give the same numbers, bit by bit, as loops called from Python."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_SMALL_WORK = 1 << 16  # limit of elements times cost per element: statements below it are joined
MAX_JOINED = 64  # statements merged into one compiled function


class Statement(str):
    """A line of a program. `loop`, `arguments`: for a small statement that may be joined. `early`: may be moved up."""

    loop = ""
    arguments: tuple[str, ...] = ()
    early = False


def call(loop: str, arguments: Iterable[str], little: bool) -> Statement:
    arguments = tuple(arguments)
    made = Statement(f"{loop}({', '.join(arguments)})")
    if little:
        made.loop, made.arguments = loop, arguments
    return made


def early(text: str) -> Statement:
    """A statement that allocates or views memory: it may run before the statements above it."""
    made = Statement(text)
    made.early = True
    return made


class Joints:
    """Joins the statements of a program.

    `lines`: the program, with calls of joined functions. `texts`: the joined functions. `setup`: lines that define
    their arrays of numbers."""

    def __init__(self, lines: Iterable[str], mark: str = ""):
        self.mark = mark
        self.lines: list[str] = []
        self.texts: list[str] = []
        self.setup: list[str] = []
        self.waiting: list[str] = []  # small statements, with comments, to be joined
        for line in lines:
            if getattr(line, "early", False) and self.waiting:
                self.lines.append(line)
            elif getattr(line, "loop", ""):
                self.waiting.append(line)
                if len(self.waiting) >= MAX_JOINED:
                    self.flush()
            elif line.startswith("#") and self.waiting:
                self.waiting.append(line)
            else:
                self.flush()
                self.lines.append(line)
        self.flush()

    def flush(self) -> None:
        waiting, self.waiting = self.waiting, []
        calls = [line for line in waiting if isinstance(line, Statement)]
        if len(calls) < 2:
            self.lines += waiting
        else:
            self.join(calls)

    def join(self, calls: list[Statement]) -> None:
        """Write a function of these calls, and a line that calls it."""
        name = f"{self.mark}part_{len(self.texts)}"
        arrays: dict[str, str] = {}  # name in the program -> parameter
        numbers: dict[str, dict[str, int]] = {}  # type -> number -> its index
        body = []
        for c in calls:
            given = []
            for a in c.arguments:
                if number := re.fullmatch(r"(f32|f64|i64)\((.*)\)", a):
                    places = numbers.setdefault(number[1], {})
                    given.append(f"n_{number[1]}[{places.setdefault(number[2], len(places))}]")
                elif view := re.fullmatch(r"(\w+)\.reshape\((\(.*\))\)", a):
                    given.append(f"shaped({arrays.setdefault(view[1], f'a{len(arrays)}')}, {view[2]})")
                else:
                    given.append(arrays.setdefault(a, f"a{len(arrays)}"))
            body.append(f"    {c.loop}({', '.join(given)})")
        for kind, places in numbers.items():
            self.setup.append(f"{name}_{kind} = np.array([{', '.join(places)}], {kind})")
        loops = dict.fromkeys(c.loop for c in calls)
        parameters = [*arrays.values(), *(f"n_{kind}" for kind in numbers)]
        self.texts.append(
            f"\n@joint({', '.join(loops)})\ndef {name}({', '.join(parameters)}):\n" + "\n".join(body) + "\n"
        )
        self.lines.append(f"{name}({', '.join([*arrays, *(f'{name}_{kind}' for kind in numbers)])})")
