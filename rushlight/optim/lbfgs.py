"""L-BFGS: Newton's method with the last few changes of parameters and gradients in place of second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.views import wrote
from rushlight.ops.grad_mode import enable_grad
from rushlight.optim.checks import check_lr
from rushlight.optim.elementwise import plain, real_parts
from rushlight.optim.optimizer import Group, Optimizer, Params, State, settings

Objective = Callable[[float], "Point"]


class Point(NamedTuple):
    """A point of a line search: step length, loss, gradient and the slope of the loss along the line."""

    t: float
    loss: float
    g: ndarray
    slope: float


class LBFGS(Optimizer):
    """p <- p + t d,  d = -H g, with H from the last `history_size` changes of parameters and gradients.

    `step(closure)` needs a closure that recomputes loss and gradients. A step has up to `max_iter` iterations and calls
    the closure up to `max_eval` times (default: max_iter * 5 / 4). It ends when all |g| are at most `tolerance_grad`,
    or when parameters or loss change by less than `tolerance_change`. t is lr, or found by
    `line_search_fn="strong_wolfe"`. `maximize` ascends, as in torch 2.15. One group of parameters only. ValueError for
    several groups or lr < 0. J. Nocedal, S. J. Wright, *Numerical optimization*, 2006, algorithms 7.4, 3.5 and 3.6.

    >>> w = rushlight.tensor([3., -4.], requires_grad=True)
    >>> optimizer = rushlight.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure)
    tensor(29., grad_fn=<SumBackward0>)
    >>> w
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    def __init__(
        self, params: Params, lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None, *, maximize: bool = False,
    ):  # fmt: skip
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        defaults = settings(locals())
        if not maximize:
            defaults.pop("maximize")  # a state_dict without it loads in torch 2.13
        check_lr(lr)
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise value_error(
                "LBFGS doesn't support per-parameter options (parameter groups)", "pass one list of parameters"
            )

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Minimize for up to `max_iter` iterations; returns the loss before the first."""
        group = self.param_groups[0]
        params, change = group["params"], group["tolerance_change"]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise runtime_error("only 'strong_wolfe' is supported", "or omit line_search_fn")
        state = self.state[params[0]]
        limit = state.setdefault("func_evals", 0) + group["max_eval"]
        state.setdefault("n_iter", 0)

        sign = -1.0 if group.get("maximize", False) else 1.0

        def evaluate() -> Any:
            with enable_grad():
                loss = closure()
            state["func_evals"] += 1
            return loss

        first_loss = evaluate()
        here = Point(0.0, sign * float(first_loss), flat_gradient(params, sign), 0.0)
        for left in reversed(range(group["max_iter"])):  # the number of iterations after this one
            if largest(here.g) <= group["tolerance_grad"]:
                break
            state["n_iter"] += 1
            d = direction(state, here.g, group["history_size"])
            here = here._replace(t=0.0, slope=float(here.g @ d))
            state.update(
                d=from_array(d),
                t=first_length(state, group, here.g),
                prev_loss=here.loss,
                prev_flat_grad=from_array(here.g.copy()),
            )
            if here.slope > -change:
                break
            before = here.loss
            if group["line_search_fn"] is not None:
                here = strong_wolfe(
                    line(params, d, evaluate, sign), state["t"], here, largest(d), limit - state["func_evals"]
                )
                state["t"] = here.t
            move(params, state["t"], d)
            if group["line_search_fn"] is None and left:
                here = Point(0.0, sign * float(evaluate()), flat_gradient(params, sign), 0.0)
            if state["func_evals"] >= limit or largest(d) * state["t"] <= change or abs(here.loss - before) < change:
                break
        return first_loss


def first_length(state: State, group: Group, g: ndarray) -> float:
    """The first step length to try: lr, or less in the first iteration, where the curvature is unknown."""
    lr = plain(group["lr"])
    return lr * min(1.0, 1.0 / float(np.abs(g).sum())) if state["n_iter"] == 1 else lr


def direction(state: State, g: ndarray, most: int) -> ndarray:
    """-H g, after the newest change is stored: two loops over the last changes (Nocedal and Wright, 7.4)."""
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return -g
    # the last changes of the gradient and of the parameters
    y, s = g - state["prev_flat_grad"]._array, state["d"]._array * state["t"]
    ys = y @ s
    ys_s, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
    if ys > 1e-10:  # the curvature is positive
        if len(ys_s) == most:
            for old in (ys_s, steps, ro):
                old.pop(0)
        ys_s.append(from_array(y))
        steps.append(from_array(s))
        ro.append(from_array(np.asarray(1 / ys)))
        state["H_diag"] = from_array(np.asarray(ys / (y @ y)))
    al = state.setdefault("al", [None] * most)
    q = -g
    for i in reversed(range(len(ro))):
        a = (steps[i]._array @ q) * ro[i]._array
        al[i] = from_array(np.asarray(a))
        q -= a * ys_s[i]._array
    q *= plain(state["H_diag"])
    for i in range(len(ro)):
        b = (ys_s[i]._array @ q) * ro[i]._array
        q += (al[i]._array - b) * steps[i]._array
    return q


# -- the parameters as one vector ------------------------------------------------------------------


def flat_gradient(params: list[Tensor], sign: float) -> ndarray:
    """All gradients, times `sign`, in one vector; 0 for a parameter without one. A complex number counts as two."""
    gradients = [np.zeros_like(p._array) if p._grad is None else p._grad.to_dense()._array for p in params]
    whole = np.concatenate([flat(g) for g in gradients])
    return -whole if sign < 0 else whole


def flat(array: ndarray) -> ndarray:
    return (real_parts(array) if array.dtype.kind == "c" else array).reshape(-1)


def move(params: list[Tensor], t: float, d: ndarray) -> None:
    """p <- p + t d."""
    start = 0
    for p in params:
        part = real_parts(p._array) if p._array.dtype.kind == "c" else p._array
        part += t * d[start : start + part.size].reshape(part.shape)
        start += part.size
        wrote(p)


def line(params: list[Tensor], d: ndarray, evaluate: Callable[[], Any], sign: float) -> Objective:
    """t -> (loss, gradient, slope), times `sign`, at p + t d; the parameters are restored."""
    start = [p._array.copy() for p in params]

    def at(t: float) -> Point:
        move(params, t, d)
        loss, g = sign * float(evaluate()), flat_gradient(params, sign)
        for p, old in zip(params, start):
            p._array[...] = old
            wrote(p)
        return Point(t, loss, g, float(g @ d))

    return at


def largest(x: ndarray) -> float:
    return float(np.abs(x).max()) if x.size else 0.0


# -- line search -----------------------------------------------------------------------------------


class Wolfe(NamedTuple):
    """The constants of Wolfe's two conditions, and the change of a parameter between the ends of the smallest
    bracket."""

    armijo: float = 1e-4
    curvature: float = 0.9
    min_bracket: float = 1e-9


WOLFE = Wolfe()


def strong_wolfe(at: Objective, t: float, start: Point, length: float, most: int, wolfe: Wolfe = WOLFE) -> Point:
    """A point that satisfies Wolfe's conditions (Nocedal and Wright, 3.5), or the best one after 1 + `most` tries.

    `length`: max |d|."""
    previous, point, tried = start, at(t), 0
    while tried < most:
        worse = violates_armijo(point, start, wolfe) or (tried > 1 and point.loss >= previous.loss)
        if not worse and satisfies_curvature(point, start, wolfe):
            return point
        if worse or point.slope >= 0:
            return zoom(at, [previous, point], start, length, most - tried, wolfe)
        low, high = point.t + 0.01 * (point.t - previous.t), point.t * 10
        previous, point = point, at(cubic_minimum(previous, point, low, high))
        tried += 1
    return min(start, point, key=lambda one: one.loss)


def violates_armijo(point: Point, start: Point, wolfe: Wolfe) -> bool:
    return point.loss > start.loss + wolfe.armijo * point.t * start.slope


def satisfies_curvature(point: Point, start: Point, wolfe: Wolfe) -> bool:
    return abs(point.slope) <= -wolfe.curvature * start.slope


def zoom(at: Objective, bracket: list[Point], start: Point, length: float, most: int, wolfe: Wolfe) -> Point:
    """The best point of a bracket that is narrowed up to `most` times (Nocedal and Wright, 3.6)."""
    stuck = False
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    for _ in range(most):
        left, right = sorted(p.t for p in bracket)
        if (right - left) * length < wolfe.min_bracket:
            break
        t, stuck = away_from_ends(cubic_minimum(bracket[0], bracket[1], left, right), left, right, stuck)
        point = at(t)
        if violates_armijo(point, start, wolfe) or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        flat_enough = satisfies_curvature(point, start, wolfe)
        if not flat_enough and point.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
        if flat_enough:
            break
    return bracket[low]


def away_from_ends(t: float, left: float, right: float, stuck: bool) -> tuple[float, bool]:
    """(t, whether t is near an end). A t that is outside, or near an end for the second time, moves to a tenth of the
    bracket from that end.
    """
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if stuck or t >= right or t <= left:
        return (right - margin if abs(t - right) < abs(t - left) else left + margin), False
    return t, True


def cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """The minimum of the cubic through two points and their slopes, within bounds (Nocedal and Wright, 3.59)."""
    a, b = (a, b) if a.t <= b.t else (b, a)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2
    d2 = square**0.5
    divisor = b.slope - a.slope + 2 * d2
    if divisor == 0:  # a straight line
        return high if b.slope < 0 else low
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / divisor), low), high)


# -- torch's names, which libraries with line searches of their own import -------------------------


def _cubic_interpolate(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple | None = None) -> float:
    """The minimum of the cubic with values f1, f2 and slopes g1, g2 at x1, x2, within bounds."""
    low, high = sorted((float(x1), float(x2))) if bounds is None else map(float, bounds)
    none = np.zeros(0)
    ends = [Point(float(x), float(f), none, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2))]
    return cubic_minimum(ends[0], ends[1], low, high)


def _strong_wolfe(
    obj_func: Callable, x: Any, t: Any, d: Tensor, f: Any, g: Tensor, gtd: Any, c1: float = 1e-4, c2: float = 0.9,
    tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:  # fmt: skip
    """(loss, gradient, step length, calls of `obj_func`) of a point along d that satisfies Wolfe's conditions.
    `obj_func(x, t, d)` gives the loss and the gradient at x + t d."""
    calls = 0

    def at(length: float) -> Point:
        nonlocal calls
        calls += 1
        loss, gradient = obj_func(x, length, d)
        slope = float(gradient._array.reshape(-1) @ d._array.reshape(-1))
        return Point(length, float(loss), gradient._array.copy(), slope)

    start = Point(0.0, float(f), g._array.copy(), float(gtd))
    wolfe = Wolfe(c1, c2, tolerance_change)
    found = strong_wolfe(at, float(t), start, largest(d._array), max_ls, wolfe)
    return found.loss, from_array(found.g), found.t, calls
