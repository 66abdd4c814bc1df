"""The house's rules: what stands in the package's root, what tests are called, how long files and functions are.
tools/house.py prints how it stands."""

from __future__ import annotations

from tests.support.package_facts import facts
from tests.support.paths import PACKAGE, TESTS

EXCEPTIONS = TESTS / "house_exceptions.txt"

FILE_TOKENS = 6000
FUNCTION_TOKENS = 500
FUNCTION_BRANCHES = 20

LAYERS = set(
    """
    base loops kernels core random creation ops fast sparse comm func profiler serialization
    distributed autograd nn optim amp ao utils fx vision compile introspect viz teaching recording compat distributions
    demo data onnx archives
""".split()
)
# Names that a user writes after `rushlight.`, as files or folders.
PUBLIC = set(
    """
    backends compiler docs export fft functional futures hub jit library linalg masked multiprocessing
    overrides quasirandom return_types signal special storage testing torch_version types
""".split()
)
FILES = {"README", "__init__", "__main__", "cli", "version", "py", "_methods"}  # py.typed; stubs of methods

# Tests of what is no module of the package, by folder; and tests of the package as a whole.
OTHER_FOLDERS = {"table", "conformance", "programs", "fuzz", "docs", "examples", "tools", "support", "zoo"}
WHOLE = {"import", "layers", "house"}


def root_names(package):
    return {path.name.partition(".")[0] for path in package.iterdir() if path.name != "__pycache__"}


def test_the_root_holds_layers_and_public_namespaces():
    assert root_names(PACKAGE) - LAYERS - PUBLIC - FILES == set()


def misnamed(tests, package):
    """The test files named after no file or folder of the package; test_conv_gradients.py is named after conv."""
    found = []
    for path in sorted(tests.rglob("test_*.py")):
        folder = path.parent.relative_to(tests)
        if folder.parts and folder.parts[0] in OTHER_FOLDERS:
            continue
        here = package / folder
        names = {p.stem for p in here.iterdir()} | {folder.name} if here.is_dir() else set()
        words = path.stem.split("_")[1:]
        subjects = {"_".join(words[: n + 1]) for n in range(len(words))}
        if not subjects & (names if folder.parts else names | WHOLE):
            found.append(str(path.relative_to(tests)))
    return found


def test_tests_are_named_after_what_they_test():
    assert misnamed(TESTS, PACKAGE) == []


def sizes(package):
    """({file: tokens}, {"file function": (tokens, branches)})."""
    known = facts(package)
    files = {file: of.tokens for file, of in known.items()}
    return files, {f"{file} {name}": sizes for file, of in known.items() for name, sizes in of.functions.items()}


def too_long(package):
    return {
        name
        for name, (tokens, ways) in sizes(package)[1].items()
        if tokens > FUNCTION_TOKENS or ways > FUNCTION_BRANCHES
    }


def test_files_are_small():
    assert {file: n for file, n in sizes(PACKAGE)[0].items() if n > FILE_TOKENS} == {}


def test_functions_are_short():
    """The list of exceptions may only shrink: a function that became short leaves it."""
    listed = set(EXCEPTIONS.read_text().splitlines())
    assert too_long(PACKAGE) == listed


def test_faults_are_found(tmp_path):
    package, tests = tmp_path / "pkg", tmp_path / "tests"
    for file in (
        "pkg/core/engine.py",
        "pkg/odd.py",
        "tests/core/test_engine_threads.py",
        "tests/core/test_found.py",
        "tests/core/test_core.py",
        "tests/nowhere/test_engine.py",
        "tests/table/test_ops.py",
        "tests/test_odd.py",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    assert root_names(package) - LAYERS == {"odd"}
    assert misnamed(tests, package) == ["core/test_found.py", "nowhere/test_engine.py"]
    wide = "class A:\n    def f(self):\n        def g(): return " + "0 or " * FUNCTION_BRANCHES + "0\n"
    (package / "odd.py").write_text(wide + "def h():\n" + "    x = 1\n" * FUNCTION_TOKENS + "def short(): pass\n")
    assert too_long(package) == {"odd.py A.f", "odd.py A.f.g", "odd.py h"}
    assert sizes(package)[0]["odd.py"] > 3 * FUNCTION_TOKENS
