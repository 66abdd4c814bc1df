"""PowerSGD: gradients are approximated by products of two thin matrices, M ~ P Q^T; P and Q are summed over the ranks.

T. Vogels, S. P. Karimireddy, M. Jaggi, *PowerSGD: practical low-rank gradient compression for distributed
optimization*, 2019. The error of the approximation is added to the next gradient (error feedback)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.futures import Future
from rushlight.comm.collectives import all_reduce
from rushlight.comm.groups import member
from rushlight.core.tensor import Tensor, from_array
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook


class PowerSGDState:
    """The state of the hook: its settings, and the errors and the last Q of each bucket."""

    def __init__(
        self, process_group: Any, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0, compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ):  # fmt: skip
        if start_powerSGD_iter <= 1 and (use_error_feedback or warm_start):
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because "
                "PowerSGD can only be applied after the first two iterations in DDP."
            )
        self.process_group, self.rank = process_group, matrix_approximation_rank
        self.start, self.rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.epsilon = orthogonalization_epsilon
        self.random = np.random.RandomState(random_seed)
        self.iter = 0
        self.errors: dict[int, np.ndarray] = {}
        self.last: dict[tuple[int, int], np.ndarray] = {}  # {(bucket, number of a gradient): its Q}

    def compresses(self, shape: tuple[int, ...]) -> bool:
        """Whether P and Q are smaller than a gradient of this shape by at least `min_compression_rate`."""
        if len(shape) < 2:
            return False
        rows, columns = shape[0], int(np.prod(shape[1:]))
        rank = min(rows, columns, self.rank)
        return (rows + columns) * rank * self.rate < rows * columns


def orthogonal(matrix: np.ndarray, epsilon: float) -> np.ndarray:
    """A matrix with orthonormal columns that span the same space."""
    if epsilon == 0:
        return np.linalg.qr(matrix)[0].astype(matrix.dtype)
    for i in range(matrix.shape[1]):
        column = matrix[:, i]
        column /= np.linalg.norm(column) + epsilon
        matrix[:, i + 1 :] -= np.outer(column, column @ matrix[:, i + 1 :])
    return matrix


def mean(arrays: list[np.ndarray], group: Any, size: int) -> list[np.ndarray]:
    """The means over all ranks, in one message."""
    if not arrays:
        return []
    flat = np.concatenate([a.reshape(-1) for a in arrays])
    all_reduce(from_array(flat), group=group)
    flat /= size
    ends = np.cumsum([a.size for a in arrays])[:-1]
    return [part.reshape(a.shape) for part, a in zip(np.split(flat, ends), arrays)]


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:
    """The mean of the bucket: approximate for large matrices, exact for other gradients."""
    if state.iter < state.start:
        if bucket.is_last():
            state.iter += 1
        return allreduce_hook(state.process_group, bucket)
    group, buffer = state.process_group, bucket.buffer()
    size = member(group).size()  # type: ignore[union-attr]
    gradients: list[Tensor] = bucket.gradients()
    if state.use_error_feedback:
        error = state.errors.setdefault(bucket.index(), np.zeros_like(buffer._array))
        buffer._array += error
        before = buffer._array.copy()
    large = [i for i, g in enumerate(gradients) if state.compresses(tuple(g.shape))]
    plain = [g._array for i, g in enumerate(gradients) if i not in large]
    for own, new in zip(plain, mean(plain, group, size)):
        own[...] = new
    matrices = [gradients[i]._array.reshape(gradients[i].shape[0], -1) for i in large]
    rights = [right(state, (bucket.index(), i), m) for i, m in zip(large, matrices)]
    lefts = [m @ q for m, q in zip(matrices, rights)]
    lefts = [orthogonal(p, state.epsilon) for p in mean(lefts, group, size)]
    rights = mean([m.T @ p for m, p in zip(matrices, lefts)], group, size)
    for i, m, p, q in zip(large, matrices, lefts, rights):
        m[...] = p @ q.T
        if state.warm_start:
            state.last[bucket.index(), i] = q
    if state.use_error_feedback:
        state.errors[bucket.index()] = before - buffer._array
    if bucket.is_last():
        state.iter += 1
    future: Future = Future()
    future.set_result(buffer)
    return future


def right(state: PowerSGDState, key: tuple[int, int], matrix: np.ndarray) -> np.ndarray:
    """The initial Q: the Q of the previous step, or a random one, equal on all ranks."""
    if state.warm_start and key in state.last:
        return orthogonal(state.last[key], state.epsilon)
    rank = min(*matrix.shape, state.rank)
    q = state.random.standard_normal((matrix.shape[1], rank)).astype(matrix.dtype)
    return orthogonal(q, state.epsilon)


__all__ = ["PowerSGDState", "powerSGD_hook"]
