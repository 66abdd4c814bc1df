"""A small GPT that learns to write Shakespeare, letter by letter: `python examples/gpt.py --data DIR`.

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

CONTEXT, WIDTH, HEADS, LAYERS = 64, 128, 4, 3


class Block(nn.Module):
    """Attention among the letters so far, then a network on each: both add to what passes through."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.attend, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, _ = x.shape
        qkv = self.attend(self.norms[0](x)).view(B, T, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind()  # each (B, heads, T, width / heads)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(seen.transpose(1, 2).reshape(B, T, WIDTH))
        return x + self.think(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self, letters: int):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.05)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """(B, T) numbers of letters -> (B, T, letters): what may come next, after each."""
        x = self.letters(text) + self.places(torch.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def load(path: Path) -> tuple[torch.Tensor, str]:
    """The text as numbers, and the letters they stand for."""
    text = (path / "tinyshakespeare.txt" if path.is_dir() else path).read_text(encoding="utf-8")
    if len(text) < 20 * CONTEXT:
        raise ValueError(f"{path}: {len(text)} letters are too few to learn from: at least {20 * CONTEXT}")
    letters = "".join(sorted(set(text)))
    number = {letter: i for i, letter in enumerate(letters)}
    return torch.tensor([number[letter] for letter in text]), letters


def passages(text: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random passages and, for each letter, the one that follows it: both (count, CONTEXT)."""
    starts = torch.randint(len(text) - CONTEXT, (count, 1))
    places = starts + torch.arange(CONTEXT)
    return text[places], text[places + 1]


def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    text, following = batch
    return F.cross_entropy(model(text).flatten(0, 1), following.flatten())


def train(model: nn.Module, text: torch.Tensor, args: argparse.Namespace) -> None:
    optimizer = optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.99), weight_decay=0.1)
    steps = args.epochs * args.steps
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=steps, pct_start=0.1)
    with Progress(*Progress.get_default_columns(), TextColumn("{task.fields[loss]}")) as bar:
        task = bar.add_task("learning", total=steps, loss="")
        for step in range(steps):
            loss = loss_of(model, passages(text, args.batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.update(
                task, advance=1, loss=f"loss {loss.item():.3f}" if step % 10 == 0 else bar.tasks[0].fields["loss"]
            )


@torch.no_grad()
def held_out_loss(model: nn.Module, text: torch.Tensor) -> float:
    return sum(loss_of(model, passages(text, 64)).item() for _ in range(10)) / 10


@torch.no_grad()
def write(model: nn.Module, letters: str, count: int, start: str = "\n") -> str:
    """A new text: each letter is drawn from what the model thinks may follow the last CONTEXT ones."""
    text = [letters.find(letter) for letter in start]
    for _ in range(count):
        scores = model(torch.tensor([text[-CONTEXT:]]))[0, -1]
        text.append(torch.multinomial(F.softmax(scores / 0.8, -1), 1).item())
    return "".join(letters[i] for i in text[len(start) :])


def main() -> int:
    parser = argparse.ArgumentParser(description="Learn to write like a text.")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of tinyshakespeare.txt, or a text"
    )
    parser.add_argument("--epochs", type=int, default=1, help="rounds of --steps steps (%(default)s)")
    parser.add_argument("--steps", type=int, default=600, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="passages in a step (%(default)s)")
    parser.add_argument("--lr", type=float, default=4e-3, help="highest learning rate (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--letters", type=int, default=500, help="how much to write at the end (%(default)s)")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    try:
        if min(args.epochs, args.steps, args.batch) < 1:
            raise ValueError("--epochs, --steps and --batch are at least 1")
        text, letters = load(args.data)
    except (OSError, ValueError) as error:
        print(f"gpt.py: {error}", file=sys.stderr)
        return 2
    model, held_out = GPT(len(letters)), len(text) // 10
    print(f"{len(text):,} letters, {sum(p.numel() for p in model.parameters()):,} parameters")
    train(model, text[:-held_out], args)
    print(f"loss on text not seen: {held_out_loss(model, text[-held_out:]):.3f}")
    print(write(model, letters, args.letters))
    return 0


if __name__ == "__main__":
    sys.exit(main())
