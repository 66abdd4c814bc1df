"""CTC loss: the loss of a label sequence without known positions in time."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import not_implemented_error, runtime_error, value_error
from rushlight.core.arguments import integer
from rushlight.core.tensor import Tensor, created, from_array, noticed
from rushlight.nn.functional.loss import reduced
from rushlight.ops.math import elementwise as e
from rushlight.ops.nn import ctc as c
from rushlight.ops.reduce import reduce as r
from rushlight.ops.shape.views import reshape, unsqueeze


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """-log of the sum, over all alignments of the labels with time, of the product of their probabilities.

    log_probs (T, N, C), a log_softmax of float32 or float64, or (T, C); targets (N, S), with the first `target_lengths`
    labels of each row, or all sequences in one vector; lengths (N,), as tensors or tuples of ints. An alignment has
    each label once or several times in a row, and any number of blanks between labels. 'mean' divides each sample's
    loss by its target length first. `zero_infinity`: 0, and no gradient, for an input that is too short for its labels.
    As in torch, the gradient is exp(x) - posterior, the gradient of the log_softmax's input. RuntimeError for sizes
    that do not match; NotImplementedError for a second derivative, as in torch.

    >>> x = rushlight.tensor([[0.6, 0.4], [0.6, 0.4]]).log()
    >>> rushlight.nn.functional.ctc_loss(x, rushlight.tensor([1]), (2,), (1,)).exp()
    tensor(1.5625)
    """
    inputs, lengths = whole_numbers(input_lengths, "input_lengths"), whole_numbers(target_lengths, "target_lengths")
    if reduction not in ("mean", "sum", "none"):
        raise value_error(f"{reduction} is not a valid value for reduction", "'mean', 'sum' or 'none'")
    alone = log_probs._array.ndim == 2 and len(inputs) == 1
    x = unsqueeze(log_probs, 1) if alone else log_probs
    check(x, targets, inputs, lengths, blank)
    loss, _ = c.ctc(x, targets if targets._array.dtype.kind in "iu" else targets.long(), inputs, lengths, blank)
    if alone:
        loss = reshape(loss, ())
    if zero_infinity:
        loss = e.where(e.isinf(loss), 0, loss)
    if reduction == "mean":
        loss = e.div(loss, created(from_array(np.array([max(n, 1) for n in lengths], loss._array.dtype))))
    return r.sum(loss) if reduction == "sum" else reduced(loss, reduction)


def whole_numbers(lengths: Any, name: str) -> tuple[int, ...]:
    """Lengths as Python ints. RuntimeError for a tensor of another dtype."""
    if not isinstance(lengths, Tensor):
        return tuple([integer(n, name) for n in lengths])
    if lengths._array.dtype.kind not in "iu":
        raise runtime_error(f"{name} must be integral", "convert it with .long()", dtype=lengths.dtype)
    noticed(lengths)
    return tuple(lengths._array.ravel().tolist())


def check(x: Tensor, targets: Tensor, inputs: tuple[int, ...], lengths: tuple[int, ...], blank: int) -> None:
    """RuntimeError, in torch's words, for sizes and lengths that do not match, or dtypes other than float32 and
    float64."""
    if not x.is_floating_point() or x._array.dtype.itemsize < 4:
        raise not_implemented_error(
            f"\"ctc_loss\" not implemented for '{x.dtype.scalar_type}'", "convert log_probs with .float()"
        )
    if x._array.ndim != 3:
        raise runtime_error(
            f"Expected 3-dimensional tensor, but got {x._array.ndim}-dimensional tensor for argument #1 'log_probs'",
            "(T, N, C): time, batch, classes",
        )
    if x._array.size == 0:
        raise runtime_error("log_probs tensor must not be empty", shape=tuple(x.shape))
    times, batch, classes = x._array.shape
    if not 0 <= blank < classes:
        raise runtime_error("blank must be in label range", f"it is a class, from 0 to {classes - 1}")
    for name, given, most in (("input_lengths", inputs, times), ("target_lengths", lengths, None)):
        if len(given) != batch:
            raise runtime_error(f"{name} must be of size batch_size", f"pass {batch} lengths", got=len(given))
        if min(given) < 0:
            raise runtime_error(f"Expected {name} to have value at least 0, but got value {min(given)}")
        if most is not None and max(given) > most:
            raise runtime_error(f"Expected {name} to have value at most {most}, but got value {max(given)}")
    check_targets(targets._array.shape, batch, lengths)


def check_targets(shape: tuple[int, ...], batch: int, lengths: tuple[int, ...]) -> None:
    """RuntimeError unless the number of labels fits the lengths."""
    end = " for argument #2 'targets'"
    if len(shape) == 1 and shape[0] != sum(lengths):
        raise runtime_error(
            f"Expected tensor to have size {sum(lengths)} at dimension 0, but got size {shape[0]}{end}",
            "the sum of target_lengths",
        )
    if len(shape) == 2 and shape[0] != batch:
        raise runtime_error(f"Expected tensor to have size {batch} at dimension 0, but got size {shape[0]}{end}")
    if len(shape) == 2 and shape[1] < max(lengths):
        raise runtime_error(
            f"Expected tensor to have size at least {max(lengths)} at dimension 1, but got size {shape[1]}{end}"
        )
    if len(shape) not in (1, 2):
        raise runtime_error(f"Expected tensor to have 1 or 2 dimensions, but got {len(shape)}{end}")
