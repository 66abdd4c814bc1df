"""The README of each folder: short, about files that exist, true about what the folder imports."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import PACKAGE, ROOT
from tests.test_layers import ORDER, folder

MAX_LINES = 20
READMES = {
    str(path.parent.relative_to(PACKAGE)): path.read_text()
    for path in sorted(PACKAGE.rglob("README.md"))
    # the package's own README has the order alone, and rushlight/data has no code
    if path.parent != PACKAGE and (path.parent.name != "data" or path.parent.parent.name == "utils")
}
FOLDERS = sorted({str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")} - {"."})


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_has_a_readme_or_a_line_in_that_of_the_folder_above(name):
    while name not in READMES:
        name, _, last = name.rpartition("/")
        assert name, f"rushlight/{last} has no README.md"
        if name in READMES:
            assert f"`{last}/`" in READMES[name]


@pytest.mark.parametrize("name", READMES)
def test_a_readme_is_short_and_says_what_to_read_first(name):
    assert len(READMES[name].splitlines()) <= MAX_LINES
    assert re.search(r"Read first: |in an evening:\n", READMES[name])


@pytest.mark.parametrize("name", READMES)
def test_a_readme_names_files_that_exist(name):
    text = READMES[name]
    names = re.findall(r"(?<![\w./])[\w/]+\.(?:py|js|css|html|md)\b", text)
    assert [
        file for file in names if not any((place / file).exists() for place in (PACKAGE / name, PACKAGE, ROOT))
    ] == []


@pytest.mark.parametrize("name", READMES)
def test_a_readme_names_functions_of_the_files_it_names(name):
    """`page.py`: the step page (`html`): page.py has the name html."""
    for file, function in re.findall(r"`([\w/]+\.py)`[^`]*?\(`(\w+)`", READMES[name]):
        assert re.search(rf"\b{function}\b", (PACKAGE / name / file).read_text()), (file, function)


@pytest.mark.parametrize("name", READMES)
def test_a_readme_says_what_the_folder_may_import(name):
    said = re.search(r"May import: ([\w, ]+)", READMES[name])[1]
    below = ORDER[: ORDER.index(folder(tuple(name.split("/"))))]
    expected = f"base to {below[-1]}" if len(below) > 3 else ", ".join(below)
    assert said == (expected or "nothing of rushlight")


def test_the_map_of_the_folders_has_a_row_for_each_layer_in_order():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+)[/.].*? \| .*? \| (.*?) \|$", page, re.MULTILINE)
    names = ["public" if name == "__init__" else name for name, _ in rows]
    assert names == ORDER
    for name, may_import in rows:
        if name in READMES:
            assert f"May import: {may_import}." in READMES[name].replace("\n", " ")


def test_the_readme_of_the_package_has_the_order():
    listed = (PACKAGE / "README.md").read_text().split("\n\n")[2].replace("\n", " ")
    public = "the files of this folder (torch's namespaces, thin)"
    assert listed.removesuffix(".").replace(public, "public").split(", ") == ORDER
