"""Recurrent layers over sequences, padded or packed, and their cells."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from rushlight.base.errors import index_error, runtime_error, type_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import zeros
from rushlight.nn import init
from rushlight.nn.functional import recurrent
from rushlight.nn.functional.recurrent import Weights
from rushlight.nn.layer_settings import uninitialized
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.rnn import PackedSequence, steps_of

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def features_hint(shape: tuple[int, ...], wanted: int) -> str:
    """The hint for an input whose last dimension is not `wanted`, the number of features."""
    if wanted == 1:
        return "steps of one feature have a last dimension of size 1: x.unsqueeze(-1)"
    if wanted in shape[:-1]:
        return f"the features come last: x.movedim({shape.index(wanted)}, -1)"
    return f"use input_size={shape[-1]}, or an input with {wanted} features"


class RNNBase(Module):
    """outputs, states = module(input, states): the base of RNN, LSTM and GRU; `mode` is RNN_TANH, RNN_RELU, LSTM or
    GRU.

    Input (T, N, input_size), (N, T, input_size) if `batch_first`, (T, input_size) for one sequence, or a
    PackedSequence. States (num_layers * directions, N, H), without N for one sequence; zeros unless given. Returns the
    last layer's outputs (T, N, directions * H), both directions joined, and the last states of all layers.

    Each layer and direction has weight_ih (gates * H, in), weight_hh (gates * H, H) and, if `bias`, bias_ih and
    bias_hh; all begin uniform in [-k, k), k = 1 / sqrt(hidden_size). `dropout` works between layers.

    >>> [(name, *w.shape) for name, w in rushlight.nn.RNNBase("LSTM", 3, 4, bias=False).named_parameters()]
    [('weight_ih_l0', 16, 3), ('weight_hh_l0', 16, 4)]
    """

    _derived = "_all_weights", "_flat_weights_names", "_flat_weights"

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        check_settings(self, dropout)
        if mode not in GATES:
            raise value_error("Unrecognized RNN mode: " + mode)
        for names in self._all_weights:
            for name, shape in zip(names, self._shapes(names[0])):
                setattr(self, name, uninitialized(*shape, device=device, dtype=dtype))
        self.reset_parameters()

    # -- parameters --------------------------------------------------------------------------------

    @property
    def _all_weights(self) -> list[list[str]]:
        """The parameters' names, by layer and direction."""
        kinds = [
            "weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if self.bias else []),
            *(["weight_hr"] if self.proj_size else []),
        ]  # fmt: skip
        ends = [
            f"_l{layer}{end}" for layer in range(self.num_layers) for end in ("", "_reverse")[: 1 + self.bidirectional]
        ]
        return [[kind + end for kind in kinds] for end in ends]

    def _shapes(self, first: str) -> list[tuple[int, ...]]:
        """The parameters' shapes, in the order of their names; `first`: the name of weight_ih."""
        n, hidden, out = GATES[self.mode] * self.hidden_size, self.hidden_size, self.proj_size or self.hidden_size
        size = self.input_size if "_l0" in first else out * (1 + self.bidirectional)
        biases = [(n,), (n,)] if self.bias else []
        return [(n, size), (n, out), *biases, (out, hidden)]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        """Replace parameters. Libraries such as `higher` assign this list, which torch's layers have."""
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if getattr(self, name) is not weight:
                setattr(self, name, weight)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, by layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _weights(self) -> list[Weights]:
        """The weights in the form that the layers' functions take."""
        return [Weights(**{name.split("_l")[0]: getattr(self, name) for name in names}) for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: in torch it arranges the parameters for a GPU."""

    def reset_parameters(self) -> None:
        """Draw all parameters, in order."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    # -- the pass ----------------------------------------------------------------------------------

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        states = None if hx is None else self._as_tuple(hx)
        if isinstance(input, PackedSequence):
            return self._packed(input, states)
        check_dims(self.mode, input, states)
        batched = input.dim() == 3
        x = input if batched else input.unsqueeze(1)
        if states is not None and not batched:
            states = tuple(s.unsqueeze(1) for s in states)
        first = batched and self.batch_first
        out, last = self._run(x, states, None, x.size(0 if first else 1), first)
        if not batched:
            return out.squeeze(1), self._from_tuple(tuple(s.squeeze(1) for s in last))
        return out, self._from_tuple(last)

    def _packed(self, input: PackedSequence, states: tuple | None) -> tuple[PackedSequence, Any]:
        """Run packed sequences, the longest first. `states` are in the order of the sequences before packing."""
        sizes = steps_of(input)
        if states is not None and input.sorted_indices is not None:
            states = tuple(s.index_select(1, input.sorted_indices) for s in states)
        out, last = self._run(input.data, states, sizes, sizes[0])
        if input.unsorted_indices is not None:
            last = tuple(s.index_select(1, input.unsorted_indices) for s in last)
        return PackedSequence(out, *input[1:]), self._from_tuple(last)

    def _run(
        self, x: Tensor, states: tuple | None, sizes: tuple | None, batch: int, first: bool = False
    ) -> tuple[Tensor, tuple]:
        x, states, weights = self._operands(x, states)
        self._check_input(x, weights[0].weight_ih, 2 if sizes else 3, 1 if first else 0)
        wanted = self._state_shapes(batch)
        if states is None:
            starts = [tuple([zeros(shape[1:], dtype=x.dtype, device=x.device) for shape in wanted])] * len(weights)
        else:
            self._check_states(states, wanted)
            starts = recurrent.per_direction(x, states)
        return recurrent.layers(
            self.mode, x, starts, weights, sizes, self.bidirectional, self.dropout if self.training else 0.0, first
        )

    def _operands(self, x: Tensor, states: tuple | None) -> tuple[Tensor, tuple | None, list[Weights]]:
        """The operands of the layers; autocast converts them (amp/autocast_policy.py)."""
        return x, states, self._weights()

    def _state_shapes(self, batch: int) -> list[tuple[int, int, int]]:
        """The shape of h; for an LSTM also the shape of c."""
        n = self.num_layers * (1 + self.bidirectional)
        return [(n, batch, self.hidden_size)]

    def _as_tuple(self, hx: Any) -> tuple:
        return (hx,)

    def _from_tuple(self, states: tuple) -> Any:
        return states[0]

    # -- checks of arguments -----------------------------------------------------------------------

    def _check_input(self, x: Tensor, weight: Tensor, dims: int, steps: int) -> None:
        if x.dtype != weight.dtype:
            raise value_error(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({x.dtype})"
            )
        if x.dim() != dims:
            raise runtime_error(f"input must have {dims} dimensions, got {x.dim()}")
        if x.size(-1) != self.input_size:
            raise runtime_error(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.size(-1)}",
                features_hint(tuple(x.shape), self.input_size),
                input=tuple(x.shape),
            )
        if x.size(steps) == 0:
            raise runtime_error("Expected sequence length to be larger than 0 in RNN")

    def _check_states(self, states: tuple, wanted: list[tuple[int, int, int]]) -> None:
        for i, (state, shape) in enumerate(zip(states, wanted)):
            if state._array.shape != shape:
                place = "" if len(wanted) == 1 else f"[{i}]"
                raise runtime_error(
                    f"Expected hidden{place} size {shape}, got {list(state.shape)}",
                    "states are (layers * directions, batch, features), even with batch_first",
                )

    def extra_repr(self) -> str:
        usual = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False,
        }  # fmt: skip
        shown = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *shown])

    def __setstate__(self, state: dict) -> None:
        super().__setstate__({"proj_size": 0, **state})


def check_settings(self: RNNBase, dropout: Any) -> None:
    """TypeError or ValueError for invalid settings."""
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= self.dropout <= 1:
        raise value_error(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if self.dropout > 0 and self.num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
            stacklevel=4,
        )
    for name, kind in {"bias": bool, "batch_first": bool, "input_size": int, "hidden_size": int}.items():
        value = getattr(self, name)
        if not isinstance(value, kind):
            raise type_error(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name in ("input_size", "hidden_size", "num_layers"):
        if getattr(self, name) <= 0:
            raise value_error(f"{name} must be greater than zero")
    if self.proj_size < 0:
        raise value_error("proj_size should be a positive integer or zero to disable projections")
    if self.proj_size >= self.hidden_size:
        raise value_error("proj_size has to be smaller than hidden_size")


def check_dims(mode: str, input: Tensor, states: tuple | None) -> None:
    """ValueError or RuntimeError for wrong numbers of dimensions."""
    dims = input.dim()
    if dims not in (2, 3):
        name, tensor = ("RNN", " tensor") if mode.startswith("RNN") else (mode, "")
        raise value_error(
            f"{name}: Expected input to be 2D or 3D, got {dims}D{tensor} instead",
            "the last dimension holds the features of a step: x.unsqueeze(-1) for one feature" if dims == 1 else "",
        )
    if states is None or all(s.dim() == dims for s in states):
        return
    what = f"For {'batched' if dims == 3 else 'unbatched'} {dims}-D input, hx "
    found = [f"{s.dim()}-D" for s in states]
    if len(states) == 1:
        raise runtime_error(f"{what}should also be {dims}-D but got {found[0]} tensor")
    raise runtime_error(f"{what}and cx should also be {dims}-D but got ({', '.join(found)}) tensors")


def refuse_projection(settings: dict) -> None:
    if "proj_size" in settings:
        raise value_error("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """h_t = tanh(W x_t + b + U h_{t-1} + b'), or relu with `nonlinearity="relu"`; input and results as in `RNNBase`.

    >>> out, h = rushlight.nn.RNN(3, 4)(rushlight.ones(5, 2, 3))
    >>> out.shape, h.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None,
        dtype: Any = None, **more: Any,
    ):  # fmt: skip
        refuse_projection(more)
        if nonlinearity not in ("tanh", "relu"):
            raise value_error(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            "RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, device=device, dtype=dtype, **more,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """i, f, o = sigmoid(a), g = tanh(a), a = W x + b + U h + b', c' = f c + i g, h' = o tanh(c') at each step.

    Input and results as in `RNNBase`, with two states (h, c). With `proj_size` P, h' is projected to P numbers by
    weight_hr (P, H). The weights hold i, f, g, o in this order.

    >>> out, (h, c) = rushlight.nn.LSTM(3, 4, bidirectional=True)(rushlight.ones(5, 2, 3))
    >>> out.shape, h.shape, c.shape
    (torch.Size([5, 2, 8]), torch.Size([2, 2, 4]), torch.Size([2, 2, 4]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip

    def _state_shapes(self, batch: int) -> list[tuple[int, int, int]]:
        n = self.num_layers * (1 + self.bidirectional)
        return [(n, batch, self.proj_size or self.hidden_size), (n, batch, self.hidden_size)]

    def _as_tuple(self, hx: Any) -> tuple:
        if len(hx) < 2:
            raise index_error("lstm expects two hidden states, but got one", "pass the tuple (h_0, c_0)")
        if len(hx) > 2:
            raise runtime_error("lstm expects two hidden states")
        return hx[0], hx[1]

    def _from_tuple(self, states: tuple) -> Any:
        return states


class GRU(RNNBase):
    """r, z = sigmoid(W x + b + U h + b'), n = tanh(W x + b + r (U h + b')), h' = (1 - z) n + z h at each step.

    Input and results as in `RNNBase`. The weights hold the gates r, z, n in this order.

    >>> out, h = rushlight.nn.GRU(3, 4, num_layers=2)(rushlight.ones(5, 2, 3))
    >>> out.shape, h.shape
    (torch.Size([5, 2, 4]), torch.Size([2, 2, 4]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None, **more: Any,
    ):  # fmt: skip
        refuse_projection(more)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device,
            dtype=dtype, **more,
        )  # fmt: skip


# -- cells -----------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """h' = module(x, h): weight_ih (num_chunks * H, in), weight_hh (num_chunks * H, H), bias_ih and bias_hh or None.

    >>> rushlight.nn.RNNCellBase(3, 4, bias=True, num_chunks=2).weight_ih.shape
    torch.Size([8, 3])
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        n, made = num_chunks * hidden_size, {"device": device, "dtype": dtype}
        self.weight_ih, self.weight_hh = uninitialized(n, input_size, **made), uninitialized(n, hidden_size, **made)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, uninitialized(n, **made) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters, in order."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _step(self, cell: Any, input: Tensor, hx: Any, states: int) -> list[Tensor]:
        """A cell's function on (N, in) and states (N, H), or on one sample without N. ValueError for other shapes."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise value_error(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for i, state in enumerate(hx or ()):
            if state.dim() not in (1, 2):
                raise value_error(
                    f"{name}: Expected {'hidden' if states == 1 else f'hx[{i}]'} to be 1D or 2D, got "
                    f"{state.dim()}D instead"
                )
        one = input.dim() == 1
        x = input.unsqueeze(0) if one else input
        if hx is None:
            hx = (zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device),) * states
        elif one:
            hx = [state.unsqueeze(0) for state in hx]
        found = cell(x, hx if states > 1 else hx[0], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        found = found if isinstance(found, tuple) else (found,)
        return [state.squeeze(0) for state in found] if one else list(found)

    def extra_repr(self) -> str:
        bias = "" if self.bias is True else f", bias={self.bias}"
        return f"{self.input_size}, {self.hidden_size}{bias}"


class RNNCell(RNNCellBase):
    """h' = tanh(W x + b + U h + b'), or relu: x (N, in) or (in,), h (N, H) or (H,), zeros unless given.

    >>> rushlight.nn.RNNCell(3, 4)(rushlight.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        cells = {"tanh": recurrent.rnn_tanh_cell, "relu": recurrent.rnn_relu_cell}
        if self.nonlinearity not in cells:
            raise runtime_error(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(cells[self.nonlinearity], input, None if hx is None else (hx,), 1)[0]

    def extra_repr(self) -> str:
        kind = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return super().extra_repr() + kind


class LSTMCell(RNNCellBase):
    """i, f, o = sigmoid(a), g = tanh(a), a = W x + b + U h + b', c' = f c + i g, h' = o tanh(c'): one step of an LSTM.

    x (N, in), h and c (N, H), or all without N -> (h', c'). h and c are zeros unless given.

    >>> h, c = rushlight.nn.LSTMCell(3, 4)(rushlight.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._step(recurrent.lstm_cell, input, hx, 2)
        return h, c


class GRUCell(RNNCellBase):
    """r, z = sigmoid(W x + b + U h + b'), n = tanh(W x + b + r (U h + b')), h' = (1 - z) n + z h: one step of a GRU.

    x (N, in) or (in,), h (N, H) or (H,), zeros unless given -> h'.

    >>> rushlight.nn.GRUCell(3, 4)(rushlight.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(recurrent.gru_cell, input, None if hx is None else (hx,), 1)[0]
