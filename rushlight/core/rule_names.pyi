"""The names in the rules of ops, for type checkers and linters. There is no such module at run time.

A rule's names have no import: its world gives them when the rule runs (core/worlds.py). A file of
rules imports the names from here for checkers alone. tests/core/test_worlds.py checks that
the worlds have every name that is imported."""

from typing import Any

def __getattr__(name: str) -> Any: ...
