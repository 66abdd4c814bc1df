"""The README of each folder: short, about files that exist, true about what the folder imports."""

from __future__ import annotations

import re

import pytest

from tests.layers_by_folder import ORDER
from tests.support.paths import PACKAGE, ROOT

MAX_LINES = 20
READMES = {
    str(path.parent.relative_to(PACKAGE)): path.read_text()
    for path in sorted(PACKAGE.rglob("README.md"))
    if path.parent.name != "data" or path.parent.parent.name == "utils"  # rushlight/data: no code
}
FOLDERS = sorted({str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")} - {"."})


def layer_of(folder):
    """The layer of a folder; a public namespace that is a folder, as `signal`, is in `public`."""
    first = folder.split("/")[0]
    return first if first in {*ORDER, "fast"} else "public"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_has_a_readme_or_a_line_in_that_of_the_folder_above(folder):
    while folder not in READMES:
        folder, _, last = folder.rpartition("/")
        assert folder, f"rushlight/{last} has no README.md"
        if folder in READMES:
            assert f"`{last}/`" in READMES[folder]


@pytest.mark.parametrize("folder", READMES)
def test_a_readme_is_short_and_says_what_to_read_first(folder):
    assert len(READMES[folder].splitlines()) <= MAX_LINES
    assert re.search(r"Read first: |in an evening:\n", READMES[folder])


@pytest.mark.parametrize("folder", READMES)
def test_a_readme_names_files_that_exist(folder):
    text = READMES[folder]
    names = re.findall(r"(?<![\w./])[\w/]+\.(?:py|js|css|html|md)\b", text)
    assert [
        name
        for name in names
        if not any((place / name).exists() for place in (PACKAGE / folder, PACKAGE, ROOT))
    ] == []


@pytest.mark.parametrize("folder", READMES)
def test_a_readme_names_functions_of_the_files_it_names(folder):
    """`page.py`: the step page (`html`): page.py has the name html."""
    for file, name in re.findall(r"`([\w/]+\.py)`[^`]*?\(`(\w+)`", READMES[folder]):
        assert re.search(rf"\b{name}\b", (PACKAGE / folder / file).read_text()), (file, name)


@pytest.mark.parametrize("folder", READMES)
def test_a_readme_says_what_the_folder_may_import(folder):
    said = re.search(r"May import: ([\w, ]+)", READMES[folder])[1]
    layer = layer_of(folder)
    if layer == "fast":
        assert said.startswith("base, loops, kernels, core, ops")
        return
    below = ORDER[: ORDER.index(layer)]
    if through := re.match(r"base to (\w+)", said):
        others = below[below.index(through[1]) + 1 :]  # each has a name in the text
        assert all(name in said for name in others)
    else:
        assert said.startswith(", ".join(below) or "nothing of rushlight")
