"""A network that makes up names: `python examples/names.py --data DIR`.

It learns from names.txt in DIR (a name a line; --data may be the file itself) which letter follows three others, as in
Bengio et al., A Neural Probabilistic Language Model, 2003. With `import torch` in place of `import rushlight as torch`
this runs on PyTorch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.progress import Progress, TextColumn

import rushlight as torch
from rushlight import nn, optim
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader, TensorDataset, random_split

CONTEXT = 3  # letters from which the next one is guessed
END = "."  # stands before a name and after it


def load(path: Path) -> tuple[list[str], str]:
    """The names, and all letters in them, END first."""
    path = path / "names.txt" if path.is_dir() else path
    names = path.read_text(encoding="utf-8").lower().split()
    if len(names) < 100:
        raise ValueError(f"{path}: {len(names)} names are too few to learn from: at least 100")
    return names, END + "".join(sorted(set("".join(names)) - {END}))


def examples(names: list[str], letters: str) -> TensorDataset:
    """CONTEXT letters (N, CONTEXT), and the one that follows (N,): emma gives ... e, ..e m, .em m, emm a, mma ."""
    number = {letter: i for i, letter in enumerate(letters)}
    before, after = [], []
    for name in names:
        word = [number[letter] for letter in END * CONTEXT + name.replace(END, "") + END]
        for i in range(len(word) - CONTEXT):
            before.append(word[i : i + CONTEXT])
            after.append(word[i + CONTEXT])
    return TensorDataset(torch.tensor(before), torch.tensor(after))


def network(letters: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Embedding(letters, 16),
        nn.Flatten(),  # (B, CONTEXT * 16)
        nn.Linear(CONTEXT * 16, width, bias=False),
        nn.BatchNorm1d(width),
        nn.Tanh(),
        nn.Linear(width, letters),  # (B, letters)
    )


def train(model: nn.Module, batches: DataLoader, epochs: int, lr: float) -> None:
    optimizer = optim.AdamW(model.parameters(), lr=lr)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=epochs * len(batches))
    with Progress(*Progress.get_default_columns(), TextColumn("{task.fields[loss]}")) as bar:
        task = bar.add_task("learning", total=epochs * len(batches), loss="")
        for _ in range(epochs):
            for before, after in batches:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(before), after)
                loss.backward()
                optimizer.step()
                schedule.step()
                bar.update(task, advance=1, loss=f"loss {loss.item():.3f}")


@torch.no_grad()
def loss_on(model: nn.Module, data: TensorDataset) -> float:
    model.eval()
    before, after = data.tensors
    return F.cross_entropy(model(before), after).item()


@torch.no_grad()
def invent(model: nn.Module, letters: str) -> str:
    """A name, letter by letter, each drawn by its probability."""
    model.eval()
    word = [0] * CONTEXT
    while len(word) < 30:
        letter = torch.multinomial(F.softmax(model(torch.tensor([word[-CONTEXT:]]))[0], -1), 1).item()
        if letter == 0:
            break
        word.append(letter)
    return "".join(letters[i] for i in word[CONTEXT:])


def main() -> int:
    parser = argparse.ArgumentParser(description="Learn to make up names.")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of names.txt, or a file of names"
    )
    parser.add_argument("--epochs", type=int, default=10, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=128, help="letters in a step (%(default)s)")
    parser.add_argument("--width", type=int, default=200, help="of the hidden layer (%(default)s)")
    parser.add_argument("--lr", type=float, default=1e-2, help="highest learning rate (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--names", type=int, default=20, help="how many to make up (%(default)s)")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    try:
        if min(args.epochs, args.batch, args.width) < 1:
            raise ValueError("--epochs, --batch and --width are at least 1")
        names, letters = load(args.data)
    except (OSError, ValueError) as error:
        print(f"names.py: {error}", file=sys.stderr)
        return 2
    sizes = [len(names) - len(names) // 10, len(names) // 10]
    known, held_out = ([names[i] for i in part.indices] for part in random_split(names, sizes))
    print(f"{len(known):,} names to learn from, {len(held_out):,} held out")
    model = network(len(letters), args.width)
    train(model, DataLoader(examples(known, letters), args.batch, shuffle=True), args.epochs, args.lr)
    print(f"loss on names not seen: {loss_on(model, examples(held_out, letters)):.3f}")
    made = [invent(model, letters) for _ in range(args.names)]
    print(*(f"{name}{' (is one)' if name in names else ''}" for name in made), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
