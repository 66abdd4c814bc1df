"""Programs from the messages of a file. Nothing runs here: a graph becomes steps, and faults are refused.

Refused as `Damaged`: values that no earlier node makes (so also cycles), names made twice, functions that call
themselves. Refused as NotImplementedError: operators that the table lacks, all in one message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from rushlight.base.errors import not_implemented_error
from rushlight.serialization.archive import Damaged

from .messages import Message
from .operators.control import call_function
from .operators.table import DEFAULT_DOMAINS, LATEST, Input, Operator, find, load_operators
from .program import Program, Step, Values
from .tensors import array_of, dense_of, has_tensors

IGNORED = frozenset(("consumed_inputs",))  # attributes of opset 1 without a meaning for results
FEW = 64  # constants with at most this number of elements are known values; large ones are weights
MAX_DEPTH = 60  # graphs in graphs and functions in functions
# AttributeProto.type -> field; the other types have their own readers below
PLAIN = {1: "f", 2: "i", 6: "floats", 7: "ints"}
STRING, TENSOR, GRAPH, STRINGS, TENSORS, GRAPHS, SPARSE, TYPE = 3, 4, 5, 8, 9, 10, 11, 13


# names of a graph, then of the graphs around it, innermost first
Scopes = tuple[set[str], ...]


class Builder:
    """Makes the programs of one model. `folder`: the folder of external data."""

    def __init__(self, model: Message, folder: str | None):
        load_operators()
        self.folder = folder
        self.functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self.opsets = opsets_of(model.opset_import)
        self.unsupported: dict[str, str] = {}  # what -> the first node
        self.made: dict[Any, Program] = {}  # programs of functions
        self.making: list[Any] = []  # functions whose programs are being made
        self.depth = 0
        self.inner_programs: list[Program] = []

    def main(self, graph: Message) -> tuple[Program, Values]:
        """(the program of the model's graph without its constants bound, {name: array} of its constants)."""
        constants = self.initializers(graph)
        inputs = [v.name for v in graph.input if v.name not in constants]
        program = Program(graph.name, inputs, [v.name for v in graph.output], constants)
        self.fill(program, graph.node, (), self.opsets, {})
        if self.unsupported:
            rows = [f"{what} (node {node!r})" for what, node in self.unsupported.items()]
            raise not_implemented_error("the file has operators that are not supported: " + ", ".join(rows))
        program.constants = {}
        return program, {**constants, **self.inner_weights(program, constants)}

    def inner_weights(self, main: Program, constants: Values) -> Values:
        """{name: array} of the weights of inner graphs, which become weights of the module. A name that occurs twice
        stays a constant."""
        found, counts = {}, Counter(constants)
        for program in (main, *self.inner_programs):
            counts.update([*program.inputs, *program.constants, *(o for s in program.steps for o in s.outputs)])
        for program in self.inner_programs:
            for name, array in list(program.constants.items()):
                if is_weight(array) and counts[name] == 1:
                    found[name] = program.constants.pop(name)
        return found

    def initializers(self, graph: Message) -> Values:
        """The arrays of a graph's initializers."""
        found: Values = {}
        for tensor in graph.initializer:
            found[tensor.name] = array_of(tensor, self.folder)
        for sparse in graph.sparse_initializer:
            found[sparse.values.name if sparse.values else ""] = dense_of(sparse, self.folder)
        if len(found) != len(graph.initializer) + len(graph.sparse_initializer):
            raise Damaged(f"the graph {graph.name!r} has two initializers of one name")
        return found

    def fill(
        self, program: Program, nodes: Iterable[Message], outer: Scopes, opsets: dict[str, int], given: dict[str, Any]
    ) -> None:
        """Add the steps of `nodes`. `outer`: names of the graphs around; `given`: attributes of a function's call."""
        names = {*program.inputs, *program.constants}
        scopes = (names, *outer)
        for node in nodes:
            for source in node.input:
                if source and not any(source in scope for scope in scopes):
                    raise Damaged(
                        f"node {node.name!r} ({node.op_type}) reads {source!r}, which no earlier node makes: the "
                        "value is missing, or the graph has a cycle"
                    )
            twice = [name for name in node.output if name and name in names]
            if twice:
                raise Damaged(f"node {node.name!r} ({node.op_type}) makes {twice[0]!r}, which exists already")
            names.update(name for name in node.output if name)
            constant = self.constant(node, given)
            if constant is not None:
                program.constants[node.output[0]] = constant
            elif (step := self.step(node, scopes, opsets, given)) is not None:
                program.steps.append(step)
        missing = [name for name in program.outputs if not any(name in scope for scope in scopes)]
        if missing:
            raise Damaged(f"the graph {program.name!r} has the output {missing[0]!r}, which no node makes")

    def constant(self, node: Message, given: dict[str, Any]) -> np.ndarray | None:
        """The array of a Constant node; None for other nodes."""
        if node.op_type != "Constant" or node.domain not in DEFAULT_DOMAINS or len(node.output) != 1:
            return None
        found = self.settings(node, (), self.opsets, given)
        if len(found) != 1:
            raise Damaged(f"the Constant {node.name!r} has {len(found)} attributes instead of 1")
        (name, value), *_ = found.items()
        if name in ("value", "sparse_value"):
            return value
        if name in ("value_string", "value_strings"):
            return np.array(value, object)
        return np.array(value, np.float32 if name in ("value_float", "value_floats") else np.int64)

    def step(self, node: Message, scopes: Scopes, opsets: dict[str, int], given: dict[str, Any]) -> Step | None:
        """The step of a node; None if its operator is not supported."""
        settings = self.settings(node, scopes, opsets, given)
        sources, outputs = [name or None for name in node.input], list(node.output)
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        row = find(domain, node.op_type, opsets.get(domain, 1))
        function = self.functions.get((node.domain, node.op_type, node.overload))
        if row is None and function is not None:
            return self.call(node, function, settings, sources, outputs)
        wrong = "" if row is None else self.misfit(row, settings, len(sources), node)
        if row is None or wrong:
            name = f"{domain}.{node.op_type}" if domain else node.op_type
            self.unsupported.setdefault(f"{name} {wrong}".strip(), node.name or ", ".join(outputs))
            return None
        settings = {key: value for key, value in settings.items() if key in row.settings}
        if "n_outputs" in row.settings:
            settings["n_outputs"] = len(outputs)
        if "opset" in row.settings:
            settings["opset"] = opsets.get(domain, 1)
        return Step(node.name, row, sources, outputs, settings)

    def misfit(self, row: Operator, settings: dict[str, Any], count: int, node: Message) -> str:
        """Why a node does not fit a row of the table; "" if it does."""
        missing = row.needed - settings.keys() - {"n_outputs", "opset"}
        if missing:
            raise Damaged(f"node {node.name!r} ({node.op_type}) has no attribute {min(missing)}")
        unknown = settings.keys() - row.settings - IGNORED
        if unknown:
            return f"with {min(unknown)}={settings[min(unknown)]!r}"
        return "" if not count or row.input(count - 1) is not None else f"with {count} inputs"

    def call(
        self, node: Message, function: Message, settings: dict[str, Any], sources: list[Any], outputs: list[str]
    ) -> Step:
        """A step that calls a function of the model."""
        program = self.function(function, settings)
        if len(sources) > len(program.inputs) or len(outputs) > len(program.outputs):
            raise Damaged(f"node {node.name!r} ({node.op_type}) has too many inputs or outputs for its function")
        sources += [None] * (len(program.inputs) - len(sources))
        inputs = tuple(Input(name, "Value", False) for name in program.inputs)
        row = Operator(f"{node.domain}:{node.op_type}", 1, 1, call_function, inputs, frozenset(("body",)), frozenset())
        return Step(node.name, row, sources, outputs, {"body": program})

    def function(self, function: Message, settings: dict[str, Any]) -> Program:
        """The program of a function for the attributes of a call; made once for equal attributes."""
        given = {a.name: self.attribute(a, (), self.opsets, {}) for a in function.attribute_proto}
        given.update((name, value) for name, value in settings.items())
        name = (function.domain, function.name, function.overload)
        key = (name, repr(sorted(given.items(), key=lambda item: item[0])))
        if key in self.made:
            return self.made[key]
        if name in self.making:
            raise Damaged(f"the function {function.name!r} calls itself")
        self.making.append(name)
        program = Program(function.name, list(function.input), list(function.output), {})
        opsets = opsets_of(function.opset_import) if function.opset_import else self.opsets
        self.fill(program, function.node, (), opsets, given)
        self.making.pop()
        self.made[key] = program
        return program

    def settings(self, node: Message, scopes: Scopes, opsets: dict[str, int], given: dict[str, Any]) -> dict[str, Any]:
        """{name: value} of a node's attributes. `given`: the values of a function's attributes."""
        found: dict[str, Any] = {}
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                if attribute.ref_attr_name in given:
                    found[attribute.name] = given[attribute.ref_attr_name]
            else:
                found[attribute.name] = self.attribute(attribute, scopes, opsets, given)
        return found

    def attribute(self, a: Message, scopes: Scopes, opsets: dict[str, int], given: dict[str, Any]) -> Any:
        """The value of an attribute: a number, text, list, array or program."""
        kind = a.type or kind_of(a)
        if kind in PLAIN:
            return getattr(a, PLAIN[kind])
        if kind in (STRING, STRINGS):
            texts = [text_of(s, a) for s in (a.strings if kind == STRINGS else [a.s])]
            return texts if kind == STRINGS else texts[0]
        if kind == TENSOR and a.t is not None:
            return array_of(a.t, self.folder)
        if kind == TENSORS:
            return [array_of(t, self.folder) for t in a.tensors]
        if kind == GRAPH and a.g is not None:
            return self.inner(a.g, scopes, opsets, given)
        if kind == SPARSE and a.sparse_tensor is not None:
            return dense_of(a.sparse_tensor, self.folder)
        if kind == TYPE:
            return a.tp
        raise Damaged(f"the attribute {a.name!r} has no value of its type {kind}")

    def inner(self, graph: Message, scopes: Scopes, opsets: dict[str, int], given: dict[str, Any]) -> Program:
        """The program of a graph in an attribute, which may read the names of the `scopes` around it."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Damaged(f"graphs are nested over {MAX_DEPTH} deep")
        inputs, outputs = [v.name for v in graph.input], [v.name for v in graph.output]
        program = Program(graph.name, inputs, outputs, self.initializers(graph))
        self.fill(program, graph.node, scopes, opsets, given)
        self.depth -= 1
        if not self.making:
            self.inner_programs.append(program)
        return program


def is_weight(array: np.ndarray) -> bool:
    """Whether a constant of an inner graph is large enough to be a weight."""
    return has_tensors(array.dtype) and array.ndim > 0 and array.size > FEW


def opsets_of(entries: Iterable[Message]) -> dict[str, int]:
    """{domain: version}; a NotImplementedError for a default domain that is newer than the table."""
    found = {"" if e.domain in DEFAULT_DOMAINS else e.domain: e.version for e in entries}
    if found.setdefault("", 1) > LATEST:
        raise not_implemented_error(
            f"the file has opset {found['']}; operators up to opset {LATEST} are supported: convert the file with "
            "onnx.version_converter"
        )
    return found


def kind_of(a: Message) -> int:
    """The type of an attribute of the first files, which have no type: the field that is set."""
    fields = {**{name: kind for kind, name in PLAIN.items()}, "s": STRING, "t": TENSOR, "g": GRAPH, "strings": STRINGS}
    return next((kind for name, kind in fields.items() if a.has(name) and getattr(a, name) not in (None, [])), 0)


def text_of(raw: bytes, a: Message) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Damaged(f"the attribute {a.name!r} is not UTF-8") from None
