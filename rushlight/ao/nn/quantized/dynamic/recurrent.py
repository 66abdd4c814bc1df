"""LSTM, GRU and cells of int8 weights. The input is quantized for all steps at once, the state in each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.ao.nn.quantized.dynamic.linear import MOST, MOST_REDUCED
from rushlight.ao.nn.quantized.packed import (
    check_type,
    elements,
    observed,
    packed,
    quantized_weight,
    result,
    unpacked,
)  # fmt: skip
from rushlight.ao.observers import default_weight_observer
from rushlight.base.errors import assertion_error, not_implemented_error, runtime_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import zeros
from rushlight.kernels.int8 import Int8Weight, linear_by_tensor
from rushlight.kernels.int8_recurrent import gru_step, layer, lstm_step, relu_step, tanh_step
from rushlight.nn import recurrent
from rushlight.nn.containers import ModuleList
from rushlight.nn.functional.dropout import dropout as drop
from rushlight.nn.module import Module
from rushlight.ops.tensor.quantized_tensor import QINT8, QuantizedTensor, quantize_per_tensor

STEPS = {"LSTM": lstm_step, "GRU": gru_step}


class CellParams(NamedTuple):
    """The weights of one direction of a layer, for the input and for the state, with their biases."""

    ih: Int8Weight
    hh: Int8Weight


class PackedParameter(Module):
    """A module that holds `CellParams`. Its state is `param`."""

    def __init__(self, param: CellParams):
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        self.param = state_dict.pop(prefix + "param")
        super()._load_from_state_dict(state_dict, prefix, *args)


class RNNBase(recurrent.RNNBase):
    """The base of the quantized LSTM and GRU; input, states and results as in `nn.LSTM` and `nn.GRU`."""

    _version = 2
    version: int | None
    _FLOAT_MODULE: Any = (recurrent.LSTM, recurrent.GRU)

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, dtype: Any = QINT8,
    ):  # fmt: skip
        Module.__init__(self)
        if dtype is not QINT8:
            raise not_implemented_error(f"a quantized {mode} of {dtype} is not supported", "torch.qint8 is")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size, self.dtype, self.training, self.version = 0, dtype, False, self._version
        recurrent.check_settings(self, dropout)
        self._all_weight_values = recurrent_list([self._empty(*self._shapes(names[0])) for names in self._all_weights])

    def _empty(self, ih: tuple, hh: tuple, *rest: tuple) -> CellParams:
        bias = np.zeros(ih[0], np.float32)
        return CellParams(*(Int8Weight(np.zeros(s, np.int8), np.ones(1), None, bias) for s in (ih, hh)))

    def _names(self) -> list[list[str]]:
        """weight_ih, weight_hh, bias_ih and bias_hh of each layer and direction."""
        return [[f"{kind}{ih[9:]}" for kind in KINDS] for ih, *_ in self._all_weights]

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Set the weights by torch's names: weight_ih_l0, a quantized tensor; bias_ih_l0, a tensor, ..."""
        values = [[weight_bias_dict[name] for name in names] for names in self._names()]
        self._all_weight_values = recurrent_list([CellParams(packed(w, b), packed(u, c)) for w, u, b, c in values])

    def _weight_bias(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {"weight": {}, "bias": {}}
        for (w, u, b, c), held in zip(self._names(), self._all_weight_values):
            for weight, bias, part in ((w, b, held.param.ih), (u, c, held.param.hh)):
                found["weight"][weight], found["bias"][bias] = unpacked(part)
        return found

    def get_weight(self) -> dict[str, QuantizedTensor]:
        """{weight_ih_l0 and so on: a quantized tensor}."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Tensor]:
        """{bias_ih_l0 and so on: a tensor}."""
        return self._weight_bias()["bias"]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> RNNBase:
        """The quantized form of an `nn.LSTM` or `nn.GRU` that has a `qconfig`."""
        check_type(mod, cls._FLOAT_MODULE, "RNNBase")
        if not mod.bias:
            raise assertion_error("mod.bias must be True")
        if getattr(mod, "proj_size", 0):
            raise not_implemented_error("a quantized LSTM with proj_size is not supported")
        kind = LSTM if mod.mode == "LSTM" else GRU
        made = kind(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional
        )
        named = {name: getattr(mod, name) for names in made._names() for name in names}
        made.set_weight_bias({
            name: quantized_weight(w, observed(mod, default_weight_observer)) if name.startswith("weight") else w
            for name, w in named.items()
        })  # fmt: skip
        return made

    # -- the pass ----------------------------------------------------------------------------------

    def _run(
        self, x: Tensor, states: tuple | None, sizes: tuple | None, batch: int, first: bool = False
    ) -> tuple[Tensor, tuple]:
        self._check_quantized_input(x, 2 if sizes else 3)
        wanted = self._state_shapes(batch)
        if states is None:
            states = tuple(zeros(shape) for shape in wanted)
        self._check_states(states, wanted)
        array, starts = elements(x), [elements(s) for s in states]
        array = array.swapaxes(0, 1) if first else array
        params, directions = [held.param for held in self._all_weight_values], 1 + self.bidirectional
        last: list[Sequence[ndarray]] = []
        for i in range(0, len(params), directions):
            found = [
                self._direction(array, [s[i + d] for s in starts], params[i + d], sizes, d == 1)
                for d in range(directions)
            ]
            last += [each[1:] for each in found]
            array = np.concatenate([each[0] for each in found], -1)
            if self.dropout and self.training and i + directions < len(params):
                array = drop(from_array(array), self.dropout)._array
        out = np.ascontiguousarray(array.swapaxes(0, 1)) if first else array
        inputs = x, *states
        return result(out, *inputs), tuple(result(np.stack(each), *inputs) for each in zip(*last))

    def _direction(
        self, x: ndarray, starts: Sequence[ndarray], params: CellParams, sizes: tuple | None, reverse: bool
    ) -> tuple[ndarray, ...]:
        most = MOST_REDUCED if self.version is not None and self.version >= RNNBase._version else MOST
        rows = np.ascontiguousarray(x.reshape(-1, x.shape[-1]))
        gates = linear_by_tensor(rows, params.ih, most).reshape(*x.shape[:-1], -1)
        return layer(STEPS[self.mode], gates, starts, params.hh, most, sizes, reverse)

    def _check_quantized_input(self, x: Tensor, dims: int) -> None:
        if x.dim() != dims:
            raise runtime_error(f"input must have {dims} dimensions, got {x.dim()}")
        if x.size(-1) != self.input_size:
            raise runtime_error(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.size(-1)}"
            )

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def _get_name(self) -> str:
        return f"DynamicQuantized{self.mode}"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"


KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def recurrent_list(params: Sequence[CellParams]) -> Any:
    """A ModuleList of the parameters."""
    return ModuleList([PackedParameter(each) for each in params])


class LSTM(RNNBase):
    """outputs, (h, c) = module(input, (h, c)): an LSTM with int8 weights; input and results as in `nn.LSTM`.

    >>> out, (h, c) = rushlight.ao.nn.quantized.dynamic.LSTM(3, 4)(rushlight.ones(5, 2, 3))
    >>> out.shape, h.shape, c.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **settings: Any):
        super().__init__("LSTM", *args, **settings)

    def _state_shapes(self, batch: int) -> list[tuple[int, int, int]]:
        return super()._state_shapes(batch) * 2

    def _as_tuple(self, hx: Any) -> tuple:
        return tuple(hx)

    def _from_tuple(self, states: tuple) -> Any:
        return states


class GRU(RNNBase):
    """outputs, h = module(input, h): a GRU with int8 weights; input and results as in `nn.GRU`.

    >>> out, h = rushlight.ao.nn.quantized.dynamic.GRU(3, 4)(rushlight.ones(5, 2, 3))
    >>> out.shape, h.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **settings: Any):
        super().__init__("GRU", *args, **settings)


# -- cells -----------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """The base of the quantized cells: x (N, in), states (N, H), zeros unless given."""

    _FLOAT_MODULE: Any = (recurrent.LSTMCell, recurrent.GRUCell, recurrent.RNNCell)
    states = 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4, dtype: Any = QINT8):
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        n = num_chunks * hidden_size
        made = [quantize_per_tensor(zeros(n, k), 1.0, 0, dtype) for k in (input_size, hidden_size)]
        self._packed_weight_ih, self._packed_weight_hh = (packed(w, zeros(n) if bias else None) for w in made)

    def _step(self, step: Any, input: Tensor, hx: Sequence[Tensor] | None) -> list[Tensor]:
        x = elements(input)
        if x.ndim != 2 or x.shape[1] != self.input_size:
            raise runtime_error(
                f"input has inconsistent input_size: got {x.shape[-1]}, expected {self.input_size}", input=x.shape
            )
        wanted = (len(x), self.hidden_size)
        now = [elements(s) for s in hx] if hx is not None else [np.zeros(wanted, np.float32)] * self.states
        if any(s.shape != wanted for s in now):
            raise runtime_error(f"hidden has inconsistent shape: expected {wanted}", hidden=now[0].shape)
        gates = linear_by_tensor(x, self._packed_weight_ih, MOST_REDUCED)
        inputs = input, *(hx or ())
        return [result(s, *inputs) for s in step(gates, now, self._packed_weight_hh, MOST_REDUCED)]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> RNNCellBase:
        """The quantized form of a cell that has a `qconfig`."""
        check_type(mod, cls._FLOAT_MODULE, "RNNCellBase")
        if not mod.bias:
            raise assertion_error("mod.bias must be True")
        more: dict[str, Any] = {"nonlinearity": mod.nonlinearity} if isinstance(mod, recurrent.RNNCell) else {}
        made = cls(mod.input_size, mod.hidden_size, mod.bias, **more)
        weights = [quantized_weight(w, observed(mod, default_weight_observer)) for w in (mod.weight_ih, mod.weight_hh)]
        made._packed_weight_ih = packed(weights[0], mod.bias_ih)
        made._packed_weight_hh = packed(weights[1], mod.bias_hh)
        return made

    def get_weight(self) -> dict[str, QuantizedTensor]:
        """{"weight_ih" and "weight_hh": a quantized tensor}."""
        return {"weight_ih": unpacked(self._packed_weight_ih)[0], "weight_hh": unpacked(self._packed_weight_hh)[0]}

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            setattr(self, name, state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class LSTMCell(RNNCellBase):
    """h, c = cell(x, (h, c)): one step of an LSTM with int8 weights.

    >>> h, c = rushlight.ao.nn.quantized.dynamic.LSTMCell(3, 4)(rushlight.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    states = 2

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._step(lstm_step, input, hx)
        return h, c


class GRUCell(RNNCellBase):
    """h = cell(x, h): one step of a GRU with int8 weights.

    >>> rushlight.ao.nn.quantized.dynamic.GRUCell(3, 4)(rushlight.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = QINT8):
        super().__init__(input_size, hidden_size, bias, 3, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(gru_step, input, None if hx is None else [hx])[0]


class RNNCell(RNNCellBase):
    """h = cell(x, h): tanh or relu of one step with int8 weights.

    >>> rushlight.ao.nn.quantized.dynamic.RNNCell(3, 4)(rushlight.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = QINT8
    ):
        super().__init__(input_size, hidden_size, bias, 1, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        step = tanh_step if self.nonlinearity == "tanh" else relu_step
        return self._step(step, input, None if hx is None else [hx])[0]
