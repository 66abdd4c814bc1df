"""ONNX files of the served models: size, nodes, time of the export, and calls in onnxruntime beside rushlight.compile.

    python benchmarks/onnx_files.py                     # all models of served_models.py, as a table for docs/serve.md
    python benchmarks/onnx_files.py lenet --calls 300

Each file takes any number of samples. One sample a call, one thread; onnxruntime and the compiled model take turns, and
each time is the smallest. `error`: the largest difference of the two, by the largest element."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import served_models

import rushlight


def session(path: str) -> Any:
    """An onnxruntime session of one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def seconds(call: Callable[[], Any]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def row(name: str, calls: int, folder: str) -> str:
    """The table's row of a model."""
    served = served_models.MODELS[name]
    rushlight.manual_seed(0)
    model = served.make(rushlight.nn).eval()
    arrays = served.draw(np.random.default_rng(0), 1)
    tensors = tuple(map(rushlight.from_numpy, arrays))
    path, dims = f"{folder}/{name}.onnx", tuple({0: "batch"} for _ in arrays)
    options: dict[str, Any] = {"dynamic_shapes": dims, "external_data": False}
    start = perf_counter()
    program = rushlight.onnx.export(model, tensors, path, **options)
    took = perf_counter() - start
    load = min(seconds(lambda: session(path)) for _ in range(3))
    running, compiled = session(path), rushlight.compile(model)
    given = dict(zip([i.name for i in running.get_inputs()], arrays))
    with rushlight.no_grad():
        for _ in range(5):
            wanted = compiled(*tensors)
        pairs = [(seconds(lambda: running.run(None, given)), seconds(lambda: compiled(*tensors))) for _ in range(calls)]
    theirs, ours = (min(column) * 1e6 for column in zip(*pairs))
    first = (wanted if isinstance(wanted, tuple) else (wanted,))[0].numpy()
    error = np.abs(running.run(None, given)[0] - first).max() / np.abs(first).max()
    size, nodes = os.path.getsize(path) / 1e6, len(program.model_proto.graph.node)
    return (
        f"| {name} | {size:.2f} | {nodes} | {took:.2f} | {load * 1e3:.0f} | {theirs:.0f} | {ours:.0f} | {error:.0e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=[*served_models.MODELS], help="default: all")
    parser.add_argument("--calls", type=int, default=200)
    given = parser.parse_args()
    print("| model | MB | nodes | export, s | load, ms | call, us: onnxruntime | rushlight.compile | error |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.models:
            print(row(name, given.calls, folder), flush=True)


if __name__ == "__main__":
    main()
