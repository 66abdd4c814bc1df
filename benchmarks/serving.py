"""Latency of served models: one sample a call, no gradients, in milliseconds: the median and the 99th percentile.

    env -u OPENBLAS_CORETYPE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/serving.py python
    benchmarks/serving.py lstm --calls 5000

Engines: rushlight and torch, eager and compiled (`compile` of the module), and onnxruntime where `onnxruntime` and
`onnx` are installed. All engines have torch's weights, take turns in blocks of 20 calls in one process, and their
outputs must agree to 1 in 10,000. Every call gets another input."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from first_steps import lstm, transformer

import rushlight

INPUTS, BLOCK, WARM_SECONDS = 50, 20, 1.0
TOLERANCE = 1e-4
Call = Callable[[Any], Any]


def mlp(nn: Any) -> Any:
    """784-256-128-10."""
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def lenet(nn: Any) -> Any:
    """Two convolutions with pooling, three linear layers, for 28 x 28 pixels."""
    convolutions = [
        part
        for channels, filters, padding in ((1, 6, 2), (6, 16, 0))
        for part in (nn.Conv2d(channels, filters, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2))
    ]
    head = nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()
    return nn.Sequential(*convolutions, *head, nn.Linear(84, 10))


# name -> (model of a library's nn, a function that draws one input)
MODELS: dict[str, tuple[Callable[[Any], Any], Callable[[np.random.Generator], np.ndarray]]] = {
    "mlp": (mlp, lambda rng: rng.standard_normal((1, 784), np.float32)),
    "lenet": (lenet, lambda rng: rng.standard_normal((1, 1, 28, 28), np.float32)),
    "transformer": (transformer, lambda rng: rng.integers(0, 65, (1, 32))),
    "lstm": (lstm, lambda rng: rng.integers(0, 65, (1, 32))),
}


def engines(name: str, example: np.ndarray, folder: Path) -> dict[str, tuple[Call, Call]]:
    """engine -> (a call, a function that makes the call's input of an array)."""
    torch.manual_seed(0)
    theirs = MODELS[name][0](torch.nn).eval()
    ours = MODELS[name][0](rushlight.nn).eval()
    ours.load_state_dict({k: rushlight.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    found: dict[str, tuple[Call, Call]] = {
        "rushlight": (ours, rushlight.from_numpy),
        "rushlight.compile": (rushlight.compile(ours), rushlight.from_numpy),
        "torch": (theirs, torch.from_numpy),
        "torch.compile": (torch.compile(theirs), torch.from_numpy),
    }
    if find_spec("onnxruntime") and find_spec("onnx"):
        found["onnxruntime"] = onnx_session(theirs, example, folder / f"{name}.onnx"), np.asarray
    return found


def onnx_session(model: Any, example: np.ndarray, path: Path) -> Call:
    """A call of onnxruntime with one thread."""
    import onnxruntime

    torch.backends.mha.set_fastpath_enabled(False)  # ONNX has no operator for the fused layer
    torch.onnx.export(model, (torch.from_numpy(example),), str(path), dynamo=False)
    torch.backends.mha.set_fastpath_enabled(True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    key = session.get_inputs()[0].name
    return lambda x: session.run(None, {key: x})[0]


def seconds_of_calls(call: Call, inputs: list[Any], count: int) -> list[float]:
    """The seconds of each of `count` calls."""
    found = []
    for k in range(count):
        x = inputs[k % len(inputs)]
        began = time.perf_counter()
        call(x)
        found.append(time.perf_counter() - began)
    return found


def measure(name: str, calls: int) -> dict[str, np.ndarray]:
    """engine -> the seconds of its calls."""
    rng = np.random.default_rng(0)
    arrays = [MODELS[name][1](rng) for _ in range(INPUTS)]
    with tempfile.TemporaryDirectory() as folder, torch.no_grad(), rushlight.no_grad():
        prepared = {
            engine: (call, [prepare(a) for a in arrays])
            for engine, (call, prepare) in engines(name, arrays[0], Path(folder)).items()
        }
        expected = np.asarray(prepared["torch"][0](prepared["torch"][1][0]))
        for engine, (call, inputs) in prepared.items():
            began = time.perf_counter()
            while time.perf_counter() - began < WARM_SECONDS:
                seconds_of_calls(call, inputs, BLOCK)
            np.testing.assert_allclose(np.asarray(call(inputs[0])), expected, TOLERANCE, TOLERANCE, err_msg=engine)
        rushlight.fast.settle()
        found: dict[str, list[float]] = {engine: [] for engine in prepared}
        while len(found["torch"]) < calls:
            for engine, (call, inputs) in prepared.items():
                seconds_of_calls(call, inputs, 2)  # the engine before has emptied the caches
                found[engine] += seconds_of_calls(call, inputs, BLOCK)
    return {engine: np.array(seconds) for engine, seconds in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--calls", type=int, default=4000, help="of each engine")
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    print(f"| {'model':11} | {'engine':17} | median ms | p99 ms | torch's median / ours |")
    print("|---|---|--:|--:|--:|")
    for name in arguments.models or MODELS:
        times = measure(name, arguments.calls)
        base = np.median(times["torch"])
        for engine, seconds in times.items():
            median, p99 = np.median(seconds), np.quantile(seconds, 0.99)
            print(
                f"| {name:11} | {engine:17} | {median * 1e3:.3f} | {p99 * 1e3:.3f} | {base / median:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
