"""The parameters that backward uses: a parameter without a gradient on one rank may have a gradient on another rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.comm.collectives import all_reduce
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.engine import reachable
from rushlight.core.tensor import Tensor, from_array


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in an output of forward: in lists, tuples, dicts and dataclasses."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif is_dataclass(value):
        yield from tensors_in([getattr(value, field.name) for field in fields(value)])


class Usage:
    """Which parameters the backwards of this rank use. `looks`: forward may leave parameters out; `static`: each
    backward is like the first one."""

    def __init__(self, parameters: Sequence[Tensor], looks: bool):
        self.parameters = list(parameters)
        self.looks, self.static = looks, False
        self.backwards = 0  # the number of backwards that sum gradients
        self.steady = True  # whether each backward has left out the same parameters
        self.used: set[int] = set()  # ids of the parameters with a gradient since the last sum
        self.unused: set[int] = set()  # parameters that this backward does not reach
        self.counts: Counter[int] = Counter()  # gradients of each parameter in the first backward
        self.left: Counter[int] = Counter()  # gradients that are still expected, of `counts`
        self.nowhere: set[int] = set()  # parameters that no rank has used: their gradients do not change

    @property
    def first(self) -> bool:
        """Whether this is the first backward of a static graph: all sums wait for its end."""
        return self.static and self.backwards == 1

    @property
    def asks(self) -> bool:
        """Whether the ranks exchange the set of used parameters: with a static graph, in the first backward only."""
        return self.first or (self.looks and not self.static)

    def start(self, outputs: Iterable[Tensor]) -> None:
        """Called after a forward: backward will start from its outputs."""
        self.backwards += 1
        if self.static and not self.first:
            self.left = self.counts.copy()
            self.unused = {id(p) for p in self.parameters} - set(self.counts)
        elif self.looks and not self.static:
            nodes = [t._node for t in outputs if t._node is not None]
            reached = {id(node) for node in reachable(nodes)}
            unused = {id(p) for p in self.parameters if id(p._node) not in reached}
            self.steady = self.steady and (self.backwards == 1 or unused == self.unused)
            self.unused = unused

    def count(self, key: int, expected: bool) -> bool:
        """Count a gradient of a parameter. Returns whether it is the last gradient of the parameter in a backward that
        sums gradients (`expected`)."""
        if self.asks:
            self.used.add(key)
        if not expected or not self.static:
            return expected
        if self.first:
            self.counts[key] += 1
            return False
        self.left[key] -= 1
        if self.left[key] < 0:
            raise runtime_error(
                "Your training graph has changed in this iteration, e.g., one parameter is unused in first "
                "iteration, but then got used in the second iteration. this is not compatible with static_graph "
                "set to True.",
                "static_graph=False, find_unused_parameters=True",
            )
        return self.left[key] == 0

    def agree(self, group: ProcessGroup) -> None:
        """Find the parameters that no rank has used since the last sum."""
        if not self.asks:
            return
        keys = [id(p) for p in self.parameters]
        used = np.array([key in self.used for key in keys], np.int32)
        self.used = set()
        all_reduce(from_array(used), group=group)
        self.nowhere = {key for key, count in zip(keys, used.tolist()) if not count}
