"""Pictures of training: the axes hold the right numbers and labels, on white and on black."""

import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz import training_pictures

matplotlib = pytest.importorskip("matplotlib")


def tick_texts(labels):
    return [label.get_text() for label in labels]


def test_losses_share_a_logarithmic_panel_and_the_rate_has_its_own():
    log = viz.Log()
    for i in range(4):
        log.log(loss=torch.tensor(2.0 / (i + 1)), val_loss=1.0, accuracy=0.25 * i, lr=0.1)
    loss, accuracy, rate = viz.training(log).axes
    assert [line.get_label() for line in loss.lines] == ["loss", "val_loss"]
    np.testing.assert_allclose(loss.lines[0].get_ydata(), [2, 1, 2 / 3, 0.5], rtol=1e-6)
    assert loss.get_yscale() == "log"
    assert accuracy.lines[0].get_ydata().tolist() == [0, 0.25, 0.5, 0.75]
    assert (accuracy.get_ylabel(), rate.get_ylabel()) == ("accuracy", "learning rate")
    assert rate.get_xlabel() == "step"


def test_a_csv_file_and_missing_numbers(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,loss,note\n1,2.0,a\n2,,b\n3,0.5,c\n")
    (axes,) = viz.training(path).axes
    assert axes.lines[0].get_xdata().tolist() == [1, 3]
    assert axes.lines[0].get_ydata().tolist() == [2.0, 0.5]
    assert axes.get_xlabel() == "epoch"


def test_long_curves_have_a_running_mean():
    rows = [{"loss": 1.0 + 0.5 * (-1) ** i, "lr": 0.1 * i} for i in range(500)]
    loss, rate = viz.training(rows).axes
    raw, mean = loss.lines
    assert np.ptp(raw.get_ydata()) == 1.0
    # the mean of the logarithms: sqrt(0.5 * 1.5)
    np.testing.assert_allclose(mean.get_ydata()[-50:], 0.75**0.5, rtol=0.06)
    assert len(rate.lines) == 1


def test_a_negative_loss_has_a_linear_axis():
    (axes,) = viz.training([{"loss": -1.0}, {"loss": 2.0}]).axes
    assert axes.get_yscale() == "linear"


def test_a_log_without_numbers():
    with pytest.raises(ValueError, match="no numbers"):
        viz.training([{"note": "a"}])
    with pytest.raises(ValueError, match="no numbers"):
        viz.training([])
    with pytest.raises(TypeError, match="of type float; hint: give a dict for each step"):
        viz.training([0.3, 0.2])


@pytest.fixture
def recorder():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = viz.LayerLog(model)
    for _ in range(3):
        optimizer.zero_grad()
        with found:
            loss = model(torch.randn(32, 2)).square().mean()
        loss.backward()
        found.step(optimizer)
    return found


def test_the_recorder_measures_the_update(recorder):
    weight = recorder.model[0].weight
    old = weight.detach().clone()
    optimizer = torch.optim.Adam(recorder.model.parameters(), lr=0.01)
    recorder.step(optimizer)
    want = ((weight.detach() - old).double().std(correction=0) / old.double().std(correction=0)).log10()
    np.testing.assert_allclose(recorder.ratios["0.weight"][-1], want.item(), rtol=1e-4)
    assert list(recorder.ratios) == ["0.weight", "2.weight"]
    assert not recorder.model[0]._forward_hooks


def test_histograms(recorder):
    outputs, gradients, spreads, ratios = viz.histograms(recorder).axes
    assert [line.get_label() for line in outputs.lines] == ["1: Tanh (0% saturated)"]
    x, density = outputs.lines[0].get_data()
    np.testing.assert_allclose(density.sum() * (x[1] - x[0]), 0.98, atol=0.02)
    assert [line.get_label().split()[0] for line in gradients.lines] == ["0.weight", "2.weight"]
    assert list(spreads.lines[0].get_ydata()) == recorder.spreads["1: Tanh"]
    assert list(ratios.lines[1].get_ydata()) == recorder.ratios["2.weight"]
    assert ratios.get_ylabel() == "log10 of std(update) / std(weight)"
    with pytest.raises(ValueError, match=r"recorder.step\(optimizer\)"):
        viz.histograms(viz.LayerLog(nn.Linear(1, 1)))


def test_saturated_layers_are_told():
    assert training_pictures.saturation("1: Tanh", np.array([0.99, 0.0])) == " (50% saturated)"
    assert training_pictures.saturation("1: ReLU", np.array([0.0, 0, 0, 2])) == " (75% zero)"


def test_a_decision_boundary_of_classes():
    X = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.5, 1.0]])
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
        model[0].bias.zero_()
    figure = viz.decision_boundary(model, X, torch.tensor([0, 1, 1]), classes=["left", "right"])
    (axes,) = figure.axes
    assert tick_texts(axes.get_legend().get_texts()) == ["left", "right"]
    _, boundary, *dots = axes.collections
    assert [len(c.get_offsets()) for c in dots] == [1, 2]
    # the boundary is the line X[:, 0] = 0
    edge = np.concatenate([path.vertices for path in boundary.get_paths()])
    assert abs(edge[:, 0]).max() < 0.02
    assert model.training
    assert model[1].training


def test_a_decision_boundary_of_a_sign():
    X, y = np.array([[0.0, 0.0], [2.0, 2.0]]), [-1, 1]
    (axes,) = viz.decision_boundary(lambda x: x.sum(1, keepdim=True) - 2, X, y).axes
    assert tick_texts(axes.get_legend().get_texts()) == ["-1", "1"]
    with pytest.raises(ValueError, match=r"X is \(N, 2\)"):
        viz.decision_boundary(lambda x: x, np.ones((3, 4)), [0, 1, 2])


def test_filters():
    conv = nn.Conv2d(2, 5, 3)
    panels = [axes for axes in viz.filters(conv).axes if axes.images]
    assert len(panels) == 5
    image = panels[3].images[0]
    np.testing.assert_allclose(image.get_array(), conv.weight.detach()[3].mean(0), rtol=1e-6)
    assert image.get_clim()[0] == -image.get_clim()[1]
    figure = viz.filters(torch.randn(100, 3, 5, 5))
    assert figure.get_suptitle() == "Filters 5×5, the first 64 of 100"
    assert [a for a in figure.axes if a.images][0].images[0].get_array().shape == (5, 5, 3)
    with pytest.raises(ValueError, match="4 dimensions"):
        viz.filters(nn.Linear(2, 2))


def test_attention():
    weights = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    axes = viz.attention(weights[None], ["a b", "\n"]).axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), weights)
    assert tick_texts(axes.get_yticklabels()) == ["a␣b", "↵"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "query")
    heads = viz.attention(torch.stack([weights] * 6), "xy").axes
    assert [a.get_title() for a in heads if a.images][:6] == [f"head {i}" for i in range(6)]
    with pytest.raises(ValueError, match="do not fit 3 queries"):
        viz.attention(weights, "abc")


def test_confusion():
    scores = torch.tensor([[2.0, 1.0], [0.0, 1.0], [0.0, 3.0], [0.0, 3.0]])
    (axes, _) = viz.confusion(scores, torch.tensor([0, 1, 1, 0]), ["cat", "dog"]).axes
    assert {t.get_position(): t.get_text() for t in axes.texts} == {(0, 0): "1", (1, 0): "1", (1, 1): "2"}
    np.testing.assert_allclose(axes.images[0].get_array(), [[0.5, 0.5], [0, 1]])
    assert axes.get_title() == "Confusion: 75.0 % of 4 right"
    assert tick_texts(axes.get_xticklabels()) == ["cat", "dog"]
    model = nn.Linear(2, 2).train()
    viz.confusion(model, [0, 1, 1, 0], inputs=scores)
    assert model.training
    with pytest.raises(ValueError, match="a model needs inputs"):
        viz.confusion(model, [0])
    with pytest.raises(ValueError, match="for 1 targets"):
        viz.confusion([0, 1], [0])


def test_colours_follow_the_style():
    def first_colour():
        return viz.training([{"loss": 1.0}]).axes[0].lines[0].get_color()

    assert first_colour() == training_pictures.ON_WHITE[0]
    with matplotlib.rc_context({"text.color": "white"}):
        assert first_colour() == training_pictures.ON_BLACK[0]


def test_matplotlib_is_imported_when_a_picture_is_drawn():
    text = (
        "import sys, rushlight.viz as v; v.Log().log(loss=1.0); print('matplotlib' in sys.modules);"
        "sys.modules['matplotlib'] = sys.modules['matplotlib.figure'] = None\n"
        "try: v.training([{'loss': 1.0}])\nexcept ImportError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "pictures of training need matplotlib: pip install matplotlib"]
