"""The built site: links, anchors, sizes, search and contrast. mkdocs builds it once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from public_api import NAMESPACES, members

from tests.support.paths import ROOT

pytest.importorskip("material", reason="mkdocs-material is not installed (dependency group docs)")
MAX_PAGE_BYTES = 300_000
MIN_CONTRAST = 4.5  # of text, by WCAG 2.1, level AA


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors.update(found[name] for name in ("id", "name") if found.get(name))
        for name in ("href", "src"):
            if found.get(name):
                self.links.append(found[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", folder],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


@pytest.fixture(scope="module")
def parsed(site):
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_links_and_anchors_hold(site, parsed):
    broken = defaultdict(set)
    for path, page in parsed.items():
        if path.name == "404.html":  # its links are absolute
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = parsed[target].anchors if target in parsed else set()
            if not target.is_file() or (parts.fragment and target in parsed and unquote(parts.fragment) not in anchors):
                broken[path.relative_to(site).as_posix()].add(link)
    assert broken == {}


def test_pages_are_small(site, parsed):
    sizes = {path.relative_to(site).as_posix(): path.stat().st_size for path in parsed}
    assert {name: size for name, size in sizes.items() if size > MAX_PAGE_BYTES} == {}


def test_every_public_name_has_a_section(site):
    """Names of one object are in the reference once: `nn.modules.Linear` is `nn.Linear`."""
    import reference

    pages = reference.pages()
    headings = {
        line.lstrip("# ") for text in pages.values() for line in text.split("\n") if line.startswith(("# ", "## "))
    }
    shown = {id(value) for namespace in NAMESPACES for name, value in members(namespace).items() if name in headings}
    missing = [
        name
        for namespace in NAMESPACES
        for name, value in members(namespace).items()
        if id(value) not in shown and name not in headings
    ]
    assert missing == []


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("Adam", "reference/optim.html"),
        ("zero_grad", "reference/nn.module.html"),
        ("nn.Module", "reference/nn.module.html"),
        ("CrossEntropyLoss", "reference/nn.loss.html"),
        ("vmap", "reference/func.html"),
        ("DataLoader", "reference/data.html"),
    ],
)
def test_search_finds_names_in_a_site_opened_as_a_file(site, browser, words, page):
    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    opened.goto((site / "index.html").as_uri())
    opened.keyboard.press("/")
    opened.wait_for_selector("text=Type to start searching")  # the index is loaded
    opened.type(".md-search__input", words, delay=20)  # the search listens to keys
    opened.wait_for_selector(".md-search-result__item a")
    found = opened.evaluate("[...document.querySelectorAll('.md-search-result__item a')].slice(0, 8).map(a => a.href)")
    opened.close()
    assert any(page in link for link in found), found


LUMINANCE = """(selector) => {
  const rgb = text => (text.match(/[\\d.]+/g) || [0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const element = document.querySelector(selector);
  let ground = element;
  while (ground && ["rgba(0, 0, 0, 0)", "transparent"].includes(getComputedStyle(ground).backgroundColor))
    ground = ground.parentElement;
  const pair = [getComputedStyle(element).color,
                ground ? getComputedStyle(ground).backgroundColor : "rgb(255, 255, 255)"];
  const [a, b] = pair.map(rgb).map(light).sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("selector", [".md-content a[href]", ".md-content p", ".md-tabs__link"])
def test_text_has_contrast(site, browser, scheme, selector):
    opened = browser.new_page(color_scheme=scheme, viewport={"width": 1440, "height": 900})
    opened.goto((site / "index.html").as_uri())
    contrast = opened.evaluate(LUMINANCE, selector)
    opened.close()
    assert contrast >= MIN_CONTRAST
