"""Learn MNIST from IDX files: `python examples/mnist.py --data DIR`.

DIR holds the files as published, plain or gzip-compressed: train-images-idx3-ubyte, train-labels-idx1-ubyte, and
t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte for the test. Where only one of the two pairs is there, a fifth of it is
held out. With `import torch` in place of `import rushlight as torch`, and an IDX reader, this runs on PyTorch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.progress import Progress, TextColumn

import rushlight as torch
from rushlight import nn, optim
from rushlight.utils.data import DataLoader, Dataset, TensorDataset, random_split, read_idx

PAIRS = ("train", "t10k")


def load(folder: Path) -> tuple[Dataset, Dataset]:
    """Training and test set: the two published ones, or the one that is there split 4 to 1."""
    found = [TensorDataset(*pair) for name in PAIRS if (pair := load_pair(folder, name))]
    if not found:
        raise ValueError(f"{folder}: no MNIST: neither train-images-idx3-ubyte nor t10k-images-idx3-ubyte is there")
    if len(found) == 2:
        return found[0], found[1]
    held_out = len(found[0]) // 5
    sizes = [len(found[0]) - held_out, held_out]
    train, test = random_split(found[0], sizes, generator=torch.Generator().manual_seed(0))
    return train, test


def load_pair(folder: Path, name: str) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Images (N, 1, 28, 28), float32 around 0, and labels (N,), int64; None if there are none."""
    files = [find(folder, f"{name}-images-idx3-ubyte"), find(folder, f"{name}-labels-idx1-ubyte")]
    if files[0] is None:
        return None
    if files[1] is None:
        raise ValueError(f"{folder}: {name}-images-idx3-ubyte is there, {name}-labels-idx1-ubyte is missing")
    images, labels = map(read_idx, files)
    if images.dim() != 3 or labels.shape != images.shape[:1]:
        raise ValueError(
            f"{files[0]}: {tuple(images.shape)} images and {tuple(labels.shape)} labels do not belong together"
        )
    return (images.float().unsqueeze(1) / 255 - 0.1307) / 0.3081, labels.long()


def find(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.exists()), None)


def network() -> nn.Sequential:
    def stage(channels: int, filters: int) -> list[nn.Module]:
        """Half as high and wide."""
        convolution = nn.Conv2d(channels, filters, 3, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(filters), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(  # (B, 1, 28, 28)
        *stage(1, 16),
        *stage(16, 32),
        *stage(32, 64),
        nn.Flatten(),  # (B, 576)
        nn.Dropout(0.3),
        nn.Linear(576, 10),  # (B, 10)
    )


def train(model: nn.Module, batches: DataLoader, test_batches: DataLoader, epochs: int, lr: float) -> None:
    criterion, steps = nn.CrossEntropyLoss(), epochs * len(batches)
    optimizer = optim.Adam(model.parameters(), lr=lr)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    with Progress(*Progress.get_default_columns(), TextColumn("{task.fields[loss]}")) as bar:
        task = bar.add_task("learning", total=steps, loss="")
        for epoch in range(1, epochs + 1):
            model.train()
            for images, labels in batches:
                optimizer.zero_grad()
                loss = criterion(model(images), labels)
                loss.backward()
                optimizer.step()
                schedule.step()
                bar.update(task, advance=1, loss=f"loss {loss.item():.4f}")
            bar.console.print(f"epoch {epoch}  accuracy {accuracy(model, test_batches):.2%}")


@torch.no_grad()
def accuracy(model: nn.Module, batches: DataLoader) -> float:
    model.eval()
    right = sum((model(images).argmax(dim=1) == labels).sum().item() for images, labels in batches)
    return right / len(batches.dataset)


def run(args: argparse.Namespace, train_set: Dataset, test_set: Dataset) -> None:
    print(f"{len(train_set):,} images to learn from, {len(test_set):,} held out")
    torch.manual_seed(args.seed)
    model = network()
    train_batches = DataLoader(train_set, batch_size=args.batch, shuffle=True)
    train(model, train_batches, DataLoader(test_set, batch_size=1000), args.epochs, args.lr)
    if args.save:
        torch.save(model.state_dict(), args.save)


def main() -> int:
    parser = argparse.ArgumentParser(description="Learn MNIST from IDX files.")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder with the IDX files, plain or .gz"
    )
    parser.add_argument("--epochs", type=int, default=6, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="images in a batch (%(default)s)")
    parser.add_argument("--lr", type=float, default=5e-3, help="highest learning rate (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the weights here at the end")
    args = parser.parse_args()
    try:
        if min(args.epochs, args.batch) < 1:
            raise ValueError("--epochs and --batch are at least 1")
        train_set, test_set = load(args.data)
    except (OSError, ValueError) as error:
        print(f"mnist.py: {error}", file=sys.stderr)
        return 2
    run(args, train_set, test_set)
    return 0


if __name__ == "__main__":
    sys.exit(main())
