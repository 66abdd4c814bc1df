"""torchvision.models.feature_extraction; names recorded from torchvision 0.28."""

from __future__ import annotations

import copy

import pytest

import rushlight
from rushlight import nn
from rushlight.vision import models
from rushlight.vision.models.feature_extraction import create_feature_extractor, get_graph_node_names


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu, self.lin, self.drop = nn.ReLU(), nn.Linear(4, 4), nn.Dropout(0.5)

    def forward(self, x):
        y = self.relu(self.lin(x))
        y = self.relu(y + x)
        return rushlight.relu(y + 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.head, self.aux = Block(), nn.Linear(4, 2), nn.Linear(4, 3)

    def forward(self, x):
        x = self.block(x)
        y = self.head(x)
        return (y, self.aux(x)) if self.training else y


EVAL = ["x", "block.lin", "block.relu", "block.add", "block.relu_1", "block.add_1", "block.relu_2", "head"]


def test_names_of_nodes():
    with pytest.warns(UserWarning, match="eval mode"):
        train, evaluation = get_graph_node_names(Net())
    assert evaluation == EVAL
    assert train == [*EVAL, "aux"]
    model = Net().eval()
    get_graph_node_names(model, suppress_diff_warning=True)
    assert not model.training


def test_names_of_a_residual_network():
    train, evaluation = get_graph_node_names(models.resnet18())
    assert train == evaluation
    assert train[:12] == [
        "x",
        "conv1",
        "bn1",
        "relu",
        "maxpool",
        "layer1.0.conv1",
        "layer1.0.bn1",
        "layer1.0.relu",
        "layer1.0.conv2",
        "layer1.0.bn2",
        "layer1.0.add",
        "layer1.0.relu_1",
    ]
    assert train[-3:] == ["avgpool", "flatten", "fc"]
    assert len(train) == 70


def test_outputs_of_inner_layers():
    model = Net().eval()
    x = rushlight.randn(3, 4)
    features = create_feature_extractor(model, {"block.add": "sum", "block": "block"}, suppress_diff_warning=True)
    made = features(x)
    assert list(made) == ["sum", "block"]
    hidden = model.block.lin(x).relu() + x
    rushlight.testing.assert_close(made["sum"], hidden)
    rushlight.testing.assert_close(made["block"], model.block(x))
    assert features.block.lin.weight is model.block.lin.weight
    assert not hasattr(features, "head")
    assert not features.training


def test_other_outputs_in_training():
    features = create_feature_extractor(
        Net(), train_return_nodes=["head", "aux"], eval_return_nodes=["head"], suppress_diff_warning=True
    )
    x = rushlight.randn(3, 4)
    assert list(features(x)) == ["head", "aux"]
    assert list(features.eval()(x)) == ["head"]
    assert list(copy.deepcopy(features).train()(x)) == ["head", "aux"]


def test_gradients_reach_the_model():
    model = models.resnet18()
    features = create_feature_extractor(model, ["layer1", "layer2.0.add"])
    made = features(rushlight.randn(1, 3, 32, 32))
    assert {k: tuple(v.shape) for k, v in made.items()} == {"layer1": (1, 64, 8, 8), "layer2.0.add": (1, 128, 4, 4)}
    made["layer1"].sum().backward()
    assert model.conv1.weight.grad is not None


def test_names_that_the_model_lacks():
    model = Net()
    for given in (
        {},
        {"return_nodes": ["bloc"]},
        {"train_return_nodes": ["head"]},
        {"return_nodes": ["head"], "train_return_nodes": ["x"], "eval_return_nodes": ["x"]},
    ):
        with pytest.raises(ValueError, match="return_nodes"):
            create_feature_extractor(model, **given)
    assert model.training


def test_layers_may_be_leaves():
    train, _ = get_graph_node_names(Net(), {"leaf_modules": [Block]}, suppress_diff_warning=True)
    assert train == ["x", "block", "head", "aux"]
