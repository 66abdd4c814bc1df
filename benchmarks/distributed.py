"""torch.distributed with two ranks, one thread each: rushlight on MPI beside torch on gloo.

    python benchmarks/distributed.py [--ranks 2] [--without torch]

Times of all_reduce, of a training step with DistributedDataParallel (of an MLP, LeNet and a small GPT) with and without
messages, and the bytes of arrays per rank with FSDP and ZeRO. Both libraries run in turns, several rounds; minima are
reported, since the machine may be busy."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"1 KB": 256, "1 MB": 1 << 18, "64 MB": 1 << 24}
ROUNDS = 3
WARM_CALLS = 30


def best(function, dist, times):
    """The least seconds of a call; all ranks begin together."""
    found = []
    for _ in range(times):
        dist.barrier()
        began = time.perf_counter()
        function()
        found.append(time.perf_counter() - began)
    return min(found)


def gpt(torch):
    """A GPT of 2 layers, 128 wide, with 64 tokens."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.one, self.two = heads, nn.LayerNorm(width), nn.LayerNorm(width)
            self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, c = x.shape
            parts = self.all(self.one(x)).split(c, dim=2)
            q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in parts)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.mlp(self.two(x))

    return nn.Sequential(nn.Embedding(256, 128), Block(128, 4), Block(128, 4), nn.Linear(128, 256))


def models(torch):
    """{name: (model, input, target)}."""
    nn = torch.nn
    lenet = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84),
        nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    mlp = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    return {
        "MLP, 1.9 M": (mlp, torch.randn(128, 784), torch.randint(0, 10, (128,))),
        "LeNet, 44 K": (lenet, torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))),
        "GPT, 0.5 M": (gpt(torch), torch.randint(0, 256, (8, 64)), torch.randint(0, 256, (512,))),
    }


def steps(torch, dist):
    """{model: [ms of a step with sums, without, with the sum of all gradients after backward]}."""
    return {name: timed(torch, dist, *parts) for name, parts in models(torch).items()}


def timed(torch, dist, model, x, y):
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.9)

    def backward():
        optimizer.zero_grad()
        out = ddp(x)
        torch.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y).backward()

    def summed():
        backward()
        optimizer.step()

    def alone():
        with ddp.no_sync():
            backward()
        optimizer.step()

    def after():
        with ddp.no_sync():
            backward()
        flat = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        at = 0
        for p in model.parameters():
            p.grad.copy_(flat[at : at + p.numel()].view_as(p))
            at += p.numel()
        optimizer.step()

    calls = summed, alone, after
    for call in calls * WARM_CALLS:
        call()
    if hasattr(torch, "fast"):
        torch.fast.settle()  # loops of optimizers are compiled in the background
    turns = [[best(call, dist, 5) * 1e3 for call in calls] for _ in range(6)]
    return [min(times) for times in zip(*turns)]


def largest_bytes(torch, way):
    """Largest bytes of arrays in a step with Adam, over the bytes of the parameters."""
    import tracemalloc

    from rushlight.distributed.fsdp import FullyShardedDataParallel, ModuleWrapPolicy
    from rushlight.distributed.optim import ZeroRedundancyOptimizer

    nn, x = torch.nn, torch.ones(2, 512)
    tracemalloc.start()
    model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)])
    count = sum(p.numel() * 4 for p in model.parameters())
    if way == "FSDP":
        model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy([nn.Linear]))
    if way == "DDP and ZeRO":
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)
    else:
        optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        tracemalloc.reset_peak()
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / count


def memory(torch):
    """{way: its largest bytes}."""
    ways = ("one process", "DDP and ZeRO", "FSDP")
    for way in ways:  # modules that are imported at their first use are not counted below
        largest_bytes(torch, way)
    torch.fast.settle()
    return {way: largest_bytes(torch, way) for way in ways}


def rank(library):
    torch, dist = import_module(library), import_module(f"{library}.distributed")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    found = {"all_reduce": {}}
    for name, count in SIZES.items():
        x = torch.ones(count)
        dist.all_reduce(x)
        times = 200 if count < 10**4 else 40 if count < 10**6 else 8
        found["all_reduce"][name] = best(lambda x=x: dist.all_reduce(x), dist, times) * 1e3
    found["step"] = steps(torch, dist)
    if library == "rushlight":
        found["memory"] = memory(torch)
    if dist.get_rank() == 0:
        print("RESULT " + json.dumps(found), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def run(library, ranks):
    """What rank 0 has measured."""
    port = str(random.randint(20000, 29000))
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
    variables |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--library", library],
            env={**os.environ, **variables, "RANK": str(i)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(ranks)
    ]
    outputs = [one.communicate(timeout=600)[0] for one in started]
    return json.loads(outputs[0].partition("RESULT ")[2])


def least(results, *keys):
    """The least of the rounds; of lists, each number's."""
    values = []
    for result in results:
        for key in keys:
            result = result[key]
        values.append(result)
    return [min(column) for column in zip(*values)] if isinstance(values[0], list) else min(values)


def report(found, ranks):
    """Print both libraries side by side."""
    both = list(found)
    print(f"{ranks} ranks, one thread each; least of {ROUNDS} rounds in turns; ms")
    for size in SIZES:
        times = [least(found[library], "all_reduce", size) for library in both]
        ratio = f"   {times[0] / times[-1]:.2f} of gloo's" if len(both) > 1 else ""
        print(f"all_reduce {size:6}", *[f"{b} {t:8.3f}" for b, t in zip(both, times)], ratio)
    for model in found[both[0]][0]["step"]:
        times = [least(found[library], "step", model) for library in both]
        ratio = f"   {times[0][0] / times[-1][0]:.2f} of torch's" if len(both) > 1 else ""
        print(f"step of {model:12}", *[f"{b} {t[0]:7.2f}" for b, t in zip(both, times)], ratio)
        for library, (summed, alone, after) in zip(both, times):
            hidden = (after - summed) / max(after - alone, 1e-9)
            print(
                f"    {library}: without sums {alone:.2f}, sums after backward {after:.2f}: "
                f"{max(0.0, min(1.0, hidden)):.0%} of the messages hidden"
            )
    for way in found["rushlight"][0]["memory"]:
        print(f"memory, {way:12}: {least(found['rushlight'], 'memory', way):.2f} x the parameters")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--without", choices=["torch"])
    arguments = parser.parse_args()
    if arguments.library:
        return rank(arguments.library)
    libraries = ["rushlight"]
    if find_spec("torch") is not None and arguments.without != "torch":
        libraries.append("torch")
    found = {library: [] for library in libraries}
    for _ in range(ROUNDS):
        for library in libraries:
            found[library].append(run(library, arguments.ranks))
    return report(found, arguments.ranks)


if __name__ == "__main__":
    main()
