"""What it costs that every op remembers the user's line, and that backward looks for the first nan or inf.

    env -u OPENBLAS_CORETYPE python benchmarks/remembering.py

For the line, the families of ops are compiled a second time with that statement cut out;
the two take turns in short blocks, and each one's best block is printed, in nanoseconds an op (3x4 float32, recorded),
beside an empty function's call, which tells how fast the machine is. For anomaly detection, a step of an MLP
64-64-64-10, batch 32, is run with it and without, here and (where torch is installed) in torch."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from importlib import import_module
from time import perf_counter_ns
from types import ModuleType
from typing import Any

import rushlight
from rushlight.core import families
from rushlight.core.table import TABLE

BLOCKS, CALLS, STEPS = 1500, 100, 300
LINES = re.compile(r"""^( *)\w+ = frame\(\d\)\n.*f_code\n.*remember\((\w+), \w+\)\n""", re.MULTILINE)


def cut(text: str) -> str:
    """The text without the statement that remembers the line."""
    text, found = LINES.subn(lambda found: f"{found[1]}{found[2]}.code = None\n", text)
    assert found, "the text of ops has changed: what remembers the line was not found"
    return text


def families_without() -> ModuleType:
    """The families, compiled again without the statement that remembers the line."""
    source = cut(inspect.getsource(families))
    module = ModuleType("families_without")
    module.__dict__.update(vars(families))
    exec(compile(source, families.__file__, "exec"), module.__dict__)
    return module


def rebuilt(name: str, args: tuple, home: ModuleType) -> Callable:
    """An op of the table, made by the families of `home`."""
    op = copy.copy(TABLE[name])
    return getattr(home, kind(op))(op)


def kind(op: Any) -> str:
    if op.family is families.reduction:
        return "reduction"
    return "unary" if len(op.inputs) == 1 else "binary"


def block(work: Callable, args: tuple) -> float:
    start = perf_counter_ns()
    for _ in range(CALLS):
        work(*args)
    return (perf_counter_ns() - start) / CALLS


def lines() -> None:
    a = rushlight.ones(3, 4, requires_grad=True)
    without = families_without()
    cases = {"mul": (a, a), "add": (a, a), "tanh": (a,), "sum": (a,)}
    print(f"{'ns an op':12}{'with its line':>16}{'without':>12}{'difference':>14}")
    for name, args in cases.items():
        sides = rebuilt(name, args, families), rebuilt(name, args, without)
        pairs = [tuple(block(side, args) for side in sides) for _ in range(BLOCKS)]
        best = [min(p[i] for p in pairs) for i in (0, 1)]
        print(f"{name:12}{best[0]:>16.0f}{best[1]:>12.0f}{best[0] - best[1]:>14.0f}")
    print(f"{'empty call':12}{min(block(empty, ()) for _ in range(BLOCKS)):>16.0f}")


def empty() -> None:
    pass


def step_of(lib: ModuleType) -> Callable:
    nn = import_module(f"{lib.__name__}.nn")
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    inputs, labels, loss = lib.randn(32, 64), lib.randint(0, 10, (32,)), nn.CrossEntropyLoss()

    def step() -> None:
        for p in model.parameters():
            p.grad = None
        loss(model(inputs), labels).backward()

    return step


def anomalies(lib: ModuleType) -> None:
    step, times = step_of(lib), ([], [])
    for i in range(2 * STEPS):
        with lib.autograd.set_detect_anomaly(bool(i % 2)):
            start = perf_counter_ns()
            step()
            times[i % 2].append(perf_counter_ns() - start)
    off, on = (min(t) / 1000 for t in times)
    print(f"{lib.__name__:12}{on:>16.0f}{off:>12.0f}{on / off - 1:>14.0%}")


def main() -> None:
    rushlight.set_num_threads(1)
    lines()
    print(f"\n{'us a step':12}{'looking for nan':>16}{'not':>12}{'more':>14}")
    anomalies(rushlight)
    try:
        import torch
    except ImportError:
        return
    import warnings

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    anomalies(torch)


if __name__ == "__main__":
    main()
