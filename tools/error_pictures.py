"""Write docs/assets/errors/: five of the mistakes of docs/mistakes.md as a terminal and as a notebook show them, in a
light and a dark picture each.

make pictures        writes them; needs Chromium, Playwright, Pillow, nbclient and ipykernel

The terminal's text is what `python train.py` prints; the notebook's is what its kernel sends. Each file holds its text as
a chunk named `shown`: tests/docs/test_pictures.py compares it with the text of today."""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tools.mistakes import PAGE, Mistake, mistakes  # noqa: E402

FOLDER = ROOT / "docs" / "assets" / "errors"
# title of the mistake -> name of its pictures
SHOWN = {
    "Images that were not flattened": "not-flattened",
    "Images with the channels last": "channels-last",
    "A class index out of range": "class-index",
    "Backward twice through one graph": "backward-twice",
    "float64 from NumPy": "float64",
}
IMPORTS = "import numpy as np\nimport rushlight as torch\nfrom rushlight import nn, optim"
COLUMNS = 92  # of the terminal, and of the notebook
SCALE = 1.5  # device pixels of a CSS pixel
COLOURS = 64  # of a picture: text on a few grounds
MAX_BYTES = 600_000  # of all pictures

SGR = re.compile(r"\x1b\[([\d;]*)m")
# numbers of a terminal's colours -> (on light, on dark)
INKS = {
    "31": ("#b3261e", "#ff8a80"),
    "32": ("#1b6e1b", "#8fd18f"),
    "33": ("#7a5b00", "#e8c26a"),
    "34": ("#1f4fa3", "#8ab4f8"),
    "35": ("#7b2a8f", "#d7a0e8"),
    "36": ("#0b6a72", "#7fd3dc"),
}
# (ground of the page, ground of text, ground of an error in a notebook, ink, border)
SCHEMES = {
    "light": ("#ffffff", "#f7f7f5", "#fde8e6", "#1c1c1c", "#d0d0cc"),
    "dark": ("#17120e", "#201a15", "#3a1d1b", "#eae4dc", "#4a4038"),
}


def in_terminal(program: str) -> str:
    """The terminal output of `python train.py`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(f"{IMPORTS}\n\n{program}\n")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(COLUMNS)}
        done = subprocess.run(
            [sys.executable, "train.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        return done.stderr.replace(f"{os.path.realpath(folder)}{os.sep}", "").rstrip()


def in_notebook(program: str) -> str:
    """The output of a notebook kernel for a cell that fails, with colour codes."""
    import nbformat
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(text) for text in (IMPORTS, program)]
    book = nbformat.v4.new_notebook(cells=cells)
    os.environ["PYTHONPATH"] = str(ROOT)  # the kernel's
    NotebookClient(book, allow_errors=True, timeout=120).execute()
    errors = [o for o in book.cells[1].outputs if o.output_type == "error"]
    return "\n".join(errors[0].traceback)


def coloured(text: str, dark: bool) -> str:
    """Text with a terminal's codes for colours as HTML."""
    parts = SGR.split(text)  # text, codes, text, codes, ...
    made = [html.escape(parts[0])]
    for codes, rest in zip(parts[1::2], parts[2::2]):
        inks = [INKS[code][dark] for code in codes.split(";")[:2] if code in INKS]
        style = f' style="color: {inks[0]}"' if inks else ""
        made.append(f"<span{style}>{html.escape(rest)}</span>")
    return "".join(made)


def page(kind: str, mistake: Mistake, text: str, scheme: str) -> str:
    """The HTML page of one picture."""
    ground, panel, alarm, ink, border = SCHEMES[scheme]
    body = coloured(text, scheme == "dark")
    if kind == "terminal":
        shown = f'<pre class="panel"><b>$ python train.py</b>\n{body}</pre>'
    else:
        cell = html.escape(mistake.program)
        shown = (
            f'<div class="cell"><span>[2]:</span><pre class="panel">{cell}</pre></div>'
            f'<div class="cell"><span></span><pre class="alarm">{body}</pre></div>'
        )
    return f"""<meta charset="utf-8"><style>
body {{ margin: 0; background: {ground}; }}
#shown {{ display: inline-block; padding: 10px; background: {ground}; }}
pre {{ margin: 0; padding: 10px 12px; color: {ink}; font: 13px/1.4 "DejaVu Sans Mono", monospace;
  width: {COLUMNS}ch; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: 4px; }}
.panel {{ background: {panel}; border: 1px solid {border}; }}
.alarm {{ background: {alarm}; border: 1px solid transparent; }}
.cell {{ display: flex; gap: 8px; margin-bottom: 6px; }}
.cell > span {{ width: 4ch; padding-top: 11px; color: {ink}; opacity: 0.8;
  font: 13px/1.4 "DejaVu Sans Mono", monospace; }}
</style><div id="shown">{shown}</div>"""


def plain(text: str) -> str:
    """The text without colour codes, and without the names that a kernel gives to its temporary files."""
    return re.sub(r"\S*ipykernel_\d+\S*", "cell", SGR.sub("", text))


def small(png: bytes, text: str) -> bytes:
    """The picture with a palette, a third of the bytes; `text`: what it shows."""
    from PIL import Image, PngImagePlugin

    held = PngImagePlugin.PngInfo()
    held.add_itxt("shown", plain(text))

    made = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(made, "PNG", optimize=True, pnginfo=held)
    return made.getvalue()


def write() -> int:
    """Write all pictures; returns their bytes."""
    from playwright.sync_api import sync_playwright

    found = {m.title: m for m in mistakes(PAGE.read_text())}
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1000, "height": 800}, device_scale_factor=SCALE)
        for title, name in SHOWN.items():
            mistake = found[title]
            texts = {"terminal": in_terminal(mistake.program), "notebook": in_notebook(mistake.program)}
            for kind, text in texts.items():
                for scheme in SCHEMES:
                    view.set_content(page(kind, mistake, text, scheme))
                    png = view.locator("#shown").screenshot()
                    (FOLDER / f"{name}-{kind}-{scheme}.png").write_bytes(small(png, text))
        browser.close()
    return sum(path.stat().st_size for path in FOLDER.glob("*.png"))


if __name__ == "__main__":
    size = write()
    print(f"{len([*FOLDER.glob('*.png')])} pictures, {size // 1000} kB")
    if size > MAX_BYTES:
        sys.exit(f"more than {MAX_BYTES // 1000} kB")
