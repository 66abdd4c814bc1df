"""A folder is a layer, and folders import downwards: at the top of a file and inside functions."""

from __future__ import annotations

import ast

import pytest

from tests.support.package_facts import facts
from tests.support.paths import PACKAGE

# Lowest first. A folder imports itself and the folders before it; so no folders import in a circle. `public` is the
# package itself and the files of its root: torch's namespaces.
ORDER = """
    base loops kernels core random creation ops fast sparse func profiler serialization
    autograd comm nn optim amp ao utils distributed fx vision compile introspect viz teaching recording public onnx archives compat
    distributions demo cli
""".split()
# A file of the root that names what one layer implements belongs to that layer.
ROOT_FILES = {
    "__main__": "cli",
    "version": "base",
    "linalg": "ops",
    "fft": "ops",
    "special": "ops",
    "jit": "archives",
    "export": "archives",
}
ALSO_FOUND_IN = ("compat", "names")  # `import rushlight.cuda` finds compat/names/cuda.py


def folder(parts):
    """The layer of a module, given its path in the package: ("ops", "math", "activation") -> "ops"."""
    if not parts or parts[:2] == ALSO_FOUND_IN:
        return "public"
    return parts[0] if parts[0] in ORDER else ROOT_FILES.get(parts[0], "public")


def modules_of(root):
    """{path in the package: file}, for every module and package."""
    found = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        found[parts[:-1] if parts[-1] == "__init__" else parts] = file
    return {**{parts[2:]: file for parts, file in found.items() if parts[:2] == ALSO_FOUND_IN}, **found}


def imports_of(parts, file, modules, root):
    """(line, path of the imported module), for import statements and import_module with text."""
    home, package = parts if file.name == "__init__.py" else parts[:-1], root.name
    for node in facts(root)[file.relative_to(root).as_posix()].imports:
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
    elif node.args:
        text = node.args[0]
        names = [text.value.split(".")] if isinstance(text, ast.Constant) and isinstance(text.value, str) else []
    else:
        names = []
    return [tuple(name[1:]) for name in names if name[0] == package]


def climbing(root):
    """{(file, layer that it imports): places}, for the imports of a layer above the file's own."""
    modules, found = modules_of(root), {}
    for parts, file in modules.items():
        for line, target in imports_of(parts, file, modules, root):
            there = folder(target)
            if ORDER.index(there) > ORDER.index(folder(parts)):
                name = file.relative_to(root).as_posix()
                found.setdefault((name, there), set()).add(f"{name}:{line}")
    return found


def test_folders_import_downwards():
    assert climbing(PACKAGE) == {}


FAULTS = {
    "nothing": ("ops/math/tanh.py", "from ...core import table\n", []),
    "at the top": ("core/table.py", "from ..ops import math\n", ["core/table.py:1"]),
    "in a function": ("core/table.py", "def f():\n    from pkg.nn import linear\n", ["core/table.py:2"]),
    "import_module": (
        "core/table.py",
        "import importlib as i\ni.import_module('pkg.nn.linear')\n",
        ["core/table.py:2"],
    ),
    "fast, from below": ("ops/math/tanh.py", "from pkg import fast\n", ["ops/math/tanh.py:1"]),
    "fast, upwards": ("fast/conv.py", "from ..nn import linear\n", ["fast/conv.py:1"]),
    "fast, from above": ("compile/graph.py", "from ..fast import conv\n", []),
    "a name of torch": ("nn/linear.py", "from pkg.cuda import Stream\n", ["nn/linear.py:1"]),
    "from a name of torch": ("compat/names/cuda.py", "from pkg import linalg\n", []),
    "the public package": ("nn/linear.py", "from .. import masked\n", ["nn/linear.py:1"]),
    "the package itself": ("nn/linear.py", "import pkg\n", ["nn/linear.py:1"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(tmp_path, name):
    file, text, expected = FAULTS[name]
    files = {f"{f}/__init__.py": "" for f in ("core", "ops", "ops/math", "nn", "fast", "compile")}
    files |= {
        "__init__.py": "",
        "linalg.py": "",
        "masked.py": "",
        "compat/names/cuda.py": "",
        "nn/linear.py": "",
        "fast/conv.py": "",
        file: text,
    }
    for path, content in files.items():
        (tmp_path / "pkg" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pkg" / path).write_text(content)
    assert sorted(set().union(*climbing(tmp_path / "pkg").values())) == expected
