"""An LSTM that learns to write Shakespeare, letter by letter: `python examples/char_lstm.py --data DIR`.

DIR holds tinyshakespeare.txt, or any text of that name; --data may also be the file itself.
With `import torch` in place of `import rushlight as torch` this runs on PyTorch.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.progress import Progress, TextColumn

import rushlight as torch
from rushlight import nn, optim
from rushlight.nn import functional as F

LENGTH = 64  # letters through which gradients go back

State = tuple[torch.Tensor, torch.Tensor]


class Writer(nn.Module):
    """Letters -> what may follow each of them; the state remembers what came before."""

    def __init__(self, letters: int, width: int):
        super().__init__()
        self.letters = nn.Embedding(letters, 64)
        self.lstm = nn.LSTM(64, width, batch_first=True)
        self.head = nn.Linear(width, letters)

    def forward(self, text: torch.Tensor, state: State | None = None) -> tuple[torch.Tensor, State]:
        """(B, T) numbers of letters -> (B, T, letters)."""
        seen, state = self.lstm(self.letters(text), state)
        return self.head(seen), state


def load(path: Path) -> tuple[torch.Tensor, str]:
    """The text as numbers, and the letters they stand for."""
    text = (path / "tinyshakespeare.txt" if path.is_dir() else path).read_text(encoding="utf-8")
    if len(text) < 100 * LENGTH:
        raise ValueError(f"{path}: {len(text)} letters are too few to learn from: at least {100 * LENGTH}")
    letters = "".join(sorted(set(text)))
    number = {letter: i for i, letter in enumerate(letters)}
    return torch.tensor([number[letter] for letter in text]), letters


def strips(text: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The text cut into `count` long strips that are read side by side, and the letter after each: both (count, N)."""
    length = (len(text) - 1) // count
    return text[: count * length].view(count, length), text[1 : count * length + 1].view(count, length)


def train(model: Writer, text: torch.Tensor, args: argparse.Namespace) -> None:
    """Through the text in pieces of LENGTH; the state goes on from piece to piece, gradients do not."""
    before, after = strips(text, args.batch)
    pieces = range(0, before.shape[1] - LENGTH + 1, LENGTH)
    steps = args.epochs * len(pieces)
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=steps, pct_start=0.1)
    with Progress(*Progress.get_default_columns(), TextColumn("{task.fields[loss]}")) as bar:
        task = bar.add_task("learning", total=steps, loss="")
        for _ in range(args.epochs):
            state = None
            for start in pieces:
                scores, state = model(before[:, start : start + LENGTH], state)
                state = (state[0].detach(), state[1].detach())
                loss = F.cross_entropy(scores.flatten(0, 1), after[:, start : start + LENGTH].flatten())
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                bar.update(task, advance=1, loss=f"loss {loss.item():.3f}")


@torch.no_grad()
def loss_on(model: Writer, text: torch.Tensor) -> float:
    before, after = strips(text, 32)
    return F.cross_entropy(model(before)[0].flatten(0, 1), after.flatten()).item()


@torch.no_grad()
def write(model: Writer, letters: str, count: int) -> str:
    """A new text: each letter is drawn from what the model thinks may follow, a little more boldly than it thinks."""
    last, state, text = letters.find("\n"), None, ""
    for _ in range(count):
        scores, state = model(torch.tensor([[last]]), state)
        last = torch.multinomial(F.softmax(scores[0, -1] / 0.8, -1), 1).item()
        text += letters[last]
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description="Learn to write like a text.")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of tinyshakespeare.txt, or a text"
    )
    parser.add_argument("--epochs", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=50, help="strips that are read side by side (%(default)s)")
    parser.add_argument("--width", type=int, default=192, help="of the state (%(default)s)")
    parser.add_argument("--lr", type=float, default=1e-2, help="highest learning rate (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--letters", type=int, default=500, help="how much to write at the end (%(default)s)")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    try:
        if min(args.epochs, args.batch, args.width) < 1:
            raise ValueError("--epochs, --batch and --width are at least 1")
        text, letters = load(args.data)
        held_out = len(text) // 10
        if len(text) - held_out <= args.batch * LENGTH:
            raise ValueError(f"--batch {args.batch}: the text has fewer than so many passages of {LENGTH} letters")
    except (OSError, ValueError) as error:
        print(f"char_lstm.py: {error}", file=sys.stderr)
        return 2
    model = Writer(len(letters), args.width)
    print(f"{len(text):,} letters, {sum(p.numel() for p in model.parameters()):,} parameters")
    train(model, text[:-held_out], args)
    print(f"loss on text not seen: {loss_on(model, text[-held_out:]):.3f}")
    print(write(model, letters, args.letters))
    return 0


if __name__ == "__main__":
    sys.exit(main())
