"""The names in compiled loops, for type checkers and linters. There is no such module at run time.

A loop finds these names in `scope` (loops/scope.py). A file of loops imports the
names from here for checkers alone. tests/core/test_worlds.py checks that `scope` has every name
that is imported."""

from typing import Any

def __getattr__(name: str) -> Any: ...
