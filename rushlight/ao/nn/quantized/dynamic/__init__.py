"""torch.ao.nn.quantized.dynamic: layers with int8 weights, whose input is quantized when it arrives."""

from rushlight.ao.nn.quantized.dynamic.linear import Linear
from rushlight.ao.nn.quantized.dynamic.recurrent import GRU, LSTM, GRUCell, LSTMCell, RNNCell
from rushlight.base.missing_names import tell as _tell

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]

_tell(__name__)
