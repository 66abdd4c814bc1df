"""The lower-level functions behind nn.functional that torch exports. Their arguments are positional; they also return
the values that torch's backward needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import invalid_combination, runtime_error
from rushlight.base.intp import as_intp
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import ones_like
from rushlight.nn import functional as F
from rushlight.nn.functional import recurrent
from rushlight.nn.functional.embedding import bags, padding_row, shorten
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.reduce.norms_api import matrix_norm, vector_norm

MODES = ("sum", "mean", "max")


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(out, bag of each index, size of each bag, row of each maximum): nn.functional.embedding_bag. `mode`: 0 sum, 1
    mean, 2 max. The last three are for torch's backward; a value that it does not need is 0.

    >>> rushlight.embedding_bag(rushlight.eye(2), rushlight.tensor([0, 1, 1]), rushlight.tensor([0, 2]))[0]
    tensor([[1., 1.],
            [0., 1.]])
    """
    out = F.embedding_bag(
        indices, weight, offsets, None, 2, scale_grad_by_freq, MODES[mode], sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    flat, sizes = bags(indices, offsets, include_last_offset)
    bag = np.repeat(np.arange(len(sizes)), as_intp(sizes))
    kept = np.ones(len(flat), bool) if padding_idx is None else flat != padding_row(padding_idx, weight)
    size = np.bincount(bag[kept], minlength=len(sizes)) if mode else np.zeros(len(sizes), np.int64)
    largest = size
    if mode == 2:
        largest = np.zeros(out._array.shape, np.int64)
        for i in np.flatnonzero(size):
            rows = flat[kept & (bag == i)]
            largest[i] = rows[weight._array[rows].argmax(0)]
    if mode == 0 and padding_idx is None and per_sample_weights is None:
        bag = bag[:0]
    return out, *(from_array(a.astype(np.int64)) for a in (bag, size, largest.copy()))  # type: ignore[return-value]


def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """input[i] = input[i] min(1, max_norm / |input[i]|), in place, for the rows i that are looked up.

    >>> rushlight.embedding_renorm_(rushlight.tensor([[3., 4.], [6., 8.]]), rushlight.tensor([0]), 1.0, 2.0)
    tensor([[0.6000, 0.8000],
            [6.0000, 8.0000]])
    """
    shorten(input, indices, max_norm, norm_type)
    return input


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """(dropout(input), mask of the elements that were kept).

    >>> rushlight.native_dropout(rushlight.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    if train is False or p == 0:
        return input * 1, input.isfinite() | True
    with no_grad():
        factors = F.dropout(ones_like(input), p)
    return input * factors, factors != 0


def in_place(function: Callable[..., Tensor]) -> Callable[[Tensor, float, bool], Tensor]:
    """The function `name`_ that writes function(input, p, train) into its input."""
    name = function.__name__

    def call(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train, True)

    call.__name__ = call.__qualname__ = f"{name}_"
    call.__doc__ = f"""input = nn.functional.{name}(input, p, train).

    >>> rushlight.{name}_(rushlight.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    return call


dropout_, alpha_dropout_, feature_alpha_dropout_ = map(in_place, (F.dropout, F.alpha_dropout, F.feature_alpha_dropout))


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """out = input m / (1 - p), where m is 0 with probability p, else 1, for each channel (dimension 1).

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.feature_dropout(rushlight.ones(1, 4, 2), 0.5, True)
    tensor([[[0., 0.],
             [0., 0.],
             [2., 2.],
             [0., 0.]]])
    """
    if input.ndim < 2:
        raise runtime_error("Feature dropout requires at least 2 dimensions in the input")
    ones = input.new_ones((*input.shape[:2], *(1,) * (input.ndim - 2)))
    return input * F.dropout(ones, p, train)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """input = feature_dropout(input, p, train).

    >>> rushlight.feature_dropout_(rushlight.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    return input.copy_(feature_dropout(input, p, train))


def max_pool1d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """(values, indices) = nn.functional.max_pool1d(..., return_indices=True).

    >>> rushlight.max_pool1d_with_indices(rushlight.tensor([[1., 5., 2., 3.]]), 2)
    (tensor([[5., 3.]]), tensor([[1, 3]]))
    """
    return F.max_pool1d(input, kernel_size, stride or None, padding, dilation, ceil_mode, True)


def norm_except_dim(v: Tensor, pow: float = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions except `dim`, which keep size 1; over all dimensions if `dim` is -1.

    >>> rushlight.norm_except_dim(rushlight.tensor([[3., 4.], [6., 8.]]))
    tensor([[ 5.],
            [10.]])
    """
    if dim == -1:
        return vector_norm(v, pow)
    return vector_norm(v, pow, tuple(d for d in range(v.ndim) if d != dim), True)


def frobenius_norm(input: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """out = sqrt(sum of input^2) over these dimensions.

    >>> rushlight.frobenius_norm(rushlight.tensor([[3., 4.], [6., 8.]]), 1)
    tensor([ 5., 10.])
    """
    return vector_norm(input, 2, dim if isinstance(dim, int) else tuple(dim), keepdim)


def nuclear_norm(input: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of a matrix, or of the matrices in two dimensions.

    >>> rushlight.nuclear_norm(rushlight.tensor([[3., 0.], [0., 4.]]))
    tensor(7.)
    """
    if dim is None and input.ndim != 2:
        raise runtime_error(
            f"nuclear_norm: expected a tensor with 2 dimensions, but got a tensor with {input.ndim} "
            f"dimension{'s' * (input.ndim != 1)} instead.",
            "pass the two dimensions as `dim`",
        )
    return matrix_norm(input, "nuc", (0, 1) if dim is None else tuple(dim), keepdim)


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """nn.functional.affine_grid: the point in [-1, 1] x [-1, 1] of each element of the output.

    >>> rushlight.affine_grid_generator(rushlight.eye(2, 3)[None], (1, 1, 2, 2), True)[..., 0]
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    return F.affine_grid(theta, size, align_corners)


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """The function nn.functional.conv1d to conv3d, or conv_transpose1d to conv_transpose3d, for the input's number of
    dimensions.

    >>> x, w = rushlight.ones(1, 1, 3), rushlight.ones(1, 1, 2)
    >>> rushlight.convolution(x, w, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    way = getattr(F, f"conv{'_transpose' * transposed}{input.ndim - 2}d", None)
    if way is None:
        raise runtime_error(f"convolution: expected an input of 3, 4 or 5 dimensions, but got {input.ndim}")
    if transposed:
        return way(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return way(input, weight, bias, stride, padding, dilation, groups)


# -- recurrent layers ------------------------------------------------------------------------------
# lstm(x, (h, c), weights, has_biases, num_layers, dropout, train, bidirectional, batch_first); packed rows:
# lstm(data, batch_sizes, (h, c), weights, has_biases, num_layers, dropout, train, bidirectional)


def recurrent_function(name: str, mode: str, states: int) -> Callable:
    def call(input: Tensor, *args: Any) -> tuple[Tensor, ...]:
        if len(args) < 8:
            raise invalid_combination(name, (input, *args), {})
        packed = isinstance(args[0], Tensor) and isinstance(args[2], (list, tuple))
        sizes, (hx, params, has_biases, num_layers, dropout, train, bidirectional, *rest) = (
            (tuple(args[0].tolist()), args[1:]) if packed else (None, args)
        )
        given = [hx] if isinstance(hx, Tensor) else list(hx)
        if len(given) != states:
            raise runtime_error(f"{name} expects {'two hidden states' if states == 2 else 'one hidden state'}")
        step = len(params) // (num_layers * (1 + bidirectional))
        weights = [grouped(params[i : i + step], has_biases) for i in range(0, len(params), step)]
        first = bool(rest and rest[0])
        out, last = recurrent.layers(
            mode, input, recurrent.per_direction(input, given), weights, sizes, bidirectional,
            dropout if train else 0.0, first,
        )  # fmt: skip
        return (out, *last)

    call.__name__ = call.__qualname__ = name
    layer = name.upper().partition("_")[0]
    call.__doc__ = f"""(out, *last states) of what nn.{layer} computes, given its weights as a list.

    >>> layer, x, h = rushlight.nn.{layer}(2, 3), rushlight.ones(4, 1, 2), rushlight.zeros(1, 1, 3)
    >>> weights = [*layer.parameters()]
    >>> made = rushlight.{name}(x, {"h" if states == 1 else "(h, h)"}, weights, True, 1, 0., False, False, False)
    >>> [t.shape for t in made]
    [torch.Size([4, 1, 3]), {", ".join(["torch.Size([1, 1, 3])"] * states)}]
    """
    return call


def grouped(params: Sequence[Tensor], has_biases: bool) -> Any:
    """The weights of one direction of a layer. Without biases, the third weight is the projection."""
    w_ih, w_hh, *more = params
    biases = more[:2] if has_biases else [None, None]
    return recurrent.Weights(w_ih, w_hh, *biases, *more[2 if has_biases else 0 :])


lstm, gru = recurrent_function("lstm", "LSTM", 2), recurrent_function("gru", "GRU", 1)
rnn_tanh, rnn_relu = recurrent_function("rnn_tanh", "RNN_TANH", 1), recurrent_function("rnn_relu", "RNN_RELU", 1)
