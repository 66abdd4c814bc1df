"""One program under one engine, in a process of its own: `child.py ENGINE PROGRAM RESULTS`.

ENGINE: "rushlight", or "reference": torch, and onnxruntime in the place of `rushlight.onnx`. RESULTS: a file for the
arrays that the program's `main` returns. The last line printed is JSON: `load`, the processor's seconds until the model is loaded,
with the imports; `first` and `run`, those of the first call of `main` and of the fastest; `memory`, the largest size of the
process in MB; `text`, what the first call printed."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import runpy
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

CALLS, SECONDS = 20, 3.0  # at most so many calls of a program, and no more calls after so long


class Session:
    """An ONNX file as a function of arrays, by onnxruntime on one thread."""

    def __init__(self, path: object):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(path), options)
        self.metadata = self._session.get_modelmeta().custom_metadata_map

    def __call__(self, *arrays: Any) -> Any:
        names = [put.name for put in self._session.get_inputs()]
        results = self._session.run(None, dict(zip(names, arrays)))
        return results[0] if len(results) == 1 else results


def use_reference() -> None:
    """Put a module with onnxruntime in the place of rushlight."""
    stand_in: Any = types.ModuleType("rushlight")
    stand_in.inference_mode = lambda: lambda function: function
    stand_in.onnx = types.SimpleNamespace(load=Session)
    sys.modules["rushlight"] = stand_in


def use_torch() -> None:
    """torch on one thread. A torchvision for CUDA registers no `nms` beside a torch for the CPU: `nms` in Python."""
    import torch

    torch.set_num_threads(1)
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch.library.impl("torchvision::nms", "cpu", nms)
    import torchvision.extension

    torchvision.extension._has_ops = lambda: True


def nms(boxes: Any, scores: Any, most: float) -> Any:
    """Indices of boxes (n, 4), by score, without boxes that overlap a better box by more than `most`."""
    import torch

    left, kept = scores.argsort(descending=True, stable=True), []
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        low, high = torch.maximum(boxes[best, :2], boxes[left, :2]), torch.minimum(boxes[best, 2:], boxes[left, 2:])
        common = (high - low).clamp(min=0).prod(1)
        left = left[common / (area[best] + area[left] - common) <= most]
    return torch.stack(kept) if kept else scores.new_empty(0, dtype=torch.long)


def needs_torch(program: str) -> bool:
    """Whether a program does not use onnxruntime alone."""
    with open(program) as file:
        return "rushlight.onnx" not in file.read()


def arrays_in(value: Any) -> list[np.ndarray]:
    """The arrays of a result: a tensor, an array, or a list or tuple of them."""
    if isinstance(value, (list, tuple)):
        return [array for part in value for array in arrays_in(part)]
    return [np.asarray(value.detach() if hasattr(value, "detach") else value)]


def measured(main: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """The first result of a function, what its first call printed, and times of its calls."""
    times: list[float] = []
    texts, results = [], []
    while not times or len(times) < CALLS and sum(times) < SECONDS:
        with contextlib.redirect_stdout(io.StringIO()) as text:
            start = time.process_time()
            result = main()
            times.append(time.process_time() - start)
        texts, results = texts or [text.getvalue()], results or [result]
    return results[0], {"first": times[0], "run": min(times), "text": texts[0]}


def main() -> None:
    engine, program, results = sys.argv[1:]
    start = time.process_time()
    if engine == "rushlight":
        import rushlight.compat

        rushlight.compat.install()
    else:
        use_reference()
    if engine == "reference" and needs_torch(program):
        use_torch()
    names = runpy.run_path(program, run_name="program")
    load = time.process_time() - start
    result, times = measured(names["main"])
    np.savez(results, *arrays_in(result))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"load": load, **times, "memory": memory}, ensure_ascii=False))


if __name__ == "__main__":
    main()
