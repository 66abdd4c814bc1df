"""The stubs that editors and mypy read are those that the op table gives today, and mypy understands programs."""

from __future__ import annotations

import ast
import importlib
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

tool = runpy.run_path(str(ROOT / "tools" / "stubs.py"), run_name="stubs")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the stubs of today, by a fresh process: other tests load what a user may not."""
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, ROOT / "tools" / "stubs.py", folder], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", tool["STUBS"])
def test_stubs_are_up_to_date(name, written):
    assert (ROOT / "rushlight" / name).read_text() == (written / name).read_text(), "run `make stubs`"


def test_types_are_shown():
    shown, tensor = tool["shown"], tool["Tensor"]
    assert shown(tensor | None) == "_Tensor | None"
    assert shown(dict[str, list[tensor]]) == "_dict[_str, _list[_Tensor]]"
    assert shown(tuple[int, ...]) == "_tuple[_int, ...]"
    assert shown(int | complex) == "_int | _complex"
    assert shown(tuple) == "_tuple[Any, ...]"
    assert shown(Path) == "Any"


def test_functions_are_shown():
    def f(a, b: int = 0, *rest: float, c: str = "", **more): ...
    def g(a: bool, /, *, b) -> None: ...
    def h(a: int, /) -> str: ...

    stub = tool["definition"]
    assert stub("f", f) == "def f(a: Any, b: _int = ..., *rest: _float, c: _str = ..., **more: Any) -> Any: ..."
    assert stub("g", g) == "def g(a: _bool, /, *, b: Any) -> None: ..."
    assert stub("h", h) == "def h(a: _int, /) -> _str: ..."
    assert stub("g", g, method=True) == "def g(self, *, b: Any) -> None: ..."


def test_entries_are_shown_with_their_formula():
    import rushlight

    stub = tool["definition"]
    assert stub("mul", rushlight.mul) == (
        "def mul(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: "
        '"""out = input * other. The product."""'
    )
    assert stub("unsqueeze", rushlight.unsqueeze, method=True).startswith("def unsqueeze(self, dim: _int) -> _Tensor: ")
    assert stub("topk", rushlight.topk).startswith(
        "def topk(input: _Tensor, k: _int, dim: _int = ..., largest: _bool = ..., sorted: _bool = ..., *, out: Any = "
        "...) -> _ValuesIndices: "
    )


PROGRAM = """
import rushlight as torch
from rushlight import Tensor

x = torch.tensor([[1.0, 2.0]], requires_grad=True)
y: Tensor = torch.sin(x) @ torch.ones(2, 3)
z = (2 * y + x.sum(1, keepdim=True)).relu()
z.sum().backward()
values, indices = torch.sort(x, dim=1)
total: float = sum(row.sum().item() for row in x.T)
with torch.no_grad():
    x.mul_(2)
small = (-x < y[0]) & (x == 1)
n: int = x.numel()
parts: tuple[Tensor, ...] = torch.split(x, 1)
where = x.sort(0).indices
wide: torch.dtype = torch.float64
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
optimizer = torch.optim.Adam(torch.nn.Linear(2, 3).parameters(), lr=0.1)
norm: Tensor = torch.linalg.norm(x) + torch.nn.functional.mse_loss(x, x)
reveal_type(torch.sin(x))    # Tensor
reveal_type(2 * y)           # Tensor
reveal_type(small)           # Tensor
reveal_type(where)           # Tensor
reveal_type(x.shape)         # Size
reveal_type(x.grad)          # Tensor | None
torch.sin("x")               # error: Argument 1 to "sin" has incompatible type "str"; expected "Tensor"
x.sine()                     # error: "Tensor" has no attribute "sine"
torch.nothing                # error: Module has no attribute "nothing"
torch.add(x, y, beta=2)      # error: Unexpected keyword argument "beta" for "add"
x.narrow(0, 0)               # error: Missing positional argument "length" in call to "narrow" of "Methods"
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """{line: what mypy says about it}."""
    pytest.importorskip("mypy")
    file = tmp_path_factory.mktemp("program") / "program.py"
    file.write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--python-version=3.10",
        "--config-file=",
        f"--cache-dir={ROOT / '.mypy_cache' / 'program'}",
        file.name,
    ]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=file.parent, env=environment, capture_output=True, text=True)
    found = re.findall(r"^program\.py:(\d+): (.*?)(?:  \[.*)?$", done.stdout, re.MULTILINE)
    return {int(line): said for line, said in reversed(found)}


@pytest.mark.exhaustive
def test_mypy_understands_a_program(checked):
    lines = PROGRAM.split("\n")
    expected = {i: line.partition("# ")[2] for i, line in enumerate(lines, 1) if "# " in line}
    types = {i: re.sub(r'note: Revealed type is "(.*)"', r"\1", said) for i, said in checked.items()}
    assert {i: re.sub(r"rushlight\.(\w+\.)+", "", said) for i, said in types.items()} == expected


@pytest.mark.parametrize("folder", ["nn", "nn/functional", "nn/utils"])
def test_packages_export_what_they_import(folder):
    """For `mypy --strict`, a name that is imported and not in `__all__` is not public."""
    tree = ast.parse((ROOT / "rushlight" / folder / "__init__.py").read_text())
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    module = importlib.import_module(f"rushlight.{folder.replace('/', '.')}")
    assert {name for name in imported if not name.startswith("_")} <= {*module.__all__}
