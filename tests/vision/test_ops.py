"""Boxes and regions: what torchvision 0.29 gives was compared by hand; its numbers stand here."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight
from rushlight.vision import models, ops
from rushlight.vision.models._utils import IntermediateLayerGetter

LOSSES = {
    ops.distance_box_iou_loss: (7.86938, 117.479),
    ops.complete_box_iou_loss: (7.96796, 161.015),
    ops.generalized_box_iou_loss: (9.30113, 209.791),
}


def boxes():
    """Six boxes and six others, after 1080 random numbers of seed 0."""
    rushlight.manual_seed(0)
    rushlight.randn(2, 3, 12, 15)
    p, q = rushlight.rand(6, 4), rushlight.rand(6, 4)
    return [rushlight.cat([b[:, :2], b[:, :2] + b[:, 2:]], 1).requires_grad_() for b in (p, q)]


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_torchvisions(loss):
    p, q = boxes()
    found = loss(p, q, "sum")
    (found**2).backward()
    assert (found.item(), p.grad.abs().sum().item()) == pytest.approx(LOSSES[loss], rel=1e-5)
    assert loss(p, q, "mean").item() == pytest.approx(found.item() / 6)
    assert loss(p, q).shape == (6,)
    assert loss(p[:0], q[:0], "mean").item() == 0
    with pytest.raises(ValueError, match="reduction"):
        loss(p, q, "all")


def test_pairs_of_boxes_are_torchvisions():
    p, q = boxes()
    found = [f(p, q).sum().item() for f in (ops.distance_box_iou, ops.complete_box_iou, ops.generalized_box_iou)]
    assert found == pytest.approx([-9.36664, -10.9016, -18.4914], rel=1e-5)


def aligned_by_hand(x, boxes, size, scale, ratio, half):
    """roi_align point by point."""
    n, c, h, w = x.shape
    out = np.zeros((len(boxes), c, *size))
    for k, (image, *corners) in enumerate(boxes):
        x1, y1, x2, y2 = (v * scale - (0.5 if half else 0) for v in corners)
        tall, wide = (d if half else max(d, 1) for d in (y2 - y1, x2 - x1))
        cells = tall / size[0], wide / size[1]
        points = [ratio if ratio > 0 else math.ceil(d) for d in cells]
        for i, j, a, b in np.ndindex(*size, *points):
            y, across = y1 + (i + (a + 0.5) / points[0]) * cells[0], x1 + (j + (b + 0.5) / points[1]) * cells[1]
            if not (-1 <= y <= h and -1 <= across <= w):
                continue
            y, across = min(max(y, 0), h - 1), min(max(across, 0), w - 1)
            r, s = int(y), int(across)
            for dr, ds in np.ndindex(2, 2):
                share = (y - r if dr else 1 - y + r) * (across - s if ds else 1 - across + s)
                out[k, :, i, j] += (
                    share * x[int(image), :, min(r + dr, h - 1), min(s + ds, w - 1)] / (points[0] * points[1])
                )
    return out


@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_regions_point_by_point(ratio, half, scale):
    x = rushlight.randn(2, 3, 12, 15, dtype=rushlight.float64, requires_grad=True)
    at = rushlight.tensor(
        [[0, 1.0, 2, 9, 10], [1, -3, -2, 20, 5], [0, 0, 0, 3.5, 30], [1, 4.2, 4.9, 4.4, 5.0], [0, -9, -9, -5, -5]],
        dtype=rushlight.float64,
    )
    found = ops.roi_align(x, at, (3, 4), scale, ratio, half)
    assert np.allclose(found.detach(), aligned_by_hand(x.detach().numpy(), at.tolist(), (3, 4), scale, ratio, half))
    found.sum().backward()
    by_image = ops.RoIAlign((3, 4), scale, ratio, half)(x, [at[at[:, 0] == i, 1:] for i in (0, 1)])
    assert by_image.detach().equal(found.detach()[[0, 2, 4, 1, 3]])
    assert ops.roi_align(x, at[:0], 2).shape == (0, 3, 2, 2)


def test_layers_on_the_way():
    net = IntermediateLayerGetter(models.resnet18(), {"layer1": "low", "layer3": "high"})
    found = net(rushlight.ones(1, 3, 64, 64))
    assert {name: tuple(t.shape) for name, t in found.items()} == {"low": (1, 64, 16, 16), "high": (1, 256, 4, 4)}
    assert list(net)[-1] == "layer3"
    with pytest.raises(ValueError, match="not present"):
        IntermediateLayerGetter(models.resnet18(), {"layer9": "none"})


def deformed_by_hand(x, offset, mask, w, stride, padding, dilation, groups):
    """Number by number, in the order of torchvision's kernels."""
    (n, c, height, width), (out, per, kh, kw) = x.shape, w.shape
    found = np.zeros((n, out, *offset.shape[2:]))
    for b, o, i, j, ch, ky, kx in np.ndindex(*found.shape, per, kh, kw):
        channel = o // (out // (c // per)) * per + ch
        tap = channel // (c // groups) * kh * kw + ky * kw + kx
        y = i * stride - padding + ky * dilation + offset[b, 2 * tap, i, j]
        right = j * stride - padding + kx * dilation + offset[b, 2 * tap + 1, i, j]
        r, s = math.floor(y), math.floor(right)
        for row, column in ((r, s), (r, s + 1), (r + 1, s), (r + 1, s + 1)):
            if 0 <= row < height and 0 <= column < width:
                share = (1 - abs(y - row)) * (1 - abs(right - column))
                found[b, o, i, j] += w[o, ch, ky, kx] * mask[b, tap, i, j] * share * x[b, channel, row, column]
    return found


@pytest.mark.parametrize(("groups", "per", "settings"), [(1, 4, (1, 1, 1)), (2, 2, (2, 0, 1)), (4, 4, (1, 2, 2))])
def test_deformed_convolution(groups, per, settings):
    stride, padding, dilation = settings
    x, w = (rushlight.randn(*shape, dtype=rushlight.float64) for shape in ((2, 4, 6, 7), (6, per, 3, 2)))
    plain = rushlight.nn.functional.conv2d(x, w, None, *settings, 4 // per)
    offset = rushlight.randn(2, 2 * groups * 6, *plain.shape[2:], dtype=rushlight.float64) * 2
    mask = rushlight.rand(2, groups * 6, *plain.shape[2:], dtype=rushlight.float64)
    assert np.allclose(ops.deform_conv2d(x, offset * 0, w, None, *settings), plain)
    assert np.allclose(
        ops.deform_conv2d(x, offset, w, None, *settings, mask),
        deformed_by_hand(x.numpy(), offset.numpy(), mask.numpy(), w.numpy(), *settings, groups),
    )
    inputs = x.requires_grad_(), offset.requires_grad_(), w.requires_grad_()
    move = [rushlight.randn_like(t) * 1e-5 for t in inputs]
    there, back = (
        ops.deform_conv2d(*(t.detach() + s * d for t, d in zip(inputs, move)), None, *settings, mask).sum()
        for s in (1, -1)
    )
    ops.deform_conv2d(*inputs, None, *settings, mask).sum().backward()
    assert np.isclose(sum((t.grad * d).sum() for t, d in zip(inputs, move)), (there - back) / 2, rtol=1e-3)


def test_layers_of_deformed_convolution(oracle):
    rushlight.manual_seed(0)
    layer = ops.DeformConv2d(4, 6, 3, padding=1, groups=2)
    assert repr(layer) == "DeformConv2d(4, 6, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2)"

    def weights(t):
        t.manual_seed(0)
        conv = t.nn.Conv2d(4, 6, 3, groups=2)
        return t.cat([conv.weight.detach().flatten(), conv.bias.detach()])

    assert np.array_equal(rushlight.cat([layer.weight.detach().flatten(), layer.bias.detach()]), oracle(weights))
    assert layer(rushlight.ones(1, 4, 5, 5), rushlight.zeros(1, 18, 5, 5)).shape == (1, 6, 5, 5)
    with pytest.raises(RuntimeError, match="offset tensor at dimension 1"):
        layer(rushlight.ones(1, 4, 5, 5), rushlight.zeros(1, 9, 5, 5))
    with pytest.raises(RuntimeError, match=r"shape \(1, 18, 5, 5\)"):
        layer(rushlight.ones(1, 4, 5, 5), rushlight.zeros(1, 18, 3, 3))
