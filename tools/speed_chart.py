"""Draw docs/assets/speed-light.svg and speed-dark.svg, the chart of README.md, from a report of the side-by-side
benchmark.

    python benchmarks/side_by_side/bench.py --engines torch,rushlight,rushlight.step \\
        --workloads W1,W2,W3,W4,W4b,W5,W6,W8 --threads 1 --repeats 9 --warm 1.5 \\
        --path rushlight=. --path rushlight.step=. --json benchmarks/speed.json
    python tools/speed_chart.py benchmarks/speed.json      # also by `make pictures`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = {
    "W1": "1,000 scalar operations",
    "W2": "MLP on two moons",
    "W3": "MLP on MNIST",
    "W4": "LeNet on MNIST",
    "W4b": "small ResNet",
    "W5": "character GPT",
    "W6": "LSTM",
    "W8": "softmax and norms, large",
}
ENGINES = {"rushlight": "eager", "rushlight.step": "rushlight.compile"}
COLOURS = {
    "light": {"ink": "#33291f", "eager": "#c8752d", "rushlight.compile": "#6b4a2b", "grid": "#d9d2c9"},
    "dark": {"ink": "#e8e0d5", "eager": "#ffb454", "rushlight.compile": "#c89b6a", "grid": "#4a4540"},
}


def ratios(report: dict) -> dict[str, dict[str, float]]:
    """{workload: {engine: torch's time / ours}}."""
    found: dict[str, dict[str, float]] = {}
    for workload in NAMES:
        rows = report["results"]["threads=1"].get(workload, {})
        torch = rows.get("torch")
        if not torch:
            continue
        found[workload] = {label: 1 / rows[engine]["ratio"] for engine, label in ENGINES.items() if engine in rows}
    return found


def draw(found: dict[str, dict[str, float]], scheme: str, path: Path) -> None:
    import matplotlib.pyplot as plt

    colours = COLOURS[scheme]
    style = {
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "text.color": colours["ink"],
        "axes.edgecolor": colours["grid"],
        "axes.labelcolor": colours["ink"],
        "xtick.color": colours["ink"],
        "ytick.color": colours["ink"],
    }
    with plt.rc_context(style):
        bars(found, colours, path)


def bars(found: dict[str, dict[str, float]], colours: dict[str, str], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.55 * len(found) + 1.3))
    figure.patch.set_alpha(0)
    axes.patch.set_alpha(0)
    for place, (workload, row) in enumerate(reversed(found.items())):
        for k, label in enumerate(ENGINES.values()):
            if label not in row:
                continue
            y = place + 0.19 - 0.38 * k
            axes.barh(y, row[label] - 1, 0.34, left=1, color=colours[label])
            axes.annotate(
                f"{row[label]:.3g}x",
                (max(row[label], 1), y),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
        axes.text(-0.01, place, NAMES[workload], transform=axes.get_yaxis_transform(), ha="right", va="center")
    axes.set_xscale("log")
    axes.set_yticks([])
    ticks = [1, 2, 5, 10, 50, 100, 500]
    axes.set_xticks(ticks, [f"{t}x" for t in ticks])
    axes.minorticks_off()
    axes.axvline(1, color=colours["ink"], linewidth=1)
    axes.grid(axis="x", color=colours["grid"], linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel("a training step: times as fast as PyTorch (1x), one thread")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colours[label]) for label in ENGINES.values()]
    axes.legend(handles, ["eager", "with rushlight.compile"], frameon=False, loc="lower right")
    figure.savefig(path, bbox_inches="tight", transparent=True, metadata={"Date": None})
    plt.close(figure)
    print(path)


if __name__ == "__main__":
    found = ratios(json.loads(Path(sys.argv[1]).read_text()))
    for scheme in COLOURS:
        draw(found, scheme, ROOT / "docs" / "assets" / f"speed-{scheme}.svg")
