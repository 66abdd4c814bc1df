"""The worlds have every name that rules use, and nothing but rules uses the names that are imported for type checkers
alone."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import sys
from importlib import import_module
from types import FunctionType

import pytest

from rushlight.base.lazy import complete
from rushlight.core.table import SHARED, TABLE
from rushlight.core.worlds import ARRAYS, TENSORS
from tests.support.paths import PACKAGE


def imported_for_checkers(stub):
    """{module: names that it imports from a stub that has no module at run time}."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(), str(file))):
            if isinstance(node, ast.ImportFrom) and node.module == stub:
                module = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
                found[module] = {alias.name for alias in node.names}
    return found


def global_names(code):
    """The global names that a function's code reads, and those of the functions in it."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return names.union(*[global_names(inner) for inner in code.co_consts if inspect.iscode(inner)]) - set(dir(builtins))


def rules():
    """(what it is, function), for every derivative and every helper that rules share."""
    complete()
    for op in TABLE.values():
        for name, rule in op.rules.items():
            if rule is not None:
                yield f"{op.name}, {name}", rule
    yield from SHARED.items()


def test_worlds_have_the_names_in_rules():
    missing = {
        what: names
        for what, rule in rules()
        for world in (ARRAYS, TENSORS)
        if (names := global_names(rule.__code__) - world.keys())
    }
    assert missing == {}


def test_the_world_of_arrays_has_the_names_in_formulas():
    complete()
    missing = {op.name: names for op in TABLE.values() if (names := global_names(op.forward.__code__) - ARRAYS.keys())}
    assert missing == {}


def test_rules_import_for_checkers_what_they_use():
    """A name that no rule of the file uses is ruff's to find (F401), a name that no world has is ours."""
    complete()
    found = imported_for_checkers("rushlight.core.rule_names")
    assert len(found) > 20
    assert {module: names - ARRAYS.keys() for module, names in found.items()} == dict.fromkeys(found, set())


def test_loops_import_for_checkers_what_they_use():
    pytest.importorskip("llvmlite")
    from rushlight.loops.scope import scope

    found = imported_for_checkers("rushlight.loops.loop_names")
    assert found
    assert {module: names - scope().keys() for module, names in found.items()} == dict.fromkeys(found, set())


def test_only_rules_use_the_names_that_are_imported_for_checkers():
    """Any other function of the file would find no such name when it runs."""
    complete()
    written = {op.forward for op in TABLE.values()} | {rule for _, rule in rules()}
    written |= {op.options["parts"] for op in TABLE.values() if "parts" in op.options}
    for module, names in imported_for_checkers("rushlight.core.rule_names").items():
        import_module(module)
        for name, value in vars(sys.modules[module]).items():
            if isinstance(value, FunctionType) and value.__module__ == module:
                used = global_names(value.__code__) & names - vars(sys.modules[module]).keys()
                assert not used or value in written, f"{module}.{name}: {used}"
