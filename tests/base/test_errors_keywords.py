"""Misspelt keywords: functions of the table, functions made of ops, layers, optimizers and loaders name the nearest."""

import inspect
import pickle
import warnings

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.base.errors import suggesting
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader

x = torch.ones(2, 3, requires_grad=True)
weights = [torch.ones(2, requires_grad=True)]

MISSPELT = {
    "of the table": (lambda: torch.flip(x, dim=[0]), "flip", "dims"),
    "a reduction": (lambda: x.sum(dims=1), "sum", "dim"),
    "made of ops": (lambda: torch.std(x, unbias=True), "std", "unbiased"),
    "a method made of ops": (lambda: x.clamp(mn=0), "clamp", "min"),
    "of a namespace": (lambda: torch.linalg.norm(x, dims=1), "linalg_norm", "dim"),
    "creation": (lambda: torch.zeros(3, dtyp=torch.int64), "zeros", "dtype"),
    "a range": (lambda: torch.arange(3, dtyp=torch.int64), "arange", "dtype"),
    "random numbers": (lambda: torch.randn(3, require_grad=True), "randn", "requires_grad"),
    "conversion": (lambda: x.to(dtyp=torch.float64), "to", "dtype"),
    "functional": (lambda: F.cross_entropy(x, x, label_smothing=0.1), "cross_entropy", "label_smoothing"),
    "a layer": (lambda: nn.Linear(3, 4, biass=False), "Linear.__init__", "bias"),
    "a loss": (lambda: nn.CrossEntropyLoss(label_smothing=0.1), "CrossEntropyLoss.__init__", "label_smoothing"),
    "a layer's beginning": (lambda: nn.LSTM(3, 4, num_layer=2), "LSTM.__init__", "num_layers"),
    "an optimizer": (lambda: optim.SGD(weights, lr=0.1, momentm=0.9), "SGD.__init__", "momentum"),
    "initials": (lambda: optim.SGD(weights, learning_rate=0.1), "SGD.__init__", "lr"),
    "a schedule": (
        lambda: optim.lr_scheduler.StepLR(optim.SGD(weights, lr=0.1), step=3),
        "StepLR.__init__",
        "step_size",
    ),
    "a loader": (lambda: DataLoader([1], batchsize=4), "DataLoader.__init__", "batch_size"),
    "backward": (lambda: x.sum().backward(retain_grap=True), "backward", "retain_graph"),
    "grad": (lambda: torch.autograd.grad(x.sum(), x, create_grap=True), "grad", "create_graph"),
}


@pytest.mark.parametrize("case", MISSPELT)
def test_the_nearest_keyword_is_named(case):
    call, name, meant = MISSPELT[case]
    with pytest.raises(TypeError) as error:
        call()
    first, *rest = str(error.value).splitlines()
    assert first.startswith(f"{name}() got an unexpected keyword argument '")
    assert rest[-1] == f"  hint: did you mean {meant}?"
    assert "test_errors_keywords.py" in str(error.value)
    assert meant in rest[0].removeprefix("  it takes: ").split(", ")


def test_users_own_layers_are_helped_too():
    class Block(nn.Module):
        def __init__(self, width, depth=2):
            super().__init__()

    class Open(nn.Module):
        def __init__(self, **settings):
            super().__init__()
            self.settings = settings

    with pytest.raises(TypeError, match="did you mean depth"):
        Block(3, depht=1)
    assert Open(anything=1).settings == {"anything": 1}


def test_a_base_with_a_new_of_its_own_gets_the_arguments():
    class Counted:
        def __new__(cls, width, depth=1):
            made = super().__new__(cls)
            made.made_with = width, depth
            return made

    class Both(nn.Module, Counted):
        def __init__(self, width, depth=1):
            nn.Module.__init__(self)

    assert Both(3, depth=2).__dict__["made_with"] == (3, 2)


def test_what_is_nothing_like_a_keyword_is_only_refused():
    with pytest.raises(TypeError) as error:
        torch.std(x, zzz=1)
    assert "hint" not in str(error.value)
    assert "it takes: input, dim" in str(error.value)


def test_the_functions_stay_what_they_are():
    for f in (torch.zeros, torch.randn, torch.std, torch.add, F.cross_entropy, F.dropout):
        assert pickle.loads(pickle.dumps(f)) is f
        assert inspect.getdoc(f)
    assert [*inspect.signature(F.dropout).parameters] == ["input", "p", "training", "inplace"]
    assert torch.sum(x, axis=0, keepdims=True).shape == (1, 3)
    assert torch.std(x, axis=0).shape == (3,)


def test_functions_with_little_to_misspell_stay_bare():
    def bare(x, inplace=False, *, out=None): ...

    assert suggesting(bare) is bare


def test_warnings_stand_at_the_users_line():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        nn.MSELoss()(torch.ones(2, 3), torch.ones(3))
        F.softmax(torch.ones(3))
    assert [w.filename for w in seen] == [__file__, __file__]


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax, F.softmin])
def test_only_public_parameters_are_listed(function):
    with pytest.raises(TypeError) as error:
        function(x, dims=1)
    assert "it takes: input, dim, dtype" in str(error.value)
    assert "did you mean dim?" in str(error.value)
    assert "_stacklevel" not in str(error.value)
    function(x, dim=0, _stacklevel=3)  # torch's callers pass it
