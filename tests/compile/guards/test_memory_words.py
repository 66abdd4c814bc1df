"""Guards as words of memory (compile/guards/memory_words.py): each change of a model's state is noticed."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import rushlight
from rushlight import nn
from rushlight.compile.guards import memory_words
from rushlight.compile.guards.memory_words import guarded, supported, version_address

pytestmark = pytest.mark.skipif(not supported(), reason="this interpreter's dicts have no version numbers")


def counted(d, rest=lambda: True):
    """(a guard that d is {"x": 1}, the list of its full tests)."""
    tests = []

    def check():
        tests.append(None)
        return d == {"x": 1}

    return guarded(check, rest, [version_address(d)]), tests


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_an_unchanged_dict_is_not_tested_again(kind):
    holds, tests = counted(kind(x=1))
    assert [holds() for _ in range(3)] == [True] * 3
    assert not tests


def test_a_change_and_its_return_are_noticed():
    d = {"x": 1}
    holds, tests = counted(d)
    d["x"] = 2
    assert [holds(), holds()] == [False, False]
    d["x"] = 1
    assert [holds(), holds()] == [True, True]
    assert len(tests) == 3


def test_a_dict_that_changes_in_each_call_is_tested_in_python():
    d = {"x": 1}
    holds, tests = counted(d)
    d["x"] = 1.0
    for k in range(2 * memory_words.MAX_CHANGES):
        d["x"] = (1, 1.0)[k % 2]
        assert holds()
    d["x"] = 3
    assert not holds()
    assert len(tests) == 2 * memory_words.MAX_CHANGES + 1


def test_the_rest_is_always_tested():
    seen = []
    holds, _ = counted({"x": 1}, lambda: not seen)
    assert holds()
    seen.append(None)
    assert not holds()


def layers():
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)], nn.Dropout(0.5)).eval()
    x = rushlight.randn(3, 4)
    compiled = rushlight.compile(model)
    for _ in range(4):
        compiled(x)
    return model, compiled, x


def other_layer(model):
    model[1] = nn.Linear(4, 4)


def other_parameter(model):
    model[1].bias = nn.Parameter(rushlight.ones(4))


def other_memory(model):
    model[1].weight.data = rushlight.ones(4, 4)


def written(model):
    model[1].weight.mul_(2)


def hooked(model):
    model[2].register_forward_hook(lambda m, given, out: out * 2)


def in_the_dict(model):
    model[2]._forward_hooks[7] = lambda m, given, out: out + 1


def frozen(model):
    model[0].weight.requires_grad_(False)


def without_bias(model):
    model[3].register_parameter("bias", None)


CHANGES = [other_layer, other_parameter, other_memory, written, hooked, in_the_dict, frozen, without_bias]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_changes_of_a_model(change):
    with rushlight.no_grad():
        model, compiled, x = layers()
        change(model)
        for _ in range(4):
            rushlight.testing.assert_close(compiled(x), model(x))


def test_training_mode_is_noticed():
    with rushlight.no_grad():
        model, compiled, x = layers()
        model.train()
        assert (compiled(x) == 0).any()
