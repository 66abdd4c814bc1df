"""The stubs that editors and mypy read are those that the op table gives today."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
tool = runpy.run_path(str(ROOT / "tools" / "stubs.py"), run_name="stubs")


@pytest.mark.parametrize("name", tool["STUBS"])
def test_stubs_are_up_to_date(name):
    assert (ROOT / "rushlight" / name).read_text() == tool["STUBS"][name](), "run `make stubs`"


def test_types_are_shown():
    shown, tensor = tool["shown"], tool["Tensor"]
    assert shown(tensor | None) == "_Tensor | None"
    assert shown(dict[str, list[tensor]]) == "_dict[_str, _list[_Tensor]]"
    assert shown(tuple[int, ...]) == "_tuple[_int, ...]"
    assert shown(int | complex) == "_int | _complex"
    assert shown(Path) == "Any"


def test_functions_are_shown():
    def f(a, b: int = 0, *rest: float, c: str = "", **more): ...
    def g(a: bool, /, *, b) -> None: ...

    stub = tool["definition"]
    assert stub("f", f) == "def f(a: Any, b: _int = ..., *rest: _float, c: _str = ..., **more: Any) -> Any: ..."
    assert stub("g", g) == "def g(a: _bool, /, *, b: Any) -> None: ..."
    assert stub("g", g, "    ") == "    def g(self, /, *, b: Any) -> None: ..."
