"""Networks for pictures. What torchvision 0.29 gives with the same seed was compared by hand; its sums stand here."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.vision import models, ops

# of a network of seed 3: entries of its state, the sum of (i % 7 + 1) * entry i, its output's norm, the next random
# number
TORCHVISION = {
    "resnet18": (
        lambda: models.resnet18(num_classes=10),
        (122, 38415.712442559205, 0.4533543737602515, 0.6848189830780029),
    ),
    "squeezenet1_1": (
        lambda: models.squeezenet1_1(num_classes=10),
        (52, -143.92550983216336, 0.256758887934057, 0.24191808700561523),
    ),
    "densenet": (
        lambda: models.DenseNet(8, (2, 2), 16, num_classes=10),
        (67, 2161.155118542336, 0.6430369147114242, 0.6420958638191223),
    ),
    "mobilenet_v2": (
        lambda: models.mobilenet_v2(num_classes=10, width_mult=0.5),
        (314, 74546.40801724467, 3.3063711125804286e-09, 0.3598560094833374),
    ),
    "efficientnet_b0": (
        lambda: models.efficientnet_b0(num_classes=10),
        (360, 169314.37445858438, 3.1922611219891476e-13, 0.6425402164459229),
    ),
    "vit": (
        lambda: models.VisionTransformer(64, 16, 2, 4, 32, 48, num_classes=10, representation_size=8),
        (34, 323.18959928288047, 0.0, 0.8469352722167969),
    ),
    "mobilenet_v3_small": (
        lambda: models.mobilenet_v3_small(num_classes=10),
        (244, 48374.29011688207, 1.5411584727830846e-09, 0.874332845211029),
    ),
    "shufflenet_v2_x0_5": (
        lambda: models.shufflenet_v2_x0_5(num_classes=10),
        (338, 32648.180934686025, 0.04928030224583666, 0.7285723686218262),
    ),
    "mnasnet0_5": (
        lambda: models.mnasnet0_5(num_classes=10),
        (314, 82816.20958732945, 8.497654290108725e-08, 0.1882704496383667),
    ),
    "googlenet": (
        lambda: models.googlenet(num_classes=10, init_weights=True),
        (364, 60151.89057278822, 0.0484246100011645, 0.8388448357582092),
    ),
    "inception_v3": (
        lambda: models.inception_v3(num_classes=10, init_weights=True),
        (580, 145132.1266127641, 24617642.027065333, 0.48013150691986084),
    ),
    "resnext": (
        lambda: models.resnext50_32x4d(num_classes=10, replace_stride_with_dilation=[False, True, True]),
        (320, 271810.1065852884, 0.07807550188889961, 0.8388843536376953),
    ),
}


def ramp(*shape):
    return rushlight.linspace(-1, 1, int(np.prod(shape))).reshape(shape)


def facts(make):
    """(how many entries, their sum, an output, the next random number)."""
    rushlight.manual_seed(3)
    net = make()
    state = net.state_dict()
    total = sum((i % 7 + 1) * float(v.double().sum()) for i, v in enumerate(state.values()))
    after = float(rushlight.rand(()))
    with rushlight.no_grad():
        out = net.eval()(ramp(1, 3, *(80, 80) if isinstance(net, models.Inception3) else (64, 64)))
    return len(state), total, float(out.double().norm()), after


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("name", TORCHVISION)
def test_fresh_networks_are_torchvisions(name):
    make, (count, total, norm, after) = TORCHVISION[name]
    found = facts(make)
    assert found[0] == count
    assert found[3] == after
    assert found[1:3] == pytest.approx((total, norm), rel=2e-5)


def test_names_of_weights_are_torchvisions():
    names = list(models.resnet18().state_dict())
    assert names[:4] == ["conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean"]
    assert "layer2.0.downsample.1.num_batches_tracked" in names
    assert names[-2:] == ["fc.weight", "fc.bias"]
    assert [n for n, _ in models.vgg.make_layers(["M", 4, 8], True).named_parameters()][::4] == ["1.weight", "4.weight"]
    assert "features.denseblock1.denselayer2.conv1.weight" in models.DenseNet(4, (2,), 8).state_dict()


def test_scores_from_halfway_while_training():
    net = models.googlenet(num_classes=3, init_weights=False)
    found = net(ramp(2, 3, 64, 64))
    assert found._fields == ("logits", "aux_logits2", "aux_logits1")
    assert [t.shape for t in found] == [(2, 3)] * 3
    assert net.eval()(ramp(2, 3, 64, 64)).shape == (2, 3)
    with pytest.warns(FutureWarning, match="default weight initialization"):
        models.googlenet(num_classes=3, aux_logits=False)


def test_weights_that_a_network_does_without(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    trained = models.googlenet(init_weights=False)
    rushlight.save(trained.state_dict(), tmp_path / "hub" / "checkpoints" / "googlenet-1378be20.pth")
    found = models.googlenet(weights="DEFAULT")
    assert found.aux1 is None
    assert found.transform_input
    assert found.fc.weight.equal(trained.fc.weight)


@pytest.mark.parametrize(("name", "settings"), [("vgg11", {"dropout": 0.3}), ("googlenet", {}), ("inception_v3", {})])
def test_what_is_loaded_over_is_not_drawn(name, settings, monkeypatch):
    monkeypatch.setattr(models.WeightsEnum, "get_state_dict", lambda self, **_: {})
    monkeypatch.setattr(rushlight.nn.Module, "load_state_dict", lambda *_: None)
    states = []
    for how in ({"init_weights": False}, {"weights": "DEFAULT"}):
        rushlight.manual_seed(0)
        getattr(models, name)(**settings, **how)
        states.append(rushlight.get_rng_state())
    assert states[0].equal(states[1])


def test_a_network_learns():
    rushlight.manual_seed(0)
    net = models.VisionTransformer(32, 8, 2, 4, 32, 48, num_classes=3)
    x, y = rushlight.randn(4, 3, 32, 32), rushlight.tensor([0, 1, 2, 0])
    step = rushlight.optim.Adam(net.parameters(), 0.005)
    losses = []
    for _ in range(12):
        loss = rushlight.nn.functional.cross_entropy(net(x), y)
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_dense_layers_can_save_memory():
    rushlight.manual_seed(0)
    plain = models.DenseNet(4, (2, 2), 8, num_classes=3)
    thrifty = models.DenseNet(4, (2, 2), 8, num_classes=3, memory_efficient=True)
    thrifty.load_state_dict(plain.state_dict())
    x = ramp(2, 3, 32, 32)
    grads = []
    for net in (plain, thrifty):
        net(x).sum().backward()
        grads.append(net.features.conv0.weight.grad)
    assert grads[0].equal(grads[1])


# -- weights ---------------------------------------------------------------------------------------


def test_weights_that_are_not_here_say_where_they_belong(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for ask in ({"weights": "DEFAULT"}, {"weights": models.SqueezeNet1_1_Weights.IMAGENET1K_V1}):
        with pytest.raises(FileNotFoundError, match="squeezenet1_1-b8a52dc0.pth do not exist") as error:
            models.squeezenet1_1(**ask)
        assert str(tmp_path / "hub" / "checkpoints") in str(error.value)
        assert "weights=None" in str(error.value)
    with pytest.warns(UserWarning, match="pretrained"), pytest.raises(FileNotFoundError):
        models.squeezenet1_1(pretrained=True)
    with pytest.warns(UserWarning, match="pretrained"):
        models.squeezenet1_1(pretrained=False)


def test_weights_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    trained = models.squeezenet1_1()
    rushlight.save(trained.state_dict(), tmp_path / "hub" / "checkpoints" / "squeezenet1_1-b8a52dc0.pth")
    found = models.get_model("squeezenet1_1", weights=models.SqueezeNet1_1_Weights.DEFAULT)
    assert all(a.equal(b) for a, b in zip(found.parameters(), trained.parameters()))
    with pytest.raises(ValueError, match="num_classes"):
        models.squeezenet1_1(weights="DEFAULT", num_classes=10)


def test_trained_densenets_are_read_under_their_old_names():
    net = models.DenseNet(4, (2,), 8, num_classes=3)
    old = {k.replace("norm1.", "norm.1.").replace("conv2.", "conv.2."): v + 1 for k, v in net.state_dict().items()}
    net.load_state_dict(old)
    assert net.features.denseblock1.denselayer1.norm1.weight.tolist() == [2.0] * 8


def test_what_prepares_images():
    weights = models.ResNet50_Weights.DEFAULT
    assert weights is models.ResNet50_Weights.IMAGENET1K_V2
    assert weights.url.endswith("models/resnet50-11ad3fa6.pth")
    found = weights.transforms()(rushlight.ones(3, 300, 250, dtype=rushlight.uint8))
    assert found.shape == (3, 224, 224)
    assert found.dtype is rushlight.float32
    assert found[:, 0, 0].tolist() == pytest.approx(
        [(1 / 255 - m) / s for m, s in zip((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    )
    assert models.get_weight("ResNet50_Weights.IMAGENET1K_V2") is weights
    assert models.get_model_weights("resnet50") is models.ResNet50_Weights
    with pytest.raises(TypeError, match="expected ResNet18_Weights"):
        models.resnet18(weights=weights)
    with pytest.raises(ValueError, match="Unknown model"):
        models.get_model("resnet17")


# -- boxes and blocks ------------------------------------------------------------------------------

BOXES = [[0.0, 0, 10, 10], [1, 1, 11, 11], [0, 0, 10, 9], [20, 20, 30, 35]]


def test_boxes():
    boxes = rushlight.tensor(BOXES)
    assert ops.box_area(boxes).tolist() == [100, 100, 90, 150]
    iou = ops.box_iou(boxes, boxes[:2])
    assert iou[:, 1].tolist() == pytest.approx([81 / 119, 1, 72 / 118, 0])
    assert ops.generalized_box_iou(boxes[3:], boxes[:1]).item() == pytest.approx(-(1050 - 250) / 1050)
    scores = rushlight.tensor([0.5, 0.9, 0.8, 0.1])
    assert ops.nms(boxes, scores, 0.5).tolist() == [1, 3]
    assert ops.nms(boxes, scores, 0.65).tolist() == [1, 2, 3]
    assert ops.batched_nms(boxes, scores, rushlight.tensor([0, 1, 0, 1]), 0.5).tolist() == [1, 2, 3]
    for form in ("xywh", "cxcywh"):
        there = ops.box_convert(boxes, "xyxy", form)
        assert ops.box_convert(there, form, "xyxy").equal(boxes)
    assert ops.clip_boxes_to_image(boxes, (9, 25))[3].tolist() == [20, 9, 25, 9]
    assert ops.remove_small_boxes(boxes, 10).tolist() == [0, 1, 3]
    mask = rushlight.zeros(1, 5, 6)
    mask[0, 1:3, 2:5] = 1
    assert ops.masks_to_boxes(mask).tolist() == [[2, 1, 4, 2]]


def test_focal_loss():
    x, y = rushlight.tensor([0.3, -1.2]), rushlight.tensor([1.0, 0.0])
    p = 1 / (1 + np.exp([-0.3, 1.2]))
    wanted = [-0.25 * (1 - p[0]) ** 2 * np.log(p[0]), -0.75 * p[1] ** 2 * np.log(1 - p[1])]
    assert ops.sigmoid_focal_loss(x, y).tolist() == pytest.approx(wanted)
    assert ops.sigmoid_focal_loss(x, y, reduction="sum").item() == pytest.approx(sum(wanted))


def test_blocks():
    rushlight.manual_seed(0)
    x = rushlight.ones(200, 2)
    rows = ops.stochastic_depth(x, 0.25, "row")
    assert set(rows[:, 0].tolist()) == {0.0, float(np.float32(1) / np.float32(0.75))}
    assert rows[:, 0].equal(rows[:, 1])
    assert ops.StochasticDepth(0.5, "batch").eval()(x) is x
    frozen = ops.FrozenBatchNorm2d(2)
    assert list(frozen.state_dict()) == ["weight", "bias", "running_mean", "running_var"]
    assert not list(frozen.parameters())
    assert ops.Conv2dNormActivation(3, 4, 3, bias=True)[0].bias is not None
    assert len(ops.MLP(3, [4, 5], norm_layer=rushlight.nn.LayerNorm)) == 6
