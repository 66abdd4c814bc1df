"""The current predictions: the first samples of the last batch, as the loss got them, for the live page."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from rushlight import nn
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.viz.array_preview import describe
from rushlight.viz.watching.sample import array_of
from rushlight.viz.watching.samples import short

ROWS, POINTS, BEST = 8, 100, 3  # samples with classes, points of a regression, classes of each sample
MAX_CHECKED = 4096  # samples of the batch that the accuracy is computed from
MAX_SIDE = 32  # pixels of a picture
SCORES = {"cross_entropy": "softmax", "nll_loss": "exp"}  # loss -> what makes probabilities of its input
BINARY = {"binary_cross_entropy_with_logits": "sigmoid", "binary_cross_entropy": ""}


@lru_cache(maxsize=1)
def losses() -> list[str]:
    """The functions of nn.functional that compare an input with a target."""
    found = []
    for name, function in vars(nn.functional).items():
        if not name.startswith("_") and inspect.isfunction(function):
            names = [*inspect.signature(function).parameters]
            if names[:2] == ["input", "target"] and "reduction" in names:
                found.append(name)
    return found


class Compared:
    """The last call of a loss function: its name, input and target as arrays, and the call with another input."""

    def __init__(self) -> None:
        self.last: tuple[str, np.ndarray, np.ndarray, Callable[[Any], Any]] | None = None

    def watch(self, name: str, function: Callable) -> Callable:
        """The loss function, which also keeps references to its two arrays."""

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            m = mode()
            if m.watch is None and m.batch is None:
                input = args[0] if args else kwargs.get("input")
                target = args[1] if len(args) > 1 else kwargs.get("target")
                ours, theirs = array_of(input), array_of(target)
                if ours is not None and theirs is not None:
                    rest = {**kwargs, "target": target} if len(args) < 2 else kwargs
                    rest.pop("input", None)
                    self.last = name, ours, theirs, lambda other: function(other, *args[1:], **rest)
            return function(*args, **kwargs)

        return run


def batch_of(calls: list[tuple], compared: Any) -> Callable[[], Any] | None:
    """A function that computes the last batch's loss again: the model's output must have gone to the loss, in any
    shape. `calls`: (model, arguments, keyword arguments, output); `compared`: `Compared.last`. None if it did not."""
    for model, args, kwargs, output in reversed(calls):
        array = array_of(output)
        if array is None or compared is None:
            continue
        _, scores, _, loss = compared
        same = array.size == scores.size and array.ctypes.data == scores.ctypes.data
        if same and array.flags.c_contiguous and scores.flags.c_contiguous:
            return lambda: loss(model(*args, **kwargs).reshape(scores.shape))
    return None


def predictions(compared: Any, batch: Any, output: Any) -> dict[str, Any] | None:
    """What the page shows. `compared`: (loss, its input, its target, ...) or None; `batch`, `output`: the first
    argument and the result of the model, arrays or None."""
    if compared is not None:
        name, scores, target, _ = compared
        if name in SCORES and scores.ndim > 1 and target.size and scores.shape[1] > 1:
            return of_classes(SCORES[name], scores, target, batch)
        if name in BINARY and scores.shape == target.shape and scores.size:
            return of_yes_or_no(BINARY[name], scores, target, batch)
        if scores.shape == target.shape and scores.size:
            return of_numbers(scores, target)
    return None if output is None else {"kind": "array", "array": describe(output)}


def of_classes(scale: str, scores: np.ndarray, target: np.ndarray, batch: Any) -> dict[str, Any]:
    """Rows of the most probable classes. scores: (N, C, ...); target: classes (N, ...), or probabilities as scores."""
    count = scores.shape[1]
    rows = np.moveaxis(scores, 1, -1).reshape(-1, count)
    if target.shape == scores.shape:
        true = np.moveaxis(target, 1, -1).reshape(-1, count).argmax(1)
    else:
        true = target.reshape(-1).astype(int)
    rows, true = rows[:MAX_CHECKED], true[:MAX_CHECKED]
    shown = probabilities(rows[:ROWS].astype(np.float64), scale)
    order = np.argsort(-shown, axis=1)[:, :BEST]
    found = [
        {"target": int(t), "best": [[int(c), short(p[c])] for c in best], "picture": picture(batch, i, len(scores))}
        for i, (p, best, t) in enumerate(zip(shown, order, true))
    ]
    right = float((rows.argmax(1) == true).mean())
    return {"kind": "classes", "rows": found, "right": short(right), "of": len(rows)}


def of_yes_or_no(scale: str, scores: np.ndarray, target: np.ndarray, batch: Any) -> dict[str, Any]:
    """Rows of the probability of class 1. scores, target: the same shape."""
    flat, true = scores.reshape(-1)[:MAX_CHECKED], target.reshape(-1)[:MAX_CHECKED]
    ones = probabilities(flat[:, None].astype(np.float64), scale)[:, 0]
    found = [
        {
            "target": int(t > 0.5),
            "best": sorted([[1, short(p)], [0, short(1 - p)]], key=lambda row: -float(row[1])),
            "picture": picture(batch, i, scores.size),
        }
        for i, (p, t) in enumerate(zip(ones[:ROWS], true))
    ]
    return {"kind": "classes", "rows": found, "right": short(((ones > 0.5) == (true > 0.5)).mean()), "of": len(flat)}


def of_numbers(prediction: np.ndarray, target: np.ndarray) -> dict[str, Any]:
    """Points (target, prediction) of the first elements, at equal distances. The same shape."""
    step = max(1, prediction.size // POINTS)
    pairs = zip(target.reshape(-1)[::step][:POINTS], prediction.reshape(-1)[::step][:POINTS])
    return {"kind": "numbers", "points": [[short(float(t)), short(float(p))] for t, p in pairs]}


def probabilities(scores: np.ndarray, scale: str) -> np.ndarray:
    """Probabilities (N, C) from the scores that a loss takes."""
    if scale == "sigmoid":
        return 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    if not scale:
        return scores
    parts = np.exp(scores - scores.max(1, keepdims=True)) if scale == "softmax" else np.exp(scores)
    return parts / parts.sum(1, keepdims=True) if scale == "softmax" else parts


def picture(batch: Any, i: int, samples: int) -> dict[str, Any] | None:
    """Sample i of a batch of images (N, 1 or 3, height, width), as bytes from 0 to 255 in base64; None for others."""
    if batch is None or batch.ndim != 4 or batch.shape[1] not in (1, 3) or len(batch) != samples or i >= samples:
        return None
    image = batch[i].astype(np.float64)
    step = max(1, -(-max(image.shape[1:]) // MAX_SIDE))
    image = image[:, ::step, ::step]
    low, high = image.min(), image.max()
    if not np.isfinite(high - low):
        return None
    grey = ((image - low) * (255 / (high - low or 1))).astype(np.uint8).transpose(1, 2, 0)
    return {"size": [grey.shape[1], grey.shape[0], grey.shape[2]], "bytes": base64.b64encode(grey.tobytes()).decode()}


def shown(result: Any) -> dict[str, Any]:
    """The result of the user's function `predict`: text, or a tensor."""
    if isinstance(result, Tensor):
        return {"kind": "array", "array": describe(result._array)}
    return {"kind": "text", "text": str(result)[:4000]}
