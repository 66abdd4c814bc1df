"""Verify a program before it is used: compare each loop and each call with the ops' own kernels, on the same inputs.

Comparing only the final results would be both too lax and too strict. Too lax: an error in a small gradient would go
unnoticed. Too strict: an optimizer that divides by the size of a gradient amplifies rounding noise to whole numbers (a
bias that cancels in a softmax has a gradient of pure noise). So the output of each step is compared, and then replaced
by the traced run's value (compile/capture/replay.py): no difference reaches the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from rushlight.compile.capture.replay import Replay
from rushlight.compile.graph import (
    Call,
    Graph,
    Store,
    Value,
    is_random,
    is_reshape,
    is_view,
    memory_of,
    values_in,
    with_each,
)
from rushlight.compile.run.tolerance import (
    HALF_NOISE_FACTOR,
    NOISE_FACTOR,
    PERTURBED_ULPS,
    Noise,
    change,
    of_half,
    unit,
)
from rushlight.core.table import TABLE
from rushlight.kernels.float16 import single
from rushlight.ops.linalg.matmul import mm
from rushlight.ops.reduce import reduce

ULPS = 64  # allowed difference of fused arithmetic, in units of the last place
# bytes of an element -> tolerance relative to the largest element
TOLERANCE = {2: 1e-2, 4: 1e-4, 8: 1e-6, 16: 1e-6}
# the number of perturbed runs; more than the minimum if needed, because the noise of two ops may cancel in the first
# runs
MIN_RUNS, MAX_RUNS = 3, 16
# kind of perturbation (a field of Noise; each kind is run separately) -> the weight of the effect, relative to
# NOISE_FACTOR
FLOATS = {"floats": 1.0}
# inputs in half precision have the weight of a perturbation in float32
HALVES = {**FLOATS, "halves": HALF_NOISE_FACTOR / NOISE_FACTOR, "given": PERTURBED_ULPS * 2.0**-16}


class Mismatch(Exception):
    """A step of a program gives other numbers than the ops that the step was made from."""


class Checker:
    """Compares a run of a program, item by item, with eager.

    `arrays`: the inputs, which no step overwrites. `shown[i]`: the values that item i stores in memory. `ends`: the
    last item that reads a value. `replay`: computes the traced run's values."""

    def __init__(
        self,
        graph: Graph,
        items: list[Any],
        shown: list[list[Value]],
        ends: dict[Value, int],
        arrays: list[np.ndarray],
        replay: Replay,
    ):
        self.items, self.shown, self.ends, self.replay = items, shown, ends, replay
        self.known = dict(zip(graph.inputs, arrays))
        self.origin = memory_of(graph)  # value -> the value that owns its memory
        self.places: dict[Value, np.ndarray] = {}  # value -> its array
        self.results = graph.results
        self.kinds = HALVES if replay.halves else FLOATS
        # values that the traced run did not have -> function that computes them from perturbed inputs
        self.unsure: dict[Value, Callable[[Noise], np.ndarray]] = {
            v: replay.unsure[v.source[1]]
            for v in graph.inputs
            if v.source[0] == "saved" and v.source[1] in replay.unsure
        }

    def __call__(self, i: int, *arrays: np.ndarray) -> None:
        """Called after item i has stored `arrays`. Raises Mismatch if these differ from the results of the item's
        ops."""
        steps = getattr(self.items[i], "steps", None) or [self.items[i]]
        made = dict(zip(self.shown[i], arrays))
        found = self.own_kernel(steps, made) or computed(steps, self.known)
        right = {v: self.replay.value(v.traced) for s in steps for v in s.outs if v.traced}
        again = partial(anew, steps, self.given(steps))
        compare(found, right, again, f"{name_of(steps)}: its parts give", self.kinds)
        for v in [v for s in steps for v in s.outs]:
            if v in right:
                self.known[v] = right[v]
                continue
            own = v in made and found[v] is made[v]  # program memory, which later items overwrite
            self.known[v] = found[v].copy() if own else found[v]
            self.unsure[v] = partial(taken, again, v)
        compare(made, found, again, f"{name_of(steps)}: it gives", self.kinds)
        self.correct(steps, made)
        self.places.update((v, a) for v, a in made.items() if v.kind != "input")
        self.forget(i)

    def own_kernel(self, steps: list[Any], made: dict[Value, np.ndarray]) -> dict[Value, np.ndarray] | None:
        """`made` for a step that the program runs by eager's own kernel, which needs no comparison. None for other
        steps.
        """
        call = steps[0]
        if len(steps) > 1 or not isinstance(call, Call) or not call.outs or is_view(call):
            return None
        if not (is_random(call) or opaque(call)):
            return None
        self.apart(call, made)
        for v in call.outs if is_random(call) else ():
            self.replay.drawn(v.traced, made[v])
        return dict(made)

    def correct(self, steps: list[Any], made: dict[Value, np.ndarray]) -> None:
        """Put eager's results into the program's memory: the next items start from these."""
        for v, a in made.items():
            if v.kind != "input" and a.flags.writeable and not np.array_equal(a, self.known[v]):
                np.copyto(a, self.known[v])
        for s in steps:
            if isinstance(s, Store):
                value = s.value
                right = value._array if value.kind == "constant" else self.known[value]
                np.copyto(made[s.target], right)

    def forget(self, i: int) -> None:
        """Drop values that no item after i reads."""
        ended = {v for v in (*self.known, *self.places, *self.unsure) if self.ends.get(v, i) < i}
        for v in ended:
            self.known.pop(v, None)
            self.places.pop(v, None)
            if v not in self.results:
                self.unsure.pop(v, None)

    def leave(self) -> None:
        """Pass the unsure values that backward reads on to `replay`, before the check of the backward part."""
        saved = self.results[len(self.replay.results) :]
        self.replay.unsure = {i: self.unsure[v] for i, v in enumerate(saved) if v in self.unsure}

    def apart(self, call: Call, made: dict[Value, np.ndarray]) -> None:
        """Mismatch if a kernel returns memory of an argument: the memory plan may have reused that memory already."""
        for x in values_in(call.args):
            home = self.origin.get(x, x)
            for v, a in made.items():
                if home in self.places and self.origin.get(v) is not home and np.may_share_memory(a, self.places[home]):
                    raise Mismatch(f"{call.op}: it gives its argument's memory")

    def given(self, steps: list[Any]) -> dict[Value, Callable[[Noise], np.ndarray]]:
        """The inputs of some steps as functions of the noise.

        A value of the traced run is perturbed in its last places. Another value is recomputed from perturbed inputs: if
        these cancel in a sum, the sum is pure noise."""
        return {
            v: self.unsure.get(v) or partial(Noise.on, a=self.known[v])
            for s in steps
            for v in values_in((s.value,) if isinstance(s, Store) else s.args)
            if v in self.known
        }


def compare(
    made: dict[Value, np.ndarray],
    right: dict[Value, np.ndarray],
    again: Callable[[Noise], dict],
    what: str,
    kinds: Mapping[str, float],
) -> None:
    """Raise Mismatch if a value in `made` differs from its value in `right` by more than rounding.

    `again(noise)`: the steps' results from perturbed inputs, which measure the effect of rounding. `kinds`: the kinds
    of perturbation with their weights."""
    shaken: list[list[dict[Value, np.ndarray]]] = []
    still: list[dict[Value, np.ndarray]] = []  # the results without noise, made on demand

    def changes(v: Value) -> Iterator[np.ndarray]:
        """The change of each element of `v` if the inputs change in their last places, for different noise."""
        if not still:
            still.append(again(Noise(0, floats=False)))
        for seed in range(MAX_RUNS):
            runs = (
                shaken[seed]
                if seed < len(shaken)
                else [again(Noise(seed, **{k: k == kind for k in kinds})) for kind in kinds]
            )
            if len(shaken) == seed < MIN_RUNS:
                shaken.append(runs)
            far = [change(run[v], still[0][v]) for run in runs]
            shares = zip(kinds.values(), far)
            yield (
                np.any(far, axis=0)
                if far[0].dtype == bool
                else sum((share * f for share, f in shares), np.zeros_like(far[0]))
            )

    for v, a in made.items():
        wrong = difference(a, right[v], lambda v=v: changes(v)) if v in right else ""  # type: ignore[misc]
        if wrong:
            raise Mismatch(f"{what} {wrong}")


def anew(steps: list[Any], given: dict[Value, Callable[[Noise], np.ndarray]], noise: Noise) -> dict:
    """The results of some steps on perturbed inputs, with noise after each op."""
    return computed(steps, {v: shaken(noise) for v, shaken in given.items()}, noise)


def computed(steps: list[Any], given: dict[Value, np.ndarray], noise: Noise | None = None) -> dict[Value, np.ndarray]:
    """The results of some steps, each computed by its op's kernel; with `noise`, each result is perturbed."""
    found: dict[Value, np.ndarray] = {}
    plain: dict[Value, np.ndarray] = {}

    def array(v: Value) -> Any:
        return found[v] if v in found else v._array if v.kind == "constant" else given[v]

    with np.errstate(all="ignore"):
        for s in steps:
            if isinstance(s, Store):
                found[s.target] = with_each(s.value, array)
            elif is_reshape(s):  # arrays may have other strides than in the traced run
                found[s.outs[0]] = with_each(s.args[0], array).reshape(s.outs[0].shape)
            elif s.outs:
                made = TABLE[s.op].kernel(*with_each(tuple(s.args), array))
                parts = made if len(s.outs) > 1 or isinstance(made, (tuple, list)) else [made]
                # final results in half precision stay: `difference` allows their neighbours
                if noise is not None:
                    plain.update((v, a) for v, a in zip(s.outs, parts) if of_half(v.dtype))
                    parts = [noise.after(s, np.asarray(a)) for a in parts]
                found.update(zip(s.outs, parts))
    return {v: np.asarray(a) for v, a in (found | plain).items()}


def taken(again: Callable[[Noise], dict], v: Value, noise: Noise) -> np.ndarray:
    """The value v of `again(noise)`, which runs once for all its values."""
    if v not in noise.made:
        noise.made.update(again(noise))
    return noise.on(noise.made[v], False) if of_half(v.dtype) else noise.made[v]


def opaque(call: Call) -> bool:
    """Whether a program calls the op's own kernel, instead of a loop or BLAS."""
    return not call.runs(mm, reduce.sum) and not isinstance(TABLE[call.op].kernel, np.ufunc)


def name_of(steps: list[Any]) -> str:
    names = list(dict.fromkeys(s.op for s in steps))
    return ", ".join(names if len(names) < 8 else [*names[:5], "...", names[-1]])


def difference(a: np.ndarray, b: np.ndarray, changes: Callable[[], Iterator[np.ndarray]]) -> str:
    """The difference of the array `a` from the right one `b`, in words; "" if it may be rounding.

    `changes()`: the changes of each element by perturbed inputs, for different noise.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
    rounded = np.float32(0)
    with np.errstate(all="ignore"):
        if of_half(a.dtype):  # two nearly equal numbers may be rounded to different neighbours
            rounded = np.maximum(unit(a), unit(b))
            a, b = single(a), single(b)
        if not a.size or (kind := a.dtype.kind) not in "fcbiu":
            return ""
        if kind not in "fc":
            right = a == b
            near = right.all() or (right | np.any([*islice(changes(), MIN_RUNS)], axis=0)).all()
            return "" if near else "other whole numbers"
        right = (a == b) | ((a != a) & (b != b))
        if right.all():
            return ""
        size = np.abs(b)
        allowed = ULPS * np.finfo(a.dtype).eps * (size + size[np.isfinite(size)].max(initial=0)) + rounded
        far = np.abs(a - b)
        if (right | (far <= allowed)).all():
            return ""
        spread = np.nan_to_num(np.max([*islice(changes(), MIN_RUNS)], axis=0), nan=0, posinf=np.inf)
        wrong, total, tries = ~(right | (far <= allowed + NOISE_FACTOR * spread)), np.zeros_like(spread), 0
        for change in changes() if wrong.any() else ():  # averaged: one change may be 0 by chance
            total, tries = total + np.nan_to_num(change, nan=0, posinf=np.inf), tries + 1
        wrong &= ~(far <= allowed + NOISE_FACTOR * (total / max(tries, 1)))
        return f"{a[wrong][0]} instead of {b[wrong][0]}, {wrong.sum()} of {a.size} elements" if wrong.any() else ""


def beyond_noise(
    pairs: dict[int, tuple[np.ndarray, np.ndarray]], runs: Iterator[list[np.ndarray]], halves: bool
) -> list[int]:
    """The indices of the results whose error exceeds the spread of perturbed runs.

    `pairs`: index -> (the program's array, eager's array). `runs`: the results of perturbed runs. `halves`: whether ops
    round to half precision. A changed rounding to half precision moves a few random elements far; so an element may
    differ by its largest change in many runs plus the root mean square of the array's changes.
    """
    first = next(runs)
    if not halves:
        some = [*islice(runs, MIN_RUNS)]
        changes = lambda i: (change(r[i], first[i]) for r in some)
        return [i for i, arrays in pairs.items() if difference(*arrays, partial(changes, i))]
    spread, left = {i: np.zeros_like(single(first[i]), float) for i in pairs}, [*pairs]

    def largest(i: int) -> Iterator[np.ndarray]:
        yield HALF_NOISE_FACTOR / NOISE_FACTOR * (spread[i] + np.sqrt(np.mean(np.square(spread[i]))))

    for run in islice(runs, MAX_RUNS):
        for i in left:
            spread[i] = np.fmax(spread[i], np.nan_to_num(change(run[i], first[i]), nan=0, posinf=0))
        left = [i for i in left if difference(*pairs[i], partial(largest, i))]
        if not left:
            break
    return left


def distance(a: np.ndarray, b: np.ndarray) -> str:
    """The difference of a program's array `a` from eager's `b`, in words; "" within TOLERANCE."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
    digits = TOLERANCE.get(a.dtype.itemsize, 0)
    a, b = single(a), single(b)
    if a.dtype.kind not in "fc" or not a.size:
        return "" if np.array_equal(a, b) else "other whole numbers"
    with np.errstate(all="ignore"):
        near = np.isclose(a, b, rtol=digits, equal_nan=True, atol=digits * np.abs(b[np.isfinite(b)]).max(initial=0))
        return "" if near.all() else f"off by {np.abs(a - b)[~near].max():.1e}, elements up to {np.abs(b).max():.1e}"
