"""Statements of little work that follow one another, as one compiled function: a call from Python costs 1 to 2 us, as much
as a thousand elements, a call from compiled code 10 ns.

    loop_0(t2, p2, t3)                            @joint(loop_0, loop_1)
    t9 = new[0]()                                 def part_0(a0, a1, a2, a3, n_f32):
    loop_1(t3, t9.reshape((6,)), f32(0.1))   ->       loop_0(a0, a1, a2)
                                                      loop_1(a2, shaped(a3, (6,)), n_f32[0])

The loops stay as they are, so that the numbers are the same, bit by bit, whether they are called one by one or in a part.
"""
from __future__ import annotations

import re
from collections.abc import Iterable

LITTLE = 1 << 16                                  # elements times cost below which a statement is one of little work
MOST = 64                                         # of them in one function


class Statement(str):
    """A line of a program. `loop`, `arguments`: what it calls, if it does little work; `early`: it may run sooner."""

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
    """A statement that looks at memory or asks for some: nothing changes if it runs before others."""
    made = Statement(text)
    made.early = True
    return made


class Joints:
    """`lines` with parts in place of their statements; `texts` of these functions, and the `setup` that they need."""

    def __init__(self, lines: Iterable[str], mark: str = ""):
        self.mark = mark
        self.lines: list[str] = []
        self.texts: list[str] = []
        self.setup: list[str] = []
        self.waiting: list[str] = []              # statements and comments that may become a part
        for line in lines:
            if getattr(line, "early", False) and self.waiting:
                self.lines.append(line)
            elif getattr(line, "loop", ""):
                self.waiting.append(line)
                if len(self.waiting) >= MOST:
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
        """One function of some statements, and its call."""
        name = f"{self.mark}part_{len(self.texts)}"
        arrays: dict[str, str] = {}               # name in the program -> parameter
        numbers: dict[str, dict[str, int]] = {}   # type -> number -> its place
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
        self.texts.append(f"\n@joint({', '.join(loops)})\ndef {name}({', '.join(parameters)}):\n" + "\n".join(body) + "\n")
        self.lines.append(f"{name}({', '.join([*arrays, *(f'{name}_{kind}' for kind in numbers)])})")
