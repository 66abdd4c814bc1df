"""Tracers of the user's own."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import nn


class Lowering(rushlight.fx.Tracer):
    """Goes into activations."""

    def is_leaf_module(self, m, module_qualified_name):
        return not isinstance(m, nn.ReLU) and super().is_leaf_module(m, module_qualified_name)

    def create_proxy(self, kind: str, target: rushlight.fx.node.Target, *args: rushlight.fx.node.Argument, **kwargs):
        return super().create_proxy(kind, target, *args, **kwargs)


@pytest.mark.origin("courses")
def test_a_tracer_goes_into_layers():
    graph = Lowering().trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.ReLU(inplace=True)))
    assert [node.op for node in graph.nodes] == [
        "placeholder",
        "call_module",
        "call_function",
        "call_function",
        "output",
    ]
