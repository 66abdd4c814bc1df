"""The table of ONNX's operators: domain and name -> functions of ours, each for a range of opset versions.

A function's positional parameters are the operator's inputs, its keyword-only parameters the attributes, by ONNX's
names and with ONNX's defaults. The annotation of an input determines what the function receives:

- `Tensor`: a tensor. `Fixed`: a tensor that training leaves alone: statistics, scales of quantization.
- `Ints`, `Floats`: the numbers as a list; `Scalar`: one number. `Value`: the value as it is, also an array or a list.

Two keyword-only parameters are not attributes: `n_outputs` (the number of outputs that the node names) and `opset`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rushlight.core.tensor import Tensor

Ints = list[int]
Floats = list[float]
Scalar = Any
Value = Any
Fixed = Tensor
F = TypeVar("F", bound=Callable)

LATEST = 28  # the newest opset of the default domain whose operators were read
ML, MICROSOFT, PREVIEW = "ai.onnx.ml", "com.microsoft", "ai.onnx.preview"
DEFAULT_DOMAINS = ("", "ai.onnx")
FILES = """
    elementwise activation linear shape index select reduce conv pool normalization resize sample recurrent attention
    loss quantized casts control sequence signal random text known contributed contributed_quantized
"""


class Input(NamedTuple):
    """One input of an operator: its kind, "Tensor" to "Value"; the last input may take all that follow."""

    name: str
    kind: str
    many: bool


class Operator(NamedTuple):
    """One row of the table: `function` implements the operator in opset `since` to `until`."""

    name: str
    since: int
    until: int
    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    settings: frozenset[str]  # names of attributes, and n_outputs and opset
    needed: frozenset[str]  # attributes without a default
    text: str = ""  # the function in torch's words, such as "torch.abs"

    def input(self, i: int) -> Input | None:
        """The i-th input; None if there are fewer."""
        if i < len(self.inputs):
            return self.inputs[i]
        return self.inputs[-1] if self.inputs and self.inputs[-1].many else None


# domain -> name -> rows
TABLE: dict[str, dict[str, list[Operator]]] = {"": {}, ML: {}, MICROSOFT: {}, PREVIEW: {}}
# name -> the operator on NumPy arrays, for values that are known while the model runs: shapes, and arithmetic with them
KNOWN: dict[str, Callable[..., Any]] = {}


def operator(*names: str, since: int = 1, until: int = 10**9, domain: str = "", text: str = "") -> Callable[[F], F]:
    """Enter a function in the table, for the operators `names`."""

    def enter(function: F) -> F:
        inputs, settings, needed = parameters(function)
        for name in names:
            row = Operator(name, since, until, function, inputs, settings, needed, text)
            TABLE[domain].setdefault(name, []).append(row)
        return function

    return enter


def parameters(function: Callable[..., Any]) -> tuple[tuple[Input, ...], frozenset[str], frozenset[str]]:
    """(inputs, names of settings, names of settings without a default) of a function of the table."""
    inputs, settings, needed = [], set(), set()
    for name, p in inspect.signature(function).parameters.items():
        if p.kind is p.KEYWORD_ONLY:
            settings.add(name)
            if p.default is p.empty:
                needed.add(name)
        else:
            kind = str(p.annotation).split(" | ")[0]
            inputs.append(Input(name, kind, p.kind is p.VAR_POSITIONAL))
    return tuple(inputs), frozenset(settings), frozenset(needed)


def known(*names: str) -> Callable[[F], F]:
    """Enter a function of NumPy arrays: it runs instead of the table's function if all inputs are arrays."""

    def enter(function: F) -> F:
        KNOWN.update(dict.fromkeys(names, function))
        return function

    return enter


def load_operators() -> None:
    """Import the files of the table."""
    for name in FILES.split():
        import_module(f"rushlight.onnx.operators.{name}")


def find(domain: str, name: str, version: int) -> Operator | None:
    """The row for an operator in an opset; None if the table has none."""
    domain = "" if domain in DEFAULT_DOMAINS else domain
    rows = TABLE.get(domain, {}).get(name, [])
    return next((row for row in rows if row.since <= version <= row.until), None)


# -- used by the functions -------------------------------------------------------------------------


def ints(value: Any) -> Ints:
    """The numbers of a tensor, an array or a list, as a list of int."""
    return [int(v) for v in np.asarray(value.detach().numpy() if isinstance(value, Tensor) else value).reshape(-1)]


def floats(value: Any) -> Floats:
    """The numbers of a tensor, an array or a list, as a list of float."""
    return [float(v) for v in np.asarray(value.detach().numpy() if isinstance(value, Tensor) else value).reshape(-1)]


def scalar(value: Any) -> Scalar:
    """The number of a tensor or an array of one element, as a Python number."""
    return value.item()
