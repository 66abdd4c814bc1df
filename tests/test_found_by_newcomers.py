"""What those meet who come without Numba or SciPy, and do what the pages say, in their order."""
import io
import os
import re
import shutil
import subprocess
import sys

import pytest

import rushlight
from rushlight import nn
from tests.support.passes import compiled, ops
from tests.support.paths import ROOT

WITHOUT = """
import sys, importlib.metadata as metadata
version = metadata.version
def asked(name):
    if name == "numba":
        raise metadata.PackageNotFoundError(name)
    return version(name)
metadata.version = asked
for name in ("numba", "llvmlite", "scipy"):
    sys.modules[name] = None
import rushlight as torch
from rushlight import nn
"""


def alone(code, *options, folder=None):
    """What a process of its own prints, without Numba and SciPy."""
    done = subprocess.run([sys.executable, *options, "-c", WITHOUT + code], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_is_made_and_printed_without_numba():
    assert alone("""
model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Tanh(), nn.Linear(3, 1))
step = torch.compile(lambda x: torch.sigmoid(model(x)).round().sum(), backend="numpy")
for _ in range(3):
    step(torch.ones(2, 2))
program, = torch.compiler.programs(step)
print("numba" in program.source, "tanh(" in program.source)
""") == "False True\n"


def test_a_model_is_exported_without_numba(tmp_path):
    assert alone("""
model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
torch.export(model, torch.ones(1, 2), "answers")
sys.path.insert(0, ".")
from answers import model as small
x = torch.ones(1, 2)
print(bool(abs(small(x.numpy()) - model(x).detach().numpy()).max() < 1e-6))
""", folder=tmp_path) == "True\n"


def test_that_nothing_is_fused_is_said_at_the_users_line(tmp_path):
    (tmp_path / "mine.py").write_text(WITHOUT + "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n"
                                      "    torch.compile(lambda x: x)\nprint(seen[0].filename, seen[0].message)\n")
    done = subprocess.run([sys.executable, "mine.py"], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stdout.startswith(str(tmp_path / "mine.py")), done.stdout + done.stderr
    assert "pip install numba" in done.stdout


@pytest.mark.parametrize("call", [
    "torch.erf(x)", "torch.linalg.lstsq(x, x)", "torch.matrix_exp(x)", "torch.linalg.lu(x)", "torch.linalg.ldl_factor(x)",
    "torch.linalg.solve_triangular(x, x, upper=True)", "x.to_sparse() @ x", "torch.fft.fft(x)",
    "torch.quasirandom.SobolEngine(2)", "torch.distributions.Gamma(x.requires_grad_(), x).rsample().sum().backward()"])
def test_what_needs_scipy_says_so(call):
    assert alone(f"""
x = torch.eye(3) + 1
try:
    {call}
except ImportError as error:
    print(error)
""").endswith("SciPy: pip install scipy\n")


# -- pictures of graphs: long names, what is no graph, folders that are not there

@pytest.mark.parametrize(("params", "says"), [([rushlight.ones(2)], "named_parameters"), ([1, 2], "named_parameters")])
def test_names_of_leaves_come_in_pairs(params, says):
    x = rushlight.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=says):
        rushlight.viz.graph(x * 2, params)


def test_what_is_no_tensor_has_no_graph():
    with pytest.raises(TypeError, match="not of float"):
        rushlight.viz.print_graph(3.0)


def test_a_picture_needs_its_folder(tmp_path):
    x = rushlight.ones(2, requires_grad=True)
    with pytest.raises(FileNotFoundError):
        rushlight.viz.png(x * 2, tmp_path / "none" / "graph.png")


LAPS = """() => {
    const boxes = kind => [...document.querySelectorAll(kind)].filter(t => t.textContent).map(t => t.getBBox());
    const over = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
    return ["text.sent", "text.name"].map(kind => boxes(kind).some((a, i, all) => all.slice(i + 1).some(b => over(a, b))));
}"""


def test_words_of_the_page_do_not_cover_each_other(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium")
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    names = {f"a_very_long_parameter_name.encoder.layers.11.self_attention.{n}": p for n, p in model.named_parameters()}
    rushlight.viz.html(model(rushlight.ones(4, 2)).square().mean(), tmp_path / "page.html", names)
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((tmp_path / "page.html").as_uri())
        for _ in range(4):
            assert page.evaluate(LAPS) == [False, False]
            page.keyboard.press("ArrowRight")
        browser.close()


# -- common mistakes: each error says what, where and the cure

TWO = "torch.ones(2, 3)"
MISTAKES = {
    "nn.MSELoss(torch.ones(2), torch.ones(2)).backward()": (RuntimeError, "make the loss first"),
    f"nn.CrossEntropyLoss({TWO}, torch.tensor([0, 1]))": (RuntimeError, "make the loss first"),
    "optim.Adam(nn.Linear(2, 2), lr=0.1)": (TypeError, "model.parameters()"),
    "optim.SGD([{'param': [torch.ones(2)]}], lr=0.1)": (KeyError, "params"),
    "nn.Sequential(nn.Linear(2, 2), nn.ReLU)": (TypeError, "make one: ReLU()"),
    "nn.Sequential(nn.Linear(2, 2), F.relu)": (TypeError, "nn.ReLU() for relu"),
    "nn.Sequential([nn.Linear(2, 2)])": (TypeError, "nn.Sequential(*layers)"),
    "nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2))": (TypeError, "model.state_dict()"),
    f"{TWO}[2]": (IndexError, "count from 0 to 1"),
    f"{TWO}[torch.tensor([0, 5])]": (IndexError, "count from 0 to 1"),
    f"{TWO}[0, 0, 0]": (IndexError, "the shape is (2, 3)"),
    f"{TWO}[torch.tensor([True])]": (IndexError, "a mask has the shape"),
    f"F.cross_entropy({TWO}, torch.tensor([1]))": (ValueError, "one class for each row"),
    "F.one_hot(torch.tensor([3]), 2)": (RuntimeError, "num classes: 2"),
    "torch.ones(2, device='cuda')": (AssertionError, "if torch.cuda.is_available()"),
    "torch.ones(2).to('gpu')": (RuntimeError, "write 'cpu'"),
    f"nn.BatchNorm2d(3)({TWO})": (ValueError, "take BatchNorm1d"),
    "nn.LSTM(4, 5)(torch.ones(3, 2, 4), torch.ones(1, 2, 5))": (IndexError, "(h_0, c_0)"),
    "nn.MultiheadAttention(10, 3)": (AssertionError, "num heads: 3"),
    "nn.Dropout(1.5)": (ValueError, "0.5"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_line_and_its_cure(mistake, tmp_path):
    kind, cure = MISTAKES[mistake]
    file = tmp_path / "mine.py"
    file.write_text(f"\n{mistake}\n")
    with pytest.raises(kind) as caught:
        exec(compile(file.read_text(), str(file), "exec"),
             {"torch": rushlight, "nn": nn, "optim": rushlight.optim, "F": nn.functional})
    text = str(caught.value.args[0])
    assert f"at: {file}:2: {mistake}" in text
    assert cure in text


def test_a_full_disk_is_told_with_the_file_and_the_old_one_stays(tmp_path, monkeypatch):
    file = tmp_path / "w.pt"
    rushlight.save({"a": rushlight.zeros(2)}, file)

    def full(descriptor):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=re.escape(str(file))):
        rushlight.save({"a": rushlight.ones(2)}, file)
    assert rushlight.load(file)["a"].tolist() == [0.0, 0.0]
    assert list(tmp_path.iterdir()) == [file]


# -- what CONTRIBUTING.md says of a pass and an optimizer

def contributed(name):
    """What the block of CONTRIBUTING.md that defines the name defines."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    scope = {}
    exec(next(b for b in blocks if re.search(rf"(def|class) {name}\b", b)), scope)
    return scope[name]


def test_the_optimizer_of_the_page_goes_against_the_sign():
    model = nn.Linear(3, 2)
    optimizer = contributed("SignDescent")(model.parameters(), lr=0.5)

    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    for run in [step, rushlight.compile(step, backend="numpy")]:
        for _ in range(4):
            before = [p.detach().clone() for p in model.parameters()]
            run(rushlight.ones(4, 3))
            for p, old in zip(model.parameters(), before):
                assert rushlight.equal(p, old - 0.5 * p.grad.sign())


def test_the_pass_of_the_page_takes_negations_away(monkeypatch):
    from rushlight.compile.passes import PASSES
    monkeypatch.setitem(PASSES, "negations", contributed("negations"))
    x = rushlight.rand(3)
    program, result, steps = compiled(lambda x: x.exp().neg().neg() * 2, x)
    assert "neg" in ops(steps["as recorded"])
    assert "neg" not in ops(steps["negations"])
    assert rushlight.equal(result, x.exp() * 2)


def test_an_explanation_calls_constants_by_the_users_names():
    weight, rows, z = rushlight.ones(3, 3, requires_grad=True), rushlight.rand(2, 3), 0 * rushlight.ones(1)
    told = str(rushlight.explain((rows @ weight).tanh().sum(), wrt=weight))
    assert "= rows @ weight " in told
    assert z.item() == 0
    assert told.startswith("dy/dweight by the chain rule")      # z is taken


@pytest.mark.parametrize("page", ["index", "viz", "transforms", "toolbox", "compile"])
def test_the_blocks_of_a_page_run_in_their_order(page, tmp_path, monkeypatch):
    """In one process, each with the names of those before it, as a reader does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / f"{page}.md").read_text(), re.DOTALL | re.MULTILINE)
    scope = {"__name__": "reader"}
    for i, block in enumerate(blocks):
        file = tmp_path / f"block{i}.py"
        file.write_text(block)
        exec(compile(block, str(file), "exec"), scope)
    assert blocks


def test_a_page_of_a_model_that_nobody_holds():
    page = rushlight.viz.html(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))(rushlight.ones(1, 2)).sum())
    assert "AccumulateGrad" in page


def test_a_tree_for_a_terminal_of_few_characters():
    x = rushlight.ones(2, requires_grad=True)
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    rushlight.viz.print_graph(x * x + x, {"\u03b1": x}, file=out)
    out.seek(0)
    assert [line[:17] for line in out.read().splitlines()[:3]] == [
        "AddBackward0 (2,)", "|- MulBackward0 (", "|  |- AccumulateG"]


def test_torchs_own_functions_tell_whose_tensor_it_is():
    """It ended in a RecursionError: torch asks the tensor, which asks torch again."""
    torch = pytest.importorskip("torch")
    for function in (torch.sin, torch.randn_like, torch.nn.functional.relu):
        with pytest.raises(TypeError, match="given a tensor of rushlight"):
            function(rushlight.ones(2))
    assert rushlight.sin(rushlight.zeros(2)).sum() == 0
