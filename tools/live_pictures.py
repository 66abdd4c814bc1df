"""The pictures of docs/use/live.md: `python tools/live_pictures.py [folder]` trains a small network on the digits while
its live page is open in headless Chromium, and writes the page and the loss landscape, in light and dark, to
docs/assets/pictures.

make pictures        writes them; needs Chromium, Playwright and matplotlib
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import matplotlib as mpl  # noqa: E402

import rushlight as torch  # noqa: E402
from rushlight import nn, viz  # noqa: E402
from rushlight.demo.digits import read_digits  # noqa: E402
from tools.training_pictures import STYLES  # noqa: E402

FOLDER = ROOT / "docs" / "assets" / "pictures"
SIZE = {"width": 1280, "height": 900}
SECONDS = 9  # of the training


def network() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 64), nn.Tanh(),
        nn.Linear(64, 10),
    )  # fmt: skip


def train(model: Any, pictures: Any) -> None:
    """Train until the generator `pictures` ends; it runs between the steps."""
    x, y = read_digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    for _ in pictures:
        batch = torch.randint(0, len(x), (32,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()


def photographed(page: Any, browser: Any, folder: Path) -> Any:
    """Yields at each step; writes pictures of the page at the end."""
    tabs = {scheme: browser.new_page(viewport=SIZE, color_scheme=scheme) for scheme in ("light", "dark")}
    for tab in tabs.values():
        tab.goto(page.address)
    for _ in range(SECONDS * 10):
        for _ in range(12):
            yield
        for tab in tabs.values():
            tab.wait_for_timeout(50)
    for scheme, tab in tabs.items():
        tab.wait_for_timeout(800)
        tab.screenshot(path=folder / f"live-{scheme}.png")


def small(path: Path) -> None:
    """Fewer colours, so that the file is small."""
    from PIL import Image

    Image.open(path).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path, path.stat().st_size // 1000, "kB")


def landscapes(browser: Any, folder: Path) -> None:
    """The landscape of two half moons: the picture, and the page that turns."""
    from tools.training_pictures import moons

    torch.manual_seed(1)
    X, y = moons()
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)

    def loss() -> Any:
        return nn.functional.cross_entropy(model(X), y)

    with viz.Path(model) as path:
        for _ in range(200):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    found = viz.landscape(path, loss, points=41)
    for scheme in ("light", "dark"):
        with mpl.rc_context(STYLES[scheme]):
            found.figure().savefig(folder / f"landscape-{scheme}.png", dpi=72)
        page = folder / "landscape.html"
        found.save(page)
        tab = browser.new_page(viewport={"width": 900, "height": 640}, color_scheme=scheme)
        tab.goto(page.resolve().as_uri())
        tab.wait_for_timeout(300)
        tab.screenshot(path=folder / f"landscape-page-{scheme}.png")
        page.unlink()


def main(folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        model = network()
        with viz.live(model, quiet=True) as page:
            train(model, photographed(page, browser, folder))
        page.close()
        landscapes(browser, folder)
        browser.close()
    for scheme in ("light", "dark"):
        for name in ("live", "landscape", "landscape-page"):
            small(folder / f"{name}-{scheme}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
