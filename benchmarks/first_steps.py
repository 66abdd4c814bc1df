"""The first steps of a training on a machine without compiled loops: seconds until steps 1, 2, 10 and 100 are done, and
the longest step.

    python benchmarks/first_steps.py                    five models, eager and compiled
    python benchmarks/first_steps.py --torch            torch beside them
    python benchmarks/first_steps.py --warm             with the user's own cache of loops

Each measurement is a process of its own with an empty cache folder (RUSHLIGHT_CACHE)."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from typing import Any

MODELS = ("mlp", "lenet", "convnet", "transformer", "lstm")
STEPS = (1, 2, 10, 100)


def model_and_data(torch: Any, name: str) -> tuple[Any, Any, Any]:
    """A model, a batch of inputs, and the classes."""
    nn = torch.nn
    if name == "mlp":
        layers = nn.Linear(784, 256), nn.GELU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
        return nn.Sequential(*layers), torch.randn(128, 784), torch.randint(0, 10, (128,))
    if name == "lenet":
        parts: list[Any] = []
        for channels, filters, padding in ((1, 6, 2), (6, 16, 0)):
            conv = nn.Conv2d(channels, filters, 5, padding=padding)
            parts += [conv, nn.ReLU(), nn.MaxPool2d(2)]
        head = nn.Flatten(), nn.Linear(400, 84), nn.ReLU(), nn.Linear(84, 10)
        return nn.Sequential(*parts, *head), torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    if name == "convnet":
        parts = []
        for channels in (3, 32):
            conv = nn.Conv2d(channels, 32, 3, padding=1)
            parts += [conv, nn.BatchNorm2d(32), nn.ReLU()]
        head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)
        return nn.Sequential(*parts, *head), torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    tokens, classes = torch.randint(0, 65, (16, 32)), torch.randint(0, 65, (16,))
    return {"transformer": transformer, "lstm": lstm}[name](nn), tokens, classes


def transformer(nn: Any) -> Any:
    layer = nn.TransformerEncoderLayer(64, 4, 256, activation="gelu", batch_first=True)
    return nn.Sequential(nn.Embedding(65, 64), nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(2048, 65))


def lstm(nn: Any) -> Any:
    class Last(nn.Module):
        """The last output of an LSTM."""

        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(32, 128, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.lstm(x)[0][:, -1]

    return nn.Sequential(nn.Embedding(65, 32), Last(), nn.Linear(128, 65))


def measure(library: str, name: str, compiled: bool) -> str:
    """Train for the last of STEPS; a line of figures."""
    torch = import_module(library)
    torch.manual_seed(0)
    model, x, y = model_and_data(torch, name)
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    if compiled:
        step = torch.compile(step)
    ends, begin = [0.0], time.perf_counter()
    for _ in range(STEPS[-1]):
        step().item()
        ends.append(time.perf_counter() - begin)
    longest = max(b - a for a, b in zip(ends, ends[1:]))
    return "".join(f"{seconds:9.2f}" for seconds in [*(ends[k] for k in STEPS), longest])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--torch", action="store_true", help="measure torch, too")
    parser.add_argument("--warm", action="store_true", help="with the user's cache of loops")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        library, name, compiled = arguments.one
        print(measure(library, name, compiled == "compiled"))
        return
    print(f"{'seconds until step':34}" + "".join(f"{k:9}" for k in STEPS) + "  longest")
    for name in MODELS:
        for library in ["rushlight", *["torch"] * arguments.torch]:
            for how in ("eager", "compiled"):
                with tempfile.TemporaryDirectory() as folder:
                    env = dict(os.environ)
                    env.pop("OPENBLAS_CORETYPE", None)
                    if not arguments.warm:
                        env |= {"RUSHLIGHT_CACHE": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
                    command = [sys.executable, __file__, "--one", library, name, how]
                    made = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
                print(f"{name:12} {library:10} {how:9}" + made.stdout.rstrip(), flush=True)


if __name__ == "__main__":
    main()
