"""The path of a training through the space of its parameters: recorded vectors, and their two main directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import type_error, value_error
from rushlight.optim.optimizer import EVERYWHERE
from rushlight.viz.watching.sample import array_of

MAX_NUMBERS = 25_000_000  # of all recorded vectors together: 100 MB
MAX_POINTS, MIN_POINTS = 100, 10


class Path:
    """The parameters of a model, recorded during a training, for `viz.landscape`.

    `model`: a module, or tensors. Inside `with path:` the parameters are recorded at the start, and after every
    `every`-th step of an optimizer; `path.record()` records them by hand. At most 100 vectors are kept, and fewer of
    large models: then every second one is dropped, and `every` doubles. ValueError for a model with more than 2.5
    million parameters, or none. `steps`: the number of steps of each vector; `vectors`: (points, parameters), float32.

    >>> model = rushlight.nn.Linear(2, 1)
    >>> optimizer = rushlight.optim.SGD(model.parameters(), lr=0.1)
    >>> with rushlight.viz.Path(model) as path:
    ...     for _ in range(3):
    ...         model(rushlight.ones(4, 2)).square().mean().backward()
    ...         optimizer.step()
    >>> path.steps, path.vectors.shape
    ([0, 1, 2, 3], (4, 3))
    """

    def __init__(self, model: Any, every: int = 1):
        found = model.parameters() if hasattr(model, "parameters") else model
        self.parameters = list({id(p): p for p in found}.values())
        arrays = [array_of(p) for p in self.parameters]
        if any(a is None or a.dtype.kind != "f" for a in arrays):
            raise type_error("viz.Path: a parameter is not a dense tensor of real numbers", "give a module, or tensors")
        self.size = sum(p.numel() for p in self.parameters)
        if not 0 < self.size <= MAX_NUMBERS // MIN_POINTS:
            raise value_error(
                f"viz.Path: the model has {self.size} parameters, and the path takes 1 to {MAX_NUMBERS // MIN_POINTS}",
                "give the tensors of a part of the model",
            )
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"viz.Path: every must be a positive int, not {every!r}")
        self.every, self.count = every, 0
        self.most = min(MAX_POINTS, MAX_NUMBERS // self.size)
        self.steps: list[int] = []
        self.found: list[np.ndarray] = []
        self.handle: Any = None

    @property
    def vectors(self) -> np.ndarray:
        """The recorded vectors (points, parameters), float32."""
        return np.array(self.found)

    def __enter__(self) -> Path:
        if not self.steps:
            self.record()
        self.handle = EVERYWHERE.add("step_post", lambda optimizer, args, kwargs: self.stepped(optimizer))
        return self

    def __exit__(self, *error: object) -> None:
        self.handle.remove()
        if self.steps[-1] != self.count:
            self.record()

    def stepped(self, optimizer: Any) -> None:
        """Count a step of an optimizer of these parameters."""
        mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if any(id(p) in mine for p in self.parameters):
            self.count += 1
            if self.count % self.every == 0:
                self.record()

    def record(self) -> None:
        """Record the parameters as they are now."""
        self.steps.append(self.count)
        self.found.append(np.concatenate([p._array.ravel() for p in self.parameters], dtype=np.float32))
        if len(self.found) > self.most:
            del self.found[1:-1:2], self.steps[1:-1:2]
            self.every *= 2

    def plane(self) -> tuple[np.ndarray, np.ndarray, list[float]]:
        """(points (k, 2), directions (2, parameters), the share of the path's variance in each direction): the two main
        directions of the vectors around the last one, by the eigenvectors of their products."""
        moves = np.array([v - self.found[-1] for v in self.found], np.float32)  # (k, parameters)
        centred = moves - moves.mean(0)
        products = (centred @ centred.T).astype(np.float64)  # (k, k)
        sizes, mixes = np.linalg.eigh(products)
        order = np.argsort(-sizes)[:2]
        if len(order) < 2 or sizes[order[0]] <= 0:
            raise value_error("viz.landscape: the recorded parameters do not move", "record the path of a training")
        directions = (mixes[:, order].T @ centred).astype(np.float64)  # (2, parameters)
        first, second = directions
        first /= np.linalg.norm(first)
        second -= (second @ first) * first
        length = np.linalg.norm(second)
        if length < 1e-6 * np.sqrt(sizes[order[0]]):  # a straight path: any other direction
            second[:] = np.random.default_rng(0).standard_normal(self.size)
            second -= (second @ first) * first
            length = np.linalg.norm(second)
        second /= length
        shares = [float(max(sizes[i], 0.0) / max(sizes.sum(), 1e-300)) for i in order]
        return moves @ directions.T, directions, shares
