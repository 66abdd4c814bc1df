"""torch.export: a module as a graph of calls, recorded by torch.fx; and .pt2 archives.

The graph has layers and functions as nodes, as torch.fx records them. Archives have calls of ATen's operators.
`rushlight.compiler.export` writes a model to a folder that needs NumPy alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from rushlight.base.errors import explain, runtime_error, type_error
from rushlight.base.tracebacks import hide_frames
from rushlight.core.tensor import Tensor
from rushlight.fx import Graph, symbolic_trace
from rushlight.fx.proxy import TraceError
from rushlight.nn.module import Module
from rushlight.serialization.atomic_write import replacing


class ExportError(RuntimeError):
    """A model that cannot be exported, or be written; the message names the operators and the user's lines."""


class ExportedProgram:
    """A recorded module: `graph_module`, `graph`, `state_dict`, `example_inputs`. `module()` is a module that computes
    it. `json`: the program as a .pt2 archive has it, for a program of calls of ATen's operators."""

    def __init__(
        self, graph_module: Any, example_inputs: Any, json: dict[str, Any] | None = None, dynamic_shapes: Any = None
    ):
        self.graph_module, self.example_inputs = graph_module, example_inputs
        self._json, self._dynamic_shapes = json, dynamic_shapes

    @property
    def graph(self) -> Graph:
        """The recorded calls."""
        return self.graph_module.graph

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """The parameters and buffers by their names."""
        return self.graph_module.state_dict()

    def parameters(self) -> Any:
        """The parameters of the module."""
        return self.graph_module.parameters()

    def named_parameters(self) -> Any:
        """(name, parameter) pairs."""
        return self.graph_module.named_parameters()

    def buffers(self) -> Any:
        """The buffers of the module."""
        return self.graph_module.buffers()

    def named_buffers(self) -> Any:
        """(name, buffer) pairs."""
        return self.graph_module.named_buffers()

    def module(self, check_guards: bool = True) -> Any:
        """A module that computes the program."""
        return self.graph_module

    def _contents(self) -> tuple[dict[str, Any], dict[str, tuple[Tensor, bool]], dict[str, Tensor]]:
        """What an archive holds: the program as JSON, the weights, the constants."""
        if self._json is not None:
            return self._json, *self.graph_module.tensors(self._json)
        args, kwargs = self.example_inputs
        return written(self.graph_module, args, kwargs, self._dynamic_shapes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise runtime_error(
            "Unable to call ExportedProgram directly.", "You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        return f"ExportedProgram:\n{self.graph_module.code}"


def written(model: Module, args: tuple, kwargs: dict[str, Any], dynamic_shapes: Any) -> tuple[Any, Any, Any]:
    """(JSON, weights, constants) of a model that is recorded now. ExportError names what ATen does not express."""
    from rushlight.archives.pt2.to_aten.writer import NotExpressed
    from rushlight.archives.pt2.write import Exported

    try:
        exported = Exported(model, args, kwargs, dynamic_shapes)
        return exported.json(), exported.weights.named, exported.constants()
    except NotExpressed as error:
        hide_frames()
        raise ExportError(explain(str(error))) from None


def export(
    mod: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """Record the calls of a module in a graph, by `torch.fx.symbolic_trace`; run the graph once on the arguments.

    This graph fixes no size. A module that torch.fx cannot follow, for example through conditions on sizes, is recorded
    as `rushlight.compile` records it, with calls of ATen's operators. Such a program, and the file that `save` writes,
    has the sizes of the arguments, except in dimensions that `dynamic_shapes` names: `({0: Dim("batch")}, None)` or
    `{"x": {0: "batch"}}`. TypeError unless `mod` is a module and `args` a tuple; ExportError if the program depends on
    values.

    >>> program = rushlight.export.export(rushlight.nn.ReLU(), (rushlight.ones(2),))
    >>> program.module()(rushlight.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if not isinstance(mod, Module):
        raise type_error(f"Expected `mod` to be a torch.nn.Module, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise type_error(f"Expecting `args` to be a tuple of example inputs, got {type(args)}")
    example = args, dict(kwargs or {})
    try:
        recorded = symbolic_trace(mod)
        recorded(*args, **example[1])
    except (TraceError, TypeError, ValueError, AttributeError, RuntimeError):
        mod(*args, **example[1])  # an error of the module itself
        return of_operators(mod, example, dynamic_shapes)
    return ExportedProgram(recorded, example, dynamic_shapes=dynamic_shapes)


def of_operators(mod: Module, example: tuple[tuple, dict[str, Any]], dynamic_shapes: Any) -> ExportedProgram:
    """The program of a module as calls of ATen's operators."""
    from rushlight.archives.pt2.read import program_of

    json, weights, constants = written(mod, *example, dynamic_shapes)
    tensors = {name: tensor for name, (tensor, _) in weights.items()} | constants
    return ExportedProgram(program_of(json, tensors, type(mod).__name__), example, json)


class DimHint:
    """`Dim.AUTO` and `Dim.DYNAMIC`: a dynamic size without a name. `Dim.STATIC`: the example's size (`static`)."""

    def __init__(self, name: str):
        self.name, self.static = name, name == "STATIC"

    def __repr__(self) -> str:
        return f"DimHint({self.name})"


class Dim:
    """A name of a size, for `dynamic_shapes`; `min` and `max` are its bounds."""

    AUTO, DYNAMIC, STATIC = DimHint("AUTO"), DimHint("DYNAMIC"), DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        self.__name__, self.min, self.max = name, min, max


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A `Dim` for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


@contextmanager
def saved_to(f: Any) -> Iterator[IO[bytes]]:
    """An open file for a path, which is renamed at the end; an open file itself."""
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            yield file
    elif hasattr(f, "write"):
        yield f
    else:
        raise type_error(f"save(): f must be a path or a binary file open for writing, not {type(f).__name__}")


def save(
    ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None,
    opset_version: Mapping[str, int] | None = None, pickle_protocol: int = 2,
) -> None:  # fmt: skip
    """Write a program as a .pt2 archive, to a path or an open binary file: torch.export.load reads it.

    The program is written as calls of ATen's operators, with the sizes of its example; sizes that follow from
    dimensions in `dynamic_shapes` are computed. ExportError names the operators that ATen lacks, with the user's lines.
    `opset_version` and `pickle_protocol` change nothing.

    >>> import io
    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(3, 2), rushlight.nn.ReLU())
    >>> x, file = rushlight.ones(1, 3), io.BytesIO()  # or a path
    >>> rushlight.export.save(rushlight.export.export(model, (x,)), file)
    >>> _ = file.seek(0)
    >>> rushlight.equal(rushlight.export.load(file).module()(x), model(x))
    True
    """
    if not isinstance(ep, ExportedProgram):
        raise type_error(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}'")
    contents = ep._contents()
    from rushlight.archives.pt2.write import write

    with saved_to(f) as file:
        write(file, *contents, ep.example_inputs, extra_files)


def load(
    f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: Mapping[str, int] | None = None
) -> ExportedProgram:
    """The program of a .pt2 archive that torch.export.save or `save` wrote: a path, or a binary file that can seek.

    `module()` has the exported module's parameters and buffers. It runs, is differentiated and compiled, with the sizes
    for which the program was exported. Nothing of the archive is executed but ATen's operators. RuntimeError for a
    damaged archive; NotImplementedError names operators that are missing. `extra_files`: names of further records, as
    keys; the values become their texts. Example inputs are read if they hold only tensors, containers and numbers.

    >>> try:
    ...     rushlight.export.load("no such file.pt2")
    ... except FileNotFoundError:
    ...     print("torch.export.load reads what torch.export.save wrote")
    torch.export.load reads what torch.export.save wrote
    """
    from rushlight.archives.pt2.read import read

    try:
        found = read(f, extra_files)
    except (OSError, RuntimeError):
        hide_frames()
        raise
    return ExportedProgram(found.program, found.example, found.json)


__all__ = ["Dim", "ExportError", "ExportedProgram", "dims", "export", "load", "save"]
