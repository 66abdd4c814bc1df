"""Recurrent layers, over tensors and over packed sequences: torch's functions, with results as a tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch

from .table import operator


class Layer:
    """A recurrent layer."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return tuple(self.function(*args))


for _function in (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu):
    operator(_function.__name__)(Layer(_function))
