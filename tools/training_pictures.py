"""The pictures of docs/use/pictures.md: `python tools/training_pictures.py [folder]` trains a few small networks (half
a minute) and writes each picture in light and dark to docs/assets/pictures."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.style

import rushlight as torch
from rushlight import nn, viz
from rushlight.demo.digits import read_digits
from rushlight.demo.train import split
from rushlight.nn import functional as F

FOLDER = Path(__file__).parent.parent / "docs" / "assets" / "pictures"
STYLES = {
    "light": {},
    "dark": {
        **matplotlib.style.library["dark_background"],
        "figure.facecolor": "#16181d",
        "axes.facecolor": "#16181d",
        "savefig.facecolor": "#16181d",
    },
}
TEXT = "the cat sat on the mat."


def moons(n: int = 100) -> tuple[torch.Tensor, torch.Tensor]:
    """Two half circles of n points each, with noise."""
    angle = torch.rand(n) * torch.pi
    upper = torch.stack([angle.cos(), angle.sin()], 1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
    X = torch.cat([upper, lower]) + 0.1 * torch.randn(2 * n, 2)
    return X, (torch.arange(2 * n) >= n).long()


def two_moons():
    torch.manual_seed(1)
    X, y = moons()
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        F.cross_entropy(model(X), y).backward()
        optimizer.step()
    return model, X, y


def deep():
    """A deep tanh network and its recorder after 200 steps."""
    torch.manual_seed(2)
    layers = [nn.Linear(2, 50), nn.Tanh()]
    for _ in range(3):
        layers += [nn.Linear(50, 50), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(50, 2))
    X, y = moons()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = viz.LayerLog(model)
    for _ in range(200):
        optimizer.zero_grad()
        with recorder:
            loss = F.cross_entropy(model(X), y)
        loss.backward()
        recorder.step(optimizer)
    return recorder


def trained_digits():
    torch.manual_seed(3)
    train, held = (part.dataset[part.indices] for part in split(*read_digits()))
    model = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)
    log = viz.Log()
    for _ in range(600):
        batch = torch.randint(0, len(train[0]), (32,))
        optimizer.zero_grad()
        out = model(train[0][batch])
        loss = F.cross_entropy(out, train[1][batch])
        loss.backward()
        optimizer.step()
        accuracy = (out.argmax(1) == train[1][batch]).float().mean()
        log.log(loss=loss, accuracy=accuracy, lr=schedule.get_last_lr()[0])
        schedule.step()
    return model, held, log


def heads():
    """Attention of two heads to the characters before."""
    torch.manual_seed(4)
    n = len(TEXT)
    q, k = torch.randn(2, n, 8), torch.randn(2, n, 8)
    mask = torch.full((n, n), float("-inf")).triu(1)
    return (q @ k.mT / 8**0.5 + mask).softmax(-1)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    boundary, recorder, (model, (x, y), log), weights = two_moons(), deep(), trained_digits(), heads()
    for style, settings in STYLES.items():
        with mpl.rc_context(settings):
            for name, figure in {
                "training": viz.training(log),
                "histograms": viz.histograms(recorder),
                "decision-boundary": viz.decision_boundary(*boundary),
                "filters": viz.filters(model[0]),
                "attention": viz.attention(weights, TEXT),
                "confusion": viz.confusion(model, y, inputs=x),
            }.items():
                figure.savefig(folder / f"{name}-{style}.png", dpi=72)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
