"""The loss landscape along the path of a training: a picture, and a page that turns."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.ops.grad_mode import no_grad
from rushlight.viz.page import Page, assembled
from rushlight.viz.training_page import number
from rushlight.viz.training_pictures import blank, evaluating, grey, plain, text_colour
from rushlight.viz.watching.path import Path
from rushlight.viz.watching.samples import short

FRAME, SCRIPTS = "watching/landscape.html", ("numbers.js", "watching/landscape.js")
MIN_POINTS = 5


def landscape(
    path: Path, loss: Callable[[], Any], *, points: int = 25, margin: float = 0.3, model: Any = None
) -> Landscape:
    """The loss on the plane of the two main directions of a recorded path: loss(w + a u + b v), for the last parameters
    w and the orthonormal main directions u and v of the path.

    `path`: a `viz.Path`, or the `.path` of a live page. `loss()`: computes the loss of the current parameters, on data
    that stay the same. It is called points² times without gradients, and once for each vector of the path. `points`:
    of each side. `margin`: the plane reaches this part of the path's extent further. `model`: a module that is in
    evaluation mode meanwhile, so that dropout draws nothing. Afterwards the parameters are as before, to the bit.

    Returns a `Landscape`: `.figure()` is a picture, `.html()` a page that turns, `.save(file)` writes either.
    ValueError for a path of fewer than 2 vectors, or whose vectors are equal.

    >>> model = rushlight.nn.Linear(2, 1)
    >>> optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)
    >>> x, y = rushlight.ones(4, 2), rushlight.ones(4, 1)
    >>> loss = lambda: rushlight.nn.functional.mse_loss(model(x), y)
    >>> with rushlight.viz.Path(model) as path:
    ...     for _ in range(5):
    ...         optimizer.zero_grad()
    ...         loss().backward()
    ...         optimizer.step()
    >>> found = rushlight.viz.landscape(path, loss, points=5)
    >>> found.values.shape, len(found.path), found.path_losses[-1] == loss().item()
    ((5, 5), 6, True)
    """
    if len(path.found) < 2:
        raise value_error(f"viz.landscape: the path has {len(path.found)} vectors", "record a training of some steps")
    if not isinstance(points, int) or points < MIN_POINTS:
        raise ValueError(f"viz.landscape: points must be an int of at least {MIN_POINTS}, not {points!r}")
    places, directions, shares = path.plane()
    low, high = places.min(0), places.max(0)
    reach = margin * np.maximum(high - low, 0.2 * (high - low).max())  # a path along one direction has a plane, too
    xs, ys = (np.linspace(a - r, b + r, points) for a, b, r in zip(low, high, reach))
    last = path.found[-1].astype(np.float64)
    with no_grad(), evaluating(model), kept(path.parameters):
        losses = [loss_at(vector, path.parameters, loss) for vector in path.found]
        grid = [[loss_at(last + x * directions[0] + y * directions[1], path.parameters, loss) for x in xs] for y in ys]
    return Landscape(xs, ys, np.array(grid), places, losses, list(path.steps), shares)


class kept:
    """Inside the block the parameters may change; afterwards they are as before, to the bit."""

    def __init__(self, parameters: list[Tensor]):
        self.parameters = parameters
        self.arrays = [p._array.copy() for p in parameters]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        for p, array in zip(self.parameters, self.arrays):
            p.copy_(from_array(array))


def loss_at(vector: np.ndarray, parameters: list[Tensor], loss: Callable[[], Any]) -> float:
    """The loss with the parameters from a vector (all elements in order)."""
    start = 0
    for p in parameters:
        end = start + p.numel()
        p.copy_(from_array(vector[start:end].reshape(p.shape).astype(p._array.dtype)))
        start = end
    found = number(loss())
    if found is None:
        raise value_error("viz.landscape: loss() returned no single number", "return the loss: a tensor of one element")
    return found


class Landscape:
    """The loss around a path, from `viz.landscape`. `xs`, `ys`: places along the two main directions; `values`: the
    loss at each (len(ys), len(xs)); `path`: (points, 2); `path_losses`: the loss of the recorded parameters themselves,
    not of their places on the plane; `steps`: their steps; `shares`: the part of the path's variance along each
    direction.

    >>> path = rushlight.viz.Path([rushlight.ones(2)])
    >>> path.record()
    >>> path.parameters[0].zero_()
    tensor([0., 0.])
    >>> path.record()
    >>> found = rushlight.viz.landscape(path, lambda: path.parameters[0].square().sum(), points=5)
    >>> isinstance(found, rushlight.viz.Landscape), found.path_losses
    (True, [2.0, 0.0])
    """

    def __init__(
        self, xs: np.ndarray, ys: np.ndarray, values: np.ndarray, path: np.ndarray, path_losses: list[float],
        steps: list[int], shares: list[float],
    ):  # fmt: skip
        self.xs, self.ys, self.values, self.path = xs, ys, values, path
        self.path_losses, self.steps, self.shares = path_losses, steps, shares

    def on_log(self) -> bool:
        """Whether the loss has a logarithmic scale: all losses are positive, and some are ten times others."""
        all_losses = np.append(self.values, self.path_losses)
        finite = all_losses[np.isfinite(all_losses)]
        return bool(finite.size and finite.min() > 0 and finite.max() > 10 * finite.min())

    def figure(self) -> Any:
        """Level lines of the loss, and the path: a matplotlib Figure. ImportError without matplotlib."""
        figure = blank(6.4, 5.2)
        from matplotlib.colors import LogNorm

        axes = figure.subplots()
        shown = np.ma.masked_invalid(self.values)
        low, high = float(shown.min()), float(shown.max())
        log = self.on_log()
        levels = np.geomspace(low, high, 25) if log else np.linspace(low, high, 25)
        norm = LogNorm(low, high) if log else None
        drawn = axes.contourf(self.xs, self.ys, shown, levels=levels, cmap="cividis", norm=norm)
        axes.contour(self.xs, self.ys, shown, levels=levels[::3], colors=[grey()], linewidths=0.5)
        axes.plot(*self.path.T, color="#ffffff", linewidth=3.4)
        axes.plot(*self.path.T, color="#b3541e", linewidth=1.8, marker="o", markersize=3.5)
        for i, label in ((0, "start"), (-1, f"step {self.steps[-1]}")):
            style = {"textcoords": "offset points", "xytext": (6, 6), "color": "#ffffff", "weight": "bold"}
            outline = {"boxstyle": "round,pad=0.2", "facecolor": "#1d2430", "edgecolor": "none", "alpha": 0.8}
            axes.annotate(label, self.path[i], bbox=outline, **style)
        ticks = [v for e in range(-12, 13) for v in (10.0**e, 3 * 10.0**e) if low <= v <= high] if log else None
        bar = figure.colorbar(drawn, ax=axes, label="loss", ticks=ticks)
        if log:
            bar.ax.set_yticklabels([f"{v:g}" for v in ticks or ()])
        names = [f"main direction {i + 1}: {share:.0%} of the path" for i, share in enumerate(self.shares)]
        plain(axes, "The loss along the path of the training", *names)
        axes.grid(False)
        axes.tick_params(colors=text_colour())
        return figure

    def html(self) -> Page:
        """A page with the landscape as a surface that turns; a notebook shows it."""
        data = {
            "numbers": [],
            "xs": [short(v) for v in self.xs],
            "ys": [short(v) for v in self.ys],
            "values": [[short(v) for v in row] for row in self.values],
            "path": [[short(a), short(b)] for a, b in self.path],
            "losses": [short(v) for v in self.path_losses],
            "steps": self.steps,
            "shares": [short(v) for v in self.shares],
            "log": self.on_log(),
        }
        return assembled(FRAME, "Loss landscape", SCRIPTS, data)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write a file: .html the page, other endings (.png, .svg, .pdf) the picture."""
        if FilePath(file).suffix == ".html":
            FilePath(file).write_text(self.html(), encoding="utf-8")
        else:
            self.figure().savefig(file)

    def _repr_html_(self) -> str:
        return self.html()._repr_html_()
