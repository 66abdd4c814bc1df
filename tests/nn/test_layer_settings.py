"""Layers get their constructor, forward and repr from the signature of a function."""

from __future__ import annotations

import inspect
import pickle
import typing

import pytest

import rushlight
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.nn.layer_settings import Layer

LAYERS = [cls for cls in vars(nn).values() if isinstance(cls, type) and issubclass(cls, Layer)]


def text(function):
    return inspect.getsource(function).strip()


def test_methods_are_ordinary_functions():
    assert str(inspect.signature(nn.ELU)) == "(alpha: 'float' = 1.0, inplace: 'bool' = False)"
    assert nn.ELU.__init__.__qualname__ == "ELU.__init__"
    assert nn.ELU.forward.__module__ == nn.ELU.__module__
    assert "return F.elu(input, self.alpha, self.inplace)" in text(nn.ELU.forward)
    with pytest.raises(TypeError, match=r"ELU.__init__\(\) got an unexpected keyword argument 'alfa'"):
        nn.ELU(alfa=2.0)
    with pytest.raises(TypeError, match=r"Threshold.__init__\(\) missing 1 required positional argument: 'value'"):
        nn.Threshold(1.0)


@pytest.mark.parametrize("cls", LAYERS)
def test_annotations_can_be_evaluated(cls):
    typing.get_type_hints(cls.__init__)
    assert "return" in typing.get_type_hints(cls.forward)


@pytest.mark.parametrize("cls", LAYERS)
def test_defaults_are_the_functions(cls):
    """But for those that torch's class has and torch's function has not."""
    if not hasattr(cls.forward, "function"):
        return
    function = inspect.signature(cls.forward.function).parameters
    for name, parameter in inspect.signature(cls).parameters.items():
        if name in function:
            assert parameter.default == function[name].default


def test_settings_have_another_order_than_the_function():
    layer = nn.MaxPool2d(3, 2, 1, 1, True, False)
    assert layer.return_indices is True
    assert "self.ceil_mode, self.return_indices)" in text(nn.MaxPool2d.forward)
    assert repr(layer) == "MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)"


def test_parameters_that_are_no_attributes_have_their_default():
    assert "F.mse_loss(input, target, None, None, self.reduction)" in text(nn.MSELoss.forward)
    with pytest.warns(UserWarning, match="reduction='sum'"):
        loss = nn.MSELoss(size_average=False)
    assert "size_average" not in vars(loss)
    assert loss(rushlight.ones(2), rushlight.zeros(2)).item() == 2


class Doubled(nn.LeakyReLU):
    def __init__(self, factor):
        super().__init__(0.5, inplace=True)
        self.factor = factor

    def forward(self, input):
        return self.factor * super().forward(input)


def test_a_users_class_extends_a_layer():
    layer = pickle.loads(pickle.dumps(Doubled(2)))
    assert layer(rushlight.tensor([-1.0, 3.0])).tolist() == [-1, 6]
    assert repr(layer) == "Doubled(negative_slope=0.5, inplace=True)"


def test_words_of_a_users_class_are_for_its_other_bases():
    class Named:
        def __init_subclass__(cls, label="", **more):
            cls.label = label
            super().__init_subclass__(**more)

    class Both(nn.ELU, Named, label="elu"):
        pass

    assert Both.label == "elu"
    assert Both(2.0).alpha == 2
    with pytest.raises(TypeError, match="__init_subclass__"):

        class Wrong(nn.ELU, lable="elu"):
            pass


def test_a_call_looks_the_function_up(monkeypatch):
    layer = nn.Mish()
    monkeypatch.setattr(F, "mish", lambda input, inplace: "replaced")
    assert layer(rushlight.ones(1)) == "replaced"


def test_a_layer_needs_a_function_of_nn_functional():
    def own(input, slope=1.0):
        return input * slope

    with pytest.raises(TypeError, match=r"class Own: own is not a function of nn\.functional"):

        class Own(Layer, function=own):
            pass
