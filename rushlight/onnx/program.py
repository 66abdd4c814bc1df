"""A graph of a file as a program: steps in order, each an operator's function with its inputs, settings and outputs.

Values are tensors. Values that are known while the model runs are NumPy arrays: small constants, shapes, and all that
is computed from both. So `compile` sees sizes as Python numbers, and a Reshape to a computed shape does not break its
graph. Strings and element types that tensors lack (float8, int4) are arrays, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import not_implemented_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import FUNCTIONS
from rushlight.serialization.archive import Damaged

from .operators.table import KNOWN, Operator, floats, ints, scalar
from .tensors import has_tensors

Values = dict[str, Any]
as_tensor: Any = FUNCTIONS["as_tensor"]
# errors to which the node is added; the compiler's own errors pass
NAMED_ERRORS = (NotImplementedError, RuntimeError, ValueError, TypeError, IndexError)
FEW_DTYPES = (dtypes.uint16, dtypes.uint32, dtypes.uint64)  # torch has few functions for these


class Constant(NamedTuple):
    """An input that is the same in each run: the array, and what the function receives."""

    array: Any
    value: Any


class Program:
    """A graph: `run(inputs, outer)` returns the outputs. `outer` has the values of the surrounding graph, `captured`
    the names of the values that the steps read from `outer`."""

    def __init__(self, name: str, inputs: list[str], outputs: list[str], constants: Values):
        self.name, self.inputs, self.outputs, self.constants = name, inputs, outputs, constants
        self.steps: list[Step] = []
        self.captured: list[str] = []
        self.is_bound = False
        self.uses: dict[str, set[str]] | None = None

    def __repr__(self) -> str:
        return f"<graph {self.name!r} with {len(self.steps)} steps>"

    def run(self, inputs: Iterable[Any], outer: Values | None = None) -> list[Any]:
        """The outputs, for the values of the inputs, in order."""
        values = dict(self.constants)
        if self.captured and outer is not None:
            values.update((name, outer[name]) for name in self.captured)
        values.update(zip(self.inputs, inputs))
        for step in self.steps:
            step.run(values)
        return [values[name] for name in self.outputs]


class Step:
    """A node: `operator`'s function on `sources` (names, constants, None) with `settings`, to names of `outputs`."""

    def __init__(self, name: str, operator: Operator, sources: list[Any], outputs: list[str], settings: dict[str, Any]):
        self.name, self.operator, self.sources, self.outputs, self.settings = name, operator, sources, outputs, settings
        self.kinds = [getattr(operator.input(i), "kind", "Value") for i in range(len(sources))]
        self.graphs = [key for key, value in settings.items() if isinstance(value, Program)]
        self.on_arrays = KNOWN.get(operator.name)
        self.is_call = ":" in operator.name  # a function of the model, whose graph reads nothing around it
        self.last: list[str] = []  # names that no later step reads

    def __repr__(self) -> str:
        sources = [s if isinstance(s, str) else "-" if s is None else shortened(s.array) for s in self.sources]
        settings = [f"{key}={value!r}" for key, value in self.settings.items() if key not in ("n_outputs", "opset")]
        return f"{', '.join(self.outputs)} = {self.operator.name}({', '.join([*sources, *settings])})"

    def run(self, values: Values) -> None:
        """Compute the outputs and put them into `values`."""
        raw = [values[s] if type(s) is str else s.array if type(s) is Constant else None for s in self.sources]
        settings = self.settings
        if self.graphs:
            settings = {**settings, **{key: bound(settings[key], values) for key in self.graphs}}
        try:
            found = self.computed(raw, settings)
        except Exception as error:
            if type(error) not in NAMED_ERRORS:
                raise
            raise type(error)(f"{error}\n  node {self.name!r}: {self!r}") from error
        found = found if isinstance(found, tuple) else (found,)
        if len(found) < len(self.outputs):
            what = f"{len(self.outputs)} outputs of {self.operator.name} are not supported, only {len(found)}"
            raise not_implemented_error(f"{what}: node {self.name!r}")
        values.update(zip(self.outputs, found))
        for name in self.last:
            del values[name]

    def computed(self, raw: list[Any], settings: dict[str, Any]) -> Any:
        """The function's result. Arrays alone are computed by NumPy, if the operator is in KNOWN."""
        if self.on_arrays is not None and raw:
            if all(v is None or isinstance(v, np.ndarray) for v in raw):
                return self.on_arrays(*raw, **settings)
            given = [v for v in raw if isinstance(v, Tensor)]
            if any(v.dtype in FEW_DTYPES for v in given) and not any(v.requires_grad for v in given):
                arrays = [v.numpy() if isinstance(v, Tensor) else v for v in raw]
                return tensors(self.on_arrays(*arrays, **settings))
        received = [
            s.value if type(s) is Constant else converted(v, kind) for s, v, kind in zip(self.sources, raw, self.kinds)
        ]
        return self.operator.function(*received, **settings)


def bound(program: Program, outer: Values) -> Callable[..., list[Any]]:
    """The program as a function of its inputs."""
    return lambda *inputs: program.run(inputs, outer)


def converted(value: Any, kind: str) -> Any:
    """A value as the function of the operator receives it, by the `kind` of its annotation."""
    if value is None or kind == "Value":
        return value
    if kind == "Ints":
        return ints(value)
    if kind == "Floats":
        return floats(value)
    if kind == "Scalar":
        return scalar(value) if np.prod(value.shape) else None  # an empty tensor stands for a missing one
    return tensor(value) if isinstance(value, np.ndarray) else value


def own_tensor(array: np.ndarray) -> Tensor:
    """A tensor of the module's own memory, for weights and constants of the file."""
    return from_array(np.array(array, copy=True, order="C"))


def tensor(array: np.ndarray) -> Tensor:
    """A tensor of a copy of the array; NotImplementedError for an element type that tensors lack."""
    if not has_tensors(array.dtype):
        raise not_implemented_error(
            f"tensors of {'strings' if array.dtype == object else array.dtype} are not supported"
        )
    return as_tensor(np.array(array, copy=True, order="C"))


def tensors(found: Any) -> Any:
    """Arrays as tensors, where tensors of the element type exist."""
    if isinstance(found, (tuple, list)):
        return type(found)(map(tensors, found))
    return tensor(found) if isinstance(found, np.ndarray) and has_tensors(found.dtype) else found


def shortened(array: Any) -> str:
    if array.size <= 8:
        return repr(array.tolist())
    return f"<{array.dtype} {list(array.shape)}>"


def bind(program: Program, known: Values) -> None:
    """Put the constants `known` and the program's own into its steps, also in inner graphs; then decide which names the
    steps read from outside, and which step reads a value last."""
    if program.is_bound:  # a function's program is shared by its calls
        return
    program.is_bound = True
    known = {**known, **program.constants}
    made, read = {*program.inputs, *program.constants}, set(program.outputs)
    for step in program.steps:
        for key in step.graphs:
            bind(step.settings[key], {} if step.is_call else known)
            read.update(step.settings[key].captured)
        step.sources = [
            constant(step, known[s], kind) if s in known else s for s, kind in zip(step.sources, step.kinds)
        ]
        read.update(s for s in step.sources if type(s) is str)
        made.update(step.outputs)
    program.constants.update((name, known[name]) for name in program.outputs if name in known)
    program.captured = sorted(read - made - program.constants.keys())
    mark_last(program)


def constant(step: Step, array: Any, kind: str) -> Constant:
    """A constant input of a step; `Damaged` if the operator needs numbers and the array has none."""
    try:
        is_tensor = kind in ("Tensor", "Fixed") and has_tensors(array.dtype)
        return Constant(array, own_tensor(array) if is_tensor else converted(array, kind))
    except (TypeError, ValueError, OverflowError) as error:
        raise Damaged(f"node {step.name!r} ({step.operator.name}) has a constant that is not {kind}: {error}") from None


def mark_last(program: Program) -> None:
    """Fill `Step.last`, so that a run frees values early."""
    seen = set(program.outputs)
    for step in reversed(program.steps):
        read = [s for s in step.sources if type(s) is str]
        for key in step.graphs:
            read += step.settings[key].captured
        names = dict.fromkeys([*read, *step.outputs])
        step.last = [name for name in names if name and name not in seen]
        seen.update(names)


def kinds_of_uses(program: Program) -> dict[str, set[str]]:
    """{name: kinds of the inputs that read it}, with the reads of inner graphs and of functions."""
    if program.uses is not None:
        return program.uses
    found: dict[str, set[str]] = {}
    program.uses = found
    for step in program.steps:
        bodies = [step.settings[key] for key in step.graphs]
        for i, (source, kind) in enumerate(zip(step.sources, step.kinds)):
            if type(source) is str:
                kinds = kinds_of_uses(bodies[0]).get(bodies[0].inputs[i], set()) if step.is_call else {kind}
                found.setdefault(source, set()).update(kinds)
        for body in () if step.is_call else bodies:
            for name, kinds in kinds_of_uses(body).items():
                found.setdefault(name, set()).update(kinds)
    return found
