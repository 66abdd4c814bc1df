"""The live page in a browser, driven while a training runs; `rushlight run --live`; the end of the page."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from threading import Thread
from time import monotonic

import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.cli import main
from rushlight.nn import functional as F
from rushlight.profiler.clocks import RUNNING
from tests.support.paths import ROOT
from tests.viz.test_page import LONG, SIZES, browser

__all__ = ["browser"]  # a fixture

CLASSES = 5


def images():
    torch.manual_seed(0)
    return torch.randn(200, 1, 6, 6), torch.randint(0, CLASSES, (200,))


def classifier():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, CLASSES))
    x, y = images()
    return model, lambda i: F.cross_entropy(model(x[i : i + 32]), y[i : i + 32])


def regression():
    model = nn.Sequential(nn.Linear(36, 8), nn.Tanh(), nn.Linear(8, 1))
    x = images()[0].reshape(200, 36)
    return model, lambda i: F.mse_loss(model(x[i : i + 32]), x[i : i + 32].mean(1, keepdim=True))


@contextmanager
def training(task=classifier, **options):
    """(the live page of a training that runs in another thread, the model, the number of steps as a list)."""
    model, loss = task()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    over, count = [], []

    def train():
        with page:
            started.append(True)
            while not over:
                optimizer.zero_grad()
                loss(len(count) % 150).backward()
                optimizer.step()
                count.append(None)

    started: list = []
    page = viz.live(model, quiet=True, **options)
    thread = Thread(target=train)
    thread.start()
    while not (started and page.count):
        thread.join(0.01)
    try:
        yield page, model, count
    finally:
        over.append(True)
        page.gate.go()
        thread.join(60)
        page.close()


@contextmanager
def opened(browser, address, size=(1280, 900), scheme="light"):
    """(the page in the browser, what it complained of or asked from elsewhere)."""
    tab = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    tab.set_default_timeout(LONG)
    said = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: None if request.url.startswith((address, "data:")) else said.append(request.url))
    tab.goto(address)
    yield tab, said
    tab.close()


def until(tab, condition):
    """Wait until a condition in JavaScript is true. The page's policy forbids `wait_for_function`."""
    end = monotonic() + LONG / 1000
    while not tab.evaluate(condition):
        assert monotonic() < end, condition
        tab.wait_for_timeout(20)


def count_of(tab):
    return int(tab.inner_text("#facts").split()[1])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_shows_the_training(browser, size, scheme):
    with training() as (page, _, _), opened(browser, page.address, SIZES[size], scheme) as (tab, said):
        until(tab, "records.length > 2")
        assert tab.title() == "Sequential: live training"
        assert tab.inner_text("#status") == "running"
        assert tab.get_attribute("#loss svg", "aria-label").startswith("loss, from 1.")
        names = tab.evaluate("[...document.querySelectorAll('.layer')].map(row => row.dataset.layer)")
        assert names == [f"model[{i}]" for i in range(4)]
        for cell in ("output", "gradient", "ratio"):
            assert tab.locator(f"[data-layer='model[0]'] [data-cell={cell}] .number").count() == 1
        assert "% zero" in tab.inner_text("[data-layer='model[1]'] [data-cell=output]")
        assert tab.locator("#predictions .sample canvas").count() == 8
        assert "of 32 samples" in tab.inner_text("#right")
        assert "aten::conv2d" in tab.inner_text("#ops")
        for name in ("values", "grads", "outputs"):
            assert tab.get_attribute(f"#{name}", "aria-label").startswith("histograms of ")
        tab.click("[data-layer='model[3]']")
        assert tab.inner_text("#which option:checked") == "model[3].weight (5×64)"
        tab.click("[data-layer='model[1]']")
        assert tab.get_attribute("#values", "aria-label") == "this layer has no parameters"
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert said == []


def test_it_is_updated_again_and_again(browser):
    with training() as (page, _, _), opened(browser, page.address) as (tab, _):
        until(tab, "records.length > 1")
        tab.evaluate("() => { window.counted = 0; const before = render; render = () => { counted++; before(); }; }")
        first = count_of(tab)
        until(tab, "counted >= 8")
        until(tab, f"+document.querySelector('#facts').innerText.split(/\\s+/)[1] > {first}")


def test_pause_single_step_and_go(browser):
    with training() as (page, _, count), opened(browser, page.address) as (tab, said):
        until(tab, "records.length > 1")
        tab.click("#toggle")
        until(tab, "state.status === 'paused'")
        paused = len(count)
        tab.wait_for_timeout(500)
        assert len(count) == paused
        shown = count_of(tab)
        for more in (1, 2, 3):
            tab.click("#one") if more < 3 else tab.keyboard.press("n")
            until(tab, f"state.count === {shown + more}")
            assert page.observer.number > 0
            assert tab.inner_text("#layers-step").startswith(f"at step {shown + more};")  # each single step is recorded
        assert tab.inner_text("#toggle") == "▶ resume"
        tab.evaluate("document.activeElement.blur()")
        tab.keyboard.press(" ")
        until(tab, f"state.count > {shown + 10}")
        assert tab.inner_text("#status") == "running"
        assert said == []


def test_predictions_of_numbers_and_of_a_function(browser):
    with training(regression) as (page, _, _), opened(browser, page.address) as (tab, said):
        tab.wait_for_selector("#predictions circle")
        assert tab.locator("#predictions circle").count() == 32
        assert said == []
    told = training(predict=lambda: "once upon a <b>time")
    with told as (page, _, _), opened(browser, page.address) as (tab, said):
        tab.wait_for_selector("#predictions pre")
        assert tab.inner_text("#predictions pre") == "once upon a <b>time"
        assert said == []


def test_the_landscape_of_a_running_training(browser):
    with training() as (page, _, count), opened(browser, page.address) as (live, _):
        until(live, "records.length > 2")
        with live.context.expect_page() as pages:
            live.click("#landscape")
        tab = pages.value
        tab.wait_for_selector("#said b")
        assert tab.inner_text("#said").startswith("step ")
        assert tab.evaluate("data.values.length") == 25
        before = len(count)
        tab.wait_for_timeout(500)
        assert len(count) > before
        tab.close()


def test_the_last_numbers_reach_an_open_page(browser):
    with training() as (page, _, _), opened(browser, page.address) as (tab, _):
        until(tab, "records.length > 1")
        page.gate.pause()
        until(tab, "state.status === 'paused'")
        thread = Thread(target=page.end)
        thread.start()
        until(tab, "state.status === 'ended'")
        thread.join(20)
        assert tab.is_disabled("#toggle")
        assert tab.is_disabled("#one")
    assert not RUNNING


def test_record_by_hand():
    with viz.live(nn.Linear(1, 1), quiet=True) as page:
        for value in (3.0, torch.tensor(2.0)):
            page.record(value)
        found = json.load(urllib.request.urlopen(page.address + "state"))
    assert found["losses"] == [[1, 3.0, 0], [2, 2.0, 0]]
    page.close()


def test_errors():
    with pytest.raises(TypeError, match="expected a module, got list"):
        viz.live([nn.Linear(1, 1)])


def test_the_address_is_printed_and_closed(capsys):
    with viz.live(nn.Linear(1, 1)) as page:
        assert capsys.readouterr().err == f"rushlight live: {page.address}\n"
    assert urllib.request.urlopen(page.address).status == 200  # until the program ends
    page.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(page.address)


# -- rushlight run --live

PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for step in range({steps}):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    criterion(net(x), x.argmax(1) % 3).backward()
    optimizer.step()
print("last", net[0].weight.sum().item())
"""


def started(tmp_path, steps, *options):
    """A program under `rushlight run --live`, and the address that it printed."""
    (tmp_path / "train.py").write_text(PROGRAM.format(steps=steps))
    command = [sys.executable, "-m", "rushlight", "run", "--live", *options, "train.py"]
    child = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    for line in child.stderr:
        if line.startswith("rushlight live: "):
            return child, line.split()[-1]
    raise AssertionError("no address was printed")


def test_an_unmodified_program(browser, tmp_path):
    child, address = started(tmp_path, 10**9, "--wait")
    try:
        with opened(browser, address) as (tab, said):
            until(tab, "records.length > 2")
            assert tab.title() == "net: live training"
            names = tab.evaluate("[...document.querySelectorAll('.layer')].map(row => row.dataset.layer)")
            assert names == ["net[0]", "net[1]", "net[2]"]
            assert "of 16 samples" in tab.inner_text("#right")
            tab.click("#toggle")
            until(tab, "state.status === 'paused'")
            if os.name != "nt":  # Ctrl-C while paused
                child.send_signal(signal.SIGINT)
                assert child.wait(20) == 130
            assert said == []
    finally:
        child.kill()
        child.communicate()


def test_the_numbers_of_a_program_are_unchanged(tmp_path):
    child, address = started(tmp_path, 50)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    with pytest.raises(urllib.error.URLError):  # closed with the program
        urllib.request.urlopen(address)
    plain = subprocess.run(
        [sys.executable, "-m", "rushlight", "run", "train.py"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120,
    )  # fmt: skip
    assert out == plain.stdout != ""


def test_wait_needs_live(capsys):
    assert main(["run", "--wait", "train.py"]) == 2
    assert capsys.readouterr().err == "rushlight run: --wait needs --live\n"
