"""mkdocs hook: a page and a notebook of each lesson in docs/learn, and rushlight's wheel, which the
pages run in the browser."""

from __future__ import annotations

import importlib.util
import io
import os
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]


def on_files(files, config):
    from mkdocs.structure.files import File

    lessons = tool("lessons")
    notebooks = {}
    for source in lessons.sources():
        notebook = lessons.executed(source)
        page = lessons.page(notebook, source.stem, "../" if config.use_directory_urls else "")
        notebooks[f"{source.stem}.ipynb"] = lessons.download(notebook)
        files.append(File.generated(config, f"learn/{source.stem}.md", content=page.text))
        for name, content in page.files.items():
            files.append(File.generated(config, f"learn/{name}", content=content))
    for name, content in notebooks.items():
        files.append(File.generated(config, f"learn/{name}", content=content))
    texts = {path.name: path.read_text() for path in lessons.LEARN.glob("*.txt")}
    files.append(
        File.generated(config, "learn/lessons.zip", content=zipped({**notebooks, **texts}))
    )
    name, content = wheel()
    files.append(File.generated(config, f"assets/{name}", content=content))
    files.append(File.generated(config, "assets/wheel.txt", content=name))
    return files


def tool(name: str):
    """A module of tools/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"tool_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def zipped(texts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(texts.items()):
            dated = zipfile.ZipInfo(name)  # of 1980: the same archive from the same texts
            archive.writestr(dated, text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def wheel() -> tuple[str, bytes]:
    """rushlight's wheel, built from this checkout: its name and its bytes."""
    from hatchling.build import build_wheel

    before = os.getcwd()
    with TemporaryDirectory() as folder:
        os.chdir(ROOT)
        try:
            name = build_wheel(folder)
        finally:
            os.chdir(before)
        return name, (Path(folder) / name).read_bytes()
