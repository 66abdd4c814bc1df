"""Pictures of training, by matplotlib: losses, histograms by layer, decision boundaries, filters.

Each function returns a matplotlib Figure, which a notebook shows; `figure.savefig(path)` writes it. The colours of text
and background are matplotlib's: `plt.style.use("dark_background")` makes all pictures dark."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any

import numpy as np

from rushlight.core.tensor import Tensor, from_array
from rushlight.nn.module import Module
from rushlight.ops.grad_mode import no_grad

# Okabe and Ito's colours, distinguishable for colour-blind readers, without those too pale on white
ON_WHITE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
ON_BLACK = ("#56B4E9", "#E69F00", "#00C08B", "#E59BC6", "#F0E442", "#FF8A4C")
CLASS_MARKERS = "o^sDvP*X"
GRID_POINTS = 200  # points of a decision boundary, along each side
MAX_MAPS = 64  # most filters that are drawn
MAX_SMOOTHED_POINTS = 400  # a curve with more points is drawn pale, beneath its running mean
BINS = 40  # bins of a histogram
WITH_WEIGHTS = ("Linear", "Conv1d", "Conv2d", "Conv3d", "Embedding")
MAX_CELL_TEXTS = 20  # a matrix with more columns has no numbers in its cells


class Log:
    """Numbers of a training run, step by step: `log(loss=0.7, lr=1e-3)`. `rows` holds them.

    >>> log = rushlight.viz.Log()
    >>> log.log(loss=0.7, lr=0.1)
    >>> log.log(loss=0.5, lr=0.1)
    >>> [row["loss"] for row in log.rows]
    [0.7, 0.5]
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def log(self, **numbers: Any) -> None:
        """Add a step. A tensor of one element is read as a number, so the graph is not kept."""
        self.rows.append({"step": len(self.rows), **{k: float(v) for k, v in numbers.items()}})


class LayerLog:
    """Statistics of a network's layers over time, for `viz.histograms`.

    Inside `with recorder:` the outputs of the layers are recorded. `recorder.step(optimizer)` calls `optimizer.step()`,
    and records the gradients and the change of each weight.

    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(2, 8), rushlight.nn.Tanh())
    >>> optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)
    >>> recorder = rushlight.viz.LayerLog(model)
    >>> with recorder:
    ...     model(rushlight.ones(4, 2)).sum().backward()
    >>> recorder.step(optimizer)
    >>> list(recorder.activations)
    ['0: Linear', '1: Tanh']
    >>> list(recorder.ratios)
    ['0.weight']
    """

    def __init__(self, model: Module):
        self.model = model
        self.activations: dict[str, np.ndarray] = {}  # outputs of the last forward pass
        self.gradients: dict[str, np.ndarray] = {}  # gradients of the parameters, at the last step
        self.ratios: dict[str, list[float]] = {}  # log10 of update : data, step by step
        self.spreads: dict[str, list[float]] = {}  # standard deviation of activations
        self.handles: list[Any] = []

    def __enter__(self) -> LayerLog:
        for path, module in self.model.named_modules():
            if not list(module.children()):
                name = f"{path}: {type(module).__name__}".removeprefix(": ")
                self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def __exit__(self, *error: Any) -> None:
        while self.handles:
            self.handles.pop().remove()

    def watch(self, name: str) -> Callable[..., None]:
        def record(module: Module, args: Any, output: Any) -> None:
            if isinstance(output, Tensor):
                self.activations[name] = output._array.astype(np.float64).ravel()
                self.spreads.setdefault(name, []).append(float(self.activations[name].std()))

        return record

    def step(self, optimizer: Any) -> None:
        """`optimizer.step()`, with a record of the weights that have two or more dimensions."""
        weights = [
            (name, p, p._array.astype(np.float64), p.grad._array.astype(np.float64))
            for name, p in self.model.named_parameters()
            if p.grad is not None and p.ndim > 1
        ]
        self.gradients.update({name: grad.ravel() for name, _, _, grad in weights})
        optimizer.step()
        for name, p, old, _ in weights:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log10((p._array - old).std() / old.std())
            self.ratios.setdefault(name, []).append(float(ratio))


# -- the functions ---------------------------------------------------------------------------------


def training(log: Log | str | os.PathLike[str] | Iterable[Mapping[str, Any]], *, smooth: float = 0.9) -> Any:
    """Curves of a training run: losses on a logarithmic axis, each other number in a panel below.

    `log`: a `viz.Log`, a list of dicts, one for each step, or the path of a CSV file with a heading. A column named
    "step" or "epoch" is the x axis. Columns whose names contain "loss" share a panel, and so do those with "acc". A
    curve of more than 400 points is pale beneath its running mean, in which a step keeps the weight `smooth` of the
    mean before it (of the logarithm, on a logarithmic axis). Returns a matplotlib Figure. Raises `ValueError` for a log
    without numbers.

    >>> figure = rushlight.viz.training([{"loss": 2.3}, {"loss": 1.1}, {"loss": 0.6}])
    >>> figure.axes[0].lines[0].get_ydata().tolist()
    [2.3, 1.1, 0.6]
    """
    columns = columns_of(log)
    at = next((name for name in ("step", "epoch") if name in columns), "")
    length = max(map(len, columns.values()), default=0)
    x = columns.pop(at) if at else np.arange(length, dtype=float)
    columns = {name: y for name, y in columns.items() if np.isfinite(y).any()}
    if not columns:
        raise ValueError("viz.training: the log has no numbers; hint: log(loss=loss.item())")
    groups: dict[str, list[str]] = {}
    for name in columns:
        key = next((word for word in ("loss", "acc") if word in name.lower()), name)
        groups.setdefault({"acc": "accuracy"}.get(key, key), []).append(name)
    order = sorted(groups, key=lambda key: (key != "loss", key != "accuracy"))
    figure = blank(7.2, 1.6 + 1.9 * len(order))
    panels = np.atleast_1d(
        figure.subplots(len(order), sharex=True, height_ratios=[1.6 if k == "loss" else 1.0 for k in order])
    )
    for axes, key in zip(panels, order):
        seen = np.concatenate([columns[name] for name in groups[key]])
        if key == "loss" and (seen[np.isfinite(seen)] > 0).all():
            axes.set_yscale("log")
            readable_ticks(axes)
        for i, name in enumerate(groups[key]):
            noisy = key in ("loss", "accuracy")
            curve(axes, x, columns[name], name, colour(i), smooth if noisy else 0.0)
        plain(axes, ylabel=UNITS.get(key, key))
        if len(groups[key]) > 1:
            axes.legend(frameon=False)
    panels[0].set_title("Training")
    panels[-1].set_xlabel(at or "step")
    return figure


def histograms(recorder: LayerLog) -> Any:
    """Activations, gradients and update:data ratios by layer, as makemore (part 3) draws them.

    Above: the distribution of each layer's output in the last forward pass, and of each weight's gradient. Below: over
    time, the standard deviation of the outputs, and log10 of std(update) / std(weight), which should be near -3. Layers
    without weights are drawn, if there are any, with the fraction of saturated outputs (|output| > 0.97 of a tanh, 0 of
    a ReLU). Returns a matplotlib Figure. Raises `ValueError` if nothing was recorded.

    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(2, 8), rushlight.nn.Tanh())
    >>> optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)
    >>> recorder = rushlight.viz.LayerLog(model)
    >>> with recorder:
    ...     model(rushlight.randn(64, 2)).square().mean().backward()
    >>> recorder.step(optimizer)
    >>> [axes.get_title() for axes in rushlight.viz.histograms(recorder).axes]
    ['Activations', 'Gradients of weights', 'Spread of activations', 'Update : data']
    """
    if not recorder.activations or not recorder.gradients:
        raise ValueError(
            "viz.histograms: the recorder has no activations or no gradients; hint: run the model inside `with "
            "recorder:`, and call recorder.step(optimizer) after backward()"
        )
    figure = blank(12.0, 7.0)
    panels = figure.subplots(2, 2)
    (outputs, gradients), (spreads, ratios) = panels
    shown = [n for n in recorder.activations if not n.endswith(WITH_WEIGHTS)]
    shown = shown or [*recorder.activations]
    activations = {n: recorder.activations[n] for n in shown}
    distributions(outputs, {f"{n}{saturation(n, a)}": a for n, a in activations.items()})
    told = {f"{n} (std {g.std():.1e})": g for n, g in recorder.gradients.items()}
    gradients.set_yscale("log")
    distributions(gradients, told)
    for i, name in enumerate(shown):
        spreads.plot(recorder.spreads[name], label=name, **line_style(i))
    for i, (name, numbers) in enumerate(recorder.ratios.items()):
        ratios.plot(numbers, label=name, **line_style(i))
    ratios.axhline(-3, color=grey(), linewidth=1, linestyle="--", label="-3: a good rate")
    plain(outputs, "Activations", "output of the layer", "density")
    plain(gradients, "Gradients of weights", "gradient", "density")
    plain(spreads, "Spread of activations", "forward pass", "standard deviation")
    plain(ratios, "Update : data", "step", "log10 of std(update) / std(weight)")
    for axes in panels.flat:
        axes.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def decision_boundary(
    model: Callable[[Tensor], Tensor], X: Any, y: Any, *, classes: Sequence[str] | None = None
) -> Any:
    """The classes that a model gives to the points of the plane, and the data of `y`.

    `X`: (N, 2). `model` takes float32 (M, 2) and returns (M, classes), of which the largest counts, or (M, 1) or (M,),
    of which the sign counts. A module is run in evaluation mode. `y`: (N,), class numbers, or -1 and 1. Returns a
    matplotlib Figure. Raises `ValueError` if X has no two columns or y another length.

    >>> X = rushlight.tensor([[0., 0.], [1., 1.]])
    >>> figure = rushlight.viz.decision_boundary(lambda x: x.sum(1) - 1, X, [0, 1])
    >>> figure.axes[0].get_xlabel()
    'X[:, 0]'
    """
    points, labels = array_of(X), array_of(y).reshape(-1)
    if points.ndim != 2 or points.shape[1] != 2 or len(labels) != len(points):
        raise ValueError(
            f"viz.decision_boundary: X has shape {points.shape} and y {labels.shape}; hint: X is (N, 2) and y is (N,)"
        )
    low, high = points.min(0), points.max(0)
    margin = 0.15 * np.maximum(high - low, 1e-6)
    xs, ys = (np.linspace(a - m, b + m, GRID_POINTS, dtype=np.float32) for a, b, m in zip(low, high, margin))
    found, count = classified(model, np.stack(np.meshgrid(xs, ys), -1))
    figure = blank(6.0, 5.2)
    axes = figure.subplots()
    inks = [*map(colour, range(max(count, 2)))]
    axes.contourf(xs, ys, found, levels=np.arange(len(inks) + 1) - 0.5, colors=inks, alpha=0.3)
    if np.ptp(found):
        edges = np.arange(len(inks) - 1) + 0.5
        axes.contour(xs, ys, found, levels=edges, colors=[text_colour()], linewidths=1)
    for i, label in enumerate(np.unique(labels)):
        # class numbers have the colour of their class
        place = int(label) if count > 1 and float(label).is_integer() else i
        axes.scatter(
            *points[labels == label].T,
            s=28,
            color=colour(place),
            marker=CLASS_MARKERS[place % len(CLASS_MARKERS)],
            edgecolors=text_colour(),
            linewidths=0.6,
            label=f"{label:g}" if classes is None else str(classes[place]),
        )
    plain(axes, "Decision boundary", "X[:, 0]", "X[:, 1]")
    axes.grid(False)
    axes.legend(title="class", framealpha=0.8)
    return figure


def classified(model: Callable[[Tensor], Tensor], grid: np.ndarray) -> tuple[np.ndarray, int]:
    """The class of each point of the grid, and the number of columns that the model returns."""
    with evaluating(model), no_grad():
        out = model(from_array(grid.reshape(-1, 2)))._array
    out = out.reshape(grid.shape[0] * grid.shape[1], -1)
    found = (out[:, 0] > 0).astype(int) if out.shape[1] == 1 else out.argmax(1)
    return found.reshape(grid.shape[:2]), out.shape[1]


def filters(conv: Any) -> Any:
    """The filters of a convolution as small pictures: one for each output channel.

    `conv`: a Conv2d, or its weight (out, in, height, width). With 3 input channels the pictures are coloured, else each
    shows the mean over the input channels. One scale for all: white is 0, blue positive, red negative. At most 64
    filters. Returns a matplotlib Figure. Raises `ValueError` for a weight that has not 4 dimensions.

    >>> figure = rushlight.viz.filters(rushlight.nn.Conv2d(1, 8, 3))
    >>> len([axes for axes in figure.axes if axes.images])
    8
    """
    weight = array_of(getattr(conv, "weight", conv))
    if weight.ndim != 4:
        raise ValueError(
            f"viz.filters: the weight has shape {weight.shape}; hint: pass a Conv2d, whose weight has 4 dimensions"
        )
    count, channels = min(len(weight), MAX_MAPS), weight.shape[1]
    across = min(8, count)
    down = ceil(count / across)
    figure = blank(1.0 * across + 1.0, 1.1 * down + 0.7)
    panels = np.atleast_1d(figure.subplots(down, across, squeeze=False)).ravel()
    largest = float(abs(weight).max()) or 1.0
    pictures = weight[:count].mean(1) if channels != 3 else None
    if pictures is not None:
        largest = float(abs(pictures).max()) or 1.0
    image = None
    for i, axes in enumerate(panels):
        axes.set_axis_off()
        if i >= count:
            continue
        if pictures is None:
            image = axes.imshow(0.5 + weight[i].transpose(1, 2, 0) / (2 * largest))
        else:
            image = axes.imshow(pictures[i], cmap="RdBu", vmin=-largest, vmax=largest)
        axes.set_title(str(i), fontsize="small", pad=2)
    if pictures is not None:
        figure.colorbar(image, ax=panels, shrink=0.7, label="weight")
    shape = "×".join(map(str, weight.shape[2:]))
    mean = f", mean over {channels} input channels" if channels not in (1, 3) else ""
    more = f", the first {count} of {len(weight)}" if count < len(weight) else ""
    figure.suptitle(f"Filters {shape}{mean}{more}")
    return figure


def attention(weights: Any, tokens: Sequence[str], *, keys: Sequence[str] | None = None) -> Any:
    """The attention weights of each query: row i belongs to query i, and its sum is 1.

    `weights`: (queries, keys), or (heads, queries, keys) with a panel for each head; a leading dimension of 1 is left
    out. `tokens`: the texts of the queries, and of the keys unless `keys` is given. All panels share one scale from 0.
    Returns a matplotlib Figure. Raises `ValueError` if the texts do not fit the weights.

    >>> w = rushlight.eye(3)
    >>> figure = rushlight.viz.attention(w, ["a", "cat", "sat"])
    >>> [t.get_text() for t in figure.axes[0].get_yticklabels()]
    ['a', 'cat', 'sat']
    """
    shown = array_of(weights)
    while shown.ndim > 3 and shown.shape[0] == 1:
        shown = shown[0]
    shown = shown[None] if shown.ndim == 2 else shown
    across = list(tokens if keys is None else keys)
    if shown.ndim != 3 or shown.shape[1:] != (len(tokens), len(across)):
        raise ValueError(
            f"viz.attention: weights of shape {tuple(array_of(weights).shape)} do not fit {len(tokens)} queries and "
            f"{len(across)} keys; hint: one head of one sample has shape (queries, keys)"
        )
    heads = len(shown)
    columns = min(4, heads)
    rows = ceil(heads / columns)
    side = min(5.0, max(2.6, 0.32 * len(tokens) + 1.0)) if heads > 1 else 5.4
    figure = blank(side * columns + 0.8, side * rows + 0.3)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    image = None
    for i, axes in enumerate(panels):
        if i >= heads:
            axes.set_axis_off()
            continue
        image = axes.imshow(shown[i], cmap="viridis", vmin=0, vmax=float(shown.max()) or 1.0)
        axes.set_xticks(range(len(across)), [printed(t) for t in across], rotation=90)
        axes.set_yticks(range(len(tokens)), [printed(t) for t in tokens])
        axes.tick_params(length=0)
        axes.set(xlabel="key", ylabel="query", title=f"head {i}" if heads > 1 else "Attention")
    figure.colorbar(image, ax=panels, shrink=0.8, label="attention weight")
    return figure


def confusion(
    model_or_predictions: Any, targets: Any, classes: Sequence[str] | None = None, *, inputs: Any = None
) -> Any:
    """How often class i was predicted as class j: a cell has the count (none for 0), its colour is the fraction of row
    i.

    `model_or_predictions`: class numbers (N,), scores (N, classes), or a model, which is run on `inputs` in evaluation
    mode. `targets`: class numbers (N,). `classes`: names. The title has the accuracy. Returns a matplotlib Figure.
    Raises `ValueError` for other shapes, and for a model without inputs.

    >>> figure = rushlight.viz.confusion([0, 1, 1], [0, 1, 0], ["cat", "dog"])
    >>> [t.get_text() for t in figure.axes[0].texts]
    ['1', '1', '1']
    """
    if callable(model_or_predictions) and not isinstance(model_or_predictions, Tensor):
        if inputs is None:
            raise ValueError("viz.confusion: a model needs inputs; hint: confusion(model, y, inputs=x)")
        with evaluating(model_or_predictions), no_grad():
            model_or_predictions = model_or_predictions(inputs)
    given, true = array_of(model_or_predictions), array_of(targets).reshape(-1).astype(int)
    read = given.argmax(1) if given.ndim == 2 else given.astype(int)
    if read.shape != true.shape:
        raise ValueError(
            f"viz.confusion: predictions of shape {given.shape} for {len(true)} targets; hint: pass class numbers "
            "(N,), or scores (N, classes)"
        )
    count = len(classes) if classes is not None else int(max(read.max(), true.max())) + 1
    table = np.zeros((count, count), int)
    np.add.at(table, (true, read), 1)
    shares = table / np.maximum(table.sum(1, keepdims=True), 1)
    side = min(9.0, max(4.2, 0.48 * count + 1.8))
    figure = blank(side + 0.9, side)
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="cividis", vmin=0, vmax=1)
    if count <= MAX_CELL_TEXTS:
        for (i, j), n in np.ndenumerate(table):
            if n:
                ink = "black" if shares[i, j] > 0.5 else "white"
                axes.text(j, i, str(n), ha="center", va="center", color=ink, fontsize="small")
        names = [str(i) for i in range(count)] if classes is None else [str(c) for c in classes]
        turned = 90 if max(map(len, names)) > 3 else 0
        axes.set_xticks(range(count), names, rotation=turned)
        axes.set_yticks(range(count), names)
    accuracy = 100 * (read == true).mean()
    title = f"Confusion: {accuracy:.1f} % of {len(true)} right"
    axes.set(xlabel="predicted class", ylabel="true class", title=title)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, shrink=0.8, label="share of the true class")
    return figure


# -- shared ----------------------------------------------------------------------------------------

UNITS = {"accuracy": "accuracy", "lr": "learning rate"}


def blank(width: float, height: float) -> Any:
    """A new figure, without a window or pyplot's global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures of training need matplotlib: pip install matplotlib") from None
    return Figure(figsize=(width, height), layout="constrained")


def text_colour() -> Any:
    import matplotlib

    return matplotlib.rcParams["text.color"]


def grey() -> str:
    return "#8a93a3"


def colour(i: int) -> str:
    """Colour i on the background of the current style."""
    from matplotlib.colors import to_rgb

    palette = ON_BLACK if sum(to_rgb(text_colour())) > 1.5 else ON_WHITE
    return palette[i % len(palette)]


def line_style(i: int) -> dict[str, Any]:
    """The colour of line i; after six lines the next six are dashed, then dotted."""
    dashes = ("-", "--", ":", "-.")[i // len(ON_WHITE) % 4]
    return {"color": colour(i), "linestyle": dashes, "linewidth": 1.4}


def plain(axes: Any, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.set(**{k: v for k, v in (("title", title), ("xlabel", xlabel), ("ylabel", ylabel)) if v})


def readable_ticks(axes: Any) -> None:
    """Numbers like 0.05 at the ticks of a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def curve(axes: Any, x: np.ndarray, y: np.ndarray, name: str, ink: str, smooth: float) -> None:
    kept = np.isfinite(y)
    x, y = x[: len(y)][kept], y[kept]
    if len(y) <= MAX_SMOOTHED_POINTS or not smooth:
        axes.plot(x, y, color=ink, label=name, linewidth=1.8)
        return
    axes.plot(x, y, color=ink, alpha=0.35, linewidth=0.8)
    on_log = axes.get_yscale() == "log"
    mean = np.exp(smoothed(np.log(y), smooth)) if on_log else smoothed(y, smooth)
    axes.plot(x, mean, color=ink, label=name, linewidth=1.8)


def smoothed(y: np.ndarray, weight: float) -> np.ndarray:
    """The running mean m_t = weight m_(t-1) + (1 - weight) y_t, corrected for its start at 0."""
    mean, out = 0.0, []
    for t, number in enumerate(y.tolist(), 1):
        mean = weight * mean + (1 - weight) * number
        out.append(mean / (1 - weight**t))
    return np.array(out)


def distributions(axes: Any, values: Mapping[str, np.ndarray]) -> None:
    """The density of each array, in bins that all share: the middle 98 % of the widest one."""
    finite = {name: a[np.isfinite(a)] for name, a in values.items()}
    ends = [np.quantile(a, [0.01, 0.99]) for a in finite.values() if a.size]
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    edges = np.linspace(low, max(high, low + 1e-12), BINS + 1)
    for i, (name, a) in enumerate(finite.items()):
        density = np.histogram(a, edges)[0] / max(a.size, 1) / (edges[1] - edges[0])
        if axes.get_yscale() == "log":
            density[density == 0] = np.nan  # a gap
        axes.plot((edges[:-1] + edges[1:]) / 2, density, label=name, **line_style(i))


def saturation(name: str, values: np.ndarray) -> str:
    if name.endswith("Tanh"):
        return f" ({(abs(values) > 0.97).mean():.0%} saturated)"
    if name.endswith("ReLU"):
        return f" ({(values == 0).mean():.0%} zero)"
    return f" (std {values.std():.2f})"


def printed(token: Any) -> str:
    """The text of a token, with blanks and line ends made visible."""
    return str(token).replace(" ", "␣").replace("\n", "↵")


def array_of(x: Any) -> np.ndarray:
    return np.asarray(x._array if isinstance(x, Tensor) else x)


@contextmanager
def evaluating(model: Any) -> Any:
    """A module in evaluation mode; afterwards each of its modules has its old mode."""
    modules = [m for m in model.modules() if m.training] if isinstance(model, Module) else []
    for m in modules:
        m.training = False
    try:
        yield
    finally:
        for m in modules:
            m.training = True


def columns_of(log: Any) -> dict[str, np.ndarray]:
    """{name: numbers} of a log; nan if a step has no number of this name."""
    rows: list[Mapping[str, Any]]
    if isinstance(log, (str, os.PathLike)):
        with open(log, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = list(getattr(log, "rows", log))
        for row in rows:
            if not isinstance(row, Mapping):
                raise TypeError(
                    f"viz.training: a step of the log is of type {type(row).__name__}; hint: give "
                    'a dict for each step: [{"loss": 0.3}, {"loss": 0.2}]'
                )
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([number_of(row.get(name)) for row in rows]) for name in names}


def number_of(value: Any) -> float:
    try:
        return float("nan") if value is None else float(value)
    except (TypeError, ValueError):
        return float("nan")
