"""From groups to functions."""

import pytest

import rushlight
from rushlight.loops.llvm import Module
from tests.compile.native.native_case import assert_same, normal

pytest.importorskip("llvmlite")


@pytest.mark.faster
def test_equal_steps_share_a_function(monkeypatch):
    """Of four equal layers, the last has another step behind it. Two more functions call the steps."""
    compiled, numbers = Module.compiled, []

    def counted(module):
        if "run" in module.functions:  # not the module of a guard
            numbers.append(len(module.functions))
        return compiled(module)

    monkeypatch.setattr(Module, "compiled", counted)
    layers = rushlight.nn.Sequential(*[rushlight.nn.Linear(20, 20) for _ in range(4)])
    assert_same(lambda x: layers(x) + 1, normal(5, 20), tolerance=2e-6)
    assert numbers == [2 + 2]
