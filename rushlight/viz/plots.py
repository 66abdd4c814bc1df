"""Plots of a function and its derivatives, by matplotlib."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.core.backward import grad
from rushlight.core.tensor import Tensor, from_array
from rushlight.ops.grad_mode import enable_grad
from rushlight.viz.expression_parser import read

COLOURS = ("#2563a8", "#c2571a", "#2f855a", "#7b3fa0", "#b7791f")


class Plot:
    """A drawing: `figure` and `axes` are matplotlib's, `x` and `curves` its numbers (f, f′, ...).

    Shown by a notebook; `save(path)` writes it, `show()` opens a window.

    >>> drawn = rushlight.viz.plot(lambda x: x ** 2, -1, 1)
    >>> isinstance(drawn, rushlight.viz.Plot), float(drawn.curves[0].max())
    (True, 1.0)
    """

    def __init__(self, figure: Any, axes: Any, x: np.ndarray, curves: list[np.ndarray]):
        self.figure, self.axes, self.x, self.curves = figure, axes, x, curves

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the picture: .png, .svg, .pdf; `options`: as for matplotlib's `savefig`."""
        self.figure.savefig(path, **{"dpi": 130, **options})

    def show(self) -> None:
        """Open a window, if matplotlib has a display."""
        from matplotlib import pyplot

        pyplot.figure(figsize=self.figure.get_size_inches())
        pyplot.imshow(pyplot.imread(io.BytesIO(self._repr_png_())))
        pyplot.axis("off")
        pyplot.show()

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.save(file, format="png")  # type: ignore[arg-type]
        return file.getvalue()


def plot(
    f: Callable[[Tensor], Tensor] | str, start: float = -3.0, stop: float = 3.0, *, derivatives: int = 2,
    points: int = 601, path: str | os.PathLike[str] | None = None, ax: Any = None,
) -> Plot:  # fmt: skip
    """y = f(x), f′(x), f″(x), ... from `start` to `stop` on one axis; the derivatives are autograd's.

    `f` takes a float64 tensor of `points` numbers and returns one of the same shape, each number from its own x; or it
    is a formula as text, "x**3 + x". `derivatives`: their number, by default
    2. `path`: the file to write. `ax`: matplotlib axes to draw on, by default new ones. Raises
    `ValueError` for an empty range, a result of another shape, and a text that is not a formula; `ImportError` without
    matplotlib.

    >>> import rushlight as torch
    >>> drawn = torch.viz.plot(lambda x: x**3 + x, -3, 3)
    >>> [float(curve[0]) for curve in drawn.curves]
    [-30.0, 28.0, -18.0]
    """
    if not (np.isfinite(start) and np.isfinite(stop) and start < stop):
        raise ValueError(f"viz.plot: the range must increase, but it goes from {start} to {stop}")
    if points < 2 or derivatives < 0:
        raise ValueError(f"viz.plot: at least 2 points and 0 derivatives, not {points} and {derivatives}")
    label = f if isinstance(f, str) else ""
    if isinstance(f, str):
        f = read(f)
    x = np.linspace(start, stop, points)
    found = curves(f, x, derivatives)
    figure, axes = (ax.figure, ax) if ax is not None else blank()
    draw(axes, x, found, label)
    if path is not None:
        Plot(figure, axes, x, found).save(path)
    return Plot(figure, axes, x, found)


def curves(f: Callable[[Tensor], Tensor], x: np.ndarray, derivatives: int) -> list[np.ndarray]:
    """f and its derivatives at each x, as derivatives of the sum of f(x), since each number depends on its own x
    only."""
    with enable_grad():
        t = from_array(x.copy()).requires_grad_()
        y = f(t)
        if not isinstance(y, Tensor) or y.shape != t.shape:
            raise ValueError(
                f"viz.plot: f must return a tensor of x's shape {tuple(t.shape)}, computed elementwise; it returned "
                f"{tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__}"
            )
        found = [y._array]
        for _ in range(derivatives):
            if y._node is None:  # a constant
                y = from_array(np.zeros_like(x))
            else:
                (y,) = grad(y.sum(), t, create_graph=True, materialize_grads=True)
            found.append(y._array)
    return [np.array(curve, np.float64) for curve in found]


def blank() -> tuple[Any, Any]:
    """A new figure, without a window or pyplot's global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("viz.plot needs matplotlib: pip install matplotlib") from None
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    return figure, figure.subplots()


def draw(axes: Any, x: np.ndarray, found: list[np.ndarray], label: str) -> None:
    limits = readable(found)
    for i, curve in enumerate(found):
        mark = "f" + ("'" * i if i < 4 else f"^{{({i})}}")
        name = f"$f(x)$ = {label}" if i == 0 and label else f"${mark}(x)$"
        axes.plot(
            *parted(x, curve, limits),
            color=COLOURS[i % len(COLOURS)],
            label=name,
            linewidth=2.2 if i == 0 else 1.6,
            linestyle=("-", "--", ":", "-.")[i % 4],
        )
    axes.axhline(0, color="#8a93a3", linewidth=0.8, zorder=0)
    if x[0] < 0 < x[-1]:
        axes.axvline(0, color="#8a93a3", linewidth=0.8, zorder=0)
    if limits is not None:
        axes.set_ylim(*limits)
    axes.set(xlim=(x[0], x[-1]), xlabel="x")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)


def readable(found: list[np.ndarray]) -> tuple[float, float] | None:
    """Limits of the y axis that cut off poles: the usual range of f and f'; None if all values fit."""
    values = np.concatenate(found)
    values = values[np.isfinite(values)]
    middles = [np.quantile(c[np.isfinite(c)], [0.06, 0.94]) for c in found[:2] if np.isfinite(c).any()]
    if not middles:
        return None
    low, high = min(m[0] for m in middles), max(m[1] for m in middles)
    span = max(high - low, 1e-12)
    if values.max() - values.min() < 20 * span:
        return None
    return low - 0.3 * span, high + 0.3 * span


def parted(x: np.ndarray, curve: np.ndarray, limits: tuple[float, float] | None) -> tuple[np.ndarray, np.ndarray]:
    """The points of the curve, with a gap at a pole, where f diverges and returns on the other side of 0."""
    curve = np.where(np.isfinite(curve), curve, np.nan)
    if limits is None:
        return x, curve
    jumps = (np.abs(np.diff(curve)) > limits[1] - limits[0]) & (curve[:-1] * curve[1:] < 0)
    gaps = np.flatnonzero(jumps) + 1
    return np.insert(x, gaps, x[gaps]), np.insert(curve, gaps, np.nan)
