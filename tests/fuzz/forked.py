"""Programs beside torch, in forks: torch itself crashes on some empty tensors and impossible sizes.

A group is a name and its programs (harness.py). Each group runs in a process of its own (process.py), so that a crash
costs the rest of one group."""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import harness
import process

CALL_SECONDS, GROUP_SECONDS = 20, 120
MEMORY_BYTES = 5 * 2**30


class Result(NamedTuple):
    """A program, how its answers differ ('same' if they do not), and both answers."""

    group: str
    text: str
    kind: str
    torch: str
    ours: str


# (how the answers differ, the group's name, why that is right)
Allowed = tuple[tuple[str, str, str], ...]
Compare = Callable[[harness.Outcome, harness.Outcome], str]


def results(
    groups: Iterable[tuple[str, Callable[[], list[str]]]],
    compare: Compare = harness.compared,
    seconds: float = float("inf"),
    programs: int = 10**9,
    allowed: Allowed = (),
) -> Iterator[Result]:
    """The result of each program, until so many seconds have passed; a crash is one, too. Its kind is 'on purpose'
    where `allowed` gives a reason."""
    sides, end = harness.torch_and_ours(), time.monotonic() + seconds
    for group, texts in groups:
        if time.monotonic() > end:
            return
        work = partial(run_group, texts, compare, sides, programs)
        for result in read(process.records(work), group):
            why = any(k == result.kind and re.match(g, group) for k, g, _ in allowed)
            yield result._replace(kind="on purpose") if why else result


def run_group(texts, compare, sides, programs, tell) -> None:
    """The child: a record before each call, and one after both."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # torch writes warnings of its own
    begin = time.monotonic()
    signal.alarm(GROUP_SECONDS)
    for text in texts()[:programs]:
        if time.monotonic() - begin > GROUP_SECONDS / 2:
            break
        signal.alarm(CALL_SECONDS)
        outcomes = []
        for side in sides:
            tell(side.name, text)
            outcomes.append(harness.run(text, side))
        kind = compare(*outcomes)
        if kind != "same" and harness.allowed(text):
            kind = "same"
        tell("done", text, kind, *(brief(made) for made in outcomes))


def brief(made: harness.Outcome) -> str:
    return (made.error or str(made.leaves).replace("\n", " "))[:300]


def read(records: Iterable[tuple], group: str) -> Iterator[Result]:
    """The results of a child; one of kind 'torch crashed' or 'rushlight crashed' if a signal ended it."""
    running: tuple[str, ...] = ("samples", "")
    for record in records:
        if record[0] == "done":
            yield Result(group, *record[1:])
        if record[0] == "signal":
            yield Result(group, running[1], f"{running[0]} crashed", record[1], "")
        running = record


FINE = ("same", "on purpose")


def printed(found: Iterable[Result], show: int = 40) -> float:
    """Print one program, the shortest, of each class of divergences; the share of programs that ours got wrong."""
    counts: Counter = Counter()
    classes: dict[tuple[str, str], list[Result]] = {}
    begin = time.monotonic()
    for result in found:
        counts[result.kind] += 1
        if result.kind not in FINE:
            classes.setdefault((result.kind, result.group.split()[0]), []).append(result)
    for (kind, group), those in sorted(classes.items())[:show]:
        one = min(those, key=lambda result: len(result.text))
        print(f"\n{kind} x{len(those)}: {group}")
        print("\n".join(f"    {line}" for line in one.text.split("\n")))
        print(f"  torch: {one.torch}\n  rushlight: {one.ours}")
    seconds = time.monotonic() - begin
    print(f"{sum(counts.values())} programs, {seconds:.0f} s, {len(classes)} classes, {dict(counts)}")
    faults = {kind: n for kind, n in counts.items() if kind not in (*FINE, "torch crashed")}
    return sum(faults.values()) / max(1, sum(counts.values()))


Groups = Callable[[int, str], Iterable[tuple[str, Callable[[], list[str]]]]]


def main(name: str, about: str, groups: Groups, compare: Compare = harness.compared, allowed: Allowed = ()) -> int:
    """The command of a fuzzer whose `groups(seed, pattern)` has all groups of matching names."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="a fresh one by default")
    parser.add_argument("--only", default="", help="a regular expression of operators or calls")
    parser.add_argument("--programs", type=int, default=10**9, help="of one operator or call")
    parser.add_argument("--show", type=int, default=40, help="how many classes are shown")
    parser.add_argument("--share", type=float, default=0.002, help="of divergences that is no failure")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if args.seed is None else args.seed
    print(f"{name}: seed {seed}", flush=True)
    found = results(groups(seed, args.only), compare, args.seconds, args.programs, allowed)
    return int(printed(found, args.show) > args.share)
