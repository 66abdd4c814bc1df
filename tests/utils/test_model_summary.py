"""summary: torchinfo's tables, which torchinfo 1.8 printed for the same models."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import nn
from rushlight.utils import summary

EVERY = ("input_size", "output_size", "num_params", "params_percent", "kernel_size", "mult_adds", "trainable")


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Sequential(nn.Flatten(), nn.Linear(8 * 26 * 26, 10))
    )


class Mixed(nn.Module):
    """A layer used twice, one never, a parameter of its own, and part of it frozen."""

    def __init__(self):
        super().__init__()
        self.a, self.unused, self.e = nn.Linear(3, 3), nn.Linear(2, 2), nn.Embedding(7, 3)
        self.p = nn.Parameter(rushlight.ones(5))
        self.a.weight.requires_grad_(False)

    def forward(self, x, y=None):
        return self.a(self.a(x)) + self.e(rushlight.zeros(2, 5, dtype=rushlight.long))


def test_a_convnet(capsys):
    found = summary(convnet(), (1, 1, 28, 28))
    expected = """\
==========================================================================================
Layer (type:depth-idx)                   Output Shape              Param #
==========================================================================================
Sequential                               [1, 10]                   --
├─Conv2d: 1-1                            [1, 8, 26, 26]            80
├─BatchNorm2d: 1-2                       [1, 8, 26, 26]            16
├─ReLU: 1-3                              [1, 8, 26, 26]            --
├─Sequential: 1-4                        [1, 10]                   --
│    └─Flatten: 2-1                      [1, 5408]                 --
│    └─Linear: 2-2                       [1, 10]                   54,090
==========================================================================================
Total params: 54,186
Trainable params: 54,186
Non-trainable params: 0
Total mult-adds (M): 0.11
==========================================================================================
Input size (MB): 0.00
Forward/backward pass size (MB): 0.09
Params size (MB): 0.22
Estimated Total Size (MB): 0.31
=========================================================================================="""
    assert str(found) == expected
    assert capsys.readouterr().out == expected + "\n"
    assert (found.total_params, found.trainable_params, found.total_mult_adds) == (54186, 54186, 108186)


def test_all_columns():
    text = str(
        summary(
            convnet(), (1, 1, 28, 28), verbose=0, col_names=EVERY, col_width=16, row_settings=("depth", "var_names")
        )
    )
    lines = text.splitlines()
    assert lines[1].split("  ")[0] == "Layer (type (var_name):depth-idx)"
    assert lines[4].split() == [
        "├─Conv2d",
        "(0):",
        "1-1",
        "[1,",
        "1,",
        "28,",
        "28]",
        "[1,",
        "8,",
        "26,",
        "26]",
        "80",
        "0.15%",
        "[3,",
        "3]",
        "54,080",
        "True",
    ]
    assert lines[6].split()[-6:] == ["26]", "--", "--", "--", "--", "--"]


def test_layers_again_unused_and_frozen():
    lines = str(summary(Mixed(), input_data=rushlight.ones(2, 5, 3), verbose=0)).splitlines()
    assert lines[3:10] == [
        "Mixed                                    [2, 5, 3]                 11",
        "├─Linear: 1-1                            [2, 5, 3]                 12",
        "├─Linear: 1-2                            [2, 5, 3]                 (recursive)",
        "├─Embedding: 1-3                         [2, 5, 3]                 21",
        "=" * 90,
        "Total params: 44",
        "Trainable params: 35",
    ]


def test_without_a_run():
    assert str(summary(convnet(), verbose=0)).splitlines()[3:8] == [
        "Sequential                               --",
        "├─Conv2d: 1-1                            80",
        "├─BatchNorm2d: 1-2                       16",
        "├─ReLU: 1-3                              --",
        "├─Sequential: 1-4                        --",
    ]


def test_depth_names_and_sizes():
    lines = str(
        summary(convnet(), (1, 28, 28), batch_dim=0, depth=1, verbose=0, row_settings=("ascii_only",))
    ).splitlines()
    assert lines[7].split() == ["+", "Sequential", "[1,", "10]", "54,090"]
    assert len([line for line in lines if line.startswith("+")]) == 4
    hidden = str(summary(Mixed(), (2, 5, 3), verbose=0, row_settings=("hide_recursive_layers",)))
    assert "(recursive)" not in hidden
    assert "[2, 4, 3]" in str(summary(nn.Embedding(5, 3), (2, 4), dtypes=[rushlight.long], verbose=0))
    named = {"x": rushlight.ones(2, 5, 3)}
    assert "Total params: 44" in str(summary(Mixed(), input_data=named, verbose=0))


def test_nothing_is_changed():
    model = convnet()
    model[1].eval()
    before = rushlight.random.get_rng_state().tolist()
    mean = model[1].running_mean.clone()
    summary(model, (2, 1, 28, 28), verbose=0)
    assert (model.training, model[1].training, model[2].training) == (True, False, True)
    assert rushlight.random.get_rng_state().tolist() == before
    assert model[1].running_mean.equal(mean)
    assert not model[0]._forward_hooks
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize(
    ("error", "words", "options"),
    [
        (
            ValueError,
            "col_names: 'size' is not one of kernel_size",
            {"input_size": (1, 1, 28, 28), "col_names": ["size"]},
        ),
        (ValueError, "row_settings: 'x'", {"row_settings": ["x"]}),
        (RuntimeError, "Only one of", {"input_size": (1,), "input_data": [rushlight.ones(1)]}),
        (RuntimeError, "not recognized", {"mode": "test"}),
        (RuntimeError, "Failed to run torchinfo.*Conv2d", {"input_size": (1, 1, 9, 9)}),
    ],
)
def test_refusals(error, words, options):
    model = convnet()
    with pytest.raises(error, match=words):
        summary(model, verbose=0, **options)
    assert model.training
    assert not model[0]._forward_hooks
