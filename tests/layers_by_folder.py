"""A folder is a layer, and folders import downwards.

Not collected until the package has these folders; this file then becomes test_layers.py.
"""

from __future__ import annotations

import ast

import pytest

from tests.support.paths import PACKAGE

# Lowest first. A folder imports itself and the folders below it, at the top of a file and inside
# functions.
ORDER = """
    base loops kernels core random creation ops sparse autograd func profiler serialization distributed
    nn optim amp utils fx vision compile introspect viz public compat distributions demo cli
""".split()
# Beside the order: `fast` imports these, and nothing below `compile` imports `fast`.
FAST = {"base", "loops", "kernels", "core", "ops", "fast"}
ROOT_FILES = {
    "__main__": "cli",
    "version": "base",
}  # every other file of the root is a public namespace


def folder(parts):
    """The folder of a module, given its path in the package: ("ops", "math", "activation") ->
    "ops"."""
    return parts[0] if parts[0] in {*ORDER, "fast"} else ROOT_FILES.get(parts[0], "public")


def modules_of(root):
    """{path in the package: file}, for every module and package."""
    found = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        found[parts[:-1] if parts[-1] == "__init__" else parts] = file
    return found


def imports_of(parts, file, modules, package):
    """(line, path of the imported module), for import statements and import_module with text."""
    home = parts if file.name == "__init__.py" else parts[:-1]
    for node in ast.walk(ast.parse(file.read_text(), str(file))):
        for target in targets(node, home, package):
            for end in (len(target), len(target) - 1):  # the last name may be a function's
                if end >= 0 and target[:end] in modules:
                    if target[:end] != parts:
                        yield node.lineno, target[:end]
                    break


def targets(node, home, package):
    """The paths in the package that a node of the syntax tree imports."""
    if isinstance(node, ast.ImportFrom):
        base = node.module.split(".") if node.module else []
        if node.level:
            base = [package, *home[: len(home) - node.level + 1], *base]
        names = [[*base, alias.name] for alias in node.names]
    elif isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
    elif (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] == "import_module"
        and node.args
    ):
        text = node.args[0]
        names = (
            [text.value.split(".")]
            if isinstance(text, ast.Constant) and isinstance(text.value, str)
            else []
        )
    else:
        names = []
    return [tuple(name[1:]) for name in names if name[0] == package]


def arrows(root):
    """(folder, folder that it imports, where), one for each import that leaves its folder."""
    modules = modules_of(root)
    for parts, file in modules.items():
        here = folder(parts) if parts else "public"
        for line, target in imports_of(parts, file, modules, root.name):
            there = folder(target) if target else "public"
            if here != there:
                yield (
                    here,
                    there,
                    f"{file.relative_to(root)}:{line} imports {'.'.join(target) or 'the package'}",
                )


def allowed(here, there):
    if here == "fast":
        return there in FAST
    if there == "fast":
        return ORDER.index(here) >= ORDER.index("compile")
    return ORDER.index(there) <= ORDER.index(here)


def climbing(root):
    return [where for here, there, where in arrows(root) if not allowed(here, there)]


def cycles(root):
    """The folders that are left when those that import none of the others are taken away, again and
    again."""
    left = {}
    for here, there, _ in arrows(root):
        left.setdefault(here, set()).add(there)
        left.setdefault(there, set())
    while free := [f for f in left if not left[f] & left.keys()]:
        for f in free:
            del left[f]
    return sorted(left)


def test_folders_import_downwards():
    assert climbing(PACKAGE) == []


def test_no_cycle_of_folders():
    assert cycles(PACKAGE) == []


FAULTS = {
    "nothing": ("ops/math/tanh.py", "from ...core import table\n", []),
    "at the top": ("core/table.py", "from ..ops import math\n", ["core/table.py:1"]),
    "in a function": (
        "core/table.py",
        "def f():\n    from pkg.nn import linear\n",
        ["core/table.py:2"],
    ),
    "import_module": (
        "core/table.py",
        "import importlib as i\ni.import_module('pkg.nn.linear')\n",
        ["core/table.py:2"],
    ),
    "fast, from below": ("ops/math/tanh.py", "from pkg import fast\n", ["ops/math/tanh.py:1"]),
    "fast, upwards": ("fast/conv.py", "from ..nn import linear\n", ["fast/conv.py:1"]),
    "fast, from above": ("compile/graph.py", "from ..fast import conv\n", []),
    "the public package": ("nn/linear.py", "from .. import linalg\n", ["nn/linear.py:1"]),
    "the package itself": ("nn/linear.py", "import pkg\n", ["nn/linear.py:1"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(tmp_path, name):
    file, text, expected = FAULTS[name]
    files = {f"{f}/__init__.py": "" for f in ("core", "ops", "ops/math", "nn", "fast", "compile")}
    files |= {
        "__init__.py": "",
        "linalg.py": "",
        "nn/linear.py": "",
        "fast/conv.py": "",
        file: text,
    }
    for path, content in files.items():
        (tmp_path / "pkg" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pkg" / path).write_text(content)
    assert [where.split(" ")[0] for where in climbing(tmp_path / "pkg")] == expected


def test_a_cycle_is_found(tmp_path):
    for path, text in {
        "__init__.py": "",
        "nn/__init__.py": "import pkg.optim",
        "optim/__init__.py": "import pkg.nn",
    }.items():
        (tmp_path / "pkg" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pkg" / path).write_text(text)
    assert cycles(tmp_path / "pkg") == ["nn", "optim"]
