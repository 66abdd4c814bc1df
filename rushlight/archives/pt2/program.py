"""A program of a .pt2 archive: steps that call ATen's operators."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import rushlight as torch
from rushlight.archives.aten import table
from rushlight.archives.budget import RUNNING, running
from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter

from .schema import Malformed, at, dtype_of, flattened, member, number, of_type, rows, unflattened

# functions on sizes and other numbers, which ATen lacks
PYTHON: dict[str, Callable[..., Any]] = {
    **{f"_operator.{name}": getattr(operator, name) for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "eq", "ne", "lt", "le", "gt", "ge", "and_", "or_",
        "not_", "getitem",
    )},
    "math.ceil": math.ceil, "math.floor": math.floor, "math.trunc": math.trunc, "torch.sym_max": max,
    "torch.sym_min": min, "torch.sym_float": float, "torch.sym_int": int, "torch.sym_not": operator.not_,
    "builtins.round": round, "torch._sym_sqrt": math.sqrt, "torch.sym_sum": sum, "builtins.max": max,
    "builtins.min": min, "_operator.pow": lambda a, b: a**b if abs(b) < 64 else math.pow(a, b),
}  # fmt: skip
ATEN, HIGHER = "torch.ops.aten.", "torch.ops.higher_order."
IGNORED = ("as_device", "as_layout", "as_memory_format", "as_none")  # kinds of arguments that are None here


class Ref(NamedTuple):
    """The name of a value in a graph."""

    name: str


class Step(NamedTuple):
    """A call of a function, whose results have names: a text, or a list of texts for a list of tensors. `dead`: the
    values that no later step reads."""

    target: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    named: dict[str, Any]
    outs: tuple[Any, ...]
    dead: tuple[str, ...] = ()


class Steps(NamedTuple):
    """A graph: names of inputs, steps, results."""

    inputs: list[str]
    steps: list[Step]
    results: list[Any]

    def run(self, env: dict[str, Any]) -> list[Any]:
        """The results for the values of the inputs."""
        for step in self.steps:
            out = step.function(*filled(step.args, env), **{k: filled(v, env) for k, v in step.named.items()})
            if not step.outs:
                out = ()
            elif len(step.outs) > 1:
                if not isinstance(out, (tuple, list)) or len(out) < len(step.outs):
                    raise Malformed(f"{step.target} has no {len(step.outs)} results")
            else:
                out = (out[0] if isinstance(out, tuple) and isinstance(step.outs[0], str) and len(out) == 1 else out,)
            for name, value in zip(step.outs, out):
                if isinstance(name, list):
                    env.update(zip(name, value))
                else:
                    env[name] = value
            for name in step.dead:
                env.pop(name, None)
        return [filled(result, env) for result in self.results]


def filled(value: Any, env: dict[str, Any]) -> Any:
    """An argument with the values of its names."""
    kind = type(value)
    if kind is Ref:
        return env[value.name]
    if kind is tuple or kind is list:
        return kind([filled(part, env) for part in value])
    return value


# -- a graph of the JSON -----------------------------------------------------------------------------


class Reader:
    """Makes steps of a graph of the JSON. `known`: names that have values before the first step."""

    def __init__(self, known: Iterable[str]):
        self.known = {*known}
        self.missing: set[str] = set()  # operators that the table lacks

    def graph(self, json: Any, depth: int = 0) -> Steps:
        """The steps of a graph."""
        if depth > 10:
            raise Malformed("its graphs are nested too deeply")
        self.depth = depth
        inputs = [self.defined(each) for each in rows(json, "inputs")]
        steps = [self.step(node) for node in rows(json, "nodes")]
        results = [self.argument(each) for each in rows(json, "outputs")]
        return Steps([str(name) for name in inputs], forgetting(steps, results), results)

    def step(self, node: Any) -> Step:
        """A node as a step."""
        target = of_type(at(node, "target"), str, "a target")
        args, named = [], {}
        for each in rows(node, "inputs"):
            value = self.argument(at(each, "arg"))
            if each.get("kind") == 2:
                named[of_type(at(each, "name"), str, "the name of an argument")] = value
            else:
                args.append(value)
        function = self.function(target)
        outs = tuple([self.defined(out) for out in rows(node, "outputs")])
        return Step(target, function, tuple(args), table.settings(named), outs)

    def function(self, target: str) -> Callable[..., Any]:
        """The function of a target; a target that is missing is noted."""
        if target in PYTHON:
            return PYTHON[target]
        if target in HIGHER_ORDER:
            return HIGHER_ORDER[target]
        parts = target.removeprefix(ATEN).split(".")
        if target.startswith(ATEN) and len(parts) == 2:
            try:
                return table.found(parts[0])
            except NotImplementedError:
                pass
        self.missing.add(target[:100])
        return operator.not_

    def defined(self, out: Any) -> Any:
        """The names of a result, which are new."""
        kind, value = member(out)
        if kind == "as_tensors":
            names: Any = [of_type(at(each, "name"), str, "a name") for each in of_type(value, list, kind)]
        elif kind in ("as_tensor", "as_token"):
            names = of_type(at(value, "name"), str, "a name")
        elif kind in ("as_sym_int", "as_sym_float", "as_sym_bool") and "as_name" in at(out, kind):
            names = of_type(at(value, "as_name"), str, "a name")
        elif kind in ("as_none", "as_int", "as_float", "as_bool", "as_string", "as_sym_int"):
            return f" {len(self.known)}"  # a constant, which no step reads
        else:
            raise NotImplementedError(f"results of the kind {kind} are not supported")
        for name in names if isinstance(names, list) else [names]:
            if name in self.known:
                raise Malformed(f"the value {name!r} is made twice")
            self.known.add(name)
        return names

    def named(self, name: Any) -> Ref:
        """A value of a name that is known."""
        if not isinstance(name, str) or name not in self.known:
            raise Malformed(f"the value {str(name)[:100]!r} is read before it is made")
        return Ref(name)

    def argument(self, union: Any) -> Any:
        """An argument: names, and Python's values."""
        kind, value = member(union)
        if kind in IGNORED:
            return None
        if kind in PLAIN:
            return of_type(value, PLAIN[kind], kind)
        if kind in LISTS:
            return [of_type(each, LISTS[kind], kind) for each in of_type(value, list, kind)]
        if kind in ("as_float", "as_floats"):
            return number(value) if kind == "as_float" else [number(each) for each in of_type(value, list, kind)]
        if kind == "as_scalar_type":
            return dtype_of(value)
        if kind in ("as_tensor", "as_custom_obj"):
            return self.named(at(value, "name"))
        if kind == "as_tensors":
            return [self.named(at(each, "name")) for each in of_type(value, list, kind)]
        if kind in ("as_optional_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self.symbolic(each) for each in of_type(value, list, kind)]
        if kind in ("as_sym_int", "as_sym_float", "as_sym_bool", "as_optional_tensor"):
            return self.symbolic(value)
        if kind == "as_complex":
            return complex(number(at(value, "real")), number(at(value, "imag")))
        if kind == "as_graph":
            return self.inner(at(value, "graph"))
        raise NotImplementedError(f"arguments of the kind {kind} are not supported")

    def symbolic(self, union: Any) -> Any:
        """A size, which is an integer or the name of a value."""
        kind, value = member(union)
        if kind == "as_name":
            return self.named(value)
        return self.argument(union)

    def inner(self, json: Any) -> Callable[..., Any]:
        """A graph as an argument: a function of its inputs."""
        reader = Reader(())
        steps = reader.graph(json, self.depth + 1)
        self.missing |= reader.missing
        return lambda *values: tuple(steps.run(dict(zip(steps.inputs, values))))


PLAIN: dict[str, type] = {"as_int": int, "as_bool": bool, "as_string": str}
LISTS: dict[str, type] = {"as_ints": int, "as_bools": bool, "as_strings": str}


def forgetting(steps: list[Step], results: list[Any]) -> list[Step]:
    """The steps, each of which forgets the values that no later step reads."""
    needed, made = {*refs(results)}, []
    for step in reversed(steps):
        read = {*refs([*step.args, *step.named.values()])}
        made.append(step._replace(dead=tuple(sorted(read - needed))))
        needed |= read
    return made[::-1]


def refs(values: Iterable[Any]) -> Iterable[str]:
    """The names in arguments."""
    for value in values:
        if isinstance(value, Ref):
            yield value.name
        elif isinstance(value, (list, tuple)):
            yield from refs(value)


def condition(test: Any, yes: Callable[..., Any], no: Callable[..., Any], operands: Any) -> Any:
    """torch.cond."""
    return (yes if bool(test) else no)(*operands)


def with_grad(enabled: bool, graph: Callable[..., Any], *operands: Any) -> Any:
    """A part of a program in which gradients are recorded, or are not."""
    with torch.set_grad_enabled(bool(enabled)):
        return graph(*operands)


def while_loop(test: Callable[..., Any], body: Callable[..., Any], carried: Any, more: Any = ()) -> Any:
    """torch.while_loop."""
    carried = tuple(carried)
    while bool(test(*carried, *more)[0]):
        RUNNING.get().step()
        carried = body(*carried, *more)
    return carried


HIGHER_ORDER: dict[str, Callable[..., Any]] = {
    f"{HIGHER}cond": condition, f"{HIGHER}wrap_with_set_grad_enabled": with_grad, f"{HIGHER}while_loop": while_loop,
}  # fmt: skip


# -- the module --------------------------------------------------------------------------------------


class Input(NamedTuple):
    """An input of a program: the name of the value, the sizes (None for a dynamic size), the value of a constant."""

    name: str | None
    shape: tuple[int | None, ...] | None
    constant: Any = None


class Plan:
    """What a program runs: `steps`, the user's inputs, and the structure of arguments and results.

    `places`: {value of the graph: path of the module, and name of the tensor there}. `changed`: (number of a result,
    value of the graph) for each buffer or input that the result is written into."""

    def __init__(self) -> None:
        self.steps = Steps([], [], [])
        self.user_inputs: list[Input] = []
        self.places: dict[str, tuple[tuple[str, ...], str]] = {}
        self.changed: list[tuple[int, str]] = []
        self.in_spec: Any = None
        self.out_spec: Any = None
        self.argument_names: list[str] = []

    def __deepcopy__(self, memo: dict) -> Plan:
        return self


class Program(Module):
    """The module of an exported program. Parameters and buffers have the names of the exported module; `forward` calls
    ATen's operators."""

    def __init__(self) -> None:
        super().__init__()
        self._plan = Plan()

    def _add(self, value: str, path: str, tensor: Tensor, kind: str, persistent: bool = True) -> None:
        """Register a parameter or buffer under the name of the exported module."""
        home: Module = self
        *way, last = path.split(".")
        for name in way:
            if name not in home._modules:
                check_name(home, name)
                home.add_module(name, Module())
            home = home._modules[name]
        if last in home._parameters or last in home._buffers:
            self._plan.places[value] = (tuple(way), last)
            return
        check_name(home, last)
        if kind == "parameter":
            home.register_parameter(
                last, tensor if isinstance(tensor, Parameter) else Parameter(tensor, tensor.requires_grad)
            )
        else:
            home.register_buffer(last, tensor, persistent)
        self._plan.places[value] = (tuple(way), last)

    def _tensor(self, value: str) -> Tensor:
        """The parameter or buffer for a value of the graph."""
        way, last = self._plan.places[value]
        home: Any = self
        for name in way:
            home = home._modules[name]
        return home._parameters[last] if last in home._parameters else home._buffers[last]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the program."""
        args, kwargs = self._arranged(args, kwargs)
        given = [*flattened((args, kwargs), self._plan.in_spec)]
        env: dict[str, Any] = {value: self._tensor(value) for value in self._plan.places}
        for place, (value, wanted) in enumerate(zip(given, self._plan.user_inputs)):
            check_input(place, value, wanted)
            if wanted.name is not None:
                env[wanted.name] = value
        with running([*env.values()]):
            results = self._plan.steps.run(env)
        for k, value in self._plan.changed:
            with torch.no_grad():
                (self._tensor(value) if value in self._plan.places else env[value]).copy_(results[k])
        kept = [r for k, r in enumerate(results) if k not in {k for k, _ in self._plan.changed}]
        return unflattened(iter(kept), self._plan.out_spec)

    def _arranged(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Arguments by name in the places at which the program was exported."""
        wanted = len(self._plan.in_spec.parts[0].parts)
        names = self._plan.argument_names[len(args) : wanted]
        moved = [kwargs[name] for name in names if name in kwargs]
        rest = {name: value for name, value in kwargs.items() if name not in names}
        if len(args) + len(moved) != wanted:
            raise TypeError(f"the program takes {wanted} arguments ({', '.join(self._plan.argument_names)})")
        return (*args, *moved), rest

    def tensors(self, json: dict[str, Any]) -> tuple[dict[str, tuple[Tensor, bool]], dict[str, Tensor]]:
        """(weights, constants) by the names that the JSON of the program gives them. ValueError if a dtype or a shape
        is not the program's any more."""
        weights: dict[str, tuple[Tensor, bool]] = {}
        constants: dict[str, Tensor] = {}
        metas = at(json, "graph_module", "graph", "tensor_values")
        for spec in rows(json, "graph_module", "signature", "input_specs"):
            kind, found = member(spec)
            if kind not in ("parameter", "buffer", "tensor_constant"):
                continue
            value, name = found["arg"]["name"], found[f"{kind}_name"]
            tensor = self._tensor(value)
            if dtype_of(metas[value]["dtype"]) != tensor.dtype:
                raise ValueError(f"{name} is {tensor.dtype} now: export the model with this dtype")
            if kind == "tensor_constant":
                constants[name] = tensor
            else:
                weights[name] = tensor, kind == "parameter"
        return weights, constants

    @property
    def graph(self) -> Graph:
        """The steps as a graph of torch.fx, with a node for each."""
        return graph_of(self._plan)

    def extra_repr(self) -> str:
        """The steps."""
        return self.code

    @property
    def code(self) -> str:
        """The steps as text."""
        return "\n".join([shown(step) for step in self._plan.steps.steps])


def graph_of(plan: Plan) -> Graph:
    """The steps of a program as a graph of torch.fx."""
    graph = Graph()
    nodes: dict[str, Any] = {}
    for value, (way, last) in plan.places.items():
        nodes[value] = graph.get_attr(".".join([*way, last]))
    for wanted in plan.user_inputs:
        if wanted.name is not None:
            nodes[wanted.name] = graph.placeholder(wanted.name)
    for step in plan.steps.steps:
        made = graph.call_function(
            step.function, filled(step.args, nodes), {k: filled(v, nodes) for k, v in step.named.items()}
        )
        for k, name in enumerate(step.outs):
            place = made if len(step.outs) == 1 else graph.call_function(operator.getitem, (made, k))
            for i, part in enumerate(name if isinstance(name, list) else [name]):
                nodes[part] = graph.call_function(operator.getitem, (place, i)) if isinstance(name, list) else place
    graph.output(tuple(filled(plan.steps.results, nodes)))
    return graph


def check_name(home: Module, name: str) -> None:
    """Malformed for a name that a parameter or a module cannot have."""
    if not name or name.startswith("__") or hasattr(home, name):
        raise Malformed(f"a parameter or buffer cannot have the name {name[:100]!r}")


def check_input(place: int, value: Any, wanted: Input) -> None:
    """TypeError or RuntimeError for an input that the program was not exported for."""
    if wanted.name is None:
        if wanted.constant != value:
            raise RuntimeError(f"input {place} was {wanted.constant!r} when the program was exported, and is {value!r}")
        return
    if wanted.shape is None:
        return
    if not isinstance(value, Tensor):
        raise TypeError(f"input {place} is a tensor, not a {type(value).__name__}")
    fits = len(value.shape) == len(wanted.shape) and all(n in (None, m) for n, m in zip(wanted.shape, value.shape))
    if not fits:
        sizes = ", ".join(["any" if n is None else str(n) for n in wanted.shape])
        raise RuntimeError(
            f"input {place} has the shape {list(value.shape)}, and the program was exported for [{sizes}]; hint: "
            "export it with dynamic_shapes"
        )


def shown(step: Step) -> str:
    """A step as a line."""
    outs = ", ".join([name if isinstance(name, str) else f"[{', '.join(name)}]" for name in step.outs])
    given = [*map(shown_value, step.args), *[f"{name}={shown_value(value)}" for name, value in step.named.items()]]
    return f"{outs} = {step.target.removeprefix('torch.ops.')}({', '.join(given)})"


def shown_value(value: Any) -> str:
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, list):
        return f"[{', '.join(map(shown_value, value))}]"
    return "graph" if callable(value) and not isinstance(value, torch.dtype) else repr(value)
