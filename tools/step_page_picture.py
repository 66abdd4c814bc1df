"""Write docs/assets/neuron-light.gif and neuron-dark.gif: the step page of one neuron, from headless Chromium, at each
step of forward and backward.

make pictures        writes them; needs Chromium, Playwright and Pillow

Each file holds the text of all its frames as a comment: tests/docs/test_pictures.py compares it with the page of today.
"""

from __future__ import annotations

import io
import json
import linecache
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import rushlight as torch  # noqa: E402

ASSETS = ROOT / "docs" / "assets"
WIDTH, HEIGHT, SCALE = 1000, 640, 2  # CSS pixels, and device pixels of each
PICTURE_WIDTH = 900
MILLISECONDS = 1100  # of a step; the last one stays longer


NEURON = """\
x1, x2 = torch.tensor(2.0), torch.tensor(0.5)
w1 = torch.tensor(-3.0, requires_grad=True)
w2 = torch.tensor(1.0, requires_grad=True)
b = torch.tensor(6.0, requires_grad=True)

o = torch.tanh(x1 * w1 + x2 * w2 + b)
"""  # shown on the page as the file neuron.py


def neuron(path: Path) -> None:
    """Write the page of o = tanh(x1 w1 + x2 w2 + b), a neuron with two inputs."""
    linecache.cache["neuron.py"] = (len(NEURON), None, NEURON.splitlines(True), "neuron.py")
    names: dict[str, Any] = {"torch": torch}
    exec(compile(NEURON, "neuron.py", "exec"), names)
    leaves = {name: names[name] for name in ("w1", "w2", "b")}
    torch.viz.html(names["o"], path, params=leaves)


WORDS = (
    """() => [...document.querySelectorAll("#picture text, #count, #step")].map(part => part.textContent).join(" | ")"""
)


def frames(path: Path, scheme: str) -> tuple[list[bytes], list[str]]:
    """A PNG of the page before and after each step, and the text on it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT},
            device_scale_factor=SCALE,
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        page.goto(path.as_uri())
        page.wait_for_timeout(500)
        made, words = [page.screenshot()], [page.evaluate(WORDS)]
        while page.is_enabled("#next"):
            page.keyboard.press("ArrowRight")
            page.wait_for_timeout(500)
            made.append(page.screenshot())
            words.append(page.evaluate(WORDS))
        browser.close()
    return made, words


def gif(pictures: list[bytes], words: list[str], path: Path) -> None:
    """One palette for all frames, so that only the differences are stored."""
    from PIL import Image

    size = (PICTURE_WIDTH, PICTURE_WIDTH * HEIGHT // WIDTH)
    images = [Image.open(io.BytesIO(p)).convert("RGB").resize(size, Image.Resampling.LANCZOS) for p in pictures]
    palette = images[-1].quantize(128, dither=Image.Dither.NONE)
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    durations = [MILLISECONDS] * (len(flat) - 1) + [3 * MILLISECONDS]
    comment = json.dumps(words).encode()
    flat[0].save(
        path, save_all=True, append_images=flat[1:], duration=durations, loop=0, optimize=True, comment=comment
    )
    print(path, path.stat().st_size // 1000, "kB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "neuron.html"
        neuron(page)
        for scheme in ("light", "dark"):
            gif(*frames(page, scheme), ASSETS / f"neuron-{scheme}.gif")
