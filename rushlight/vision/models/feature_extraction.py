"""Outputs of a model's inner layers: torchvision.models.feature_extraction.

The model is traced by fx in training and in evaluation. A node has the path of its module: `layer1.0.conv1` for a
layer, `layer1.0.add` for an operation in the forward of `layer1.0`."""

from __future__ import annotations

import copy
import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.base.errors import value_error
from rushlight.fx import Graph, GraphModule, Node, Tracer
from rushlight.fx.graph_module import found, put
from rushlight.nn.module import Module
from rushlight.vision import ops

Names = Sequence[str] | dict[str, str] | None


class NodePathTracer(Tracer):
    """A tracer that gives each node a name with the path of its module, in `node_to_qualname`.

    `leaf_modules`: classes whose calls are one node each. Equal names get suffixes: `relu_1`."""

    def __init__(self, *args: Any, leaf_modules: Any = (), **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.leaf_modules = tuple(leaf_modules)
        self.current_module_qualname = ""
        self.node_to_qualname: dict[Node, str] = {}
        self.counts: dict[str, int] = {}  # name without its suffix -> number of its nodes

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of the module are recorded as one node."""
        return isinstance(m, self.leaf_modules) or super().is_leaf_module(m, module_qualified_name)

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """A call of a module; nodes made in it have its path."""
        before, self.current_module_qualname = self.current_module_qualname, self.path_of_module(m)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.current_module_qualname = before

    def create_node(self, kind: str, target: Any, *args: Any, **kwargs: Any) -> Node:
        """A node of the graph; an input has the name of the argument."""
        node = super().create_node(kind, target, *args, **kwargs)
        if kind == "placeholder":
            self._give_name(node, str(node))
        return node

    def create_proxy(
        self, kind: str, target: Any, args: tuple, kwargs: dict, name: str | None = None, type_expr: Any = None
    ) -> Any:
        """A new node with its name, and the proxy of its value."""
        proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr)
        path = self.current_module_qualname
        if kind != "call_module":
            path = f"{path}.{proxy.node}" if path else str(proxy.node)
        self._give_name(proxy.node, path)
        return proxy

    def _give_name(self, node: Node, path: str) -> None:
        """Set the node's name: the path, with a number if nodes before have the same path."""
        path = re.sub(r"_[0-9]+$", "", path)  # the number that is unique in the graph
        number = self.counts.get(path, 0)
        self.counts[path] = number + 1
        self.node_to_qualname[node] = f"{path}_{number}" if number else path


def get_graph_node_names(
    model: Module, tracer_kwargs: dict[str, Any] | None = None, suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """The names of the nodes in training and in evaluation, in the order of execution.

    UserWarning if they differ, unless `suppress_diff_warning`.

    >>> from rushlight.vision.models.feature_extraction import get_graph_node_names
    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(2, 3), rushlight.nn.ReLU())
    >>> get_graph_node_names(model)[0]
    ['input', '0', '1']
    """
    training = model.training
    try:
        train, evaluation = (
            list(traced(model, mode, tracer_kwargs, concrete_args).node_to_qualname.values()) for mode in (True, False)
        )
    finally:
        model.train(training)
    if not suppress_diff_warning:
        warn_of_differences(train, evaluation)
    return train, evaluation


def create_feature_extractor(
    model: Module, return_nodes: Names = None, train_return_nodes: Names = None, eval_return_nodes: Names = None,
    tracer_kwargs: dict[str, Any] | None = None, suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> DualGraphModule:  # fmt: skip
    """A module that returns {key: output of a node of `model`}; the parameters are shared.

    `return_nodes`: names of nodes, or a dict of names and keys. The name of a module stands for its last node.
    `train_return_nodes` and `eval_return_nodes`: other names in training than in evaluation. ValueError for a name that
    the model lacks.

    >>> from rushlight.vision.models.feature_extraction import create_feature_extractor
    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(2, 3), rushlight.nn.ReLU())
    >>> features = create_feature_extractor(model, {"0": "hidden", "1": "out"})
    >>> list(features(rushlight.ones(1, 2)))
    ['hidden', 'out']
    """
    wanted = wanted_of(return_nodes, train_return_nodes, eval_return_nodes)
    training, graphs, names = model.training, [], []
    try:
        for mode in (True, False):
            tracer = traced(model, mode, tracer_kwargs, concrete_args)
            graphs.append(with_outputs(tracer, wanted[mode]))
            names.append(list(tracer.node_to_qualname.values()))
    finally:
        model.train(training)
    if not suppress_diff_warning:
        warn_of_differences(*names)
    made = DualGraphModule(model, graphs[0], graphs[1], class_name=type(model).__name__)
    return made.train(training)


class DualGraphModule(GraphModule):
    """A module with a graph for training and a graph for evaluation."""

    def __init__(self, root: Any, train_graph: Graph, eval_graph: Graph, class_name: str = "GraphModule"):
        super().__init__(root, eval_graph, class_name)
        for node in train_graph.nodes:  # some parts run in training only
            if node.op in ("get_attr", "call_module"):
                put(self, node.target, part_of(root, node.target))
        self.train_graph, self.eval_graph = train_graph, eval_graph
        self.graph = train_graph if self.training else eval_graph

    def __deepcopy__(self, memo: dict) -> DualGraphModule:
        parts = {
            node.target: copy.deepcopy(found(self, node.target), memo)
            for graph in (self.train_graph, self.eval_graph)
            for node in graph.nodes
            if node.op in ("get_attr", "call_module")
        }
        train_graph, eval_graph = copied(self.train_graph), copied(self.eval_graph)
        made = DualGraphModule(parts, train_graph, eval_graph, self._class_name)
        return made.train(self.training)

    def train(self, mode: bool = True) -> DualGraphModule:
        """Switch to the graph for training, or to the graph for evaluation."""
        if mode != self.training:
            self.graph = self.train_graph if mode else self.eval_graph
        super().train(mode)
        return self


def part_of(root: Any, path: str) -> Any:
    """The part at a path of a module, or of a dict by paths."""
    return root[path] if isinstance(root, dict) else found(root, path)


def copied(graph: Graph) -> Graph:
    """A copy of the graph."""
    new = Graph()
    result = new.graph_copy(graph, {}, return_output_node=True)
    if result is not None:
        new.output(result[0])
    return new


def traced(model: Module, training: bool, settings: dict[str, Any] | None, concrete_args: Any) -> NodePathTracer:
    """A tracer that has traced the model. Functions of math and of torchvision.ops are nodes."""
    chosen = dict(settings or {})
    chosen["autowrap_modules"] = (*chosen.get("autowrap_modules", ()), math, ops)
    layers = (cls for cls in vars(ops).values() if isinstance(cls, type) and issubclass(cls, Module))
    chosen["leaf_modules"] = (*chosen.get("leaf_modules", ()), *layers)
    tracer = NodePathTracer(**chosen)
    tracer.trace(model.train(training), concrete_args=concrete_args)
    return tracer


def wanted_of(both: Names, training: Names, evaluation: Names) -> dict[bool, dict[str, str]]:
    """{training or not: {name: key}}. ValueError unless names are given for both modes together, or for each mode."""
    if both is None and training is None and evaluation is None:
        raise value_error(
            "Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together, should be specified"
        )
    if (training is None) != (evaluation is None):
        raise value_error(
            "If any of `train_return_nodes` and `eval_return_nodes` are specified, then both should be specified"
        )
    if both is not None and training is not None:
        raise value_error(
            "If `train_return_nodes` and `eval_return_nodes` are specified, then both should be specified",
            "leave out return_nodes",
        )
    names = {True: training, False: evaluation} if both is None else dict.fromkeys((True, False), both)
    return {
        mode: {str(k): str(v) for k, v in (n if isinstance(n, dict) else {k: k for k in n}).items()}
        for mode, n in names.items()
        if n is not None
    }


def with_outputs(tracer: NodePathTracer, keys: dict[str, str]) -> Graph:
    """The traced graph, with the nodes of these names as its output, and without unused nodes."""
    graph, names = tracer.graph, tracer.node_to_qualname
    for query in keys:
        if not any(name == query or name.startswith(f"{query}.") for name in names.values()):
            raise value_error(
                f"node: '{query}' is not present in model.",
                "use `get_graph_node_names` to make sure the `return_nodes` you specified are present. It may "
                "even be that you need to specify `train_return_nodes` and `eval_return_nodes` separately.",
            )
    nodes = list(graph.nodes)
    graph.erase_node(nodes.pop())  # the model's own output
    left, outputs = dict(keys), {}
    for node in reversed(nodes):
        name = names.get(node, "")
        for query in left:
            if name == query or name.startswith(f"{query}."):
                outputs[left.pop(query)] = node
                break
    graph.output(dict(reversed(outputs.items())))
    graph.eliminate_dead_code()
    return graph


def warn_of_differences(train: list[str], evaluation: list[str]) -> None:
    """UserWarning if the nodes in training differ from the nodes in evaluation."""
    if train == evaluation:
        return
    only = [
        f"{mode}: {', '.join(name for name in names if name not in others) or 'another order'}"
        for mode, names, others in (("train", train, evaluation), ("eval", evaluation, train))
    ]
    warnings.warn(
        f"The nodes obtained by tracing the model in eval mode are not the same as in train mode ({'; '.join(only)}). "
        "When choosing nodes for feature extraction, you may need to specify output nodes for train and eval mode "
        "separately.",
        stacklevel=3,
    )
