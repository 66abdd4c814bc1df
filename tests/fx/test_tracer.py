"""Tracers of the user's own."""

from __future__ import annotations

import subprocess
import sys

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


AUTOCAST = """
import rushlight as torch
from rushlight import fx, nn

def product():
    with torch.autocast("cpu"):
        return torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype

first = fx.symbolic_trace(lambda x: torch.mm(x, x).relu())
before = product()
second = fx.symbolic_trace(nn.Linear(2, 3))
print(before, product(), [node.target.__name__ for node in first.graph.nodes if node.op == "call_function"])
print("torch.mm" in first.code, "torch.mm" in fx.symbolic_trace(lambda x: torch.mm(x, x)).code)
"""


def test_autocast_still_converts_after_another_trace():
    done = subprocess.run([sys.executable, "-c", AUTOCAST], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["torch.bfloat16 torch.bfloat16 ['mm']", "True True"]
