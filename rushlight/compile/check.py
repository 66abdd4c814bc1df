"""A program is looked at step by step before it is trusted: each loop and each call against the ops' own kernels, on the
same inputs.

To compare only what comes out at the end would be too lax and too strict at once: an error in a small gradient drowns, and
an optimizer that divides by the size of a gradient makes whole numbers of rounding noise (a bias that cancels in a
softmax has no other gradient). So after each step what it has made is compared, and then replaced by what the traced run
had (replay.py): no difference reaches the next step.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.compile.graph import DENSE, Call, Graph, Store, Value, is_random, memory_of, values_in, with_each
from rushlight.compile.replay import Replay
from rushlight.ops.table import TABLE

ULPS = 64                                         # what fused arithmetic may differ by, in units of the last place
NOISE = 32                                        # and how many times what comes of inputs that differ in their last places
SHAKEN = 4                                        # by so many units
TRIES = 3
EXACT = {"amax", "amin", "where", "maximum", "minimum", "relu", "neg", "abs", "clone", "expand", "to", "sign", "floor",
         "ceil", "round", "trunc"}                # they round nothing


class Mismatch(Exception):
    """A step of a program gives other numbers than the ops that it stands for."""


class Checker:
    """Follows a run of a program. `arrays`: its inputs, which nobody overwrites; `shown[i]`: the values that item i writes
    down; `replay` knows what they should be.
    """

    def __init__(self, graph: Graph, items: list[Any], shown: list[list[Value]], ends: dict[Value, int],
                 arrays: list[np.ndarray], replay: Replay):
        self.items, self.shown, self.ends, self.replay = items, shown, ends, replay
        self.known = dict(zip(graph.inputs, arrays))
        self.origin, self.places = memory_of(graph), {}         # where the program has a value; views need their origin's

    def __call__(self, i: int, *arrays: np.ndarray) -> None:
        """Item i has run and written `arrays`. Mismatch where they are not what its ops give."""
        steps = getattr(self.items[i], "steps", None) or [self.items[i]]
        made = dict(zip(self.shown[i], arrays))
        first = steps[0]
        if len(steps) == 1 and isinstance(first, Call) and first.outs and TABLE[first.op].family.__name__ != "view" and (
                is_random(first) or opaque(first)):
            found = dict(made)                    # the very kernel that eager calls: nothing to compute twice
            self.apart(first, made)
            for v in first.outs if is_random(first) else ():
                self.replay.drawn(v.traced, made[v])
        else:
            found = self.computed(steps, self.known)
        right = {v: self.replay.value(v.traced) for s in steps for v in s.outs if v.traced}
        self.compare(steps, found, right, found, "its parts give")
        for s in steps:
            for v in s.outs:
                own = v in made and found[v] is made[v]         # which the program will overwrite
                self.known[v] = right[v] if v in right else found[v].copy() if own else found[v]
        self.compare(steps, made, found, found, "it gives")
        for v, a in made.items():
            if v.kind != "input" and a.flags.writeable and not np.array_equal(a, self.known[v]):
                np.copyto(a, self.known[v])
        for s in steps:
            if isinstance(s, Store):
                np.copyto(made[s.target], s.value.array if s.value.kind == "constant" else self.known[s.value])
        self.places.update((v, a) for v, a in made.items() if v.kind != "input")
        for book in (self.known, self.places):
            for v in [v for v in book if self.ends.get(v, i) < i]:
                del book[v]

    def apart(self, call: Call, made: dict[Value, np.ndarray]) -> None:
        """Mismatch if a kernel hands on memory of an argument, which the plan may already have given to others."""
        for x in values_in(call.args):
            home = self.origin.get(x, x)
            for v, a in made.items():
                if home in self.places and self.origin.get(v) is not home and np.may_share_memory(a, self.places[home]):
                    raise Mismatch(f"{call.op}: it gives its argument's memory")

    def computed(self, steps: list[Any], given: dict[Value, np.ndarray],
                 noise: np.random.Generator | None = None) -> dict[Value, np.ndarray]:
        """What the kernels of some steps give, one after the other; with `noise`, each rounds in its own way."""
        found: dict[Value, np.ndarray] = {}

        def array(v: Value) -> Any:
            return found[v] if v in found else v.array if v.kind == "constant" else given[v]
        with np.errstate(all="ignore"):
            for s in steps:
                if isinstance(s, Store):
                    found[s.target] = with_each(s.value, array)
                elif s.op in DENSE:               # arrays lie in memory otherwise than in the traced run
                    found[s.outs[0]] = with_each(s.args[0], array).reshape(s.outs[0].shape)
                elif s.outs:
                    made = TABLE[s.op].kernel(*with_each(tuple(s.args), array))
                    parts = made if len(s.outs) > 1 or isinstance(made, (tuple, list)) else [made]
                    if noise is not None and s.op not in EXACT:
                        parts = [shake(np.asarray(a), noise) for a in parts]
                    found.update(zip(s.outs, parts))
        return {v: np.asarray(a) for v, a in found.items()}

    def compare(self, steps: list[Any], made: dict[Value, np.ndarray], right: dict[Value, np.ndarray],
                found: dict[Value, np.ndarray], what: str) -> None:
        """Mismatch unless what was made is near what is right, where that is known. `found`: what `computed` gives."""
        shaken: list[dict[Value, np.ndarray]] = []

        def changes(v: Value) -> Iterator[np.ndarray]:
            """What it makes of a value that inputs differ in their last places."""
            while len(shaken) < TRIES:
                noise = np.random.default_rng(len(shaken))
                shaken.append(self.computed(steps, {v: shake(a, noise) for v, a in self.known.items()}, noise))
            return (s[v] != found[v] if found[v].dtype.kind in "biu" else np.abs(s[v] - found[v]) for s in shaken)
        for v, a in made.items():
            wrong = difference(a, right[v], lambda v=v: changes(v)) if v in right else ""  # type: ignore[misc]
            if wrong:
                raise Mismatch(f"{name_of(steps)}: {what} {wrong}")


def opaque(call: Call) -> bool:
    """Whether a program calls this op's own kernel."""
    return not call.op.startswith(("mm", "sum", "bmm")) and not isinstance(TABLE[call.op].kernel, np.ufunc)


def name_of(steps: list[Any]) -> str:
    names = list(dict.fromkeys(s.op for s in steps))
    return ", ".join(names if len(names) < 8 else [*names[:5], "...", names[-1]])


def shake(a: np.ndarray, noise: np.random.Generator) -> np.ndarray:
    """The same numbers but for their last places."""
    if a.dtype.kind not in "fc":
        return a
    return a * (1 + SHAKEN * np.finfo(a.dtype).eps * noise.choice([-1, 1], a.shape)).astype(a.dtype)


def difference(a: np.ndarray, b: np.ndarray, changes: Callable[[], Iterator[np.ndarray]]) -> str:
    """How far an array is from the right one `b`, in words; empty if it is near enough."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
    if not a.size or (kind := a.dtype.kind) not in "fcbiu":
        return ""
    with np.errstate(all="ignore"):
        if kind not in "fc":
            right = a == b
            return "" if right.all() or (right | np.any([*changes()], axis=0)).all() else "other whole numbers"
        right = (a == b) | ((a != a) & (b != b))
        if right.all():
            return ""
        size = np.abs(b)
        allowed = ULPS * np.finfo(a.dtype).eps * (size + size[np.isfinite(size)].max(initial=0))
        far = np.abs(a - b)
        if (right | (far <= allowed)).all():
            return ""
        spread = np.nan_to_num(np.max([*changes()], axis=0), nan=0, posinf=np.inf)
        wrong = ~(right | (far <= allowed + NOISE * spread))
        return f"{a[wrong][0]} instead of {b[wrong][0]}, {wrong.sum()} of {a.size} elements" if wrong.any() else ""
