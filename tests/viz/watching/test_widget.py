"""The widget of a notebook: the page in a frame, with and without a way to the local server."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz.watching import widget
from tests.support.paths import PACKAGE
from tests.viz.test_page import browser
from tests.viz.watching.test_live import opened

__all__ = ["browser"]  # a fixture

SCRIPT = (PACKAGE / "viz" / "watching" / "widget.js").read_text()
RENDER = """async ([script, values]) => {
  const { default: made } = await import("data:text/javascript;base64," + btoa(unescape(encodeURIComponent(script))));
  window.messages = [];
  made.render({ model: { get: name => values[name], on: (name, call) => messages.push(call) }, el: document.body });
}"""


def trained(page, count=3):
    optimizer = torch.optim.SGD(page.layers.parameters, lr=0.1)
    for _ in range(count):
        (page.layers.parameters[0].square().sum()).backward()
        optimizer.step()


@pytest.fixture
def page():
    with viz.live(nn.Linear(2, 2), quiet=True) as made:
        trained(made)
        yield made
    made.close()


@pytest.fixture
def notebook():
    """The address of a page of another local server, as a notebook's."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def values_of(page, address):
    return {"address": address, "page": page.html(), "height": 700}


def test_a_near_browser_opens_the_address(page, browser, notebook):
    with opened(browser, notebook) as (tab, _):
        tab.evaluate(RENDER, [SCRIPT, values_of(page, page.address)])
        frame = tab.frame_locator("iframe")
        frame.locator(".layer").wait_for()
        assert tab.get_attribute("iframe", "src") == page.address


def test_a_far_browser_gets_messages(page, browser, notebook):
    with opened(browser, notebook) as (tab, said):
        tab.evaluate(RENDER, [SCRIPT, values_of(page, "http://127.0.0.1:1/token/")])
        tab.evaluate("news => messages.forEach(call => call(news))", json.loads(page.news({})))
        frame = tab.frame_locator("iframe")
        frame.locator(".layer").wait_for()
        assert frame.locator("#facts").inner_text() == "step 3"
        frame.locator("#toggle").click()
        assert "cannot be paused from here" in frame.locator("#note").inner_text()
        assert not any(page.address in text for text in said)


def test_messages_contain_the_news_alone(page, monkeypatch):
    monkeypatch.setattr(widget, "EVERY", 0.01)
    sent = []

    class Made:
        def send(self, news):
            sent.append(news)
            if len(sent) == 2:
                page.end()

    widget.send(page, Made())
    assert [news["count"] for news in sent] == [3, 3, 3]
    assert [len(news["losses"]) for news in sent] == [3, 0, 0]
    assert [news["meta"] is None for news in sent] == [False, True, True]
    assert [news["status"] for news in sent] == ["running", "running", "ended"]


def test_the_widget(page):
    pytest.importorskip("anywidget")
    made = page.widget()
    assert made.address == page.address
    assert "liveTransport" in made.page


def test_without_anywidget(page, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    with pytest.raises(ImportError, match="pip install anywidget"):
        page.widget()
