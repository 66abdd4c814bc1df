"""A softmax over many classes: frequent classes are computed directly, rare ones in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor, created, from_array, noticed
from rushlight.nn.containers import ModuleList, Sequential
from rushlight.nn.linear import Linear
from rushlight.nn.module import Module
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce import reduce as r
from rushlight.ops.shape.views import cat, reshape


class _ASMoutput(NamedTuple):
    """The result of an adaptive softmax: each sample's log-probability of its target, and minus the mean of these."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """log softmax over `n_classes` classes in the order of frequency. `cutoffs` divides them into frequent classes and
    clusters.

    The head computes log-probabilities of the frequent classes (below cutoffs[0]) and of each cluster. A cluster has a
    projection to in_features / div_value^i features and its own softmax; the log-probability of the cluster is added to
    the result. input (N, in_features), target (N,), or (in_features,) and () -> (output (N,), loss): the
    log-probabilities of the targets, and minus their mean. ValueError unless the cutoffs increase from 1 to n_classes -
    1; RuntimeError for sizes that do not match and for targets that are not class indices.

    E. Grave et al., Efficient softmax approximation for GPUs, https://arxiv.org/abs/1609.04309

    >>> m = rushlight.nn.AdaptiveLogSoftmaxWithLoss(16, 10, [2, 6])
    >>> rushlight.allclose(m.log_prob(rushlight.ones(3, 16)).exp().sum(1), rushlight.ones(3))  # over all 10 classes
    True
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        check_cutoffs(cutoffs, n_classes)
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            inside = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, inside, False, device, dtype), Linear(inside, high - low, False, device, dtype)
                )
            )

    def reset_parameters(self) -> None:
        """Draw the weights of the head, then of the clusters."""
        self.head.reset_parameters()
        for project, classify in self.tail:
            project.reset_parameters()
            classify.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        check_batch(input_, target_)
        alone = target_._array.ndim == 0
        x, target = (reshape(input_, (1, -1)), reshape(target_, (1,))) if alone else (input_, target_)
        noticed(target)
        places = target._array
        if places.size and not 0 <= places.min() <= places.max() < self.n_classes:
            raise runtime_error(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{places.min()}, "
                f"{places.max()}] were found. "
            )
        cluster = np.searchsorted(self.cutoffs, places, side="right")  # 0: a frequent class
        at = np.where(cluster == 0, places, self.shortlist_size + cluster - 1)
        output = picked(r.log_softmax(self.head(x), 1), at)
        for i, tail in enumerate(self.tail):
            rows = np.flatnonzero(cluster == i + 1)
            if len(rows):
                inside = r.log_softmax(tail(x[created(from_array(rows))]), 1)
                own = picked(inside, places[rows] - self.cutoffs[i])
                output = output.index_add(0, created(from_array(rows)), own)
        if alone:
            output = reshape(output, ())
        return _ASMoutput(output, r.mean(e.neg(output)))

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: (N, in_features) -> (N, n_classes)."""
        head = r.log_softmax(self.head(input), 1)
        first = self.shortlist_size
        parts = [
            e.add(r.log_softmax(tail(input), 1), head[:, first + i : first + i + 1]) for i, tail in enumerate(self.tail)
        ]
        return cat([head[:, :first], *parts], 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each sample: (N, in_features) -> (N,)."""
        return self.log_prob(input).argmax(1)


def picked(logs: Tensor, at: np.ndarray) -> Tensor:
    """One element of each row: logs (N, C), at (N,) -> (N,)."""
    return reshape(logs.gather(1, created(from_array(at.reshape(-1, 1).astype(np.int64)))), (-1,))


def check_cutoffs(cutoffs: list, n_classes: int) -> None:
    """ValueError, in torch's words, for cutoffs that do not rise from 1 to n_classes - 1."""
    if not cutoffs:
        raise value_error("cutoffs should be a sequence of length larger than 0")
    rising = all(a < b for a, b in zip(cutoffs, cutoffs[1:]))
    if not rising or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or any(int(c) != c for c in cutoffs):
        raise value_error(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
            "value is between 1 and n_classes-1"
        )


def check_batch(input: Tensor, target: Tensor) -> None:
    """RuntimeError, in torch's words, for shapes of input and target that do not match."""
    x, t = input._array.shape, target._array.shape
    if len(t) == 1:
        if x[:1] != t:
            raise runtime_error("Input and target should have the same size in the batch dimension.")
        if len(x) != 2:
            raise runtime_error(f"1D target tensor expects 2D input tensors, but found inputs with size {input.shape}")
    elif not t:
        if len(x) != 1:
            raise runtime_error(f"0D target tensor expects 1D input tensors, but found inputs with size {input.shape}")
    else:
        raise runtime_error("0D or 1D target tensor expected, multi-target not supported")
