"""The step-through page: its numbers are the engine's, it stands alone, and it works in a real browser."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.core.engine import reachable, steps
from rushlight.core.worlds import sum_to_array
from rushlight.viz.array_preview import cuts, describe
from rushlight.viz.backward_steps import forward_values, record
from tests.support.paths import ROOT

# Debian's Chromium first: `.ci/run` installs it. QUIET: a browser that looks nothing up by itself.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
LONG = 60_000  # milliseconds that a browser may take on a busy machine
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def data_of(page):
    text = page.split('id="data">')[1].split("</script>")[0]
    return json.loads(text)


def array_at(data, i, dtype=np.float32):
    number = data["numbers"][i]
    return np.array([float(v) for v in number["values"]], dtype).reshape(number["shape"])


def mlp():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    inputs, labels = torch.randn(4, 2), torch.tensor([0, 1, 1, 0])
    return model, nn.CrossEntropyLoss()(model(inputs), labels)


def residual():
    """Sharing, broadcasting, several outputs, a leaf that has a gradient already."""
    torch.manual_seed(1)
    w, b = torch.randn(3, 3, requires_grad=True), torch.randn(3, requires_grad=True)
    w.grad = torch.full((3, 3), 0.5)
    h = (w @ w + b).tanh() * w
    top, _ = h.max(dim=1)
    return {"w": w, "b": b}, (h.sum(0) * top * b).sum() + w.exp().mean()


CASES = {"mlp": lambda: ((m := mlp())[0].named_parameters(), m[1]), "residual": residual}


# -- the numbers


def engine_after(output, count):
    """What an engine stopped after `count` nodes leaves: gradients on their way, and every leaf's `.grad`."""
    pending = {output._node: np.ones((), np.float32)}
    walk = steps(dict(pending), retain=True)
    for _ in range(count):
        node, _, outgoing = next(walk)
        pending.pop(node)
        for edge, g in zip(node.edges, outgoing):
            if g is not None and edge is not None:
                g = g if g.shape == edge.shape else sum_to_array(g, edge.shape)
                pending[edge] = g if edge not in pending else pending[edge] + g
    walk.close()
    return pending


@pytest.mark.parametrize("case", CASES)
def test_after_step_k_the_numbers_are_those_of_an_engine_stopped_there(case):
    params, output = CASES[case]()
    params = dict(params)
    order = reachable([output._node])
    data = data_of(viz.html(output, params=params))
    shown = {data["output"]: data["seed"]}
    grads = {i: node["grad"] for i, node in enumerate(data["nodes"]) if node["kind"] == "leaf"}
    before = {name: None if p.grad is None else p.grad.clone() for name, p in params.items()}
    for k, step in enumerate(data["steps"], 1):
        assert shown.pop(step["node"]) == step["incoming"]
        for a in step["arrivals"]:
            shown[data["edges"][a["edge"]]["to"]] = a["total"]
        if step["grad"]:
            assert step["grad"][0] == grads[step["node"]]
            grads[step["node"]] = step["grad"][1]
        for name, p in params.items():
            p.grad = None if before[name] is None else before[name].clone()
        pending = engine_after(output, k)
        assert {order[i] for i in shown} == set(pending)
        for i, number in shown.items():
            if not isinstance(pending[order[i]], dict):
                np.testing.assert_array_equal(array_at(data, number), pending[order[i]])
        for i, number in grads.items():
            leaf = order[i].variable
            assert (number is None) == (leaf.grad is None)
            if number is not None:
                np.testing.assert_array_equal(array_at(data, number), leaf.grad.numpy())
    assert not shown
    for name, p in params.items():
        p.grad = before[name]
    output.backward()
    for i, number in grads.items():
        np.testing.assert_array_equal(array_at(data, number), order[i].variable.grad.numpy())


def test_the_order_is_the_engines():
    _, output = residual()
    order = reachable([output._node])
    walked = [node for node, _, _ in steps({output._node: np.ones((), np.float32)}, retain=True)]
    assert [order[s["node"]] for s in data_of(viz.html(output))["steps"]] == walked


def test_nothing_is_changed():
    params, output = residual()
    kept = (output * 2).exp()
    kept.retain_grad()
    calls = []
    params["b"].register_post_accumulate_grad_hook(calls.append)
    viz.html(kept)
    assert params["b"].grad is None
    assert params["w"].grad.tolist() == [[0.5] * 3] * 3
    assert kept.grad is None
    assert calls == []
    kept.backward()  # the graph is still there
    assert kept.grad.item() == 1
    assert len(calls) == 1


def test_hooks_that_change_gradients_are_seen():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: g * 10)
    data = data_of(viz.html(y.sin()))
    assert array_at(data, data["steps"][1]["incoming"]) == np.float32(np.cos(np.float32(9)) * 10)


def test_a_gradient_may_be_given():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    data = data_of(viz.html(x * 3, gradient=torch.tensor([1.0, -1.0])))
    assert array_at(data, data["steps"][-1]["grad"][1]).tolist() == [3, -3]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        viz.html(x * 3)


def test_forward_values_are_those_of_the_forward_pass():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a = x * x
    b = a + x
    c = b.exp()
    known = forward_values(c)
    for t in (x, a, b, c):
        np.testing.assert_array_equal(known[t._node], t.detach().numpy())
    with torch.no_grad():
        x += 1  # a * a's operands are gone: what is known of a may not follow from them
    assert a._node not in forward_values(b) or forward_values(b)[a._node].tolist() == [1, 4]


def test_a_freed_graph_says_so():
    x = torch.tensor([1.2], requires_grad=True)
    z = x * x * x + x
    z.backward()
    data = data_of(viz.html(z, params={"x": x}))
    assert "freed" in data["note"]
    assert all(step["incoming"] is None and not step["arrivals"] for step in data["steps"])
    (leaf,) = [node for node in data["nodes"] if node["kind"] == "leaf"]
    assert array_at(data, leaf["grad"]) == x.grad.numpy()


def test_custom_functions_views_and_writes():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(4, requires_grad=True)
    y = Double.apply(x).reshape(2, 2).clone()
    y[0] += 1
    data = data_of(viz.html(torch.cat([y, y]).sum(), params={"x": x}))
    assert array_at(data, data["steps"][-1]["grad"][1]).tolist() == [4, 4, 4, 4]


# -- the file


def test_the_page_stands_alone(tmp_path):
    model, loss = mlp()
    page = viz.html(loss, tmp_path / "page.html", model)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert page.startswith("<!DOCTYPE html>")
    assert "http" not in page.split("<script type")[0]
    assert "{{" not in page
    for word in ("src=", "@import", "fetch(", "XMLHttpRequest"):
        assert word not in page
    assert page._repr_html_().startswith("<iframe srcdoc=")


def nodes_of(page):
    """{name: node} of a page."""
    return {node["name"]: node for node in data_of(page)["nodes"]}


def test_boxes_carry_the_names_of_modules_and_of_variables():
    model, _ = mlp()
    inputs = torch.ones(1, 2)
    with viz.module_calls(model):
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits, torch.tensor([1]))
    nodes = nodes_of(viz.html(loss, params=model))
    assert {name: node["label"] for name, node in nodes.items() if node["home"]} == {
        "logits": "logits: Linear",
        "tanh1": "tanh1: Tanh",
        "linear0": "linear0: Linear",
        **{name: name for name in ("model[0].weight", "model[0].bias", "inputs")},
        **{name: name for name in ("model[2].weight", "model[2].bias")},
    }
    assert [nodes[name]["home"] for name in ("logits", "tanh1", "linear0")] == ["2", "1", "0"]
    assert nodes["linear0"]["forward"] == "inputs @ model[0].weight.T + model[0].bias"
    assert nodes["logits"]["rules"][:2] == [["x", "g @ model[2].weight"], ["weight", "g.T @ tanh1"]]
    assert nodes["loss"]["kind"] == "output"
    assert nodes["inputs"]["kind"] == "constant"


def neuron():
    x1, x2 = torch.tensor(2.0), torch.tensor(0.0)
    w1 = torch.tensor(-3.0, requires_grad=True)
    w2 = torch.tensor(1.0, requires_grad=True)
    b = torch.tensor(6.8813735870195432, requires_grad=True)
    n = x1 * w1 + x2 * w2 + b
    o = torch.tanh(n)
    return viz.html(o)


columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="before 3.11 an instruction has a line, but no column")


def test_formulas_are_in_the_users_names():
    nodes = nodes_of(neuron())
    assert nodes["o"]["label"] == "o = tanh(n)"
    assert nodes["a"]["forward"] == "x1 * w1"
    assert nodes["a"]["rules"] == [["x", None], ["y", "g * x1"]]
    assert nodes["x2"]["kind"] == "constant"


def test_a_sentence_says_why_with_the_numbers():
    data = data_of(neuron())
    said = {data["nodes"][step["node"]]["name"]: [a["said"] for a in step["arrivals"]] for step in data["steps"]}
    assert said["o"] == ["1 arrives: o = tanh(n), so do/dn = 1 - o² = 0.5; n gets 1 · 0.5 = 0.5."]
    assert said["a"] == ["0.5 arrives: a = x1 * w1, so da/dw1 = x1 = 2; w1 gets 0.5 · 2 = 1."]


@columns
def test_names_of_the_lines_inside_a_module():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(2, 3), nn.Linear(3, 1)

        def forward(self, images):
            x = torch.relu(self.fc1(images))
            x = self.fc2(x)
            mean, *_ = x.mean(), 1
            top, index = x.max(dim=0)
            return mean + top.sum()

    net = Net()
    nodes = nodes_of(viz.html(net(torch.ones(2, 2)), params=net))
    assert nodes["x₁"]["forward"] == "relu(fc1)"
    assert nodes["x₂"]["forward"] == "x₁ @ fc2.weight.T + fc2.bias"
    assert nodes["top"]["forward"] == "max(x₂, dim=0)"
    assert nodes["images"]["kind"] == "constant"
    assert nodes["fc1"]["home"] == "fc1"


def test_a_long_sequential_is_grouped_in_slices():
    model = nn.Sequential(*[nn.Linear(1, 1) for _ in range(25)])
    data = data_of(viz.html(model(torch.ones(1, 1)).sum(), params=model))
    assert data["groups"]["10:20"] == {"name": "model[10:20]", "kind": ""}
    assert data["groups"]["20:30.24"] == {"name": "model[24]", "kind": "Linear"}


def test_forward_steps_are_in_the_order_of_the_program():
    x = torch.tensor(0.5, requires_grad=True)
    first = x * x
    second = x.exp()
    third = second + first
    data = data_of(viz.html(third))
    assert [data["nodes"][i]["name"] for i in data["forward"]] == ["first", "second", "third"]


def test_it_shows_the_users_line_and_the_rule(monkeypatch):
    monkeypatch.chdir(ROOT)
    x = torch.tensor(2.0, requires_grad=True)
    data = data_of(viz.html(x.sin(), params={"<x>": x}))
    (node,) = [n for n in data["nodes"] if n["kind"] == "output"]
    source = data["sources"][node["source"]]
    assert (
        source["text"][source["line"] - source["from"]].strip()
        == 'data = data_of(viz.html(x.sin(), params={"<x>": x}))'
    )
    assert source["file"] == Path(__file__).relative_to(ROOT).as_posix()
    assert node["rules"] == [["x", "g * cos(<x>)"]]
    assert "<x>" not in viz.html(x.sin(), params={"<x>": x})  # escaped: no tag of the user's makes it into the page


def test_300_nodes_are_under_a_megabyte():
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(75) for layer in (nn.Linear(32, 32), nn.Tanh())])
    loss = model(torch.randn(16, 32)).pow(2).mean()
    page = viz.html(loss, params=model)
    assert len(data_of(page)["nodes"]) >= 300
    assert len(page.encode()) < 1_000_000


def test_errors():
    with pytest.raises(ValueError, match="no graph was recorded"):
        viz.html(torch.ones(2))
    y = x = torch.ones((), requires_grad=True)
    for _ in range(5001):
        y = y + x
    with pytest.raises(ValueError, match="too large for a page"):
        viz.html(y)


def test_descriptions_are_exact():
    small = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    told = describe(small)["values"]
    np.testing.assert_array_equal(np.array(json.loads(json.dumps(told)), np.float32), small)
    assert describe(np.array([np.nan, np.inf, 1 + 2j]))["values"] == ["(nan+0j)", "(inf+0j)", "(1+2j)"]
    large = describe(np.arange(-50.0, 50).reshape(10, 10))
    assert (large["min"], large["max"], large["mean"]) == (-50, 49, -0.5)
    assert len(large["cells"]) == 6
    assert large["cells"][0][0] == "z"
    assert large["cells"][-1][-1].isupper()
    assert describe(np.full((20,), np.nan)) == {"shape": [20], "min": "nan", "mean": "nan", "max": "nan"}
    assert describe(np.zeros((5, 0)))["values"] == []
    assert cuts(7, 3) == [0, 2, 4]


def test_records_hold_copies():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    first = record((x * x).sum())
    again = record((x * x).sum())
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a.incoming, b.incoming)


# -- in a browser


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install -e .[test]")
    with playwright.sync_playwright() as p:
        found = CHROMIUM or p.chromium.executable_path
        if not Path(found).exists():
            pytest.skip("no browser: apt-get install chromium, or playwright install chromium")
        running = p.chromium.launch(executable_path=found, args=QUIET, timeout=LONG)
        yield running
        running.close()


SIZES = {"desktop": (1280, 800), "phone": (390, 844)}


@pytest.fixture(params=[(size, scheme) for size in SIZES for scheme in ("light", "dark")], ids="-".join)
def opened(request, browser, tmp_path):
    """(page of an MLP's step in the browser, its model, what the page complained of and asked for)."""
    size, scheme = request.param
    width, height = SIZES[size]
    model, loss = mlp()
    viz.html(loss, tmp_path / "page.html", model)
    loss.backward()
    tab = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
    tab.set_default_timeout(LONG)
    said = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda asked: said.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None)
    tab.goto((tmp_path / "page.html").as_uri())
    yield tab, model, said
    tab.context.close()


def grads_shown(tab):
    """{leaf: numbers of its `.grad`} as the page shows them; None where it says None."""
    return tab.evaluate("""() => Object.fromEntries([...document.querySelectorAll("[data-leaf]")].map(row =>
        [row.dataset.leaf, row.querySelector("td") && [...row.querySelectorAll("td")].map(cell => Number(cell.title))]))""")


def sent_shown(tab):
    """The numbers that stand at edges."""
    return tab.evaluate("[...document.querySelectorAll('.sent')].map(label => label.textContent).filter(text => text)")


def test_in_a_browser(opened, request):
    tab, model, said = opened
    tab.keyboard.press("o")  # on a phone the page opens with its modules closed
    total = int(tab.inner_text("#count").split("/")[1])
    assert all(shown is None for shown in grads_shown(tab).values())
    for _ in range(total):  # an op and its result are one step
        if tab.is_disabled("#next"):
            break
        tab.click("#next")
        assert tab.inner_text("#step") != ""
    assert tab.inner_text("#count") == f"{total} / {total}"
    assert tab.is_disabled("#next")
    shown = grads_shown(tab)
    for name, p in model.named_parameters():
        np.testing.assert_array_equal(np.array(shown[name], np.float32), p.grad.numpy().reshape(-1))
    tab.click("#back")
    assert sum(grad is None for grad in grads_shown(tab).values()) == 1
    for key, count in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", total)):
        tab.keyboard.press(key)
        assert tab.inner_text("#count") == f"{count} / {total}"
    assert sent_shown(tab) == []
    tab.keyboard.press("b")
    tab.keyboard.press("ArrowRight")
    assert sent_shown(tab) == ["|max| 0.25"]  # d nll_loss / d log_softmax: -1/4 at each label
    tab.focus(".node.output")
    tab.keyboard.press("Enter")
    assert "test_page.py" in tab.inner_text("#step")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing to scroll sideways to
    assert said == []
    keep_picture(tab, request.node.callspec.id)


def test_playing_reaches_the_end(browser, tmp_path):
    x = torch.tensor(2.0, requires_grad=True)
    viz.html(x.sin(), tmp_path / "page.html")
    tab = browser.new_page()
    tab.set_default_timeout(LONG)
    tab.goto((tmp_path / "page.html").as_uri())
    tab.keyboard.press("b")
    tab.keyboard.press(" ")
    tab.wait_for_function("document.getElementById('count').textContent === '4 / 4'", timeout=LONG)
    assert tab.inner_text("#play") == "▶ play"
    tab.close()


def test_a_freed_graph_in_a_browser(browser, tmp_path):
    x = torch.tensor([1.2], requires_grad=True)
    z = x * x * x + x
    z.backward()
    viz.html(z, tmp_path / "page.html", {"x": x})
    tab = browser.new_page()
    tab.set_default_timeout(LONG)
    said = []
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto((tmp_path / "page.html").as_uri())
    tab.keyboard.press("End")
    assert "freed" in tab.inner_text("#note")
    assert grads_shown(tab) == {"x": [pytest.approx(5.32)]}
    assert said == []
    tab.close()


def keep_picture(tab, name):
    """A screenshot in the middle of the tour, kept as build output where CI asks for it."""
    folder = os.environ.get("RUSHLIGHT_SCREENSHOTS")
    if folder:
        tab.keyboard.press("Home")
        for _ in range(4):
            tab.keyboard.press("ArrowRight")
        tab.wait_for_timeout(400)
        Path(folder).mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=Path(folder) / f"step-page-{name}.png")


LAPS = """() => {
    const boxes = kind => [...document.querySelectorAll(kind)].filter(t => t.tagName === 'rect' || t.textContent).map(t => t.getBBox());
    const over = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
    return [".sent rect", "text.name"].map(kind => boxes(kind).some((a, i, all) => all.slice(i + 1).some(b => over(a, b))));
}"""


@pytest.mark.origin("newcomers")
def test_words_of_the_page_do_not_cover_each_other(browser, tmp_path):
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    names = {f"a_very_long_parameter_name.encoder.layers.11.self_attention.{n}": p for n, p in model.named_parameters()}
    torch.viz.html(model(torch.ones(4, 2)).square().mean(), tmp_path / "page.html", names)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    for _ in range(4):
        assert page.evaluate(LAPS) == [False, False]
        page.keyboard.press("ArrowRight")
    page.close()


def a_neuron_of_16_ops():
    x = [torch.tensor(v, requires_grad=True) for v in (2.0, 0.0, 1.0)]
    w = [torch.tensor(v, requires_grad=True) for v in (-3.0, 1.0, 0.5)]
    b = torch.tensor(6.3813735, requires_grad=True)
    n = x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + b
    e = torch.exp(-2 * n)
    o = (1 - e) / (1 + e)
    y = o * 0.5 + 0.5
    return (y - 1.0) ** 2


def test_a_neuron_of_16_ops_is_seen_without_scrolling(browser, tmp_path):
    torch.viz.html(a_neuron_of_16_ops(), tmp_path / "page.html")
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((tmp_path / "page.html").as_uri())
    last = page.evaluate("LAST")
    for k in (0, 5, last // 2, last):
        page.evaluate(f"go({k})")
        room = "document.getElementById('room')"
        assert page.evaluate(f"{room}.scrollHeight <= {room}.clientHeight")
        assert page.evaluate(f"{room}.scrollWidth <= {room}.clientWidth")
        assert page.evaluate(LAPS)[1] is False
    assert page.evaluate("scale * 13") >= 10  # px: the height of letters
    page.close()


def test_a_number_has_one_form_in_sentences_boxes_and_tables(browser, tmp_path):
    from rushlight.viz.reasons import written

    torch.viz.html(a_neuron_of_16_ops(), tmp_path / "page.html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    numbers = [0.881373587, -0.5, 3.0, 12345.678, 1e6, 2.5e-5, -1.23456e-7, 123456789.0, 0.1 + 0.2]
    numbers += [99999.9999, 1e-4, 0.00012345678, 9.99996, 1e7 - 0.5]
    numbers += np.random.default_rng(0).standard_cauchy(200).tolist()
    assert page.evaluate("ns => ns.map(n => written(n))", numbers) == [written(n) for n in numbers]
    page.close()


@columns
def test_constants_have_the_text_of_the_program():
    y = torch.ones(4, 1)
    x = torch.randn(4, 1, requires_grad=True)
    score = x * 2
    score = score.clamp(min=-5)
    out = score * 0.1
    mask = torch.tensor([[1.0], [0.0], [1.0], [1.0]])
    kept = out.masked_fill(mask == 0, -1.0)
    loss = ((kept - y) ** 2).mean()
    nodes = nodes_of(torch.viz.html(loss))
    forward = {name: node["forward"] for name, node in nodes.items()}
    assert forward["out"] == "0.1 * score₂"
    assert forward["kept"] == "masked_fill(out, mask == 0, -1.0)"
    assert "kept - y" in forward.values()
    assert "mask == 0" in nodes


@columns
def test_constants_inside_library_functions_have_no_name_of_the_user():
    target, other = torch.tensor([0, 1]), torch.randn(2, 3)
    logits = torch.randn(2, 3, requires_grad=True)
    smooth = nn.functional.cross_entropy(logits, target, label_smoothing=0.1)
    used = [n["forward"] for n in nodes_of(torch.viz.html(smooth)).values() if n["forward"]]
    assert [text for text in used if "target" in text] == [t for t in used if "nll_loss" in t]
    near = nn.functional.cosine_similarity(logits, other).sum()
    assert not [n for n in nodes_of(torch.viz.html(near)) if n.startswith("other")]
    probabilities = torch.softmax(other, 1)
    distance = nn.functional.kl_div(logits.log_softmax(1), probabilities, reduction="sum")
    forward = [n["forward"] or "" for n in nodes_of(torch.viz.html(distance)).values()]
    assert not [text for text in forward if "log_softmax(1)" in text]


@columns
def test_constants_of_a_helper_are_numbered_in_the_order_of_the_program():
    def scaled(x, by):
        return (x * by).tanh()

    v = torch.randn(2, requires_grad=True)
    data = data_of(torch.viz.html((scaled(v, torch.ones(2)) + scaled(v, torch.zeros(2))).sum()))
    forward = [data["nodes"][i]["forward"] for i in data["forward"]]
    assert [text for text in forward if "by" in text] == ["v * by₁", "v * by₂"]
    values = {n["name"]: n["value"] for n in data["nodes"]}
    assert array_at(data, values["by₁"]).tolist() == [1, 1]


@columns
def test_two_masks_on_one_line_keep_their_names():
    left, right = torch.tensor([True, False]), torch.tensor([False, True])
    v = torch.randn(2, requires_grad=True)
    chain = v.masked_fill(left, -1.0).masked_fill(right, -2.0)
    forward = [n["forward"] for n in nodes_of(torch.viz.html(chain.sum())).values()]
    assert "masked_fill(v, left, -1.0)" in forward
    for step in range(3):
        v = v.masked_fill(left == (step > 1), 0.5)
    names = [n["name"] for n in data_of(torch.viz.html(v.sum()))["nodes"]]
    assert "left == (step > 1)" in names
    assert not [name for name in names if name.startswith("left ==") and name[-1] in "₁₂₃"]


def test_letters_are_no_names_of_the_program():
    a, h, c = torch.ones(2), [1], "text"
    v = torch.randn(2, requires_grad=True)
    output = (nn.functional.dropout(v * 2) * torch.rand(2)).exp().sum()
    names = {n["name"] for n in data_of(torch.viz.html(output))["nodes"]}
    assert not names & {"a", "h", "c"}
    assert "dropout_mask" in names
    assert (a.sum().item(), h, c) == (2, [1], "text")


def test_a_value_that_is_not_kept_is_named():
    rows, weight = torch.ones(2, 3), torch.randn(1, 3, requires_grad=True)
    left = nn.functional.linear(rows, weight)
    both = left + weight.tanh().sum(1)
    nodes = nodes_of(torch.viz.html(both.sum()))
    assert ["left", None] in nodes["both"]["inputs"]


def test_rules_read_as_a_person_writes_them():
    lin = nn.Linear(4, 6)
    out = lin(torch.randn(2, 3, 4, requires_grad=True))
    data = data_of(torch.viz.html(out.mean(), None, lin))
    rules = {node["name"]: [rule for _, rule in node["rules"]] for node in data["nodes"]}
    assert ["g / 36"] in rules.values()
    (linear,) = [found for found in rules.values() if len(found) == 3]
    assert linear[1].startswith("g.reshape(-1, 6).T @ ")
    assert linear[1].endswith(".reshape(-1, 4)")
    assert linear[2] == "g.reshape(-1, 6).sum(0)"
    said = [a["said"] for step in data["steps"] for a in step["arrivals"]]
    assert not [text for text in said if "used 1 times" in text]


@columns
def test_a_freed_linear_layer_keeps_its_arguments_in_order():
    lin, x = nn.Linear(2, 1), torch.randn(3, 2)
    loss = lin(x).square().mean()
    loss.backward()
    data = data_of(torch.viz.html(loss, None, lin))
    assert any((node["forward"] or "").endswith(" @ weight.T + bias") for node in data["nodes"])


def test_ops_inside_a_module_of_several_ops_have_the_names_of_ops():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 3)

        def forward(self, x):
            return (self.fc(x).relu() * 2).exp()

    outer = nn.Sequential(Net(), nn.Linear(3, 1))
    with viz.module_calls(outer):
        loss = outer(torch.ones(4, 2)).sum()
    labels = [node["label"] for node in data_of(torch.viz.html(loss, None, outer))["nodes"]]
    assert [label for label in labels if label.endswith(": Linear")] != []
    assert not [label for label in labels if label.endswith(": Net")]


@pytest.mark.origin("newcomers")
def test_a_page_of_a_model_that_nobody_holds():
    page = torch.viz.html(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))(torch.ones(1, 2)).sum())
    assert "AccumulateGrad" in page


# -- the second edition in a browser


def tab_of(browser, path, size="desktop", **settings):
    width, height = SIZES[size]
    tab = browser.new_page(viewport={"width": width, "height": height}, **settings)
    tab.set_default_timeout(LONG)
    tab.goto(path.as_uri())
    return tab


@pytest.fixture
def deep(tmp_path):
    """The page of 4 blocks of 10 layers: more than 160 nodes in nested modules."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *[nn.Sequential(*[layer for _ in range(10) for layer in (nn.Linear(2, 2), nn.Tanh())]) for _ in range(4)]
    )
    inputs = torch.ones(3, 2)
    with viz.module_calls(model):
        loss = model(inputs).square().mean()
    viz.html(loss, tmp_path / "deep.html", model)
    return tmp_path / "deep.html"


def boxes(tab):
    return tab.locator(".node").count()


def test_values_appear_in_the_order_of_the_program(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(neuron())
    tab = tab_of(browser, path)
    values = "[...document.querySelectorAll('.node.waiting .name')].map(t => t.textContent)"
    left = []
    for _ in range(6):
        left.append(len(tab.evaluate(values)))
        tab.keyboard.press("ArrowRight")
    assert left == [5, 4, 3, 2, 1, 0]
    assert "Backward starts at o" in tab.inner_text("#step")
    tab.keyboard.press("ArrowRight")
    assert "n gets 1 · 0.5 = 0.5." in tab.inner_text("#step .why")
    assert "o = torch.tanh(n)" in tab.inner_text(".source .here")
    tab.close()


def test_a_large_network_is_closed_into_its_modules_and_opens(browser, deep):
    tab = tab_of(browser, deep)
    assert boxes(tab) <= 40
    closed = boxes(tab)
    tab.click('[data-group="1"]')
    assert boxes(tab) > closed
    assert tab.locator('[data-group="1.0"]').count() == 1  # its own modules are closed
    tab.focus('[data-group="1.0"]')
    tab.keyboard.press("Enter")
    assert tab.locator('[data-group="1.0"]').count() == 0
    assert tab.evaluate("document.activeElement.classList.contains('node')")
    tab.keyboard.press("o")
    everything = boxes(tab)
    assert everything >= 120
    tab.keyboard.press("0")  # fit: the letters stay legible
    assert boxes(tab) < everything
    assert tab.evaluate("13 * document.getElementById('picture').width.baseVal.value / view.width") >= 9.9
    tab.close()


def test_a_closed_module_is_one_step(browser, deep):
    tab = tab_of(browser, deep)
    tab.click("#closeall")
    presses = 0
    while not tab.is_disabled("#next"):
        tab.click("#next")
        presses += 1
    assert presses < 20
    assert tab.inner_text("#count").split(" / ")[0] == tab.inner_text("#count").split(" / ")[1]
    tab.keyboard.press("b")
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    assert "20 steps inside a closed module" in tab.inner_text("#step")
    tab.click("#step button:has-text('open')")
    assert "model[3][" in tab.inner_text("#step h2")  # one module further inside
    assert tab.locator('[data-group="3"]').count() == 0
    tab.close()


@pytest.mark.origin("newcomers")
def test_only_the_steps_that_are_shown_are_counted(browser, tmp_path):
    x = torch.tensor([[1.0, 2.0], [4.0, 3.0]], requires_grad=True)
    viz.html(x.max(1).values.sum(), tmp_path / "max.html")
    tab = tab_of(browser, tmp_path / "max.html")
    counts = [tab.inner_text("#count")]
    while not tab.is_disabled("#next"):
        tab.click("#next")
        counts.append(tab.inner_text("#count"))
    assert counts == [f"{n} / {len(counts) - 1}" for n in range(len(counts))]
    tab.evaluate("go(F + 3)")  # as the slider does: a hidden step goes on to the next one
    assert tab.inner_text("#count") == f"{len(counts) - 2} / {len(counts) - 1}"
    assert tab.evaluate("getComputedStyle(document.querySelector('.numbers td[style]')).boxShadow") != ("none")
    tab.close()


@pytest.mark.origin("newcomers")
def test_a_closed_module_of_one_step_says_so(browser, tmp_path):
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    viz.html(model(torch.ones(4, 2)).sum(), tmp_path / "one.html", model)
    tab = tab_of(browser, tmp_path / "one.html")
    tab.click("#closeall")
    tab.click("#next")
    assert "One step inside a closed module" in tab.inner_text("#step")
    tab.close()


def test_a_closed_module_names_its_leaves(browser, deep):
    tab = tab_of(browser, deep)
    tab.click("#closeall")
    tab.keyboard.press("b")
    said = ""
    while not tab.is_disabled("#next"):
        tab.keyboard.press("ArrowRight")
        said += tab.inner_text("#step")
    assert "].weight is a leaf: its .grad was None" in said
    tab.close()


def test_a_picture_of_matrices_says_what_a_cell_averages(browser, tmp_path):
    images = torch.rand(4, 3, 8, 8, requires_grad=True)
    torch.viz.html((images * images).sum(), tmp_path / "page.html")
    tab = tab_of(browser, tmp_path / "page.html")
    tab.keyboard.press("ArrowRight")
    text = tab.inner_text("#step")
    assert "The rows of all 4×3 matrices (8×8 each) stand below each other" in text
    assert "a cell is a mean across several matrices (dims 0, 1)" in text
    tab.close()


def test_help_and_keys(browser, deep):
    tab = tab_of(browser, deep)
    tab.keyboard.press("?")
    assert tab.is_visible("#help")
    assert "next step" in tab.inner_text("#help")
    tab.keyboard.press("Escape")
    assert not tab.is_visible("#help")
    tab.keyboard.press("End")
    tab.keyboard.press("Home")
    assert tab.inner_text("#count").startswith("0 /")
    tab.close()


def test_on_a_phone_graph_sentence_and_controls_are_in_view(browser, deep):
    tab = tab_of(browser, deep, "phone", has_touch=True)
    tab.keyboard.press("b")
    for _ in range(4):
        tab.keyboard.press("ArrowRight")
        inside = """selector => { const b = document.querySelector(selector).getBoundingClientRect();
            return b.top >= 0 && b.left >= 0 && b.right <= innerWidth && b.bottom <= innerHeight; }"""
        tab.wait_for_function(f"({inside})('.node.now')")  # the scrolling is smooth
        for selector in ("#step .phase", "#next", "#slider"):
            assert tab.evaluate(inside, selector), selector
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.close()


SWIPE = """([from, to]) => {
  const panel = document.getElementById("step"), kinds = [["touchstart", from], ["touchend", to]];
  for (const [kind, x] of kinds) {
    const touch = new Touch({ identifier: 1, target: panel, clientX: x, clientY: 600 });
    panel.dispatchEvent(new TouchEvent(kind, { bubbles: true, changedTouches: [touch],
      touches: kind === "touchstart" ? [touch] : [] }));
  }
}"""


def test_a_swipe_is_a_step(browser, deep):
    tab = tab_of(browser, deep, "phone", has_touch=True)
    tab.evaluate(SWIPE, [300, 100])
    first = tab.inner_text("#count")
    assert not first.startswith("0 /")
    tab.evaluate(SWIPE, [100, 300])
    assert tab.inner_text("#count").startswith("0 /")
    tab.close()


PINCH = """() => {
  const room = document.getElementById("room"), before = picture.width.baseVal.value;
  const send = (kind, id, x) => room.dispatchEvent(new PointerEvent(kind, { pointerId: id, pointerType: "touch", clientX: x, clientY: 200 }));
  send("pointerdown", 1, 150); send("pointerdown", 2, 200); send("pointermove", 2, 250);
  send("pointerup", 1, 150); send("pointerup", 2, 250);
  return picture.width.baseVal.value / before;
}"""


def test_a_pinch_zooms(browser, deep):
    tab = tab_of(browser, deep, "phone", has_touch=True)
    assert tab.evaluate(PINCH) == pytest.approx(2, rel=0.01)
    tab.close()


def test_print_has_the_whole_graph_and_the_text(browser, deep):
    tab = tab_of(browser, deep, color_scheme="dark")
    tab.keyboard.press("b")
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not tab.is_visible("#controls")
    assert not tab.is_visible("#zoom")
    assert tab.is_visible("#step")
    box = tab.evaluate("(({width, left}) => [left, width])(document.getElementById('picture').getBoundingClientRect())")
    assert box[0] >= 0
    assert box[1] <= 1280
    assert tab.pdf()[:5] == b"%PDF-"
    tab.close()


def test_large_arrays_say_that_they_are_averaged(browser, tmp_path):
    weight = torch.arange(40.0 * 40).reshape(40, 40).div(100).requires_grad_()
    inputs = torch.ones(2, 40) / 40
    viz.html((inputs @ weight).square().mean(), tmp_path / "page.html", {"weight": weight})
    tab = tab_of(browser, tmp_path / "page.html")
    tab.keyboard.press("ArrowRight")
    assert "40×40 numbers, averaged to 6×16 cells" in tab.inner_text("#step")
    assert tab.locator("#step .bar").count() >= 1
    colour = "getComputedStyle(document.querySelector('#step .row:nth-child(2) i')).backgroundColor"
    own = tab.evaluate(colour)
    tab.check("#step input[type=checkbox]")
    assert tab.evaluate(colour) != own
    tab.close()


def test_no_edge_strikes_through_a_label(browser, deep):
    """Each number on an edge stands on a plate of its own, above all edges, beside all boxes."""
    tab = tab_of(browser, deep)
    tab.keyboard.press("o")
    tab.keyboard.press("b")
    for _ in range(8):
        tab.keyboard.press("ArrowRight")
        assert tab.evaluate(LAPS) == [False, False]
        assert tab.evaluate("picture.lastElementChild === view.pills")
        assert tab.evaluate(
            "[...document.querySelectorAll('.sent rect')].every(r => getComputedStyle(r).fill !== 'none')"
        )
    tab.close()


def test_the_numbers_of_each_sentence_agree():
    """A · B = C in the sentences of scalars, and the sums over several uses."""
    x = torch.tensor(0.7, requires_grad=True)
    w = torch.tensor(-1.3, requires_grad=True)
    h = (x * w).exp() + x * x
    loss = (h / w - 2).square() + torch.relu(h) * 3 - w.sigmoid() ** 3
    data = data_of(viz.html(loss))
    found = 0
    for step in data["steps"]:
        for a in step["arrivals"]:
            for left, right, product in re.findall(r"gets (\S+) · \(?(\S+?)\)? = (\S+)\.(?: |$)", a["said"]):
                assert float(left) * float(right) == pytest.approx(float(product), rel=1e-3)
                assert float(product) == pytest.approx(data["numbers"][a["gives"]]["values"][0], rel=1e-3)
                found += 1
            for left, right, whole in re.findall(r"times: (\S+) \+ \(?(\S+?)\)? = (\S+)\.$", a["said"]):
                assert float(left) + float(right) == pytest.approx(float(whole), rel=1e-3)
                assert float(whole) == pytest.approx(data["numbers"][a["total"]]["values"][0], rel=1e-3)
    assert found >= 12
    said = " ".join(a["said"] for step in data["steps"] for a in step["arrivals"])
    assert "the derivative by the first x alone is the second x = 0.7; " in said


def test_the_users_text_is_escaped(browser, tmp_path):
    """A name that is HTML stays a name: in boxes, sentences, leaves and the title."""
    x = torch.tensor(2.0, requires_grad=True)
    name = "<img src=x onerror=document.title='bad'>"
    viz.html(x.sin() * x, tmp_path / "page.html", {name: x})
    tab = tab_of(browser, tmp_path / "page.html")
    for _ in range(6):
        tab.keyboard.press("ArrowRight")
    tab.wait_for_timeout(100)
    assert tab.locator("img").count() == 0
    assert tab.title() != "bad"
    assert name in tab.inner_text("#leaves")
    tab.close()


def test_the_demo_page_goes_to_its_end(browser, tmp_path):
    """Conv2d, MaxPool2d (two outputs), Dropout, Flatten: the network of the demo."""
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25), nn.Linear(18, 3)
    )
    with viz.module_calls(model):
        images = torch.randn(2, 1, 8, 8)
        scores = model(images)
        loss = nn.functional.cross_entropy(scores, torch.tensor([0, 2]))
    page = viz.html(loss, tmp_path / "page.html", model)
    nodes = nodes_of(page)
    assert nodes["maxpool2d_2"]["label"] == "maxpool2d_2: MaxPool2d"
    assert nodes["dropout4"]["label"] == "dropout4: Dropout"
    tab = tab_of(browser, tmp_path / "page.html")
    said = []
    tab.on("pageerror", lambda error: said.append(str(error)))
    while not tab.is_disabled("#next"):
        tab.click("#next")
        assert "undefined" not in tab.inner_text("#panel")
        assert "NaN" not in tab.inner_text("#panel")
    assert said == []
    grads = grads_shown(tab)
    assert len(grads) == 4
    assert all(numbers is not None or name for name, numbers in grads.items())
    tab.close()


# -- what newcomers stumbled over


def the_demos_page():
    """The page that `rushlight demo` writes."""
    from rushlight.demo.digits import read_digits
    from rushlight.demo.run import pages
    from rushlight.demo.train import network, split

    train_set, _ = split(*read_digits())
    return pages(network(), train_set)[1]


def two_layers():
    model, loss = mlp()
    return viz.html(loss, params=model)


def squared():
    x = torch.tensor(3.0, requires_grad=True)
    return viz.html(x * x)


FITTED = {"demo": (the_demos_page, 1280, 900), "neuron": (neuron, 390, 844), "mlp": (two_layers, 390, 844)}
WHOLE = """() => { const room = document.getElementById("room"), view = room.getBoundingClientRect();
  return [...document.querySelectorAll(".node")].every(box => { const b = box.getBoundingClientRect();
    return b.left >= view.left && b.right <= view.right && b.top >= view.top && b.bottom <= view.bottom; }); }"""


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize("name", FITTED)
def test_a_page_opens_with_the_whole_graph(browser, tmp_path, name):
    write, width, height = FITTED[name]
    (tmp_path / "page.html").write_text(write())
    tab = browser.new_page(viewport={"width": width, "height": height})
    tab.goto((tmp_path / "page.html").as_uri())
    assert tab.evaluate(WHOLE)
    assert tab.evaluate("13 * scale") >= (10 if width > 760 else 7.5)  # px: the height of letters
    tab.set_viewport_size({"width": width - 40, "height": height - 60})
    tab.wait_for_function(f"({WHOLE})()")
    tab.close()


@pytest.mark.origin("newcomers")
@pytest.mark.parametrize("write", [neuron, two_layers, squared])
def test_a_leafs_box_and_its_row_agree_in_every_step(browser, tmp_path, write):
    """`g` where a gradient has arrived, `.grad` where the leaf's own step has added it."""
    (tmp_path / "page.html").write_text(write())
    tab = tab_of(browser, tmp_path / "page.html")
    tab.keyboard.press("o")
    seen = set()
    for k in range(tab.evaluate("LAST") + 1):
        tab.evaluate(f"go({k})")
        boxes_and_rows = tab.evaluate("""() => [...document.querySelectorAll(".node.leaf")].map(box => [
            view.boxes[box.dataset.box].grad.textContent.trim(),
            document.querySelector(`[data-leaf="${nodes[box.dataset.node].raw}"]`).innerText.replaceAll("\\n", " "),
            state()[box.dataset.node].arrived, state()[box.dataset.node].grad])""")
        for box, row, arrived, grad in boxes_and_rows:
            underway = "g, which has arrived" in row
            assert box.startswith("g ") == (underway or (grad is not None and not box.startswith(".grad")))
            assert (box == "") == (arrived is None and grad is None)
            assert row.endswith(".grad None") == (grad is None)
            if underway:
                assert box.split()[-1] in row
            seen.add((underway, grad is None))
    assert seen == {(False, True), (True, True), (False, False)}
    tab.close()


def test_the_operands_of_a_square_are_told_apart(browser, tmp_path):
    (tmp_path / "page.html").write_text(squared())
    data = data_of(squared())
    said = [a["said"] for step in data["steps"] for a in step["arrivals"]]
    assert "the derivative by the first x alone is the second x = 3; x gets 1 · 3 = 3." in said[0]
    assert "the derivative by the second x alone is the first x = 3; x gets 1 · 3 = 3." in said[1]
    tab = tab_of(browser, tmp_path / "page.html")
    assert tab.text_content(".node.output .name").endswith(" = x * x")
    tab.keyboard.press("b")
    tab.keyboard.press("ArrowRight")
    sent = tab.locator(".send").all_inner_texts()
    assert ["the first x" in sent[0], "the second x" in sent[1]] == [True, True]
    tab.close()
    w = torch.ones(2, 2, requires_grad=True)
    told = [a["said"] for step in data_of(viz.html((w @ w).sum()))["steps"] for a in step["arrivals"]]
    assert [text.split(":")[0] for text in told[1:]] == ["For the first w", "For the second w"]


def test_300_nodes_open_as_a_few_modules(browser, tmp_path):
    """Also without `params`: the page finds the model among the user's variables."""
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(75) for layer in (nn.Linear(8, 8), nn.Tanh())])
    viz.html(model(torch.randn(4, 8)).pow(2).mean(), tmp_path / "page.html")
    tab = tab_of(browser, tmp_path / "page.html")
    assert tab.evaluate("nodes.length") >= 300
    assert tab.evaluate(WHOLE)
    closed = boxes(tab)
    assert closed <= 20  # 15 slices of ten layers, pow, mean
    tab.click('[data-group="0:10"]')
    assert tab.locator('[data-group="0:10"]').count() == 0
    assert closed < boxes(tab) <= closed + 20
    tab.click('[data-group="0:10.0"]')
    assert tab.locator('[data-node]:has-text("0].weight")').count() == 1
    tab.close()


def a_network_of_numbers():
    """micrograd's network: 3 inputs, layers of 6, 6 and 1 neurons, each weight a tensor of one number; and the weights."""

    def neuron(w, b, x):
        act = sum((wi * xi for wi, xi in zip(w, x)), b)
        return act.tanh()

    torch.manual_seed(0)
    x = [torch.tensor(v) for v in (2.0, 3.0, -1.0)]
    held = []
    for count in (6, 6, 1):
        weights = torch.randn(count, len(x) + 1)
        rows = [[w.clone().requires_grad_() for w in row] for row in weights.unbind()]
        x = [neuron(row[1:], row[0], x) for row in rows]
        held += rows
    return (x[0] - 1.0) ** 2, held


def test_a_large_graph_without_modules_has_groups_of_steps(browser, tmp_path):
    loss, held = a_network_of_numbers()
    data = data_of(viz.html(loss, tmp_path / "page.html"))
    assert len(data["nodes"]) > 200
    assert sum(group["kind"].startswith("act = sum(") for group in data["groups"].values()) == 13  # neurons
    tab = tab_of(browser, tmp_path / "page.html")
    said = []
    tab.on("pageerror", lambda error: said.append(str(error)))
    assert tab.evaluate(WHOLE)
    closed = boxes(tab)
    assert closed <= 16
    tab.click('.node.group:has-text("steps 1 to 7")')
    assert boxes(tab) > closed
    tab.keyboard.press("b")
    while not tab.is_disabled("#next"):
        tab.keyboard.press("ArrowRight")
    assert said == []
    leaves = [node for node in reachable([loss._node]) if node.leaf]
    loss.backward()
    shown = tab.evaluate("state().filter((s, i) => nodes[i].kind === 'leaf').map(s => numbers[s.grad].values[0])")
    assert len(leaves) == sum(map(len, held)) == 73
    assert shown == [pytest.approx(leaf.variable.grad.item(), abs=1e-6) for leaf in leaves]
    tab.close()


def test_a_chain_of_5000_steps_opens_in_parts(browser, tmp_path):
    y = x = torch.ones((), requires_grad=True)
    for _ in range(4990):
        y = y * x
    viz.html(y, tmp_path / "page.html")
    tab = tab_of(browser, tmp_path / "page.html")
    assert boxes(tab) <= 25
    first = tab.text_content(".node.group .name")
    assert re.fullmatch(r"▸ steps \d+ to \d+", first)
    tab.locator(".node.group").first.click()
    assert boxes(tab) <= 45
    tab.close()


def test_the_model_is_found_among_the_users_variables():
    """The module with the most parameters in the graph; of an object the module that it holds."""

    class Trainer:
        def __init__(self):
            self.network = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))

        def page(self):
            return viz.html(self.network(torch.ones(1, 2)).sum())

    trainer = Trainer()
    assert set(data_of(trainer.page())["groups"]) == {"0", "2"}
    other, net = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    first = net[0]
    loss = net(other(torch.ones(1, 2))).sum()
    names = {node["name"] for node in data_of(viz.html(loss))["nodes"] if node["kind"] == "leaf"}
    assert {"model[0].weight", "model[1].bias"} <= names
    assert first is net[0]
    assert data_of(viz.html(torch.ones(2, requires_grad=True).sum()))["groups"] == {}


@pytest.mark.origin("newcomers")
def test_a_page_has_no_folder_of_its_author(tmp_path, monkeypatch):
    """A file below the working directory keeps its path from there; of others the name is shown."""
    (tmp_path / "author").mkdir()
    program = tmp_path / "author" / "train.py"
    program.write_text(
        "import rushlight as torch\n"
        "x = torch.tensor(2.0, requires_grad=True)\n"
        "y = x * x + x\n"
        "told = torch.explain(y, wrt=x)\n"
        "texts = [torch.viz.html(y), torch.viz.svg(y), torch.viz.dot(y), told._repr_html_(), torch.viz.svg(y, engine='own')]\n"
    )
    for folder, place in ((tmp_path, "author/train.py:3"), (ROOT, "train.py:3")):
        monkeypatch.chdir(folder)
        names = {}
        exec(compile(program.read_text(), str(program), "exec"), names)
        assert not [text for text in names["texts"] if str(tmp_path) in text]
        assert {place} == set(data_of(names["texts"][0])["sources"])
        assert f"<title>{place}: y = x * x + x</title>" in names["texts"][-1]


@pytest.mark.origin("newcomers")
def test_a_prompt_shows_a_line_for_a_page_or_a_picture():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    page, picture = viz.html(y), viz.svg(y)
    model = nn.Linear(1, 1)
    with viz.steps(model) as training:
        model(torch.ones(1, 1)).sum().backward()
        training.record(loss=0.5)
    assert re.fullmatch(
        r"<page of \d+ kB: Forward and backward, step by step: y = 9; print\(page\) shows .*>", repr(page)
    )
    assert repr(training) == "<page of 1 training steps, 1 recorded; save(path) writes it>"
    for shown in (page, picture, training, training.html()):
        assert len(repr(shown)) < 120
        assert "\n" not in repr(shown)
