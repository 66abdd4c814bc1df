"""Pictures of the graph: the right boxes and edges, readable text, sound SVG, boxes that do not overlap."""

import io
import random
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz.layout import depths, inversions, layout

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def cubic():
    x = torch.tensor([1.2], requires_grad=True)
    z = x * x * x + x
    z.backward()
    return z, {"x": x}


@pytest.fixture
def net():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    return model(torch.ones(4, 3)).sum(), dict(model.named_parameters())


def tree(output, params=None):
    file = io.StringIO()
    viz.print_graph(output, params, file=file)
    return file.getvalue().splitlines()


def test_the_data(cubic):
    found = viz.graph(*cubic)
    assert [(b.kind, b.name) for b in found.boxes] == [
        ("output", "AddBackward0"),
        ("op", "MulBackward0"),
        ("op", "MulBackward0"),
        ("leaf", "x"),
    ]
    assert found.inputs == [[1, 3], [2, 3], [3, 3], []]
    assert found.boxes[0].notes == ["= [2.928]"]
    assert found.boxes[3].notes == ["= [1.2]", "grad [5.32]"]
    assert found.boxes[3].shape == (1,)


def test_ops_tell_shape_and_statement():
    w = torch.ones(2, 3, requires_grad=True)
    box = viz.graph((w * 2).sum()).boxes[1]
    assert tuple(box.shape) == (2, 3)
    assert "test_graph.py" in box.made_at


def test_every_parameter_is_named(net):
    output, params = net
    leaves = [box for box in viz.graph(output, params).boxes if box.kind == "leaf"]
    assert {box.name: tuple(box.shape) for box in leaves} == {n: tuple(p.shape) for n, p in params.items()}


def test_the_tree(cubic):
    assert tree(*cubic) == [
        "output: AddBackward0 (1,)  = [2.928]",
        "├─ MulBackward0 (1,)  = [1.728]",
        "│  ├─ MulBackward0 (1,)  = [1.44]",
        "│  │  ├─ x (1,) = [1.2], grad [5.32]  #1",
        "│  │  └─ x (1,)  #1, see above",
        "│  └─ x (1,)  #1, see above",
        "└─ x (1,)  #1, see above",
    ]


def test_a_single_input_is_indented_and_variables_are_named():
    w1 = torch.tensor(-3.0, requires_grad=True)
    n = w1 * 2.0
    o = n.tanh()
    o.backward()
    w1.grad = torch.tensor(1.0)
    file = io.StringIO()
    viz.print_graph(o, file=file)
    top, middle, leaf = file.getvalue().splitlines()
    assert top == "o: TanhBackward0 ()  = -1"
    assert middle.startswith("└─ n: MulBackward0 ()")
    assert leaf == "   └─ w1 = -3.0, grad 1.0"


def test_long_chains_are_not_indented_without_end():
    y = torch.ones(1, requires_grad=True)
    for _ in range(100):
        y = y + 1
    assert max(map(len, tree(y))) < 120


def test_long_and_wide_graphs_need_no_recursion():
    y = x = torch.ones(1, requires_grad=True)
    for _ in range(5000):
        y = y + 1
    assert len(tree(y)) == 5001
    y = x
    for _ in range(120):
        y = y + y
    assert len(viz.graph(y).boxes) == 121


def test_dot(cubic):
    text = viz.dot(*cubic)
    assert text.startswith("digraph")
    assert text.count("MulBackward0") == 2
    assert text.count("->") == 6
    assert "5.32" in text


def test_dot_quotes_names():
    x = torch.ones(1, requires_grad=True)
    assert '\\"a\\"\\\\' in viz.dot(x * 2, {'"a"\\': x})


def test_svg_has_every_box_and_edge(net):
    found = viz.graph(*net)
    root = ET.fromstring(viz.svg(*net, engine="own"))
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert [box.label for box in found.boxes] == [t for t in texts if not t.startswith(("=", "grad"))]
    assert len(root.findall(f"{SVG}g/{SVG}path")) == sum(map(len, found.inputs))


def test_svg_in_a_notebook(cubic):
    assert viz.svg(*cubic, engine="own")._repr_svg_().startswith("<svg")


def test_the_graph_is_text_picture_and_data(cubic, net, tmp_path):
    drawn = viz.graph(*cubic)
    assert str(drawn).splitlines() == repr(drawn).splitlines()
    assert str(drawn).splitlines()[1:] == tree(*cubic)[1:]
    assert drawn.dot() == viz.dot(*cubic)
    assert drawn.svg(engine="own") == viz.svg(*cubic, engine="own")
    assert drawn._repr_svg_().startswith("<svg")
    assert "<svg" in drawn._repr_html_()
    drawn.png(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_results_are_shown_as_numbers_or_by_their_range():
    torch.manual_seed(0)
    x = torch.randn(3, 5, requires_grad=True)
    y = x.exp()
    y.retain_grad()
    z = y.sum()
    notes = {box.name: box.notes for box in viz.graph(z, {"x": x}).boxes}
    assert notes["x"] == [f"= {x.min().item():.4g} .. {x.max().item():.4g}, mean {x.mean().item():.4g}"]
    assert notes["ExpBackward0"] == [f"= {y.min().item():.4g} .. {y.max().item():.4g}, mean {y.mean().item():.4g}"]
    z.backward()
    notes = {box.name: box.notes for box in viz.graph(z, {"x": x}).boxes}
    assert notes["SumBackward0"] == [f"= {z.item():.4g}"]
    assert notes["ExpBackward0"][-1] == "grad 1 .. 1, mean 1"  # it was asked to retain its gradient
    assert notes["x"][-1] == f"grad {y.min().item():.4g} .. {y.max().item():.4g}, mean {y.mean().item():.4g}"
    c = torch.ones(5, dtype=torch.complex64, requires_grad=True)
    assert viz.graph(c.abs().sum(), {"c": c}).boxes[-1].notes == ["= mean 1+0j"]


def test_modules_are_framed(net):
    text = viz.dot(*net)
    assert [line.split('"')[3] for line in text.splitlines() if "subgraph" in line] == ["0", "2"]
    assert text.count("{") == text.count("}")


def test_svg_escapes_names():
    x = torch.ones(1, requires_grad=True)
    assert "a &lt; b &amp; c (1,)" in viz.svg(x * 2, {"a < b & c": x}, engine="own")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_it(net):
    root = ET.fromstring(viz.svg(*net, engine="dot"))
    assert len([g for g in root.iter(f"{SVG}g") if g.get("class") == "edge"]) == sum(map(len, viz.graph(*net).inputs))


def test_without_graphviz(cubic, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "<svg" in viz.svg(*cubic)
    with pytest.raises(RuntimeError, match='engine="own"'):
        viz.svg(*cubic, engine="dot")


def test_graphviz_that_fails_is_told(cubic, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: "dot")
    failed = subprocess.CompletedProcess("dot", 1, "", "no memory\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(RuntimeError, match="no memory"):
        viz.svg(*cubic)


def test_errors():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=r"no graph was recorded .* shape \(2,\)"):
        viz.print_graph(x)
    with pytest.raises(ValueError, match="must be"):
        viz.svg(x * 2, engine="circo")
    y = x
    for _ in range(5001):
        y = y + 1
    with pytest.raises(ValueError, match="5002 nodes is too large"):
        viz.svg(y)


# the layout


def random_graph(rng, size):
    return [sorted(rng.sample(range(i + 1, size), min(size - i - 1, rng.choice([0, 1, 1, 2, 3])))) for i in range(size)]


@pytest.mark.parametrize("seed", range(5))
def test_boxes_do_not_overlap_and_edges_go_down(seed):
    rng = random.Random(seed)
    inputs = random_graph(rng, 40)
    sizes = [(rng.uniform(20, 200), rng.choice([24, 39])) for _ in inputs]
    points, routes = layout(sizes, inputs)
    boxes = points[: len(sizes)]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
    assert [(way[0], way[-1]) for way in routes] == [(i, j) for i, targets in enumerate(inputs) for j in targets]
    for way in routes:
        assert all(points[b].layer == points[a].layer + 1 and points[b].y > points[a].y for a, b in zip(way, way[1:]))


def test_depth_is_the_longest_way():
    assert depths([[1, 3], [2], [3], []]) == [0, 1, 2, 3]


def test_inversions_count_crossings():
    rng = random.Random(0)
    values = [rng.randrange(20) for _ in range(60)]
    assert inversions(values) == sum(a > b for i, b in enumerate(values) for a in values[:i])
    assert inversions([]) == 0


def test_a_tree_is_drawn_without_crossings():
    points, routes = layout([(50, 24)] * 7, [[1, 2], [3, 4], [5, 6], [], [], [], []])
    leaves = [points[i].x for i in (3, 4, 5, 6)]
    assert leaves == sorted(leaves) or leaves == sorted(leaves, reverse=True)
    assert points[0].x == pytest.approx((points[1].x + points[2].x) / 2)


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize(("params", "says"), [([torch.ones(2)], "named_parameters"), ([1, 2], "named_parameters")])
def test_names_of_leaves_come_in_pairs(params, says):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=says):
        torch.viz.graph(x * 2, params)


@pytest.mark.origin("newcomers")
def test_what_is_no_tensor_has_no_graph():
    with pytest.raises(TypeError, match="got float"):
        torch.viz.print_graph(3.0)


@pytest.mark.origin("newcomers")
def test_a_picture_needs_its_folder(tmp_path):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(FileNotFoundError):
        torch.viz.png(x * 2, tmp_path / "none" / "graph.png")


@pytest.mark.origin("newcomers")
def test_a_tree_for_a_terminal_of_few_characters():
    x = torch.ones(2, requires_grad=True)
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    torch.viz.print_graph(x * x + x, {"\u03b1": x}, file=out)
    out.seek(0)
    assert [line[:17] for line in out.read().splitlines()[:3]] == [
        "AddBackward0 (2,)",
        "|- MulBackward0 (",
        "|  |- ? (2,) = [1",
    ]


def test_png_names_what_it_needs(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.collections", None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    x = torch.tensor(3.0, requires_grad=True)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        torch.viz.png(x * x, tmp_path / "graph.png")


@pytest.mark.origin("newcomers")
def test_a_notebooks_names_of_results_are_no_names_of_the_user():
    """IPython binds the value of each cell to `_`, `__`, `___`, `_12` and in `Out`, in front of the user's `y`."""
    program = (
        "x = torch.tensor(2.0, requires_grad=True)\nfor name in ('_', '___', '_12', 'y'):\n    globals()[name] = None\n"
    )
    names = {"torch": torch, "Out": {}}
    exec(program + "y = (x * x).sum()\n_ = ___ = _12 = Out[3] = y\ntext = str(torch.viz.graph(y))", names)
    assert names["text"].startswith("y: SumBackward0")
    assert "\n   ├─ x = 2.0" in names["text"]
    exec("_ = (x * x).sum()\ntext = str(torch.viz.graph(_))", {**names, "y": None}, unnamed := {})
    assert unnamed["text"].startswith("SumBackward0")
