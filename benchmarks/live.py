"""What `viz.live` costs: training steps with the live page open, relative to steps without it.

    env -u OPENBLAS_CORETYPE python benchmarks/live.py [seconds of a block] [blocks]

Two models: a step takes about 2 ms and about 20 ms. Blocks with and without the page take turns; another process asks
for the state as often as an open page does. Printed: the median time of a step without the page, the median and the
quartiles of the ratios of neighbouring blocks, and the records a second that the page gets. On a busy machine the
ratio of processor times is the steadier one."""

from __future__ import annotations

import signal
import subprocess
import sys
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

import rushlight as torch
from rushlight import nn, viz

SECONDS, BLOCKS = 1.5, 30
SETTLES = 0.2  # seconds before a block that are not counted: the start of the hooks
POLLER = """
import json, sys, time, urllib.request
number = step = version = 0
while True:
    query = f"state?since={number}&losses={step}&version={version}"
    try:
        news = json.load(urllib.request.urlopen(sys.argv[1] + query))
    except OSError:
        break
    number = news["records"][-1]["number"] if news["records"] else number
    step = news["losses"][-1][0] if news["losses"] else step
    version = news["meta"]["version"] if news["meta"] else version
    time.sleep(0.35)
"""


def digits() -> tuple[Any, ...]:
    """A small convolutional network on 8x8 images, as of the demo."""
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    return model, torch.randn(64, 1, 8, 8), torch.randint(0, 10, (64,))


def transformer() -> tuple[Any, ...]:
    """Four layers of a transformer, with 75 parameters."""
    layer = nn.TransformerEncoderLayer(96, 4, 384, dropout=0.0, batch_first=True)
    model = nn.Sequential(
        nn.Embedding(65, 96), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Linear(96, 65)
    )
    tokens = torch.randint(0, 65, (16, 33))
    return model, tokens[:, :-1], tokens[:, 1:]


def block(model: Any, x: Any, y: Any, optimizer: Any, seconds: float) -> tuple[float, float]:
    """(seconds, seconds of the processor) of a step, for training during `seconds`."""
    begin, busy, count = perf_counter(), process_time(), 0
    while perf_counter() - begin < seconds:
        optimizer.zero_grad()
        out = model(x)
        nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1)).backward()
        optimizer.step()
        count += 1
    return (perf_counter() - begin) / count, (process_time() - busy) / count


def pairs(task: tuple[Any, ...], optimizer: Any, seconds: float, blocks: int) -> tuple[list[Any], float]:
    """([(step without the page, step with it), ...], records a second). The hooks are away in the blocks without."""
    with viz.live(task[0], quiet=True) as page:
        poller = subprocess.Popen([sys.executable, "-c", POLLER, page.address])
        block(*task, optimizer, 2.0)
        found, records = [], 0
        for _ in range(blocks):
            page.observer.stop()
            poller.send_signal(signal.SIGSTOP)
            block(*task, optimizer, SETTLES)
            plain = block(*task, optimizer, seconds)
            poller.send_signal(signal.SIGCONT)
            page.observer.start()
            block(*task, optimizer, SETTLES)
            before = page.observer.number
            found.append((plain, block(*task, optimizer, seconds)))
            records += page.observer.number - before
    page.close()
    poller.wait()
    return found, records / (blocks * seconds)


def main(seconds: float, blocks: int) -> None:
    torch.manual_seed(0)
    print(f"{'':<12}{'step':>10}{'ratio of times':>26}{'of processor times':>28}{'records/s':>12}")
    for make in (digits, transformer):
        task = make()
        optimizer = torch.optim.Adam(task[0].parameters(), lr=1e-4)
        block(*task, optimizer, 2.0)
        found, rate = pairs(task, optimizer, seconds, blocks)
        step = 1000 * median(plain[0] for plain, _ in found)
        texts = []
        for i in (0, 1):
            low, middle, high = quantiles([watched[i] / plain[i] for plain, watched in found], n=4)
            texts.append(f"{middle:.3f} ({low:.3f} to {high:.3f})")
        print(f"{make.__name__:<12}{step:>7.2f} ms{texts[0]:>26}{texts[1]:>28}{rate:>12.1f}", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS, int(sys.argv[2]) if len(sys.argv) > 2 else BLOCKS)
