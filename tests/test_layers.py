"""Imports point down (DESIGN section 2), at the top of a file and in its functions, and never in a
circle."""

from __future__ import annotations

import ast

import pytest

from tests.support.paths import PACKAGE

# Lowest first. A module may import from its own layer and from those below. A name covers what is
# under it, and the longest name wins; "" is the package's own __init__, torch's namespace.
LAYERS = [
    [
        "base",
        "version",
        "torch_version",
        "torch_names",
        "absent",
        "errors",
        "dtypes",
        "device",
        "size",
        "threads",
        "memory_format",
        "adding",
        "optional",
        "interrupts",
        "memory",
        "parts",
        "ops.kernels",
        "utils.pytree",
        "compile.cache",
        "compile.intrinsics",
        "compile.minimax",
        "compile.parallel",
        "compile.paying",
        "compile.scalars",
        "compile.tiles",
        "compile.vectors",
        "core",
        "loops",
        "fast.index",
        "fast.policy",
    ],
    [
        "printing",
        "ops.table",
        "ops.names",
        "autograd._node",
        "autograd.clock",
        "autograd.grad_mode",
    ],
    ["tensor"],
    # the engine hands out tensors
    [
        "autograd",
        "ops.later",
        "ops.worlds",
        "ops.large",
        "ops.chains",
        "ops.rows",
        "fast",
        "copying",
        "compile.expressions",
    ],
    [
        "ops",
        "creation",
        "inspection",
        "lists",
        "ranges",
        "settings",
        "sparse",
        "random",
        "sampling",
        "serialization",
    ],
    [
        "autograd.forward_ad",
        "autograd.tangents",
        "autograd.gradcheck",
        "autograd.checking",
        "func.batching",
        "func.boundary",
    ],
    [
        "futures",
        "library",
        "overrides",
        "return_types",
        "storage",
        "types",
        "common",
        "control",
        "functional",
        "_utils",
        "linalg",
        "fft",
        "special",
        "masked",
        "signal",
        "backends",
        "accelerator",
        "jit",
        "hub",
        "onnx",
        "multiprocessing",
        "distributed",
        "_subclasses",
        "_tensor",
        "_tensor_str",
        "classes",
        "__config__",
    ],
    [
        "nn",
        "optim",
        "ao",
        "cpu",
        "cuda",
        "mps",
        "xpu",
        "compile",
        "compiler",
        "utils",
        "amp",
        "vision",
        "viz",
        "docs",
        "profiler",
        "func",
        "fx",
        "autograd.functional",
        "testing",
        "distributed.optim",
        "distributed.fsdp",
        "distributed._composable",
        "functorch",
        "_vmap_internals",
        "_C",
        "_dynamo",
        "_inductor",
        "autograd.profiler",
    ],
    [""],
    ["compat", "distributions", "quasirandom", "demo", "cli", "__main__"],
]


def imports_of(root):
    """{module: {(imported module, line)}} within the package `root`; a module is its dotted path in
    it."""
    modules = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {
        name: set(find_imports(name, path, modules, root.name)) for name, path in modules.items()
    }


def find_imports(name, path, modules, package):
    inside = name.split(".") if name else []
    home = inside if path.name == "__init__.py" else inside[:-1]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        for target in targets(node, home, package):
            found = longest_module(target, modules)
            if found is not None and found != name:
                yield found, node.lineno


def targets(node, home, package):
    """The dotted paths, from the package on, that an import statement or import_module("text")
    names."""
    if isinstance(node, ast.ImportFrom):
        if node.level:
            base = home[: len(home) - node.level + 1] + (node.module or "").split(".")
        else:
            base = strip(node.module, package)
        if base is not None:
            yield from ([*filter(None, base), alias.name] for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (
            path for alias in node.names if (path := strip(alias.name, package)) is not None
        )
    elif (
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module"
    ):
        text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        if isinstance(text, str) and strip(text, package) is not None:
            yield strip(text, package)


def strip(dotted, package):
    head, *rest = dotted.split(".")
    return rest if head == package else None


def longest_module(target, modules):
    """The module that a dotted path means: the path itself, or without its last name if that is no
    module."""
    for end in (len(target), len(target) - 1):
        if end >= 0 and ".".join(target[:end]) in modules:
            return ".".join(target[:end])
    return None


def layer_of(module, layers):
    """Place of the longest name in `layers` that covers the module, or None."""
    covers = {n: i for i, names in enumerate(layers) for n in names}
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        if ".".join(parts[:end]) in covers:
            return covers[".".join(parts[:end])]
    return covers.get("") if module == "" else None


def undeclared(imports, layers):
    return [f"{m}: in no layer; name it in LAYERS" for m in imports if layer_of(m, layers) is None]


def upward(imports, layers):
    """Imports that climb. Parent packages are not counted: Python imports those by itself."""
    return [
        f"{module or '__init__'}:{line} imports {found or '__init__'}, which stands in a layer "
        "above"
        for module, all_found in imports.items()
        for found, line in sorted(all_found)
        if layer_of(found, layers) is not None
        and layer_of(module, layers) is not None
        and layer_of(found, layers) > layer_of(module, layers)
    ]


def circles(imports):
    """What is left when modules that import nothing left are taken away, again and again."""
    left = {m: {f for f, _ in found} for m, found in imports.items()}
    while True:
        free = [m for m, found in left.items() if not found & left.keys()]
        if not free:
            return sorted(left)
        for m in free:
            del left[m]


def test_every_module_has_a_layer():
    assert undeclared(imports_of(PACKAGE), LAYERS) == []


def test_imports_point_down():
    assert upward(imports_of(PACKAGE), LAYERS) == []


def test_no_circles():
    assert circles(imports_of(PACKAGE)) == []


# The test can fail: a small package with each fault.

TREE = {
    "pkg/__init__.py": (
        "import importlib\ndef __getattr__(n): return importlib.import_module(f'pkg.{n}')\n"
    ),
    "pkg/low/__init__.py": "",
    "pkg/low/a.py": "def f():\n    from ..high import g\n",
    "pkg/low/b.py": "from . import c\n",
    "pkg/low/c.py": "import pkg.low.b as b\n",
    "pkg/low/d.py": "import importlib\ng = importlib.import_module('pkg.high')\n",
    "pkg/high.py": "from pkg.low import a\nfrom .low.b import x\ndef g(): pass\n",
    "pkg/stray.py": "",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return imports_of(tmp_path / "pkg")


def test_imports_are_found(tree):
    assert tree["low.a"] == {("high", 2)}
    assert tree["low.b"] == {("low.c", 1)}
    assert tree["low.c"] == {("low.b", 1)}
    assert tree["low.d"] == {("high", 2)}
    assert tree["high"] == {("low.a", 1), ("low.b", 2)}
    assert tree[""] == set()


def test_faults_are_found(tree):
    layers = [["low"], ["high"], [""]]
    assert [fault.split(":")[0] for fault in undeclared(tree, layers)] == ["stray"]
    assert [fault.split(" ")[0] for fault in upward(tree, layers)] == ["low.a:2", "low.d:2"]
    assert set(circles(tree)) >= {"low.b", "low.c"}


def test_a_clean_tree_passes(tree):
    clean = {"low.b": {("low.c", 1)}, "low.c": set(), "high": {("low.b", 1)}}
    assert (
        undeclared(clean, [["low"], ["high"]])
        == upward(clean, [["low"], ["high"]])
        == circles(clean)
        == []
    )
