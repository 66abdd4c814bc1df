"""The program of the demo. With `import torch` in place of `import rushlight as torch` it runs on PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import rushlight as torch
from rushlight import nn, optim
from rushlight.utils.data import DataLoader, Subset, TensorDataset, random_split

BATCH = 32
HELD_OUT = 0.2


@dataclass
class History:
    """The loss of each step, and the accuracy on the held-out digits after each epoch."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),  # (B, 16, 8, 8)
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),  # (B, 32, 8, 8)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 32, 4, 4)
        nn.Flatten(),  # (B, 512)
        nn.Dropout(0.25),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),  # (B, 10)
    )


def split(images: torch.Tensor, labels: torch.Tensor) -> tuple[Subset, Subset]:
    """Training and held-out digits. The split has a seed of its own: every run holds out the same ones."""
    held_out = max(1, round(len(labels) * HELD_OUT))
    sizes = [len(labels) - held_out, held_out]
    train, test = random_split(TensorDataset(images, labels), sizes, generator=torch.Generator().manual_seed(0))
    return train, test


def train(
    model: nn.Module, train_set: Subset, test_set: Subset, epochs: int, lr: float, report: Callable[[History], None]
) -> History:
    """Train with Adam; `report(history)` is called after each step and each epoch."""
    batches = DataLoader(train_set, batch_size=BATCH, shuffle=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=lr)
    history = History()
    for _ in range(epochs):
        model.train()
        for images, labels in batches:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            history.losses.append(loss.item())
            report(history)
        _, labels, predicted = predict(model, test_set)
        history.accuracies.append((predicted == labels).float().mean().item())
        report(history)
    return history


@torch.no_grad()
def predict(model: nn.Module, digits: Subset) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images, labels and the predicted labels of a data set."""
    model.eval()
    images, labels = next(iter(DataLoader(digits, batch_size=len(digits))))
    return images, labels, model(images).argmax(dim=1)


def first_loss(model: nn.Module, digits: Subset) -> torch.Tensor:
    """The loss of one training step on the first batch, with its graph."""
    model.train()
    images, labels = next(iter(DataLoader(digits, batch_size=BATCH)))
    return nn.CrossEntropyLoss()(model(images), labels)
