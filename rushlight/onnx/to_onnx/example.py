"""The example of a model's arguments: the tensors among them, their names, and the model's runs with other sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import CO_VARARGS
from typing import Any

from rushlight.compile.export.model_folder import contiguous, parameter_names, tensors_of
from rushlight.compile.export.recorded import recorded
from rushlight.compile.graph import Graph
from rushlight.compile.run.compiled_function import CannotCompile
from rushlight.core.tensor import Tensor
from rushlight.onnx.to_onnx import dynamic_dims
from rushlight.onnx.to_onnx.onnx_graph import NotExpressed


class Example:
    """The arguments of a model: the tensors among them, and the names of the inputs."""

    def __init__(self, model: Callable, args: Any, kwargs: dict[str, Any], names: Sequence[str] | None):
        args = args if isinstance(args, tuple) else (args,)
        flat: list[Any] = []
        self.model, self.traced = model, dict[tuple[int, ...], tuple[Graph, Any]]()
        self.args = tuple([contiguous(a, flat) for a in args])
        self.kwargs = {key: contiguous(a, flat) for key, a in kwargs.items()}
        self.parameters = parameter_names(model, len(self.args))
        pairs = [*tensors_of((*self.args, *self.kwargs.values()), (*self.paths(), *self.kwargs))]
        self.arrays = [t._array for t, _ in pairs]
        self.order = {id(t): k for k, (t, _) in enumerate(pairs)}
        paths = [path for _, path in pairs]
        self.names = unique([*(names or ())] + paths[len(names or ()) :])

    def dimensions(self, dynamic_shapes: Any) -> list[dynamic_dims.Dimension]:
        """The dynamic dimensions of `dynamic_shapes`."""
        if dynamic_shapes is None:
            return []
        specs = dynamic_dims.specifications(
            dynamic_shapes, [*zip(self.parameters, self.args), *self.kwargs.items()], self.variadic()
        )
        return dynamic_dims.dimensions(specs, self.arrays, self.names)

    def variadic(self) -> list[str]:
        """The names of the arguments; with the name of `*args` in place of the first of them."""
        number, name = starred(self.model)
        return [*self.parameters[:number], name] if name and len(self.parameters) > number else self.parameters

    def paths(self) -> list[str]:
        """The names of the arguments; `*caches` has `caches_0`, `caches_1`, ..."""
        number, name = starred(self.model)
        rest = len(self.parameters) - number if name else 0
        return [*self.parameters[: number if name else None], *[f"{name}_{k}" for k in range(rest)]]

    def of_axes(self, axes: Mapping[str, Any]) -> list[dynamic_dims.Dimension]:
        """The dynamic dimensions of `dynamic_axes`: {name of an input: {axis: name}}, or a list of axes."""
        specs = []
        for number, name in enumerate(self.names):
            spec = axes.get(name)
            if isinstance(spec, (list, tuple)):
                spec = {axis: f"{name}_dim_{axis}" for axis in spec}
            specs.append((number, spec))
        return dynamic_dims.dimensions(iter(specs), self.arrays, self.names)

    def with_tensors(self, tensors: Sequence[Tensor]) -> tuple[tuple, dict[str, Any]]:
        """The arguments with other tensors."""
        place = lambda a: self.filled(a, tensors)
        return tuple(map(place, self.args)), {key: place(a) for key, a in self.kwargs.items()}

    def filled(self, a: Any, tensors: Sequence[Tensor]) -> Any:
        if isinstance(a, Tensor):
            return tensors[self.order[id(a)]]
        if isinstance(a, tuple) and hasattr(a, "_make"):
            return a._make([self.filled(x, tensors) for x in a])
        if type(a) in (tuple, list):
            return type(a)([self.filled(x, tensors) for x in a])
        return {key: self.filled(x, tensors) for key, x in a.items()} if type(a) is dict else a

    def run(self, dims: Sequence[dynamic_dims.Dimension], sizes: Sequence[int]) -> Any:
        """The model's result for other sizes."""
        args, kwargs = self.with_tensors(dynamic_dims.resized(self.arrays, dims, sizes))
        return self.model(*args, **kwargs)

    def trace(self, dims: Sequence[dynamic_dims.Dimension], sizes: Sequence[int]) -> tuple[Graph, Any]:
        """(the recorded graph, the plan of the result) for other sizes; kept for the next time. The first trace shows
        that the model does the same in each run."""
        if tuple(sizes) not in self.traced:
            self.traced[tuple(sizes)] = self.recorded(dims, sizes)
        return self.traced[tuple(sizes)]

    def recorded(self, dims: Sequence[dynamic_dims.Dimension], sizes: Sequence[int]) -> tuple[Graph, Any]:
        args, kwargs = self.with_tensors(dynamic_dims.resized(self.arrays, dims, sizes))
        try:
            return recorded(self.model, args, kwargs, once=bool(self.traced))
        except CannotCompile as error:
            raise NotExpressed(str(error).removeprefix("export: ")) from None


def starred(model: Callable) -> tuple[int, str]:
    """(the number of arguments with own names, the name of `*args`) of a model; "" if it has none."""
    function = getattr(model, "forward", model)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return 1 << 30, ""
    several = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & CO_VARARGS else ""
    return code.co_argcount - hasattr(function, "__func__"), several


def unique(paths: Sequence[str]) -> list[str]:
    """A name for each input: `x`, `pair_0`; no two are equal."""
    names: list[str] = []
    for path in paths:
        name = stem = "_".join(re.findall(r"\w+", path)) or "input"
        number = 1
        while name in names:
            name, number = f"{stem}_{number}", number + 1
        names.append(name)
    return names
