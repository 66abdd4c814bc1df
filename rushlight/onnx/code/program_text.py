"""The text of a program: the functions of operators that it needs, and a class with the weights and `forward`."""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.base.dtypes import float32
from rushlight.base.errors import not_implemented_error
from rushlight.nn.parameter import Parameter
from rushlight.onnx.operators.reduce import Reduce, reduced
from rushlight.onnx.operators.table import FILES
from rushlight.onnx.program import Constant, Program, Step
from rushlight.onnx.tensors import ELEMENTS, TENSOR_TYPES, has_tensors

from .expressions import Node, expression

if TYPE_CHECKING:
    from rushlight.onnx.module import OnnxModule

HEADER = '''\
"""{title}, written by rushlight.onnx from a file of opset {opset}.

    model = Model()
    model.load_state_dict(weights)  # the state_dict of the module that rushlight.onnx.load returns
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
'''
TYPES = {code: e.name for code, e in ELEMENTS.items() if e.name in TENSOR_TYPES}
# functions of other folders that functions of operators call, as a program has them
STAND_INS = {
    "torch_type": '''\
def torch_type(code):
    """torch's dtype."""
    return getattr(torch, TYPES[code])
''',
    "as_known": '''\
def as_known(value):
    """A number as a tensor."""
    return torch.tensor(value)
''',
    "has_tensors": '''\
def has_tensors(dtype):
    """Whether tensors of a dtype exist."""
    return dtype.name in TYPES.values()
''',
    "numpy_type": '''\
def numpy_type(code):
    """NumPy's dtype."""
    return np.dtype(TYPES[code])
''',
    "CODES": "CODES = {name: code for code, name in TYPES.items()}\n",
}
RESERVED = {"torch", "nn", "np", "F", "math", "self", "Tensor", "Model", "TYPES", *keyword.kwlist}
READERS = {"Ints": "ints", "Floats": "floats", "Scalar": "scalar"}  # kind of an input -> the function that reads it
TYPE_SETTINGS = ("to", "dtype", "output_dtype", "output_datatype")  # attributes that are codes of element types
MAX_NUMBERS = 10_000  # of a constant in the text


class Writer:
    """Collects the functions and the lines of one program."""

    def __init__(self, module: OnnxModule):
        self.module = module
        self.functions: dict[str, str] = {}  # name -> text, in the order of use
        self.taken = RESERVED | names_of_functions()
        self.names: dict[str, str] = {}  # a value of the file -> its variable
        self.calls: dict[int, str] = {}  # programs of the model's functions -> their names
        self.ranks = {name: module._weight(name).ndim for name in module._places}

    def text(self) -> str:
        """The whole program."""
        graph = self.module.graph
        self.names.update((name, self.place(name)) for name in self.module._places)
        arguments = [self.variable(name) for name in graph.inputs]
        lines = self.body(graph)
        head = HEADER.format(title=graph.name or "A model", opset=self.module.opset)
        weights = textwrap.indent("\n".join(["super().__init__()", *self.weights()]), " " * 8)
        forward = textwrap.indent("\n".join(lines), " " * 8)
        model = f"class Model(nn.Module):\n    def __init__(self):\n{weights}\n\n"
        model += f"    def forward({', '.join(['self', *arguments])}):\n{forward}\n"
        return "\n\n".join([head, *self.functions.values(), model])

    def place(self, name: str) -> str:
        """The text of a weight."""
        path, last = self.module._places[name]
        return f"{owner(path)}.{last}" if plain(last) else f"getattr({owner(path)}, {last!r})"

    def weights(self) -> Iterator[str]:
        """Statements that make the weights, without their values."""
        made = set()
        for name in self.module._places:
            path, last = self.module._places[name]
            for i, part in enumerate(path):
                if path[: i + 1] not in made:
                    made.add(path[: i + 1])
                    home = owner(path[:i])
                    yield f"{home}.{part} = nn.Module()" if plain(part) else f"{home}.add_module({part!r}, nn.Module())"
            value = self.module._weight(name)
            dtype = "" if value.dtype is float32 else f", dtype={value.dtype}"
            zeros, home = f"torch.zeros({', '.join(map(str, value.shape)) or '()'}{dtype})", owner(path)
            if not isinstance(value, Parameter):
                yield f"{home}.register_buffer({last!r}, {zeros})"
            elif plain(last):
                yield f"{home}.{last} = nn.Parameter({zeros})"
            else:
                yield f"{home}.register_parameter({last!r}, nn.Parameter({zeros}))"

    def variable(self, name: str) -> str:
        """The variable of a value."""
        if name not in self.names:
            text = re.sub(r"\W+", "_", name).strip("_") or "value"
            text = f"v{text}" if text[0].isdigit() else text
            while text in self.taken or text in self.functions:
                text += "_"
            self.taken.add(text)
            self.names[name] = text
        return self.names[name]

    def body(self, program: Program, returned: str = "return {}") -> list[str]:
        """The statements of a program and its return."""
        lines = []
        for step in program.steps:
            lines += self.statement(step)
        outputs = [self.output(program, name) for name in program.outputs]
        text = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        return [*lines, returned.format(text if returned == "return {}" else ", ".join(outputs))]

    def output(self, program: Program, name: str) -> str:
        constants = program.constants
        return literal(constants[name], "Tensor") if name in constants else self.variable(name)

    def statement(self, step: Step) -> list[str]:
        """The statements of a step: inner graphs as functions, then the call."""
        graphs: list[str] = []
        bodies = {}
        for key in step.graphs:
            bodies[key] = self.graph(step.settings[key], key, graphs, step.is_call)
        texts = [self.source(step, i) for i in range(len(step.sources))]
        while texts and texts[-1] == "None":
            texts.pop()
        found = None if bodies else expression(Node(step, texts, self.ranks))
        if found is None:
            found = self.call(step, texts, bodies)
        names = [self.variable(name) if name else "_" for name in step.outputs]
        if found.startswith(f"{name_of(step)}(") and returns_tuple(step):
            found += "[0]" if len(names) == 1 else f"[:{len(names)}]"
        return [*graphs, f"{', '.join(names)} = {found}"]

    def source(self, step: Step, i: int) -> str:
        """The text of an input, as the function of the operator receives it."""
        source, kind = step.sources[i], step.kinds[i]
        if source is None:
            return "None"
        if isinstance(source, Constant):
            return literal(source.array, kind)
        name = self.variable(source)
        if kind not in READERS:
            return name
        self.need(READERS[kind], getattr(inspect.getmodule(Step), READERS[kind]))
        return f"{READERS[kind]}({name})"

    def graph(self, program: Program, key: str, lines: list[str], is_call: bool) -> str:
        """The name of a function for an inner graph; its text is added to `lines`, or to the program's functions."""
        if id(program) in self.calls:
            return self.calls[id(program)]
        name = self.variable(f"{program.name or key}_{len(self.taken)}")
        kept = dict(self.names)
        for inner in [*program.inputs, *(o for step in program.steps for o in step.outputs)]:
            self.names.pop(inner, None)
        arguments = ", ".join(self.variable(n) + ("=None" if is_call else "") for n in program.inputs)
        inside = textwrap.indent("\n".join(self.body(program, "return [{}]")), "    ")
        self.names = {**kept, name: name}
        text = f"def {name}({arguments}):\n{inside}\n"
        if is_call:
            self.calls[id(program)] = name
            self.functions[name] = text
        else:
            lines += text.rstrip().split("\n")
        return name

    def call(self, step: Step, texts: list[str], bodies: dict[str, str]) -> str:
        """A call of the operator's function."""
        function = step.operator.function
        codes = [step.settings[key] for key in TYPE_SETTINGS if step.settings.get(key)]
        if any(code not in TYPES for code in codes):
            raise not_implemented_error(f"code() has no text for element types that tensors lack: {step!r}")
        settings = {key: bodies.get(key) or written(value, step) for key, value in step.settings.items()}
        if isinstance(function, Reduce):
            reduction = function.settings["function"]
            self.need(reduction.__name__, reduction)
            settings |= {"function": reduction.__name__, "is_plain": str(function.settings["is_plain"])}
            function = reduced
        self.need(function.__name__, function)
        return f"{function.__name__}({', '.join([*texts, *(f'{k}={v}' for k, v in settings.items())])})"

    def need(self, name: str, function: Callable[..., Any]) -> None:
        """Add the source of a function, after the sources of the functions that it uses."""
        if name in self.functions:
            return
        self.functions[name] = ""  # holds the place in a recursion
        for used, value in globals_of(function):
            if used in STAND_INS:
                self.functions.setdefault("TYPES", f"TYPES = {TYPES!r}\n")
                self.functions.setdefault(used, STAND_INS[used])
            elif isinstance(value, types.FunctionType):
                self.need(used, value)
            elif isinstance(value, (int, float, str, dict, tuple)):
                self.functions.setdefault(used, f"{used} = {value!r}\n")
            else:
                raise not_implemented_error(f"code() has no text for {name}: the function uses {used}")
        del self.functions[name]
        self.functions[name] = re.sub(r"^(@operator\(.*\)\n)+", "", inspect.getsource(function))


def names_of_functions() -> set[str]:
    """All names that functions of operators use."""
    modules = (sys.modules[f"rushlight.onnx.operators.{name}"] for name in FILES.split())
    return {name for module in modules for name in vars(module)}


def globals_of(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """(name, value) of the globals that a function uses, without modules and torch's classes."""
    (tree,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(tree, ast.FunctionDef)
    defaults = [d for d in (*tree.args.defaults, *tree.args.kw_defaults) if d is not None]
    names = [node.id for part in (*defaults, *tree.body) for node in run_nodes(part) if isinstance(node, ast.Name)]
    local = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
    for name in dict.fromkeys(name for name in names if name not in local):
        value = function.__globals__.get(name)
        if value is not None and not isinstance(value, types.ModuleType) and name not in ("Tensor",):
            yield name, value


def run_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a syntax tree without annotations, which do not run."""
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from run_nodes(child)


def name_of(step: Step) -> str:
    return getattr(step.operator.function, "__name__", "")


def returns_tuple(step: Step) -> bool:
    """Whether the operator's function returns a tuple for this node."""
    returned = str(getattr(step.operator.function, "__annotations__", {}).get("return", ""))
    return returned.startswith("tuple") or ("tuple" in returned and len(step.outputs) > 1)


def owner(path: tuple[str, ...]) -> str:
    return "self" + "".join(f".{part}" if plain(part) else f".get_submodule({part!r})" for part in path)


def plain(name: str) -> bool:
    """Whether a name can be written after a dot."""
    return name.isidentifier() and not keyword.iskeyword(name)


def written(value: Any, step: Step) -> str:
    """The text of an attribute."""
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, np.{value.dtype.name})"
    if isinstance(value, (int, str, list)):
        return repr(value)
    if isinstance(value, float):
        return str(np.float32(value))
    raise not_implemented_error(f"code() has no text for an attribute of {step!r}")


def literal(array: np.ndarray, kind: str) -> str:
    """The text of a constant input."""
    if kind in ("Ints", "Floats"):
        return repr([int(v) if kind == "Ints" else float(v) for v in array.reshape(-1)])
    if kind == "Scalar":
        return repr(array.item()) if array.size else "None"
    if not has_tensors(array.dtype) or array.size > MAX_NUMBERS:
        what = f"{array.size:,} numbers" if has_tensors(array.dtype) else f"the type {array.dtype}"
        raise not_implemented_error(f"code() has no text for a constant of {what}")
    numbers = np.vectorize(lambda v: float(str(np.float32(v))), otypes=[float])(array) if is_single(array) else array
    text = re.sub(r"\binf\b", "math.inf", re.sub(r"\bnan\b", "math.nan", repr(numbers.tolist())))
    return f"torch.tensor({text}, dtype=torch.{array.dtype.name})" + ("" if array.size else f".reshape({array.shape})")


def is_single(array: np.ndarray) -> bool:
    return array.dtype.name in ("float32", "float16", "bfloat16") and array.size > 0


def code_of(module: OnnxModule) -> str:
    """The text of a Python program with torch's API that computes the same as the module."""
    return Writer(module).text()
