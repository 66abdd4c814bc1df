"""torch.export: a module as a graph of calls, recorded by torch.fx.

The graph has layers and functions as nodes, as torch.fx records them, and not only ops of aten.
`rushlight.compiler.export` writes a model to a folder that needs NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rushlight.base.errors import runtime_error, type_error
from rushlight.core.tensor import Tensor
from rushlight.fx import Graph, GraphModule, symbolic_trace
from rushlight.nn.module import Module


class ExportedProgram:
    """A recorded module: `graph_module`, `graph`, `state_dict`, `example_inputs`. `module()` is a module that computes
    it."""

    def __init__(self, graph_module: GraphModule, example_inputs: tuple[tuple, dict[str, Any]]):
        self.graph_module, self.example_inputs = graph_module, example_inputs

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

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that computes the program."""
        return self.graph_module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise runtime_error(
            "Unable to call ExportedProgram directly.", "You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        return f"ExportedProgram:\n{self.graph_module.code}"


def export(
    mod: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """Record the calls of a module in a graph, by `torch.fx.symbolic_trace`; run the graph once on the arguments.

    Sizes are never fixed, so `dynamic_shapes` is accepted and changes nothing. TypeError unless `mod` is a module and
    `args` a tuple; fx's TraceError if the program depends on values.

    >>> program = rushlight.export.export(rushlight.nn.ReLU(), (rushlight.ones(2),))
    >>> program.module()(rushlight.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if not isinstance(mod, Module):
        raise type_error(f"Expected `mod` to be a torch.nn.Module, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise type_error(f"Expecting `args` to be a tuple of example inputs, got {type(args)}")
    recorded = symbolic_trace(mod)
    recorded(*args, **(kwargs or {}))
    return ExportedProgram(recorded, (args, dict(kwargs or {})))


class DimHint:
    """`Dim.AUTO` and `Dim.DYNAMIC`: a dynamic size without a name. `Dim.STATIC`: the example's size (`static`)."""

    def __init__(self, name: str):
        self.name, self.static = name, name == "STATIC"

    def __repr__(self) -> str:
        return f"DimHint({self.name})"


class Dim:
    """A name of a size, for `dynamic_shapes`. `export` of this module fixes no size; `torch.onnx.export` reads it."""

    AUTO, DYNAMIC, STATIC = DimHint("AUTO"), DimHint("DYNAMIC"), DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        self.__name__, self.min, self.max = name, min, max


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A `Dim` for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def refused(name: str) -> Callable[..., Any]:
    """A function that raises NotImplementedError: this library has no files of programs."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"torch.export.{name} is not supported; hint: rushlight.compiler.export(model, example, folder) writes a "
            "program that needs NumPy alone"
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


save, load = refused("save"), refused("load")

__all__ = ["Dim", "ExportedProgram", "dims", "export", "load", "save"]
