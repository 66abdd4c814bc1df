"""Graphs grouped by module: under 40 boxes for a ResNet-18, nothing in a box that is not the module's, no circles."""

import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz.modules import collapsed, common, downward, modules_of


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = None
        if inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (x if self.shortcut is None else self.shortcut(x))).relu()


class ResNet18(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        for k in range(1, 5):
            blocks = Block(sizes[k - 1], sizes[k], 1 if k == 1 else 2), Block(sizes[k], sizes[k], 1)
            setattr(self, f"layer{k}", nn.Sequential(*blocks))
        self.fc = nn.Linear(sizes[4], 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3)))


@pytest.fixture(scope="module")
def resnet():
    torch.manual_seed(0)
    model = ResNet18()
    return model(torch.randn(2, 3, 32, 32)).sum(), model


def test_a_resnet18_is_under_40_boxes(resnet):
    whole = viz.graph(*resnet)
    small = collapsed(whole)
    assert len(whole.boxes) > 100
    assert len(small.boxes) < 40
    names = {box.name for box in small.boxes if box.kind == "module"}
    assert names >= {"conv1", "layer1.0", "layer2.1", "layer4.0", "fc"}
    counts = [box.notes[0].split(", ")[1].split()[0] for box in small.boxes if box.kind == "module"]
    parameters = sum(int(count.replace(",", "")) for count in counts)
    assert parameters == sum(p.numel() for p in resnet[1].parameters())
    for engine in ("own", None):
        assert "layer4.1" in viz.svg(*resnet, engine=engine)
    assert "layer1.0" in viz.dot(*resnet)
    whole_text = viz.dot(*resnet, collapse=False)
    assert whole_text.count("{") == whole_text.count("}")
    assert [whole_text.count(f'label="{name}" labeljust') for name in ("layer1", "layer1.0", "layer1.0.conv1")] == [
        1,
        1,
        1,
    ]
    assert {box.name for box in collapsed(whole, 1).boxes if box.kind == "module"} >= {"layer1", "layer4"}


def test_an_op_is_in_no_module_that_is_not_its_own(resnet):
    whole = viz.graph(*resnet)
    homes = modules_of(whole)
    names = [box.name for box in whole.boxes]
    pool, fc, stem = (
        next(i for i, b in enumerate(names) if b.startswith(name)) for name in ("Mean", "Addmm", "MaxPool")
    )
    assert homes[pool] == homes[stem] == ()
    assert homes[fc] == ("fc",)
    inner = [i for i, b in enumerate(whole.boxes) if b.name == "ReluBackward0" and homes[i] == ("layer1", "0")]
    assert len(inner) == 1  # the one between bn1 and conv2; that after the sum may be layer1's own


def test_a_module_used_twice_makes_no_circle():
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    model = nn.ModuleDict({"a": a, "b": b})
    out = a(b(a(torch.ones(1, 3)))).sum()
    small = collapsed(viz.graph(out, model), 1)
    assert sorted(downward(small.inputs)) == list(range(len(small.boxes)))
    assert "b" in {box.name for box in small.boxes if box.kind == "module"}
    assert "a" not in {box.name for box in small.boxes if box.kind == "module"}


def test_collapsing_is_asked_for(resnet):
    x = torch.ones(2, requires_grad=True)
    doubled = x * 2
    assert viz.dot(doubled) == viz.dot(doubled, collapse=False)
    layer = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
    loss = layer(x).sum()
    assert viz.dot(loss, layer, collapse=True).count("[label") < viz.dot(loss, layer).count("[label")
    assert "<details>" in viz.svg(*resnet)._repr_html_()


def test_3000_nodes_are_drawn(tmp_path):
    y = x = torch.ones(3, requires_grad=True)
    for _ in range(1500):
        y = y * 1.0 + x  # every sum uses the one leaf: long edges
    y = y.sum()
    assert viz.svg(y, collapse=False).count("<rect") > 3000
    viz.png(y, tmp_path / "a.png", collapse=False)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_gradients_are_shown_after_backward():
    model = nn.Linear(8, 8)
    loss = model(torch.ones(1, 8)).sum()
    loss.backward()
    text = viz.dot(loss, model)
    assert text.count("grad 1 .. 1, mean 1") == 2


def test_png(resnet, tmp_path, monkeypatch):
    viz.png(resnet[0], tmp_path / "a.png", resnet[1])
    monkeypatch.setattr("shutil.which", lambda name: None)
    viz.png(resnet[0], tmp_path / "b.png", resnet[1])
    for name in ("a.png", "b.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_what_names_begin_with():
    assert common({("a", "b", "c"), ("a", "b"), ("a", "b", "d")}) == ("a", "b")
    assert common({("a",), ("b",)}) == ()
