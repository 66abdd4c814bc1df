"""Operators with graphs: If, Loop, Scan, SequenceMap, and the functions of a model. A graph is a function of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight as torch
from rushlight import Tensor

from .table import Ints, Scalar, Value, operator

Body = Callable[..., list[Any]]


def call_function(*inputs: Value, body: Body) -> tuple[Any, ...]:
    """A function of the model."""
    return tuple(body(*inputs))


@operator("If")
def if_(condition: Scalar, *, then_branch: Body, else_branch: Body) -> tuple[Any, ...]:
    """The outputs of one of two graphs."""
    return tuple(then_branch() if condition else else_branch())


@operator("Loop")
def loop(trips: Scalar, condition: Scalar, *state: Value, body: Body, n_outputs: int) -> tuple[Any, ...]:
    """body(i, condition, *state) -> condition, *state, *items; the items of each kind are stacked."""
    scans: list[list[Any]] = [[] for _ in range(n_outputs - len(state))]
    going, i = condition is None or bool(condition), 0
    while going and (trips is None or i < trips):
        out = body(as_known(i), as_known(going), *state)
        going, state = bool(out[0]), tuple(out[1 : 1 + len(state)])
        for items, item in zip(scans, out[1 + len(state) :]):
            items.append(item)
        i += 1
    return (*state, *(stacked(items) for items in scans))


def as_known(value: Any) -> Any:
    """A number as a value that is known while the model runs."""
    return np.array(value, np.int64 if type(value) is int else None)


def stacked(items: list[Any], axis: int = 0) -> Any:
    """Tensors or arrays, stacked."""
    if items and all(isinstance(item, np.ndarray) for item in items):
        return np.stack(items, axis)
    return torch.stack([torch.as_tensor(item) for item in items], axis) if items else torch.zeros(0)


@operator("Scan", since=9)
def scan(
    *inputs: Tensor,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Ints | None = None,
    scan_input_directions: Ints | None = None,
    scan_output_axes: Ints | None = None,
    scan_output_directions: Ints | None = None,
) -> tuple[Any, ...]:
    """body(*state, *slices) -> *state, *items, for each slice of the last inputs."""
    count = len(inputs) - num_scan_inputs
    state, sequences = list(inputs[:count]), inputs[count:]
    axes = scan_input_axes or [0] * num_scan_inputs
    slices = [list(x.unbind(axis)) for x, axis in zip(sequences, axes)]
    for i, backwards in enumerate(scan_input_directions or ()):
        slices[i] = slices[i][::-1] if backwards else slices[i]
    steps = []
    for at in zip(*slices):
        out = body(*state, *at)
        state = out[:count]
        steps.append(out[count:])
    scans = [list(items) for items in zip(*steps)]
    for i, backwards in enumerate(scan_output_directions or ()):
        scans[i] = scans[i][::-1] if backwards else scans[i]
    out_axes = scan_output_axes or [0] * len(scans)
    return (*state, *(stacked(items, axis) for items, axis in zip(scans, out_axes)))


@operator("Scan", until=8)
def scan_batches(
    lengths: Value, *inputs: Tensor, body: Body, num_scan_inputs: int, directions: Ints | None = None
) -> tuple[Any, ...]:
    """Scan of opset 8: dimension 0 is the batch, dimension 1 the sequence."""
    each = []
    for b in range(inputs[0].shape[0]):
        each.append(
            scan(*(x[b] for x in inputs), body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions)
        )
    return tuple(torch.stack(list(outs)) for outs in zip(*each))


@operator("SequenceMap")
def sequence_map(first: Value, *others: Value, body: Body) -> tuple[Any, ...]:
    """The body for each item of the first sequence; other sequences give their items, tensors stay the same."""
    each = [body(item, *(o[i] if isinstance(o, list) else o for o in others)) for i, item in enumerate(first)]
    return tuple(list(outs) for outs in zip(*each)) if each else ([],)
