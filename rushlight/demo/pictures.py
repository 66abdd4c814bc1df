"""The demo's pictures, drawn with matplotlib's Figure: no window, no global state."""

from __future__ import annotations

import logging
from pathlib import Path

import rushlight as torch
from rushlight.demo.train import History

COLUMNS, ROWS = 12, 5
BLUE, PALE, RED, GREY = "#2563a8", "#b9cfe6", "#c8102e", "#4b5563"

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its first run announces a font cache


def draw_loss(path: Path, history: History) -> None:
    """Loss of each step and its mean over each epoch, beside the accuracy on the held-out digits."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    losses, epochs = history.losses, len(history.accuracies)
    steps = len(losses) // epochs
    means = [sum(losses[i * steps : (i + 1) * steps]) / steps for i in range(epochs)]
    left.semilogy([(i + 1) / steps for i in range(len(losses))], losses, color=PALE, linewidth=0.8, label="each step")
    left.semilogy(
        [i + 0.5 for i in range(epochs)], means, color=BLUE, linewidth=2, marker="o", markersize=3, label="epoch's mean"
    )
    left.set(title="Training loss", xlabel="epoch", ylabel="cross entropy")
    left.legend(frameon=False)
    right.plot(
        range(1, epochs + 1), [100 * a for a in history.accuracies], color=BLUE, linewidth=2, marker="o", markersize=3
    )
    right.set(title=f"Accuracy on held-out digits: {history.accuracies[-1]:.1%}", xlabel="epoch", ylabel="%")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(path, dpi=120)


def draw_digits(path: Path, images: torch.Tensor, labels: torch.Tensor, predicted: torch.Tensor) -> None:
    """Held-out digits with the network's answers: the wrong ones first, framed in red."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    wrong = (predicted != labels).tolist()
    order = sorted(range(len(wrong)), key=lambda i: not wrong[i])[: COLUMNS * ROWS]
    figure = Figure(figsize=(COLUMNS * 0.85, ROWS * 1.1 + 0.5), layout="constrained")
    axes = figure.subplots()
    axes.set(frame_on=False, xticks=[], yticks=[])
    axes.set_title(f"{sum(wrong)} of {len(wrong)} held-out digits misread (in red: predicted → true)", fontsize=11)
    for place, i in enumerate(order):
        x, y = place % COLUMNS, place // COLUMNS * 1.3  # a digit is 0.9 wide, with its answer above
        answer, truth = int(predicted[i]), int(labels[i])
        axes.imshow(images[i, 0].numpy(), cmap="gray_r", vmin=0, vmax=1, extent=(x, x + 0.9, y + 0.9, y))
        axes.text(
            x + 0.45,
            y - 0.08,
            f"{answer} → {truth}" if wrong[i] else f"{answer}",
            ha="center",
            fontsize=10,
            color=RED if wrong[i] else GREY,
        )
        if wrong[i]:
            axes.add_patch(Rectangle((x, y), 0.9, 0.9, fill=False, color=RED, linewidth=2))
    axes.set(xlim=(-0.1, COLUMNS), ylim=(ROWS * 1.3 - 0.3, -0.4))
    figure.savefig(path, dpi=120)
